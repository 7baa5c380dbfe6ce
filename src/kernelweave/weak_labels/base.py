"""What the estimators of this room share: parameters, kernels of the points, learnt attributes, scores."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar

import numpy as np

from kernelweave._typing import AnyArray, Indices, Matrix
from kernelweave.bank import KernelBank
from kernelweave.bank.cross import contributions
from kernelweave.bank.protocol import FittedKernels
from kernelweave.bank.scaled import RescaledKernels
from kernelweave.estimators.base import KernelEstimator
from kernelweave.estimators.validation import check_count, check_number
from kernelweave.gram.memory import budget
from kernelweave.kernels import Centering, UnitMean
from kernelweave.weak_labels.cutting_plane import CuttingPlaneResult, InputOutputCuttingPlane
from kernelweave.weak_labels.oracle import MultiStart


@dataclass(eq=False, repr=False)
class WeakLabelEstimator(KernelEstimator):
    """An estimator over points (samples or instances) of which some have no label of their own."""

    defaults: ClassVar[dict[str, Callable[[], Any]]] = {"bank": KernelBank.default}

    bank: Any = None
    _: KW_ONLY
    C: float = 1.0
    max_rounds: int = 7
    tol: float = 1e-3
    max_iter: int | None = None
    memory_limit: float | None = None
    random_state: int = 0
    verbose: int = 0

    def _require_fit(self, attribute: str | None = "bank_") -> None:
        super()._require_fit(attribute)  # set last: a fit that failed leaves classes at most

    def _check_parameters(self) -> None:
        check_number("C", self.C, above=0.0)
        check_number("tol", self.tol, above=0.0, below=1.0)
        check_count("max_iter", self.max_iter, optional=True)
        check_count("max_rounds", self.max_rounds)
        check_number("memory_limit", self.memory_limit, above=0.0, optional=True)

    def _cutting_plane(self, theta: float | None) -> InputOutputCuttingPlane:
        oracle = MultiStart(seed=self.random_state)
        return InputOutputCuttingPlane(
            theta, self.max_rounds, tol=self.tol, max_iter=self.max_iter, oracle=oracle
        )

    def _rescaled(self, fitted: FittedKernels, centre: bool) -> tuple[RescaledKernels, list[Matrix]]:
        """Return the kernels, centred or not, with mean diagonal one, and their training matrices."""
        n, limit = fitted.n_samples, budget(self.memory_limit)
        needed = 8.0 * n * n * (len(fitted) + 2)
        if needed > limit:
            raise MemoryError(
                f"{len(fitted)} kernels of {n} points need {needed / 1e9:.2g} GB, but {limit / 1e9:.2g} GB "
                "may be used; take fewer kernels or samples, or raise memory_limit."
            )
        rescaled = RescaledKernels(fitted, (Centering(), UnitMean()) if centre else (UnitMean(),))
        return rescaled, list(rescaled.grams())

    def _set_candidates(self, results: Sequence[CuttingPlaneResult]) -> None:
        """Set what the cutting planes have learnt, one for each binary problem."""

        def per_problem(values: Any) -> Any:
            return values[0] if len(results) == 1 else values

        weights = [result.candidate_weights for result in results]
        alphas = np.array([result.alpha for result in results])
        self.candidates_ = per_problem([np.array(result.candidates, dtype=np.int8) for result in results])
        self.candidate_weights_ = per_problem(weights)
        self.kernel_weights_ = per_problem(np.array([each.sum(axis=0) for each in weights]))
        self.support_ = np.flatnonzero(alphas.any(axis=0))
        self.dual_coef_ = alphas[:, self.support_]
        self.point_coef_ = np.array([result.point_coef for result in results])
        self._set_certificates([result.result.certificate for result in results], self.tol)
        self.stopped_ = per_problem([result.stopped for result in results])
        self.history_ = per_problem([list(result.rounds) for result in results])
        self.n_iter_ = max(result.n_iter for result in results)

    def _set_kernels(self, fitted: FittedKernels, rescaled: RescaledKernels) -> None:
        """Keep the kernels for prediction; called last, when all else is set."""
        self.kernel_names_ = fitted.names
        self.bank_: Any = rescaled.for_prediction()

    def _point_contributions(self, X: Any) -> AnyArray:
        """Return Σ_j k_m(x, x_j) point_coef[m, j] of new points, of shape (rows, problems, M)."""
        used = np.flatnonzero(self.point_coef_.any(axis=(0, 1)))
        return contributions(self.bank_, X, self.point_coef_[:, :, used], used, self._n_threads)


def restricted(grams: Sequence[Matrix], rows: Indices) -> list[Matrix]:
    """Return the kernels among these rows; where they are all, in order, the matrices themselves."""
    everything = np.array_equal(rows, np.arange(len(grams[0])))
    return list(grams) if everything else [K[np.ix_(rows, rows)] for K in grams]
