"""A fitted bank whose kernels are scaled once more, by a rule that a method asks for."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from kernelweave._typing import Indices, Matrix
from kernelweave.bank.protocol import FittedKernels
from kernelweave.kernels import Scaling
from kernelweave.kernels.fitted_scaling import Chained, FittedScaling, Side

# Rows scaled at a time: besides the matrix given and the one returned almost nothing is held.
ROWS = 64


@dataclass(frozen=True)
class RescaledKernels:
    """Fitted kernels with one more scaling, learnt on their training matrices when those are first made."""

    fitted: FittedKernels
    scalings: tuple[Scaling, ...]
    learnt: list[FittedScaling] = field(default_factory=list, repr=False)

    @property
    def names(self) -> tuple[str, ...]:
        return self.fitted.names

    @property
    def view_names(self) -> tuple[str, ...]:
        return getattr(self.fitted, "view_names", self.fitted.names)

    @property
    def n_samples(self) -> int:
        return self.fitted.n_samples

    def __len__(self) -> int:
        return len(self.fitted)

    def grams(self) -> Iterator[Matrix]:
        """Yield the scaled training matrices in order; each is the caller's own."""
        anew = getattr(self.fitted, "makes_anew", False)
        for m, K in enumerate(self.fitted.grams()):
            if m == len(self.learnt):
                self.learnt.append(self._fit(K))
            yield _scaled(self.learnt[m], K, K if anew else np.empty_like(K))

    def _fit(self, K: Matrix) -> FittedScaling:
        """Learn the first scaling from the matrix and the others from the diagonal it leaves."""
        first = self.scalings[0].fit(K)
        links, diagonal = [first], first.train_diagonal(np.diagonal(K))
        for scaling in self.scalings[1:]:
            link = scaling.fit_diagonal(diagonal)
            assert link is not None, f"{scaling} needs more than the diagonal"
            links.append(link)
            diagonal = link.train_diagonal(diagonal)
        return Chained(tuple(links))

    def for_prediction(self) -> RescaledKernels:
        return replace(self, fitted=self.fitted.for_prediction())

    def cross(
        self, X: Any, which: Indices | None = None, columns: Indices | None = None
    ) -> Iterator[tuple[int, Matrix]]:
        """Yield (m, scaled kernel m of the rows of X against the training samples)."""
        for m, K in self.fitted.cross(X, which=which):
            rows = self.learnt[m].rows(K)
            yield m, rows if columns is None else rows[:, columns]

    def between(self, X: Any, Z: Any, which: Indices | None = None) -> Iterator[tuple[int, Matrix]]:
        """Yield (m, scaled kernel m between two sets of new samples)."""
        every = np.arange(len(self)) if which is None else which
        for m in every:
            one = np.array([m])
            (_, K), (_, left), (_, right) = (
                next(iter(answer))
                for answer in (
                    self.fitted.between(X, Z, which=one),
                    self.fitted.cross(X, which=one),
                    self.fitted.cross(Z, which=one),
                )
            )
            yield int(m), self.learnt[m].between(K, Side(left, None), Side(right, None))


def _scaled(scaling: FittedScaling, K: Matrix, out: Matrix) -> Matrix:
    """Return the scaled kernel in ``out``, which may be K itself."""
    diagonal = scaling.train_diagonal(np.diagonal(K).copy())
    for start in range(0, len(K), ROWS):
        rows = slice(start, min(start + ROWS, len(K)))
        out[rows] = scaling.block(K[rows], rows, slice(0, len(K)))
    np.fill_diagonal(out, diagonal)
    return out
