"""Kernel weights that change with the sample: the localized MKL classifier."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import KW_ONLY, dataclass, replace
from threading import Event
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.preprocessing import StandardScaler
from sklearn.utils import check_random_state

from kernelweave._typing import AnyArray, Matrix
from kernelweave.adaptive.gating import (
    Gating,
    GaussianSoftmax,
    LearntGating,
    Sigmoid,
    Softmax,
    learn_gating,
)
from kernelweave.adaptive.local_grams import as_weightable
from kernelweave.bank import KernelBank, Views
from kernelweave.bank.cross import contributions, in_slices
from kernelweave.estimators.classifier import MKLClassifier
from kernelweave.estimators.progress import raising_when_stopped
from kernelweave.estimators.training import FitResult, FitTask, TrainingData
from kernelweave.estimators.validation import (
    check_choice,
    check_count,
    check_input,
    check_number,
    check_part,
    is_precomputed,
)
from kernelweave.geometry import Geometry, LpBall
from kernelweave.gram import GramStack, StoragePolicy
from kernelweave.learners import Hinge, Learner
from kernelweave.solvers import BlockDescent, Problem, Progress, Result, Solver, WarmStart
from kernelweave.views.tables import as_floats, as_table, is_sparse, resolve_columns, stack, take_columns

GATINGS: dict[str, type[Gating]] = {"softmax": Softmax, "gaussian": GaussianSoftmax, "sigmoid": Sigmoid}


@dataclass(eq=False, repr=False)
class LocalizedMKLClassifier(MKLClassifier):
    r"""Multiple kernel learning with weights that are functions of the sample.

    .. math:: k(x, z) = \sum_m \eta_m(x) k_m(x, z) \eta_m(z), \qquad
       \eta_m(x) = \frac{e^{u_m'x + u_{m0}}}{\sum_k e^{u_k'x + u_{k0}}}

    Parameters
    ----------
    bank : KernelBank or None, default=None
        The kernels; None is `KernelBank.default()`. Precomputed kernels have no inputs to gate by.
    learner : Hinge, NuHinge, SquaredHinge or None, default=None
        The classifier for a given gating; None is ``Hinge(C=1.0)``.
    gating : Softmax, GaussianSoftmax, Sigmoid, "softmax", "gaussian", "sigmoid" or None, default=None
        The weight functions, of `kernelweave.adaptive.gating`: parts of space divided by planes, regions around
        centres, or kernels independent of each other. ``Softmax(features=...)`` reads these columns or views only.
        None is ``Softmax()`` on all of them.
    n_init : int, default=10
        Starts, the first with even weights and the others random; the problem is not convex, and the best
        is kept. With more than 1,000 samples they see 500, and the best goes on with all.
    tol : float, default=1e-4
        Relative change of the objective to stop at.
    max_iter : int or None, default=None
        Most steps of the gating per start; None is 100.
    class_weight, probability, memory_limit, n_jobs, verbose
        As in `MKLClassifier`.
    random_state : int, RandomState or None, default=None
        For the random starts.

    Attributes
    ----------
    gating_ : array of shape (M, d + 1), the coefficients u with the intercept last, and that of ‖x‖² before it in
        a `GaussianSoftmax`; (classes, M, d + 1) beyond two classes
    local_weights_ : array of shape (n, M), eta_m of the training samples; (classes, n, M)
    kernel_weights_ : their means over the training samples
    certificate_ : bounds of the SVM's value for the gating found; nothing is proved about the gating
    objective_path_ : values of the best start's steps; a list per class beyond two
    dual_coef_, support_, intercept_, classes_, kernel_names_ : as in `MKLClassifier`

    Notes
    -----
    [Gonen08, Eq. (3)–(7)]; the comparator of [Liu14]. It helps where different kernels are right in different parts
    of the space, and loses where the same are right everywhere: with many features and few samples the gating
    overfits, so choose a few by ``features``.
    Symbols: paper v_m → ``gating_``, η_m(x) → ``local_weights(X)``.
    Differs from the paper: quasi-Newton steps, standardised features, more than two classes by one-vs-rest; of
    many samples the starts see only some.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelweave import KernelBank, LocalizedMKLClassifier
    >>> from kernelweave.kernels import Gaussian, Linear
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(60, 2))
    >>> y = np.where(X[:, 0] < 0, X[:, 1] > 0, (X**2).sum(axis=1) > 1.5)
    >>> model = LocalizedMKLClassifier(KernelBank([Linear(), Gaussian(width=0.7)]), random_state=0).fit(X, y)
    >>> model.local_weights(X).shape, bool(model.score(X, y) > 0.8)
    ((60, 2), True)

    """

    defaults_without_bank: ClassVar[dict[str, Callable[[], Any]]] = {}
    defaults: ClassVar[dict[str, Callable[[], Any]]] = {
        "bank": KernelBank.default,
        "learner": Hinge,
        "gating": Softmax,
    }
    accepts_missing_views: ClassVar[bool] = False  # a gating needs the features of every sample
    fills_gaps: ClassVar[bool] = False
    refits_on_resamples: ClassVar[bool] = False
    weighs_samples_alike: ClassVar[bool] = False
    takes_indicators: ClassVar[bool] = False
    multiclass = "per_class"

    bank: Any = None
    _: KW_ONLY
    learner: Any = None
    gating: Any = None
    n_init: int = 10
    tol: float = 1e-4
    max_iter: int | None = None
    class_weight: Any = None
    probability: bool = False
    memory_limit: float | None = None
    n_jobs: int | None = None
    random_state: Any = None
    verbose: int = 0

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Learn the gating and the classifier from samples X and their labels y."""
        super().fit(X, y, sample_weight)
        if not self.probability and not self.settled_:
            warnings.warn(
                f"The gating still changed after {self._max_steps} steps; raise max_iter or tol.",
                ConvergenceWarning,
                stacklevel=2,
            )
        return self

    def local_weights(self, X: Any) -> AnyArray:
        """Return eta_m(x) for every sample: (rows, M), or (classes, rows, M) beyond two classes."""
        self._require_fit()
        weights = self._local_weights(check_input(self, X, reset=False))
        return weights[0] if self.classes_.size == 2 else weights

    def decision_function(self, X: Any) -> AnyArray:
        """Return one signed score per sample, or per sample and class beyond two classes."""
        self._require_fit()
        X = check_input(self, X, reset=False)
        n_results = 4 * self.dual_coef_.shape[0] * len(self.bank_)
        values = in_slices(X, lambda rows: self._kernel_parts(rows).sum(axis=2), n_results, self.bank_)
        return self._shaped(values + self.intercept_)

    def combined_kernel(self, X: Any, Z: Any = None) -> Matrix:
        """Return Σ eta_m(x) k_m(x, z) eta_m(z) between the rows of X and of Z, the mean over the classes.

        Z are the training samples by default.
        """
        self._require_fit()
        X = check_input(self, X, reset=False)
        left = self._local_weights(X)
        if Z is None:
            right, kernels = self._training_weights, self.bank_.cross(X)
        else:
            Z = check_input(self, Z, reset=False)
            right, kernels = self._local_weights(Z), self.bank_.between(X, Z)
        total = [K * (left[:, :, m].T @ right[:, :, m]) for m, K in kernels]
        return np.asarray(sum(total) / left.shape[0])

    def _kernel_parts(self, X: Any) -> AnyArray:
        X = check_input(self, X, reset=False)
        coef = self.dual_coef_[:, None, :] * self._training_weights[:, self.support_].transpose(0, 2, 1)
        parts = contributions(self.bank_, X, coef, self.support_, self._n_threads)
        return parts * self._local_weights(X).transpose(1, 0, 2)

    def _local_weights(self, X: Any) -> AnyArray:
        """Return the weights (problems, rows, M) of checked samples."""
        Z = self._gating.inputs(self.scaler_.transform(gating_features(X, self._gating.features)))
        coef = self.gating_[None] if self.gating_.ndim == 2 else self.gating_
        return np.array([self._gating.weights(Z @ one.T) for one in coef])

    @property
    def _training_weights(self) -> AnyArray:
        return self.local_weights_[None] if self.local_weights_.ndim == 2 else self.local_weights_

    @property
    def _gating(self) -> Gating:
        return GATINGS[self.gating]() if isinstance(self.gating, str) else self.part("gating")

    @property
    def _max_steps(self) -> int:
        return 100 if self.max_iter is None else self.max_iter

    @property
    def _geometry(self) -> Geometry:
        return LpBall(np.inf)  # the gating holds the weights: all others are 1

    def _solver(self, n_kernels: int, *, streamed: bool = False) -> Solver:  # noqa: ARG002
        return BlockDescent(tol=self.tol)

    def _check_parameters(self) -> None:
        check_number("tol", self.tol, above=0.0, below=1.0)
        check_count("max_iter", self.max_iter, optional=True)
        check_count("n_init", self.n_init)
        check_number("memory_limit", self.memory_limit, above=0.0, optional=True)
        check_part("learner", self._learner, Learner, "Hinge(C=1.0)")
        if isinstance(self.gating, str):
            check_choice("gating", self.gating, tuple(GATINGS))
        check_part("gating", self._gating, Gating, "Softmax()")
        if is_precomputed(self.bank):
            raise ValueError(
                "LocalizedMKLClassifier gates by the inputs, which precomputed kernels do not have; use a "
                "KernelBank on a table or Views, or SampleAdaptiveMKLClassifier."
            )

    def _validate(self, X: Any, y: Any, sample_weight: Any = None) -> TrainingData:
        data = super()._validate(X, y, sample_weight)
        features = gating_features(check_input(self, X, reset=False), self._gating.features)
        self.scaler_ = StandardScaler().fit(features, sample_weight=data.weight)
        return replace(data, extra=self.scaler_.transform(features))

    def _storage_policy(self, data: TrainingData, n_targets: int, n_candidates: int) -> StoragePolicy:
        policy = super()._storage_policy(data, n_targets, n_candidates)
        # Gates scale a sample's distance from the origin, so the origin must be the user's.
        return replace(policy, centre=False, dtype="float64", streams_from=None, stored_up_to=20_000)

    def _solve_problem(
        self,
        task: FitTask,
        problem: Problem,
        start: WarmStart | None,  # noqa: ARG002 - starts of its own
        progress: Progress | None,
        stop: Event,
    ) -> tuple[Result, GramStack, Any]:
        seed = check_random_state(self.random_state).randint(2**31)
        learnt = learn_gating(
            replace(problem, grams=as_weightable(problem.grams)),
            self._gating,
            task.data.extra,
            tol=self.tol,
            max_iter=self._max_steps,
            n_init=self.n_init,
            rng=np.random.default_rng(seed),
            progress=raising_when_stopped(stop, progress),
            stop=stop,
        )
        return learnt.result, task.grams, learnt

    def _set_fitted(self, task: FitTask, results: Sequence[FitResult]) -> None:
        super()._set_fitted(task, results)
        learnt: list[LearntGating] = [one.details for one in results]
        binary = len(learnt) == 1
        self.gating_ = learnt[0].coef if binary else np.array([one.coef for one in learnt])
        self.local_weights_ = learnt[0].weights if binary else np.array([one.weights for one in learnt])
        self.kernel_weights_ = self.local_weights_.mean(axis=-2)
        paths = [list(one.values) for one in learnt]
        self.objective_path_ = paths[0] if binary else paths
        # An interrupt has a warning of its own.
        self.settled_ = all(one.converged or one.result.stopped == "interrupted" for one in learnt)


def gating_features(X: Any, selection: Any) -> Matrix:
    """Return the chosen columns of a table, or the chosen views side by side, as one dense matrix."""
    if isinstance(X, Views):
        names = X.names if selection is None else _view_names(X, selection)
        values = stack([as_floats(X[name], f"view {name!r}") for name in names])
    else:
        table = as_table(X, "X")
        values = as_floats(take_columns(table, resolve_columns(selection, table)), "X")
    return np.asarray(values.toarray() if is_sparse(values) else values)


def _view_names(X: Views, selection: Any) -> list[str]:
    names = [selection] if isinstance(selection, str) else list(selection)
    for name in names:
        if name not in X:
            raise ValueError(
                f"The features of a gating on Views are names of views ({', '.join(X.names)}); got {name!r}."
            )
    return names
