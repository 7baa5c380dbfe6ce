"""What the estimators for ambiguous data share: kernels of points, attributes, scores of new points."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from kernelweave._typing import AnyArray, Matrix
from kernelweave.bank import KernelBank
from kernelweave.bank.cross import n_rows, slices
from kernelweave.bank.protocol import FittedKernels
from kernelweave.bank.rescaled import RescaledKernels
from kernelweave.estimators.base import KernelEstimator
from kernelweave.estimators.inputs import as_bank
from kernelweave.estimators.parameters import check_count, check_number
from kernelweave.estimators.training import reason
from kernelweave.gram.memory import budget
from kernelweave.kernels import Centering, UnitMean
from kernelweave.weak_labels import Outcome


@dataclass(eq=False, repr=False)
class AmbiguousEstimator(KernelEstimator):
    """An estimator that learns from candidates: parameters, kernels and learnt attributes in common."""

    defaults: ClassVar[dict[str, Callable[[], Any]]] = {"bank": KernelBank.distances}

    bank: Any = None
    _: KW_ONLY
    C: float = 1.0
    max_rounds: int = 7
    tol: float = 1e-3
    max_iter: int | None = None
    memory_limit: float | None = None
    random_state: int = 0
    verbose: int = 0

    def combined_kernel(self, X: Any, Z: Any = None) -> Matrix:
        """Return the learnt kernel Σ eta_m k_m between the rows of X and of Z, as centred and scaled in fit.

        Z are the training samples by default; eta_m sums the weights of kernel m over its candidates, and is
        averaged over the classes beyond two.
        """
        return super().combined_kernel(X, Z)

    def _require_fit(self, attribute: str | None = "bank_") -> None:
        super()._require_fit(attribute)  # set last: a fit that failed leaves classes at most

    def _check_common(self) -> None:
        check_number("C", self.C, above=0.0)
        check_number("theta", getattr(self, "theta", None), above=0.0, optional=True)
        check_number("tol", self.tol, above=0.0, below=1.0)
        check_count("max_iter", self.max_iter, optional=True)
        check_count("max_rounds", self.max_rounds)
        check_number("memory_limit", self.memory_limit, above=0.0, optional=True)

    def _fit_bank(self, X: Any) -> FittedKernels:
        return as_bank(self.bank).fit(X)

    def _kernels(self, fitted: FittedKernels, centre: bool) -> tuple[RescaledKernels, list[Matrix]]:
        """Return the kernels of the points, centred or not, on one footing, and their training matrices."""
        n, limit = fitted.n_samples, budget(self.memory_limit)
        needed = 8.0 * n * n * (len(fitted) + 2)
        if needed > limit:
            raise MemoryError(
                f"{len(fitted)} kernels of {n} points need {needed / 1e9:.2g} GB, but {limit / 1e9:.2g} GB "
                "may be used; take fewer kernels or samples, or raise memory_limit."
            )
        rescaled = RescaledKernels(fitted, (Centering(), UnitMean()) if centre else (UnitMean(),))
        return rescaled, list(rescaled.grams())

    def _keep_outcomes(self, outcomes: Sequence[Outcome]) -> None:
        """Set the attributes that every method here has, one row per binary problem beyond one."""
        alone = len(outcomes) == 1
        results = [outcome.result for outcome in outcomes]
        alphas = np.array([outcome.alpha for outcome in outcomes])
        weights = [outcome.weights.sum(axis=0) for outcome in outcomes]
        candidates = [np.array(outcome.candidates, dtype=np.int8) for outcome in outcomes]
        self.kernel_weights_ = weights[0] if alone else np.array(weights)
        self.candidates_ = candidates[0] if alone else candidates
        self.candidate_weights_ = outcomes[0].weights if alone else [o.weights for o in outcomes]
        self.support_ = np.flatnonzero(alphas.any(axis=0))
        self.dual_coef_ = alphas[:, self.support_]
        self.point_coef_ = np.array([outcome.coef for outcome in outcomes])
        self._keep_certificates([result.certificate for result in results])
        self.stopped_ = outcomes[0].stopped if alone else [outcome.stopped for outcome in outcomes]
        self.n_iter_ = max(sum(r.n_machines for r in outcome.rounds) for outcome in outcomes)
        self.history_ = list(outcomes[0].rounds) if alone else [list(o.rounds) for o in outcomes]

    def _warn_if_open(self, outcomes: Sequence[Outcome]) -> None:
        still_open = [o.result for o in outcomes if o.result.certificate.relative_gap > self.tol]
        if still_open:
            worst = max(still_open, key=lambda result: result.certificate.relative_gap)
            why = (
                reason(worst.stopped, worst.n_iter) if worst.stopped != "converged" else "it was interrupted"
            )
            warnings.warn(
                f"Stopped at a relative duality gap of {worst.certificate.relative_gap:.2e} in the last "
                f"round, above tol={self.tol:.2e}: {why}.",
                ConvergenceWarning,
                stacklevel=3,
            )


def point_scores(kernels: Any, X: Any, coef: AnyArray) -> Matrix:
    """Return Σ_m k_m(x) · coef_m for new samples, one column per set of coefficients (sets, M, n)."""
    active = np.flatnonzero(coef.any(axis=(0, 2)))
    parts = []
    for rows in slices(kernels, X):
        total = np.zeros((n_rows(rows), coef.shape[0]))
        for m, K in kernels.cross(rows, which=active):
            total += K @ coef[:, m].T
        parts.append(total)
    return np.concatenate(parts)
