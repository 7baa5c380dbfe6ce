"""The base of kernels that are made of kernels, and the group that evaluates one."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

import numpy as np

from kernelweave._typing import AnyArray, Matrix, Vector
from kernelweave.kernels.base import Kernel, Reads, Rows
from kernelweave.kernels.groups import GivenGroup, KernelGroup, grouped
from kernelweave.kernels.objects import are_objects
from kernelweave.kernels.pairs import Pairs


class Composite(Kernel):
    """A kernel whose values are a function of the values of other kernels, its parts.

    Subclasses are dataclasses whose fields named in ``part_names`` are kernels; they write ``combined``.
    """

    part_names: ClassVar[tuple[str, ...]] = ("kernel",)

    @property
    def parts(self) -> tuple[Kernel, ...]:
        """The kernels it is made of."""
        return tuple(getattr(self, name) for name in self.part_names)

    @property
    def weights(self) -> tuple[float, ...] | None:
        """The weights of the parts where it is their weighted sum, else None."""
        return None

    @abstractmethod
    def combined(self, values: Sequence[AnyArray]) -> AnyArray:
        """Return the kernel's values given those of its parts; a new array."""

    # What it can read is what all of its parts can.

    @property
    def reads(self) -> Reads:  # type: ignore[override]
        found = {part.reads for part in self.parts}
        return "objects" if "objects" in found else "numbers" if "numbers" in found else "either"

    @property
    def accepts_sparse(self) -> bool:  # type: ignore[override]
        return all(part.accepts_sparse for part in self.parts)

    @property
    def pairwise(self) -> bool:  # type: ignore[override]
        return any(part.pairwise for part in self.parts)

    @property
    def knows_diagonal(self) -> bool:  # type: ignore[override]
        return all(part.knows_diagonal for part in self.parts)

    @property
    def of_training(self) -> bool:  # type: ignore[override]
        return any(part.of_training for part in self.parts)

    def check(self) -> None:
        for part in self.parts:
            if not isinstance(part, Kernel):
                raise TypeError(
                    f"{type(self).__name__} is made of kernels such as Gaussian(), received {part!r}."
                )
            part.check()
        if len({part.pairwise for part in self.parts}) > 1:
            raise ValueError(
                f"{self.label} mixes kernels of given matrices with kernels of features, which read different "
                "input; make one of them a view of its own, or compute its matrix too."
            )

    def for_columns(self, names: Sequence[str | int]) -> Self:
        return self._with([part.for_columns(names) for part in self.parts])

    def resolve_from(self, pairs: Pairs) -> Self:
        self.check()
        return self._with([part.resolve_from(self.pairs_of(part, pairs)) for part in self.parts])

    def _with(self, parts: Sequence[Kernel]) -> Self:
        return replace(self, **dict(zip(self.part_names, parts, strict=True)))  # type: ignore[type-var]

    # -- values

    def rows_of(self, part: Kernel, X: Rows) -> Rows:
        """Return samples as a part reads them."""
        return part.rows(X) if are_objects(X) else X

    def pairs_of(self, part: Kernel, pairs: Pairs) -> Pairs:
        """Return pairs of samples as a part reads them; parts that read the same share what they compute."""
        X = self.rows_of(part, pairs.X)
        if X is pairs.X:
            return pairs
        return Pairs(X, None if pairs.Z is None else self.rows_of(part, pairs.Z))

    def matrix(self, pairs: Pairs) -> Matrix:
        return self.combined([part.matrix(self.pairs_of(part, pairs)) for part in self.parts])

    def diagonal_of(self, X: Rows) -> Vector:
        return self.combined([part.diagonal_of(self.rows_of(part, X)) for part in self.parts])

    def own_group(self, X: Rows) -> KernelGroup | None:
        return GivenGroup(self, self.matrix(Pairs(X))) if self.pairwise else CompositeGroup(self, X)


@dataclass(frozen=True)
class JoinedRows:
    """The same samples as several groups read them."""

    parts: tuple[Any, ...]

    ndim = 1  # not one table of numbers

    @property
    def shape(self) -> tuple[int]:
        return (int(self.parts[0].shape[0]),)

    def __getitem__(self, rows: Any) -> JoinedRows:
        return JoinedRows(tuple(part[rows] for part in self.parts))


class CompositeGroup(KernelGroup):
    """One composite kernel, evaluated by the groups of its parts; sums keep their fast products."""

    def __init__(self, kernel: Composite, X: Rows) -> None:
        super().__init__([kernel])
        self.kernel = kernel
        self.groups = [grouped([part], kernel.rows_of(part, X))[0][1] for part in kernel.parts]
        self.is_cheap = all(group.is_cheap for group in self.groups)
        self.block_entries = max(group.block_entries for group in self.groups)

    def rows(self, X: Rows) -> JoinedRows:
        return self._read(X, [group.rows for group in self.groups])

    def training_rows(self, X: Rows) -> JoinedRows:
        return self._read(X, [group.training_rows for group in self.groups])

    def _read(self, X: Rows, readers: Sequence[Any]) -> JoinedRows:
        parts = zip(self.kernel.parts, readers, strict=True)
        return JoinedRows(tuple(read(self.kernel.rows_of(part, X)) for part, read in parts))

    def values(self, left: JoinedRows, right: JoinedRows) -> Iterator[Matrix]:
        yield self.kernel.combined([next(g.values(x, z)) for g, x, z in self._each(left, right)])

    def diagonals(self, samples: JoinedRows) -> Matrix:
        own = [group.diagonals(x)[0] for group, x, _ in self._each(samples, samples)]
        return self.kernel.combined(own)[None]

    def products(self, left: JoinedRows, right: JoinedRows, coef: Matrix, n_threads: int = 1) -> AnyArray:
        weights = self.kernel.weights
        if weights is None:
            return super().products(left, right, coef, n_threads)
        parts = [g.products(x, z, coef, n_threads=n_threads) for g, x, z in self._each(left, right)]
        return np.asarray(np.tensordot(weights, parts, 1))

    def energies(self, samples: JoinedRows, coef: Matrix, n_threads: int = 1) -> Vector:
        weights = self.kernel.weights
        if weights is None:
            return super().energies(samples, coef, n_threads)
        parts = [g.energies(x, coef, n_threads=n_threads) for g, x, _ in self._each(samples, samples)]
        return np.asarray(np.tensordot(weights, parts, 1))

    def largest(self, samples: JoinedRows) -> float:
        own = [group.largest(x) for group, x, _ in self._each(samples, samples)]
        with np.errstate(over="ignore", invalid="ignore"):
            return float(np.max([super().largest(samples), *own]))

    def _each(self, left: JoinedRows, right: JoinedRows) -> Iterator[tuple[KernelGroup, Any, Any]]:
        """Yield the groups of the parts with the samples as they read them."""
        # A group may hold more of its samples, after what its parts read.
        return zip(self.groups, left.parts, right.parts, strict=False)
