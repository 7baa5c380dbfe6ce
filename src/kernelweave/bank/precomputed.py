"""Kernels the user computed: a list of matrices, or one array (rows, training samples, kernels)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from copy import copy
from dataclasses import dataclass
from typing import Any

import numpy as np

from kernelweave._part import Part
from kernelweave._threads import blas_threads
from kernelweave._typing import AnyArray, Indices, Matrix
from kernelweave.bank.protocol import FittedKernels
from kernelweave.gram import KernelSource
from kernelweave.gram.source import matrix_sources
from kernelweave.kernels import Scaling
from kernelweave.kernels.checks import (
    check_definite,
    check_finite,
    check_minors,
    check_square,
    check_symmetric,
    plainly_grams,
    symmetrised,
    tolerance_of,
)
from kernelweave.kernels.fitted_scaling import FittedScaling, ScaledForm
from kernelweave.kernels.repair import Repair, check_repair
from kernelweave.kernels.scaling import as_scaling
from kernelweave.views.tables import is_sparse
from kernelweave.views.views import Views


@dataclass
class PrecomputedBank(Part):
    r"""Kernel matrices that already exist; estimators make it for ``bank="precomputed"``.

    ``fit(X)`` takes M square matrices, as a list, as one array (n, n, M), or one matrix as (n, n);
    ``cross(X)`` takes the same with one row per new sample and one column per training sample.

    Parameters
    ----------
    scaling : scaling of every matrix, learnt on the training block, or a tuple of them; None for none.
    repair : what is done about negative eigenvalues: "clip" sets them to 0, "flip" takes their size, "shift" adds
        the size of the lowest to the diagonal; None refuses matrices that have some.

    Notes
    -----
    [Chen09] for the repairs, learnt on the training block: rows of new samples are multiplied by what took
    the training matrix to the repaired one, and stay as they are for "shift" (see `Repaired`).

    Float64 matrices are not copied. They have to be symmetric and positive semidefinite up to rounding: signs
    and 2 x 2 minors are always checked, all eigenvalues when that is cheap.
    Differs from the paper: nothing.

    Examples
    --------
    >>> import numpy as np
    >>> fitted = PrecomputedBank().fit([np.eye(3), np.ones((3, 3))])
    >>> fitted.names
    ('kernel 0', 'kernel 1')

    """

    scaling: Scaling | Sequence[Scaling] | None = None
    repair: str | None = None

    def fit(self, X: Any) -> FittedPrecomputed:
        """Hold on to the training matrices; check small ones now, large ones when they are first read."""
        return self.fit_matrices(as_matrices(X))

    def fit_matrices(self, given: list[AnyArray]) -> FittedPrecomputed:
        """Do the same with what `as_matrices` has made of them."""
        matrices = [np.asarray(K, dtype=np.float64) for K in given]
        for m, K in enumerate(matrices):
            check_square(K, f"Kernel {m}")
            if K.shape[0] != matrices[0].shape[0]:
                raise ValueError(
                    f"Kernel 0 has {matrices[0].shape[0]} training samples and kernel {m} has {K.shape[0]}; "
                    "all matrices need the same samples in the same order."
                )
        tolerances = [tolerance_of(K.dtype) for K in given]
        repairs: list[Repair | None] = []
        if self.repair is not None:
            check_repair(self.repair, "PrecomputedBank")
            repairs = [self._learn(K, m, tolerances[m]) for m, K in enumerate(matrices)]
            matrices = [
                K if repair is None else repair.training(K)
                for K, repair in zip(matrices, repairs, strict=True)
            ]
        fitted = FittedPrecomputed(matrices, tolerances, as_scaling(self.scaling), repairs)
        # All eigenvalues are checked where that takes a fraction of a second: at most 5e8 operations.
        if len(matrices) * matrices[0].shape[0] ** 3 / 3.0 <= 5e8:
            fitted.check_definite()
        return fitted

    def _learn(self, K: Matrix, m: int, tolerance: float) -> Repair | None:
        assert self.repair is not None
        check_symmetric(K, f"Kernel {m}", tolerance)
        return Repair.of(symmetrised(K), self.repair, tolerance)


class FittedPrecomputed(FittedKernels):
    """Precomputed training matrices and what their scalings learnt; made by ``PrecomputedBank.fit``."""

    _repairs: Sequence[Repair | None] = ()

    def __init__(
        self,
        matrices: list[Matrix],
        tolerances: list[float],
        scaling: Scaling | None,
        repairs: Sequence[Repair | None] = (),
    ) -> None:
        self._matrices = matrices
        self._repairs = repairs
        self._tolerances = tuple(tolerances)
        self._is_checked = False
        self._n_kernels, self._n_samples = len(matrices), int(matrices[0].shape[0])
        self._scaling = scaling
        self._learnt: list[FittedScaling | None] = [None] * len(matrices)

    def check_definite(self) -> None:
        """Raise ValueError unless every matrix is a kernel, all eigenvalues included."""
        self.check()
        with blas_threads(1):  # many small matrices
            for m in range(len(self)):
                check_definite(self._matrices[m], f"Kernel {m}", self._tolerances[m])

    @property
    def names(self) -> tuple[str, ...]:  # type: ignore[override]
        return tuple(f"kernel {m}" for m in range(len(self)))

    @property
    def view_names(self) -> tuple[str, ...]:  # type: ignore[override]
        return self.names  # every matrix counts as a view of its own

    @property
    def n_samples(self) -> int:  # type: ignore[override]
        return self._n_samples

    def __len__(self) -> int:
        return self._n_kernels

    def check(self, n_threads: int = 1) -> None:
        """Raise ValueError unless the matrices are symmetric and not visibly indefinite; done once.

        Matrices that are symmetric up to rounding are replaced by their symmetric part.
        """
        if self._is_checked:
            return
        plain = plainly_grams(self._matrices, self._tolerances, n_threads)
        for m in [m for m, fine in enumerate(plain) if not fine]:
            K, tolerance = self._matrices[m], self._tolerances[m]
            check_symmetric(K, f"Kernel {m}", tolerance)
            check_minors(K, f"Kernel {m}", tolerance)
            self._matrices[m] = symmetrised(K)
        self._is_checked = True

    @property
    def holds_matrices(self) -> bool:
        """Whether there are matrices, as they were given and each in one piece."""
        in_one_piece = all(K.flags.c_contiguous for K in self._matrices)
        return bool(self._matrices) and self._scaling is None and in_one_piece

    def given_matrices(self, n_threads: int = 1) -> list[Matrix]:
        self.check(n_threads)
        return self._matrices

    def grams(self) -> Iterator[Matrix]:
        """Yield the scaled training matrices in order, symmetric up to the last digits."""
        self.check()
        for m, K in enumerate(self._matrices):
            scaling = self._fitted(m)
            yield K if scaling is None else scaling.train(K)

    def sources(self) -> list[KernelSource]:
        if not self._matrices:
            raise IndexError("A bank for prediction has no training matrices.")
        self.check()
        plain = ScaledForm.plain(self.n_samples)
        scalings = [self._fitted(m) for m in range(len(self))]
        return matrix_sources(
            self._matrices, [plain if one is None else one.on_training(plain) for one in scalings]
        )

    def for_prediction(self) -> FittedPrecomputed:
        """Return the bank without the training matrices: new rows need only what the scalings learnt."""
        for m in range(len(self)):
            self._fitted(m)
        light = copy(self)
        light._matrices = []
        return light

    def cross(
        self, X: Any, which: Indices | None = None, columns: Indices | None = None
    ) -> Iterator[tuple[int, Matrix]]:
        """Yield (m, scaled rows of kernel m), for all kernels and training samples or those asked for."""
        given = as_matrices(X)
        if len(given) != len(self):
            raise ValueError(
                f"The bank was fitted with {len(self)} kernel(s), received {len(given)}; "
                "pass the rows of every kernel, in the same order."
            )
        order = range(len(self)) if which is None else [int(m) for m in which]
        rows = {m: self._rows(given[m], m) for m in order}
        return self._cross(rows, columns, order)

    def between(self, X: Any, Z: Any, which: Indices | None = None) -> Iterator[tuple[int, Matrix]]:  # noqa: ARG002
        """Refuse: precomputed kernels are known against the training samples only."""
        raise ValueError(
            "Precomputed kernels are known against the training samples only, so combined_kernel takes no Z; "
            "pass the rows of X alone."
        )

    def _cross(
        self, rows: dict[int, Matrix], columns: Indices | None, order: Any
    ) -> Iterator[tuple[int, Matrix]]:
        for m in order:
            scaling = self._fitted(m)
            K = rows[m] if scaling is None else scaling.rows(rows[m])
            yield m, K if columns is None else K[:, columns]

    def _rows(self, given: AnyArray, m: int) -> Matrix:
        K = np.asarray(given, dtype=np.float64)
        if K.ndim != 2 or K.shape[1] != self.n_samples:
            raise ValueError(
                f"Kernel {m} has {self.n_samples} training samples, received rows of shape {K.shape}; "
                f"pass one row per new sample and {self.n_samples} columns."
            )
        check_finite(K, f"Kernel {m}")
        repair = self._repairs[m] if self._repairs else None
        return K if repair is None else repair.rows(K)

    def _fitted(self, m: int) -> FittedScaling | None:
        if self._scaling is None:
            return None
        fitted = self._learnt[m]
        if fitted is None:
            self.check()
            fitted = self._scaling.fit(self._matrices[m])
            if fitted.needs_diagonal:
                raise ValueError(
                    f"Kernel {m} cannot be scaled by {self._scaling}: its new rows do not show k(x, x); "
                    "scale the matrices beforehand, or use UnitTrace, UnitMean or Centering."
                )
            self._learnt[m] = fitted
        return fitted


def as_matrices(X: Any) -> list[AnyArray]:
    """Return the M matrices of a list, of an array (rows, training samples, M), or of a single matrix."""
    if isinstance(X, Views):
        raise TypeError(
            f"Precomputed kernels are a list or one 3-D array, received {X!r}; "
            "use KernelBank.per_view(Precomputed()) for matrices with names."
        )
    for K in X if isinstance(X, list | tuple) else [X]:
        if is_sparse(K):
            raise TypeError(
                f"A precomputed kernel is a dense array, received a sparse {type(K).__name__} of shape {K.shape}; pass "
                "K.toarray()."
            )
    if isinstance(X, list | tuple) and X and all(np.ndim(K) == 2 for K in X):
        return [_numeric(np.asarray(K)) for K in X]
    if X is None or isinstance(X, dict | Iterator):
        raise TypeError(
            f"Precomputed kernels are a list of M matrices or one array (rows, training samples, M), "
            f"received {type(X).__name__}."
        )
    array = _numeric(np.asarray(X))
    if array.ndim == 2 and array.size:
        return [array]
    if array.ndim == 3 and array.size:
        return [array[:, :, m] for m in range(array.shape[2])]
    raise ValueError(
        f"Precomputed kernels are a list of M matrices (rows, training samples) or one array (rows, training "
        f"samples, M), received shape {array.shape}."
    )


def _numeric(array: AnyArray) -> AnyArray:
    if array.dtype.kind not in "biuf":
        raise ValueError(f"A precomputed kernel holds real numbers, received an array of type {array.dtype}.")
    return array
