"""Fitted kernels with one more scaling on top."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from kernelweave._typing import Indices, Matrix, Vector
from kernelweave.bank.column_table import ColumnTable
from kernelweave.bank.protocol import FittedKernels
from kernelweave.gram import KernelSource
from kernelweave.kernels import Scaling
from kernelweave.kernels.fitted_scaling import FittedScaling, ScaledForm
from kernelweave.kernels.scaling import TrainingGram, as_scaling


class RescaledKernels(FittedKernels):
    """Fitted kernels, each scaled once more; what the scaling needs is learnt on their training samples.

    Parameters
    ----------
    fitted : the kernels.
    scaling : a scaling or a sequence of them, one after the other; none may need k(x, x) of new samples.
    n_threads : threads of the passes in which it learns.
    """

    def __init__(
        self, fitted: FittedKernels, scaling: Scaling | Sequence[Scaling], *, n_threads: int = 1
    ) -> None:
        rule = as_scaling(scaling)
        assert rule is not None
        self.fitted = fitted
        learnt: dict[int, FittedScaling] = {}
        for source in fitted.sources():
            diagonals = source.group.diagonals(source.rows)
            for a, (m, form) in enumerate(zip(source.kernels, source.forms, strict=True)):
                product = partial(_product, source, a, n_threads)
                learnt[int(m)] = rule.learn(TrainingGram(diagonals[a], product, form))
        self.learnt = tuple(learnt[m] for m in range(len(fitted)))

    def __setstate__(self, state: dict[str, Any]) -> None:
        # Files of version 0.1 call centred kernels' parts by other names.
        self.fitted = state["fitted"] if "fitted" in state else state["_fitted"]
        self.learnt = tuple(state.get("learnt", state.get("_scalings", ())))

    @property
    def names(self) -> tuple[str, ...]:  # type: ignore[override]
        return self.fitted.names

    @property
    def view_names(self) -> tuple[str, ...]:  # type: ignore[override]
        return self.fitted.view_names

    @property
    def n_samples(self) -> int:  # type: ignore[override]
        return self.fitted.n_samples

    @property
    def columns(self) -> ColumnTable:
        return self.fitted.columns

    @property
    def can_be_restricted(self) -> bool:
        return self.fitted.can_be_restricted

    def sources(self) -> list[KernelSource]:
        found = []
        for source in self.fitted.sources():
            scalings = [self.learnt[m] for m in source.kernels]
            forms = tuple(one.on_training(form) for one, form in zip(scalings, source.forms, strict=True))
            found.append(replace(source, forms=forms))
        return found

    def for_prediction(self) -> RescaledKernels:
        light = object.__new__(RescaledKernels)
        light.fitted, light.learnt = self.fitted.for_prediction(), self.learnt
        return light

    def cross(
        self, X: Any, which: Indices | None = None, columns: Indices | None = None
    ) -> Iterator[tuple[int, Matrix]]:
        for m, K in self.fitted.cross(X, which):
            rows = self.learnt[m].rows(K)
            yield m, rows if columns is None else rows[:, columns]

    def between(self, X: Any, Z: Any, which: Indices | None = None) -> Iterator[tuple[int, Matrix]]:
        for m, K in self.fitted.between(X, Z, which):
            yield m, self._form(m, X).values(K, self._form(m, Z))

    def _form(self, m: int, X: Any) -> ScaledForm:
        """Return how kernel m is scaled on new samples."""
        [(_, K)] = self.fitted.cross(X, np.array([m]))
        return self.learnt[m].forms(K.shape[1], K.shape[0], _no_diagonal, partial(np.matmul, K))[0]


def _product(source: KernelSource, a: int, n_threads: int, V: Matrix) -> Matrix:
    """Return the product of kernel a of a source, before any scaling, with a vector of training samples."""
    return np.asarray(source.group.only([a]).products(source.rows, source.rows, V, n_threads)[0])


def _no_diagonal() -> Vector:
    raise ValueError("k(x, x) of new samples is not known here; scale the kernels in their bank.")
