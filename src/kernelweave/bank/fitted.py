"""A bank after it saw the training data."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from copy import copy
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

import numpy as np

from kernelweave._typing import AnyArray, Indices, Matrix, Span, Vector
from kernelweave.bank.column_table import ColumnTable, column_table
from kernelweave.bank.layout import Block, LeftOut, PairwiseBlock
from kernelweave.bank.protocol import FittedKernels, n_rows, wanted
from kernelweave.gram import KernelSource
from kernelweave.gram.source import NewRows
from kernelweave.kernels import Kernel, Scaling
from kernelweave.kernels.fitted_scaling import FittedScaling, ScaledForm
from kernelweave.kernels.groups import KernelGroup, grouped
from kernelweave.kernels.pairs import Pairs
from kernelweave.kernels.scaling import TrainingGram
from kernelweave.views.tables import is_sparse


@dataclass(frozen=True)
class Item:
    """One kernel of the bank: its name, what it computes, and on which of the bank's blocks."""

    name: str
    kernel: Kernel
    block: int
    scaling: Scaling | None


@dataclass(frozen=True)
class Learnt:
    """What one kernel learnt on the training samples: its own numbers and those of its scaling."""

    kernel: Kernel
    scaling: FittedScaling | None

    def restricted(self, samples: Indices) -> Learnt:
        """Return the same for some of the training samples."""
        return Learnt(self.kernel, None if self.scaling is None else self.scaling.restricted(samples))


@dataclass(frozen=True)
class BlockKernels:
    """Kernels of one block of columns that are evaluated together; ``source`` has them on the training samples."""

    block: int
    source: KernelSource


