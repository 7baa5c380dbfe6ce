"""Rows of kernels made when they are needed, in float32, by one matrix product per block of features."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from kernelweave import _core
from kernelweave._threads import shared_out
from kernelweave._typing import AnyArray, Indices, Matrix, Vector
from kernelweave.kernels.base import Recipe

# A tile of inner products, rows times columns: 1 MB, which stays in cache until the kernels are made.
ROWS, COLUMNS = 256, 1024
SINGLE = 2.0**-24


@dataclass(frozen=True)
class Group:
    """Kernels of one block that are scaled alike: made, and multiplied, in one go."""

    kernels: tuple[int, ...]
    kind: AnyArray
    degree: AnyArray
    numbers: Matrix
    factors: Vector | None

    @classmethod
    def of(cls, members: Sequence[tuple[int, Recipe, Vector]]) -> Group:
        places, recipes, factors = zip(*members, strict=True)
        numbers = np.array([[r.gamma, r.offset, f[0] ** 2] for r, f in zip(recipes, factors, strict=True)]).T
        even = len(members) > 1 or bool((factors[0] == factors[0][0]).all())
        if not even:
            numbers[2] = 1.0
        return cls(
            places,
            np.array([r.kind for r in recipes], dtype=np.int64),
            np.array([r.degree for r in recipes], dtype=np.int64),
            np.ascontiguousarray(numbers),
            None if even else factors[0],
        )

    @property
    def recipe(self) -> tuple[AnyArray, AnyArray, Matrix]:
        return self.kind, self.degree, self.numbers


@dataclass
class FeatureBlock:
    """The samples of one block of features, centred in float32, and the kernels that look at them.

    With c the mean of the block, x'z = (x − c)'(z − c) + part_x + part_z: so inner products and
    distances come from the same product, and neither loses digits to an offset of the columns.
    """

    X: AnyArray = field(repr=False)
    parts: AnyArray = field(repr=False)
    norms: AnyArray = field(repr=False)
    groups: list[Group]
    n_features: int

    @classmethod
    def of(cls, X: Matrix, members: Sequence[tuple[int, Recipe, Vector]]) -> FeatureBlock:
        centre = X.mean(axis=0)
        rows = (X - centre).astype(np.float32)
        parts = (X @ centre - 0.5 * centre @ centre).astype(np.float32)
        norms = np.einsum("id,id->i", rows, rows)
        even = [m for m in members if bool((m[2] == m[2][0]).all())]
        groups = [Group.of(even)] if even else []
        groups += [Group.of([m]) for m in members if not bool((m[2] == m[2][0]).all())]
        return cls(rows, parts, norms, groups, int(X.shape[1]))

    @property
    def kernels(self) -> list[int]:
        return [m for group in self.groups for m in group.kernels]

    def add_products(
        self, rows: Indices, Z: FeatureBlock, columns: Indices, V: AnyArray, out: AnyArray
    ) -> None:
        """Add K_m[rows, columns] V to out[m] for its kernels; Z is this block at the columns only."""
        mine = self.taken(rows)
        weights = [
            V if g.factors is None else V * g.factors[columns, None].astype(np.float32) for g in self.groups
        ]
        for start in range(0, columns.size, COLUMNS):
            tile = slice(start, min(start + COLUMNS, columns.size))
            for group, W, part in mine.tiles(Z, tile, weights):
                for m, K in zip(group.kernels, part, strict=True):
                    found = K @ W[tile]
                    out[m] += found if group.factors is None else found * group.factors[rows, None]

    def fill_block(self, rows: Indices, Z: FeatureBlock, columns: Indices, out: AnyArray) -> None:
        """Set out[m] = K_m[rows, columns] for its kernels; Z is this block at the columns only."""
        mine = self.taken(rows)
        for group, _, part in mine.tiles(Z, slice(0, columns.size), self.groups):
            if group.factors is not None:
                part *= (group.factors[rows, None] * group.factors[columns]).astype(np.float32)
            for m, K in zip(group.kernels, part, strict=True):
                out[m] = K

    def tiles(
        self, Z: FeatureBlock, tile: slice, beside: Sequence[Any]
    ) -> Iterator[tuple[Group, Any, AnyArray]]:
        """Yield each group's kernels between these rows and a tile of Z, with its entry of ``beside``."""
        inner = self.X @ Z.X[tile].T
        for group, other in zip(self.groups, beside, strict=True):
            part = np.empty((len(group.kernels), *inner.shape), dtype=np.float32)
            _core.kernel_block(
                inner, self.parts, Z.parts[tile], self.norms, Z.norms[tile], *group.recipe, part
            )
            yield group, other, part

    def taken(self, places: Indices) -> FeatureBlock:
        """Return the block at these samples only."""
        return FeatureBlock(
            self.X[places], self.parts[places], self.norms[places], self.groups, self.n_features
        )

    def errors(self, sizes: Vector) -> dict[int, float]:
        """Return how far entries are typically off: the rounding of a product, carried through the kernel."""
        reach = float(np.sqrt(self.norms.max(initial=0.0) * self.norms.mean()))
        found = {}
        for group in self.groups:
            for m, kind, degree, gamma in zip(
                group.kernels, group.kind, group.degree, group.numbers[0], strict=True
            ):
                growth = 2.0 * float(gamma) * reach if kind == 2 else float(degree)
                found[m] = 2.0 * SINGLE * (1.0 + growth) * float(sizes[m])
        return found


def in_chunks(rows: Indices, n_threads: int, work: Callable[[int, Indices], None]) -> None:
    """Call ``work(start, chunk)`` on chunks of the rows, shared out over the threads."""
    starts = list(range(0, rows.size, ROWS))

    def share_of(share: Sequence[int]) -> None:
        for start in share:
            work(start, rows[start : start + ROWS])

    shared_out(share_of, starts, n_threads)
