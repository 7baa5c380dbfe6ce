"""Multiple kernel regression: a bank of kernels, a learner, a geometry, a solver."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import RegressorMixin

from kernelweave._typing import AnyArray, Indices, Matrix, Vector
from kernelweave.bank import KernelBank
from kernelweave.estimators.feature_model import FeatureModel
from kernelweave.estimators.training import TrainingData
from kernelweave.estimators.validation import check_choice, checked_weights, real_targets
from kernelweave.geometry import Simplex
from kernelweave.learners import Square
from kernelweave.solvers import Newton


class MKLRegressor(RegressorMixin, FeatureModel):  # type: ignore[misc]
    r"""Multiple kernel learning for regression, with a duality-gap certificate.

    .. math:: \min_{\eta \in \mathcal M} \max_{v} g(v) - \sum_m \eta_m \tfrac12 v'K_m v + r(\eta)

    Parameters
    ----------
    bank : KernelBank, "precomputed" or None, default=None
        The kernels; None is `KernelBank.default()`. "precomputed": X is a list of M matrices
        (rows, n_train), or one array (rows, n_train, M) that scikit-learn can split.
    learner : Square, EpsilonInsensitive or None, default=None
        The loss for fixed weights; None is ``Square(C=1.0)``, kernel ridge regression.
    geometry : geometry or None, default=None
        The set of kernel weights; None is ``Simplex()``, which selects few kernels.
    multioutput : {"shared", "per_output"}, default="shared"
        With several targets (columns of y), one set of weights for all, or one per target.
    features, solver, tol, max_iter, dtype, memory_limit, n_jobs, random_state, verbose : as for `MKLClassifier`

    Attributes
    ----------
    kernel_weights_ : array of shape (M,), or (targets, M) with weights per target
    dual_coef_, support_, intercept_ : coefficients v of the samples in use, one row per target
    coef_ : slopes in the columns, (columns,) or (targets, columns), where all kernels with weight are linear
    feature_importances_, support_vectors_, n_support_, kernel_names_, certificate_, certificates_,
    duality_gap_, objective_, storage_, n_iter_, history_, n_features_in_, feature_names_in_ : as for
        `MKLClassifier`

    Notes
    -----
    C weighs errors in the units of y and of the kernels: standardise both before choosing it. With one kernel
    and ``Square(C, fit_intercept=False)`` this is scikit-learn's KernelRidge(alpha=1/C), with
    ``EpsilonInsensitive(C, epsilon)`` its SVR. A y of one column counts as one target.
    Differs from the paper: it is in none; the framework of [Xu13] with the losses of regression.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from kernelweave import KernelBank, MKLRegressor
    >>> from kernelweave.geometry import LpBall
    >>> X, y = load_diabetes(return_X_y=True, scaled=True)
    >>> bank = KernelBank.per_view(views={"body": [0, 1, 2, 3], "blood": slice(4, 10)})
    >>> model = MKLRegressor(bank, geometry=LpBall(2.0)).fit(X / X.std(axis=0), (y - y.mean()) / y.std())
    >>> model.kernel_weights_.shape
    (2,)
    >>> model.duality_gap_ < 1e-4
    True

    """

    learner_example: ClassVar[str] = "Square(C=1.0)"
    learns_from: ClassVar[str] = "real"
    defaults: ClassVar[dict[str, Callable[[], Any]]] = {
        "bank": KernelBank.default,
        "learner": Square,
        "geometry": Simplex,
        "solver": Newton,
    }

    def __init__(
        self,
        bank: Any = None,
        *,
        learner: Any = None,
        geometry: Any = None,
        features: Any = None,
        solver: Any = None,
        tol: float = 1e-4,
        max_iter: int | None = None,
        multioutput: str = "shared",
        dtype: str = "auto",
        memory_limit: float | None = None,
        n_jobs: int | None = None,
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        self.bank = bank
        self.learner = learner
        self.geometry = geometry
        self.features = features
        self.solver = solver
        self.tol = tol
        self.max_iter = max_iter
        self.multioutput = multioutput
        self.dtype = dtype
        self.memory_limit = memory_limit
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Learn the kernel weights and the regression from samples X and their real targets y.

        With ``features`` X may also be `batches`, which bring their targets, or a Dask collection.
        """
        self._check_parameters()
        if self.features is not None:
            return self._fit_on_features(X, y, sample_weight)
        return self._fit(X, y, sample_weight)

    def predict(self, X: Any) -> AnyArray:
        """Return the target of each sample, or one column per target where there are several."""
        return self._values(X)

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_choice("multioutput", self.multioutput, ("shared", "per_output"))

    def _encode_targets(self, y: Any, sample_weight: Any, n_samples: int) -> tuple[Matrix, Vector, None]:
        Y = real_targets(y, n_samples)
        return Y, checked_weights(sample_weight, Y), None

    def _problems(self, data: TrainingData) -> dict[str, AnyArray]:
        if data.Y.shape[1] == 1 or self.multioutput == "shared":
            return super()._problems(data)
        return {f"target {c}": data.Y[:, c] for c in range(data.Y.shape[1])}

    def _columns_of_problems(self, n_targets: int) -> dict[str, Indices | None]:
        if n_targets == 1 or self.multioutput == "shared":
            return super()._columns_of_problems(n_targets)
        return {f"target {c}": np.array([c]) for c in range(n_targets)}

    def _per_problem(self, found: Matrix) -> AnyArray:
        return found[0] if len(found) == 1 else found

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        return tags
