"""The training kernels of one fit: fitted, stored, and ready for the two hot verbs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cached_property
from threading import Lock
from typing import Any

import numpy as np

from kernelweave._typing import AnyArray, Indices, Matrix, Vector
from kernelweave.bank.cross import combined
from kernelweave.bank.protocol import FittedKernels
from kernelweave.errors import IncompatiblePartsError
from kernelweave.gram import DefersChecks, GramStack, KnowsRounding, LazyGrams, StoredStack, Subsets, store
from kernelweave.gram.protocol import images_at


@dataclass(frozen=True)
class GramBank:
    """Fitted kernels and their training Gram matrices, held as size, tolerance and memory ask for.

    Solvers use `combine` and `energies` (or `images`, when they need curvature); `cross` is for new samples.
    """

    fitted: FittedKernels
    stack: StoredStack = field(repr=False)
    centre: bool = False
    n_threads: int = 1
    in_float64: Callable[[], StoredStack] | None = field(default=None, repr=False)
    _refined: list[GramBank] = field(default_factory=list, repr=False)
    _refining: Lock = field(default_factory=Lock, repr=False)

    @classmethod
    def hold(
        cls,
        fitted: FittedKernels,
        *,
        centre: bool,
        tol: float,
        dtype: str = "auto",
        memory_limit: float | None = None,
        n_threads: int = 1,
        lazy: bool = False,
        for_many: bool = False,
        shared: bool = False,
        defer: bool = False,
    ) -> GramBank:
        """Compute and store the training Gram matrices of a fitted bank, or only prepare to make them.

        Who asks to ``defer`` checks calls `settle` after the work.
        """

        def stored(precision: str) -> StoredStack:
            return store(
                fitted.sources,
                fitted.n_samples,
                len(fitted),
                in_memory=fitted.in_memory,
                centre=centre,
                tol=tol,
                dtype=precision,
                memory_limit=memory_limit,
                n_threads=n_threads,
                lazy=lazy,
                for_many=for_many,
                shared=shared,
                defer=defer,
            )

        in_float64 = (lambda: stored("float64")) if dtype == "auto" else None
        return cls(fitted, stored(dtype), centre, n_threads, in_float64)

    @property
    def names(self) -> tuple[str, ...]:
        return self.fitted.names

    @property
    def n_kernels(self) -> int:
        return self.stack.n_kernels

    @property
    def n_samples(self) -> int:
        return self.stack.n_samples

    @property
    def sizes(self) -> Vector:
        return self.stack.sizes

    @property
    def errors(self) -> Vector:
        return self.stack.errors

    @property
    def shifts(self) -> Matrix:
        return self.stack.shifts

    @property
    def is_rounded(self) -> bool:
        return self.stack.is_rounded

    def settle(self) -> bool:
        """Finish the checks; return whether entries had to be changed, so that earlier answers are void."""
        return self._deferring is not None and self._deferring.settle()

    @cached_property
    def _deferring(self) -> DefersChecks | None:
        return self.stack if isinstance(self.stack, DefersChecks) else None

    @cached_property
    def _rounding(self) -> KnowsRounding | None:
        """The stack, if it can tell what rounding did; asked once, for protocols are slow to answer."""
        return self.stack if isinstance(self.stack, KnowsRounding) else None

    def combine(self, eta: Vector, out: AnyArray | None = None) -> AnyArray:
        return self.stack.combine(eta, out)

    def images(self, coef: AnyArray) -> AnyArray:
        return self.stack.images(coef)

    def images_at(self, coef: AnyArray, where: AnyArray) -> AnyArray:
        return images_at(self.stack, coef, where)

    def energies(self, coef: AnyArray) -> Vector:
        return self.stack.energies(coef)

    def subset(self, which: Indices) -> GramStack:
        """Return these kernels alone, in this order, ready for many passes."""
        if not isinstance(self.stack, Subsets):
            raise IncompatiblePartsError(
                f"Kernels held as {type(self.stack).__name__} cannot be taken out one by one, as column "
                "generation does; use Newton()."
            )
        return self.stack.subset(which)

    def sample(self, rows: Indices) -> StoredStack:
        """Return all kernels between these samples alone, in memory; rows ascend."""
        return self.stack.sample(rows)

    def offset(self, eta: Vector, coef: AnyArray) -> AnyArray:
        return self.stack.offset(eta, coef)

    def cross(self, X: Any, eta: Vector) -> Matrix:
        """Return Σ eta_m k_m between new samples and the training samples."""
        return combined(self.fitted, X, eta)

    def image_within(self, eta: Vector, coef: AnyArray) -> tuple[AnyArray, AnyArray]:
        """Return K(eta) V of the stored kernels, and how far the originals' may be: infinite if not known."""
        if self._rounding is not None:
            return self._rounding.image_within(eta, coef)
        return np.full(coef.shape, np.nan), np.full(coef.shape, np.inf)

    def energy_errors(self, coef: AnyArray) -> Vector:
        """Bound what rounding in storage took from the energies; infinite where that is not known."""
        if self._rounding is not None:
            return self._rounding.energy_errors(coef)
        return np.full(self.n_kernels, np.inf)

    def exact(self) -> LazyGrams:
        """Return the same kernels as they are, without rounding, computed again for every pass."""
        return LazyGrams(
            self.fitted.sources(),
            self.n_kernels,
            self.n_samples,
            centre=self.centre,
            n_threads=self.n_threads,
            shifts=self.stack.shifts,
            sizes=self.stack.sizes,
        )

    def refined(self) -> GramBank | None:
        """Return the same kernels stored in float64, once for all who ask.

        None where the dtype was fixed, or where float64 does not fit into memory.
        """
        if self.in_float64 is None:
            return None
        with self._refining:
            if not self._refined:
                try:
                    self._refined.append(replace(self, stack=self.in_float64(), in_float64=None))
                except MemoryError:  # then what was found on the rounded kernels has to do
                    return None
        return self._refined[0]