class FittedBank(FittedKernels):
    """The kernels of a bank on the training samples; made by ``KernelBank.fit``.

    It keeps the training block of every view, because new samples are compared with it. What kernels and scalings
    learn is learnt when it is first needed. ``needs_a_view`` says whether new samples that may lack views need one.
    """

    needs_a_view: bool = True

    def __init__(
        self,
        items: list[Item],
        blocks: list[Block | PairwiseBlock],
        X: Any,
        left_out: Sequence[LeftOut] = (),
        *,
        needs_a_view: bool = True,
    ) -> None:
        self.needs_a_view = needs_a_view
        self._items = tuple(items)
        self._left_out = tuple(left_out)
        self._blocks = tuple(blocks)
        known: dict[int, Any] = {}
        self._training = tuple(block.take(X, None, known) for block in blocks)
        self._learnt: list[Learnt | None] = [None] * len(items)
        for item in items:
            item.kernel.check()
            item.kernel.rows(self._training[item.block])  # says now whether it can read this block

    @property
    def names(self) -> tuple[str, ...]:  # type: ignore[override]
        return tuple(item.name for item in self._items)

    @property
    def view_names(self) -> tuple[str, ...]:  # type: ignore[override]
        return tuple(self._blocks[item.block].label for item in self._items)

    @property
    def n_samples(self) -> int:  # type: ignore[override]
        return int(self._training[0].shape[0])

    @property
    def blocks(self) -> tuple[Block | PairwiseBlock, ...]:
        """The blocks of columns that the kernels look at."""
        return self._blocks

    @property
    def columns(self) -> ColumnTable:
        return column_table(self._blocks, getattr(self, "_left_out", ()))

    @property
    def block_of_kernel(self) -> tuple[int, ...]:
        """For every kernel the number of its block."""
        return tuple(item.block for item in self._items)

    @property
    def can_be_restricted(self) -> bool:
        return not any(item.kernel.of_training or item.kernel.pairwise for item in self._items)

    def __len__(self) -> int:
        return len(self._items)

    def __getstate__(self) -> dict[str, Any]:
        """Return what a file has to hold: what is derived from it is left out."""
        return {name: value for name, value in vars(self).items() if name != "_groups"}

    # -- training samples

    def sources(self) -> list[KernelSource]:
        return [group.source for group in self.groups()]

    def groups(self) -> list[BlockKernels]:
        """Return the kernels in groups that are evaluated together; what there is to learn is learnt first."""
        return self._groups

    @cached_property
    def _groups(self) -> list[BlockKernels]:
        found = []
        for block, X in enumerate(self._training):
            members = [m for m, item in enumerate(self._items) if item.block == block]
            kernels = [self._resolved(m, pairs) for pairs in [Pairs(X)] for m in members]
            for places, group in grouped(kernels, X):
                own = np.array([members[place] for place in places], dtype=np.intp)
                rows = group.training_rows(X)
                self._require_finite(own, group.largest(rows))
                scalings = [self._fitted_scaling(m, group, a, rows) for a, m in enumerate(own)]
                for m, kernel, scaling in zip(own, group.kernels, scalings, strict=True):
                    self._learnt[m] = Learnt(kernel, scaling)
                plain = ScaledForm.plain(self.n_samples)
                forms = tuple(plain if one is None else one.on_training(plain) for one in scalings)
                found.append(BlockKernels(block, KernelSource(own, group, rows, forms, self.n_samples)))
        return found

    def _resolved(self, m: int, pairs: Pairs) -> Kernel:
        learnt = self._learnt[m]
        if learnt is not None:
            return learnt.kernel
        with np.errstate(over="ignore", invalid="ignore"):  # an overflow is reported with the kernel's name
            return self._items[m].kernel.resolve_from(pairs)

    def _fitted_scaling(self, m: int, group: KernelGroup, a: int, rows: Any) -> FittedScaling | None:
        """Return what the scaling of kernel m, number a of its group, learns on the training samples."""
        item, learnt = self._items[m], self._learnt[m]
        if learnt is not None or item.scaling is None:
            return None if learnt is None else learnt.scaling
        product = partial(_product, group, rows, rows, a)
        gram = TrainingGram(group.diagonals(rows)[a], product, ScaledForm.plain(self.n_samples))
        scaling = item.scaling.learn(gram)
        if scaling.needs_diagonal and not item.kernel.knows_diagonal:
            raise ValueError(
                f"Kernel {item.name!r} cannot be scaled by {item.scaling}: a new row of it does not show "
                "k(x, x); scale the matrix beforehand, or use UnitTrace, UnitMean or Centering."
            )
        return scaling

    def _require_finite(self, kernels: Indices, largest: float) -> None:
        if not np.isfinite(largest):
            m = int(kernels[0])
            raise ValueError(
                f"Kernel {self.names[m]!r} is not finite on these samples; standardise the columns of view "
                f"{self.view_names[m]!r}, or use a kernel that does not grow so fast."
            )

    # -- new samples

    def cross(
        self,
        X: Any,
        which: Indices | None = None,
        columns: Indices | None = None,
        *,
        dtype: str = "float64",
    ) -> Iterator[tuple[int, Matrix]]:
        """Yield (m, scaled kernel m of the rows of X against the training samples).

        Only the views of the wanted kernels have to be in ``X``. Kernels come in the order of their groups, and in
        single precision if asked for, where they can be computed so.
        """
        chosen = wanted(len(self), which)
        span: Span = slice(None) if columns is None else columns
        read = self._read(X, chosen)  # what is wrong with X is said here, and not when the values are read
        return self._cross(read, chosen, span, dtype)

    def _cross(
        self, read: list[tuple[BlockKernels, Any]], chosen: list[int], span: Span, dtype: str
    ) -> Iterator[tuple[int, Matrix]]:
        for kernels, new in read:
            source = kernels.source.in_dtype(dtype)
            for m, K in source.cross(self._scaled(kernels, new).in_dtype(source.group, dtype), span, chosen):
                with np.errstate(over="ignore", invalid="ignore"):
                    self._require_finite(np.array([m]), float(K.sum()))
                yield m, K

    def diagonals(self, X: Any) -> Matrix:
        for item in self._items:
            if not item.kernel.knows_diagonal:
                raise ValueError(
                    f"A new row of kernel {item.name!r} does not show k(x, x), which the spread of predictions needs."
                )
        out = np.empty((n_rows(X), len(self)))
        for kernels, new in self._read(X, wanted(len(self), None)):
            for m, form in zip(
                kernels.source.kernels.tolist(), self._scaled(kernels, new).forms, strict=True
            ):
                learnt = self._learnt[m]
                assert learnt is not None
                out[:, m] = form.diagonal(learnt.kernel.diagonal_of(new))
        return out

    @property
    def is_shifted(self) -> bool:
        """Whether a kernel is centred, which learners with a bias do not see."""
        return any(form.shifts for group in self.groups() for form in group.source.forms)

    def restricted(self, samples: Indices) -> FittedBank:
        """Return the bank with some of its training samples only; what was learnt on all of them stays.

        Kernels are then centred as if the mean of all samples were not known: for learners with a bias.
        """
        self.groups()  # learns what there is to learn
        light = copy(self)
        vars(light).pop("_groups", None)
        light._training = tuple(rows[samples] for rows in self._training)
        light._learnt = [None if one is None else one.restricted(samples) for one in self._learnt]
        return light

    def between(self, X: Any, Z: Any, which: Indices | None = None) -> Iterator[tuple[int, Matrix]]:
        chosen = wanted(len(self), which)
        for m in chosen:
            if self._items[m].kernel.pairwise:
                raise ValueError(
                    f"Kernel {self.names[m]!r} is known against the training samples only, so it has no values "
                    "between two sets of new samples; leave Z out."
                )
        for (kernels, x), (_, z) in zip(self._read(X, chosen), self._read(Z, chosen), strict=True):
            left, right = self._scaled(kernels, x), self._scaled(kernels, z)
            source = kernels.source
            for a, K in source.unscaled_values(left.rows, right.rows, chosen):
                yield int(source.kernels[a]), left.forms[a].values(K, right.forms[a])

    def products(
        self, X: Any, columns: Indices, coef: AnyArray, which: Indices, n_threads: int = 1
    ) -> AnyArray:
        place = {int(m): position for position, m in enumerate(which)}
        out = np.empty((which.size, 0, coef.shape[-1]))
        for kernels, new in self._read(X, list(place)):
            own = [int(m) for m in kernels.source.kernels if int(m) in place]
            source = kernels.source.renumbered_subset(np.array(own))
            assert source is not None
            places = [place[m] for m in own]
            V = coef if coef.ndim == 2 else coef[places]
            found = source.cross_products(
                self._scaled(kernels, new, own, sums_to_zero(V)), columns, V, n_threads
            )
            if out.shape[1] == 0:
                out = np.empty((which.size, *found.shape[1:]))
            out[places] = found
        self._require_finite(which[:1], float(np.abs(out).max(initial=0.0)))
        return out

    def weighted_products(
        self, X: Any, columns: Indices, coef: Matrix, eta: Vector, n_threads: int = 1
    ) -> Matrix:
        which = np.flatnonzero(eta)
        total = np.zeros((n_rows(X), coef.shape[1]))
        for kernels, new in self._read(X, which.tolist()):
            source = kernels.source.renumbered_subset(which)
            assert source is not None
            own = which[source.kernels].tolist()
            scaled = self._scaled(kernels, new, own, sums_to_zero(coef))
            total += source.cross_products(scaled, columns, coef, n_threads, eta[which])
        self._require_finite(which[:1], float(np.abs(total).max(initial=0.0)))
        return total

    def rows(self, X: Any, block: int, known: dict[int, Any] | None = None) -> Any:
        """Return the rows of a block for new samples; ``known`` keeps what encoders made of X."""
        rows = self._blocks[block].take(X, self._training[block], known)
        if is_sparse(self._training[block]):
            return type(self._training[block])(rows)
        return rows.toarray() if is_sparse(rows) else rows

    def training(self, block: int) -> Any:
        """Return the training rows of a block."""
        return self._training[block]

    def _read(self, X: Any, kernels: list[int]) -> list[tuple[BlockKernels, Any]]:
        """Return the groups that have some of the kernels, with the rows of their block for new samples."""
        wanted_ones = set(kernels)
        groups = [
            group for group in self.groups() if not wanted_ones.isdisjoint(group.source.kernels.tolist())
        ]
        known: dict[int, Any] = {}
        rows = {block: self.rows(X, block, known) for block in dict.fromkeys(group.block for group in groups)}
        return [(group, rows[group.block]) for group in groups]

    def _scaled(
        self, kernels: BlockKernels, X: Any, own: list[int] | None = None, balanced: bool = False
    ) -> NewRows:
        """Return new samples as a group reads them, with how its kernels (those of ``own``) are scaled on them.

        Centring takes the mean over the training samples from every row, which costs a pass over all of them. For
        ``balanced`` coefficients, which sum to zero, it makes no difference and is left out.
        """
        source = kernels.source
        rows = source.group.rows(X)
        n, forms = int(rows.shape[0]), []
        for a, m in enumerate(source.kernels.tolist()):
            if own is not None and m not in own:
                continue
            learnt = self._learnt[m]
            assert learnt is not None
            if learnt.scaling is None:
                forms.append(ScaledForm.plain(n))
                continue
            training = None if balanced and not learnt.scaling.needs_diagonal else source.rows
            product = partial(_product, source.group, rows, training, a)
            diagonal = partial(learnt.kernel.diagonal_of, X)
            forms.append(learnt.scaling.forms(self.n_samples, n, diagonal, product)[0])
        return NewRows(rows, tuple(forms))


def sums_to_zero(coef: AnyArray) -> bool:
    """Tell whether the coefficients of every vector sum to zero, up to rounding."""
    return bool((np.abs(coef.sum(axis=-2)) <= 1e-10 * np.abs(coef).sum(axis=-2)).all())


def _product(group: KernelGroup, left: Any, right: Any | None, a: int, V: Matrix) -> Matrix:
    """Return k_a(left, right) V for one kernel of a group; zero where there is no ``right``."""
    if right is None:
        return np.zeros((left.shape[0], V.shape[1]))
    return np.asarray(group.only([a]).products(left, right, V)[0])
