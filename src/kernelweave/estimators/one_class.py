"""Novelty detection with learnt kernel weights."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import OutlierMixin

from kernelweave._typing import AnyArray, Matrix, Vector
from kernelweave.bank import KernelBank
from kernelweave.bank.prepared import PreparedBank
from kernelweave.bank.rule_banks import distance_kernels
from kernelweave.estimators.model import MKLModel
from kernelweave.estimators.training import FitResult, FitTask
from kernelweave.estimators.validation import checked_weights
from kernelweave.geometry import LpBall
from kernelweave.kernels import UnitMean
from kernelweave.learners import OneClass
from kernelweave.solvers import Newton


def _kernels_of_distance() -> PreparedBank:
    """Return the default bank."""
    return KernelBank.prepared(distance_kernels(), scaling=UnitMean())


class OneClassMKL(OutlierMixin, MKLModel):  # type: ignore[misc]
    r"""Novelty detection by a one-class SVM over several kernels, with a duality-gap certificate.

    .. math:: \min_{\eta \in \mathcal M} \max_{0 \le \alpha \le C,\; 1'\alpha = 1}
       - \sum_m \eta_m \tfrac12 \alpha'K_m\alpha + r(\eta), \qquad C = 1/(\nu n)

    Parameters
    ----------
    bank : KernelBank, "precomputed" or None, default=None
        The kernels, as for `MKLClassifier`; None is those of `KernelBank.distances()` on the columns of each type,
        prepared as by `KernelBank.prepared()`. All have k(x, x) = 1: a linear kernel of centred columns would put
        the origin among the samples.
    nu : float, default=0.5
        0 < ν ≤ 1: at most this share of the training samples is called an outlier.
    geometry : geometry or None, default=None
        The set of kernel weights; None is ``LpBall(2.0)``.
    solver, tol, max_iter, dtype, memory_limit, n_jobs, random_state, verbose : as for `MKLClassifier`

    Attributes
    ----------
    offset_ : float, such that ``decision_function`` = ``score_samples`` − ``offset_``
    kernel_weights_, kernel_names_, dual_coef_, support_, support_vectors_, n_support_, coef_,
    feature_importances_, intercept_, certificate_, duality_gap_, objective_,
    storage_, n_iter_, history_, n_features_in_ : as for `MKLClassifier`

    Notes
    -----
    Without labels the weights follow from the kernels alone: those count most in which the samples lie
    together far from the origin, so the smoothest kernel wins and the simplex often keeps it alone. Hence the
    default, which keeps all; ``Uniform()`` learns nothing about them. With one kernel this is scikit-learn's
    ``OneClassSVM(nu=nu)``.
    Differs from the paper: [Schoelkopf01] has one kernel; the weights are learnt as in [Rakotomamonjy08].

    Examples
    --------
    >>> import numpy as np
    >>> from kernelweave import OneClassMKL
    >>> X = np.random.default_rng(0).normal(size=(100, 2))
    >>> model = OneClassMKL(nu=0.1).fit(X)
    >>> model.predict([[0.0, 0.0], [9.0, 9.0]])
    array([ 1, -1])
    >>> model.duality_gap_ < 1e-4
    True

    """

    learns_from: ClassVar[str] = "none"
    path_params: ClassVar[tuple[str, ...]] = ("geometry__", "nu")
    defaults: ClassVar[dict[str, Callable[[], Any]]] = {
        "bank": _kernels_of_distance,
        "geometry": LpBall,
        "solver": Newton,
    }

    def __init__(
        self,
        bank: Any = None,
        *,
        nu: float = 0.5,
        geometry: Any = None,
        solver: Any = None,
        tol: float = 1e-4,
        max_iter: int | None = None,
        dtype: str = "auto",
        memory_limit: float | None = None,
        n_jobs: int | None = None,
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        self.bank = bank
        self.nu = nu
        self.geometry = geometry
        self.solver = solver
        self.tol = tol
        self.max_iter = max_iter
        self.dtype = dtype
        self.memory_limit = memory_limit
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Learn the kernel weights and the region from samples X; y is not read."""
        self._check_parameters()
        return self._fit(X, y, sample_weight)

    def score_samples(self, X: Any) -> Vector:
        """Return how typical each sample is, larger for those well inside."""
        return np.asarray(self._values(X) + self.offset_)

    def decision_function(self, X: Any) -> Vector:
        """Return the signed score, negative for outliers."""
        return self._values(X)

    def predict(self, X: Any) -> AnyArray:
        """Return 1 for inliers and −1 for outliers."""
        return np.where(self.decision_function(X) >= 0.0, 1, -1)

    def _set_fitted(self, task: FitTask, results: Sequence[FitResult]) -> None:
        super()._set_fitted(task, results)
        self.offset_ = -float(self.intercept_[0])

    @property
    def _learner(self) -> OneClass:
        return OneClass(nu=self.nu)

    def _encode_targets(self, y: Any, sample_weight: Any, n_samples: int) -> tuple[Matrix, Vector, None]:  # noqa: ARG002
        columns = np.ones((n_samples, 1))
        return columns, checked_weights(sample_weight, columns), None
