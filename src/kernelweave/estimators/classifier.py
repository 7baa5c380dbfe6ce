"""The soft-margin MKL classifier: a bank of kernels, a learner, a geometry, a solver."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from threading import Event
from typing import Any, ClassVar, Self

import numpy as np
from joblib import effective_n_jobs
from sklearn.base import ClassifierMixin
from sklearn.utils.metaestimators import available_if

from kernelweave._threads import blas_threads
from kernelweave._typing import AnyArray, Matrix
from kernelweave.bank import KernelBank
from kernelweave.estimators.base import KernelEstimator
from kernelweave.estimators.calibration import calibrate, wants_probability
from kernelweave.estimators.decisions import decision_values
from kernelweave.estimators.inputs import as_bank, as_one_array, check_input
from kernelweave.estimators.interrupt import interruptible, watching
from kernelweave.estimators.parameters import check_choice, check_count, check_number, check_part
from kernelweave.estimators.progress import gap_bars
from kernelweave.estimators.targets import encode_labels, sample_weights, signs
from kernelweave.estimators.task import Setting, Solved, Start, Task
from kernelweave.estimators.training import (
    hold,
    sharpened,
    train,
    warn_if_open,
    with_defaults,
)
from kernelweave.geometry import Simplex, WeightGeometry
from kernelweave.gram import storage
from kernelweave.learners import Hinge, Learner, OneVsRest
from kernelweave.solvers import Certificate, Newton, Problem, Progress, Solver


class MKLClassifier(ClassifierMixin, KernelEstimator):  # type: ignore[misc]
    r"""Multiple kernel learning for classification, with a duality-gap certificate.

    .. math:: \min_{\eta \in \mathcal M} \max_{\alpha} g(\alpha) - \sum_m \eta_m \tfrac12 v'K_m v + r(\eta),
       \qquad v = \alpha∘y

    Parameters
    ----------
    bank : KernelBank, "precomputed" or None, default=None
        The kernels; None is `KernelBank.distances()`. "precomputed": X is a list of M matrices
        (rows, n_train), or one array (rows, n_train, M) that scikit-learn can split.
    learner : Hinge, NuHinge, SquaredHinge or None, default=None
        The machine for fixed weights; None is ``Hinge(C=1.0)``.
    geometry : geometry or None, default=None
        The set of kernel weights; None is ``Simplex()``, which selects few kernels.
    solver : Solver or None, default=None
        The loop over the weights; None chooses: Newton steps, or the closed form of the lp ball (p ≥ 2)
        where ``tol`` is loose. Beyond 1000 kernels: ColumnGeneration where few are used, else the closed
        form.
    tol : float, default=1e-4
        Relative duality gap to stop at. Below 1e-4 the kernels are kept in float64.
    max_iter : int or None, default=None
        Most machines to solve per problem; None leaves it to the solver.
    class_weight : dict, "balanced" or None, default=None
        Factor on C per class.
    multiclass : {"per_class", "shared"}, default="per_class"
        Beyond two classes, one-vs-rest with weights per class, or one set of weights for all classes.
    probability : bool, default=False
        Also fit scikit-learn's sigmoid calibration (5-fold), which `predict_proba` needs.
    dtype : {"auto", "float32", "float64"}, default="auto"
        How kernels are stored. The certificate is that of the kernels as given, whatever the storage.
    memory_limit : float or None, default=None
        Most bytes for the stored kernels; None is 80 % of what is free.
    n_jobs : int or None, default=None
        Threads for the passes over the kernels, or over the classes; None is 1, −1 is all.
    random_state : int or None, default=None
        Not used: the fit is deterministic.
    verbose : int, default=0
        1 shows a bar with the gap and the time left.

    Attributes
    ----------
    kernel_weights_ : array of shape (M,), or (classes, M) with weights per class
    kernel_names_ : tuple of str
    dual_coef_, support_, intercept_ : coefficients α∘y of the support vectors, one row per binary problem
    certificate_ : Certificate with ``upper``, ``lower``, ``gap``, ``relative_gap``; summed over the classes
    certificates_ : list of Certificate, one per problem solved
    duality_gap_, objective_ : the relative gap and the upper bound of ``certificate_``
    storage_ : Storage with ``how`` the kernels were held and the ``error`` they carried; certificates do not
    n_iter_ : machines solved (the most over the classes)
    history_ : list of records (certificate, seconds, active kernels), or one such list per class
    classes_, n_features_in_, feature_names_in_ : as in scikit-learn

    Notes
    -----
    The framework of [Xu13, Eq. (11), (13), (16)]; `presets` has the published methods by name.
    Symbols: paper μ → ``kernel_weights_``, α∘y → ``dual_coef_``, θ → ``geometry.theta``.
    Differs from the paper: nothing in the problem; the solver is second order and certified.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from kernelweave import KernelBank, MKLClassifier
    >>> X, y = load_breast_cancer(return_X_y=True, as_frame=True)
    >>> views = {"mean": slice(0, 10), "error": slice(10, 20), "worst": slice(20, 30)}
    >>> model = MKLClassifier(KernelBank.per_view(views=views)).fit(X / X.std(), y)
    >>> model.kernel_weights_.round(2)
    array([...])
    >>> model.duality_gap_ < 1e-4
    True

    """

    defaults: ClassVar[dict[str, Callable[[], Any]]] = {
        "bank": KernelBank.distances,
        "learner": Hinge,
        "geometry": Simplex,
        "solver": Newton,
    }

    def __init__(
        self,
        bank: Any = None,
        *,
        learner: Any = None,
        geometry: Any = None,
        solver: Any = None,
        tol: float = 1e-4,
        max_iter: int | None = None,
        class_weight: Any = None,
        multiclass: str = "per_class",
        probability: bool = False,
        dtype: str = "auto",
        memory_limit: float | None = None,
        n_jobs: int | None = None,
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        self.bank = bank
        self.learner = learner
        self.geometry = geometry
        self.solver = solver
        self.tol = tol
        self.max_iter = max_iter
        self.class_weight = class_weight
        self.multiclass = multiclass
        self.probability = probability
        self.dtype = dtype
        self.memory_limit = memory_limit
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Learn the weights and the machine from samples X and their labels y."""
        self._check_parameters()
        if self.probability:
            calibrate(self, X, y, sample_weight)
            return self
        task = self._prepare(X, y, sample_weight)
        solved = self._solve(task)
        self._keep(task, solved)
        warn_if_open([s.result for s in solved], self._solver(task.kernels.n_kernels).tol or self.tol)
        return self

    def decision_function(self, X: Any) -> AnyArray:
        """Return one signed score per sample, or per sample and class beyond two classes."""
        self._require_fit()
        return decision_values([self], X)[0]

    def predict(self, X: Any) -> AnyArray:
        """Return the class of each sample."""
        values = self.decision_function(X)
        winners = (values > 0).astype(int) if values.ndim == 1 else values.argmax(axis=1)
        return np.asarray(self.classes_[winners])

    @available_if(wants_probability)  # type: ignore[untyped-decorator]
    def predict_proba(self, X: Any) -> Matrix:
        """Return calibrated class probabilities; needs ``probability=True`` at fit."""
        self._require_fit("calibration_")
        return self.calibration_.predict_proba(as_one_array(X))  # type: ignore[no-any-return]

    def _check_parameters(self) -> None:
        check_number("tol", self.tol, above=0.0, below=1.0)
        check_count("max_iter", self.max_iter)
        check_number("memory_limit", self.memory_limit, above=0.0, optional=True)
        check_choice("multiclass", self.multiclass, ("per_class", "shared"))
        check_part("learner", self.part("learner"), Learner, "Hinge(C=1.0)")
        check_part("geometry", self.part("geometry"), WeightGeometry, "Simplex()")
        check_part("solver", self.part("solver"), Solver, "Newton()")

    def _prepare(self, X: Any, y: Any, sample_weight: Any = None) -> Task:
        """Check data and parts, and store the kernels: all of a fit but the solving."""
        setting = self._read(X, y, sample_weight)
        self._check_parts(setting)
        return self._store(setting)

    def _read(self, X: Any, y: Any, sample_weight: Any = None) -> Setting:
        """Check the data and fit the bank: what depends on neither the learner nor the geometry."""
        X = check_input(self, X, reset=True)
        fitted = as_bank(self.bank).fit(X)
        self.classes_, index = encode_labels(y, fitted.n_samples)
        weight = sample_weights(sample_weight, self.class_weight, self.classes_, index)
        return Setting(fitted, signs(index, self.classes_.size), weight, self.classes_)

    def _store(self, setting: Setting, candidates: Sequence[MKLClassifier] = ()) -> Task:
        """Store the kernels, for this model or for all candidates that will be fitted on them."""
        Y = setting.signs
        solvers = [model._solver(len(setting.fitted)) for model in candidates or [self]]
        per_class = Y.shape[1] > 1 and self.multiclass == "per_class"
        kernels = hold(
            setting.fitted,
            centre=self.part("learner").has_bias,
            tol=self.tol,
            dtype=self.dtype,
            memory_limit=self.memory_limit,
            n_threads=1 if per_class else effective_n_jobs(self.n_jobs),
            for_many=len(candidates) > 1,
            lazy=not all(solver.holds_all for solver in solvers),
        )
        if per_class:
            targets = {f"class {label}": Y[:, c] for c, label in enumerate(setting.classes)}
        else:
            targets = {"weights": Y if Y.shape[1] > 1 else Y[:, 0]}
        return Task(kernels, targets, setting.weight, setting.classes)

    def _solver(self, n_kernels: int) -> Solver:
        return with_defaults(self.solver, self.part("geometry"), n_kernels, self.tol, self.max_iter)

    def _check_parts(self, setting: Setting) -> None:
        for column in setting.signs.T:
            self.part("learner").check(column, setting.weight)
        self.part("geometry").check(len(setting.fitted))

    def _adopt(self, other: MKLClassifier, setting: Setting) -> None:
        """Take over what another model learnt of the columns, and check the parts against its setting."""
        for name in ("n_features_in_", "feature_names_in_"):
            if hasattr(other, name):
                setattr(self, name, getattr(other, name))
        self._check_parameters()
        self._check_parts(setting)

    def _solve(self, task: Task, near: list[Start] | None = None, stop: Event | None = None) -> list[Solved]:
        """Solve every problem of the task, each from its start if given, until done or told to stop."""
        starts = [None] * len(task.targets) if near is None else near
        with gap_bars(self.verbose) as bar, blas_threads(1):
            jobs = [
                partial(self._train, task, y, start, bar(title, self.tol))
                for (title, y), start in zip(task.targets.items(), starts, strict=True)
            ]
            return interruptible(jobs, effective_n_jobs(self.n_jobs), stop)

    def _keep(self, task: Task, solved: list[Solved]) -> None:
        """Set the learnt attributes from a solved task."""
        results = [s.result for s in solved]
        coef = np.column_stack([r.machine.coef for r in results])
        margin = np.concatenate([np.atleast_1d(r.machine.margin) for r in results])
        # A margin of nothing but rounding is no unit to measure decision values in.
        reach = np.array([np.abs(r.machine.coef).sum(axis=0).max() for r in results]).max()
        size = max(float(r.eta @ task.kernels.sizes) for r in results)
        margin = np.where(margin > 1e-10 * reach * size, margin, 1.0)
        self.classes_ = task.classes
        self.bank_ = task.kernels.fitted.for_prediction()
        self.kernel_names_ = task.kernels.names
        self.storage_ = max((s.storage for s in solved), key=lambda used: used.error)
        self.kernel_weights_ = results[0].eta if len(results) == 1 else np.array([r.eta for r in results])
        self.support_ = np.flatnonzero(coef.any(axis=1))
        self.dual_coef_ = (coef[self.support_] / margin).T
        self.intercept_ = np.concatenate([s.intercept for s in solved]) / margin
        self.certificates_ = [r.certificate for r in results]
        self.certificate_ = Certificate(
            sum(c.upper for c in self.certificates_), sum(c.lower for c in self.certificates_)
        )
        self.duality_gap_ = self.certificate_.relative_gap
        self.objective_ = self.certificate_.upper
        self.n_iter_ = max(r.n_iter for r in results)
        histories = [list(r.history) for r in results]
        self.history_ = histories[0] if len(results) == 1 else histories

    def _train(
        self, task: Task, y: AnyArray, near: Start | None, progress: Progress | None, stop: Event
    ) -> Solved:
        """Solve one problem; the intercept is in terms of the kernels as they are, not as they are stored."""
        solver = self._solver(task.kernels.n_kernels)
        learner = self.part("learner")
        if near is not None:
            learner = sharpened(learner, self.tol if solver.tol is None else solver.tol)
        learner = OneVsRest(learner) if y.ndim == 2 else learner
        problem = Problem(task.kernels, y, learner, self.part("geometry"), task.weight)
        result, used = train(task.kernels, problem, solver, watching(stop, progress), near)
        if result.stopped == "interrupted":
            stop.set()
        machine = result.machine
        intercept = np.atleast_1d(machine.intercept - used.offset(result.eta, machine.coef))
        return Solved(result, intercept, storage(used.stack))
