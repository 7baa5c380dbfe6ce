"""What every fitted bank offers to the layers above it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Protocol

from kernelweave._typing import Indices, Matrix
from kernelweave.gram import BlockSource


class FittedKernels(Protocol):
    """M scaled kernels of the training samples, one matrix at a time.

    The matrices it yields may be shared with the user or between kernels: read them, do not write to them.
    """

    @property
    def names(self) -> tuple[str, ...]:
        """One readable name per kernel, all different, the same whatever the data."""

    @property
    def view_names(self) -> tuple[str, ...]:
        """For every kernel the view it looks at."""

    @property
    def n_samples(self) -> int:
        """The number of training samples."""

    def given_matrices(self, n_threads: int = 1) -> list[Matrix] | None:
        """Return the user's own matrices after checking them; None where kernels are computed."""

    def __len__(self) -> int:
        """Return the number of kernels."""

    def grams(self) -> Iterator[Matrix]:
        """Yield the scaled training Gram matrices in order, float64 and exactly symmetric."""

    def sources(self) -> list[BlockSource]:
        """Return the same matrices as sources that make them a few rows at a time."""

    def for_prediction(self) -> FittedKernels:
        """Return what new samples need, without what only training needed."""

    def cross(
        self, X: Any, which: Indices | None = None, columns: Indices | None = None
    ) -> Iterator[tuple[int, Matrix]]:
        """Yield (m, scaled kernel m of the rows of X against the training samples).

        ``which`` names the kernels wanted (None: all), ``columns`` the training samples wanted (None: all).
        """

    def between(self, X: Any, Z: Any, which: Indices | None = None) -> Iterator[tuple[int, Matrix]]:
        """Yield (m, scaled kernel m between the rows of X and those of Z), both sets of new samples."""
