"""The estimator of SVM+: privileged features explain the slacks, and are not needed to predict."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from functools import partial
from threading import Event
from typing import Any, ClassVar, Self, cast

import numpy as np
from sklearn.utils import _safe_indexing, check_array

from kernelweave._threads import blas_threads, threads_for
from kernelweave._typing import AnyArray, Indices, Matrix, Vector
from kernelweave.bank import KernelBank, Views
from kernelweave.bank.protocol import FittedKernels
from kernelweave.estimators.base import KernelClassifier, reset
from kernelweave.estimators.calibration import calibrate
from kernelweave.estimators.column_notes import note_columns
from kernelweave.estimators.progress import gap_bars, interruptible, raising_when_stopped
from kernelweave.estimators.training import warn_if_open
from kernelweave.estimators.validation import (
    PRECOMPUTED,
    as_bank,
    check_choice,
    check_count,
    check_input,
    check_number,
    check_part,
    encode_labels,
    is_precomputed,
    require_same_rows,
    sample_weights,
    signs,
)
from kernelweave.geometry import Geometry, Simplex
from kernelweave.kernels import Gaussian, Kernel
from kernelweave.privileged.storage import most_samples, require_matrices, store
from kernelweave.privileged.svm_plus_problem import SVMPlusSolution
from kernelweave.privileged.svm_plus_solver import METHODS, SVMPlus
from kernelweave.privileged.two_spaces import BothGeometries, TwoSpaces
from kernelweave.solvers import Newton, Problem, Progress, Result
from kernelweave.views.tables import is_sparse


class SVMPlusClassifier(KernelClassifier):
    r"""Support vector classification with privileged information (SVM+), certified.

    .. math:: \min \tfrac12\|w\|^2 + \tfrac\lambda2\|w^*\|^2 + \sum_i C_i\,\xi_i \quad\text{s.t.}\quad
       y_i(\langle w, x_i\rangle + b) \ge 1 - \xi_i,\; \xi_i = \langle w^*, z_i\rangle + \rho \ge 0

    The privileged features z exist at training time only: they describe how hard each training sample is.

    Parameters
    ----------
    C : float, default=1.0
        Price of a slack, C > 0; sample i pays C times its weight.
    lam : float, default=1.0
        Price λ of the correcting function. Large: one slack for all samples (the max-hinge SVM, not the
        C-SVC); small: slacks as free as the privileged kernel allows.
    kernel : kernel, bank, "precomputed" or None, default=None
        The kernel(s) of X; None is ``Gaussian()``. With several, their weights are learnt.
    privileged_kernel : kernel, bank, "precomputed" or None, default=None
        The same for the privileged features.
    geometry, privileged_geometry : geometry or None, default=None
        The sets of the weights in either space; None is ``Simplex()``.
    method : {"auto", "interior", "smo"}, default="auto"
        How one SVM+ is solved: by interior point, or by SMO. "auto" is SMO, and the interior point where SMO is
        slow. Where some samples have no privileged features it is the interior point in any case.
    tol : float, default=1e-4
        Relative duality gap to stop at.
    max_iter : int or None, default=None
        Most inner solves per problem.
    class_weight : dict, "balanced" or None, default=None
        Factor on C per class.
    probability : bool, default=False
        Also fit scikit-learn's sigmoid calibration (5-fold), which `predict_proba` needs.
    memory_limit : float or None, default=None
        Most bytes for the stored kernels; None is 80 % of what is free.
    n_jobs : int or None, default=None
        Threads; None is 1, −1 is all.
    verbose : int, default=0
        1 shows a bar with the gap.

    Attributes
    ----------
    kernel_weights_, privileged_weights_ : weights of the kernels in either space, per class beyond two
    kernel_names_, privileged_names_ : tuple of str
    dual_coef_, support_, intercept_ : coefficients α∘y of the support vectors, one row per binary problem
    slack_ : array of shape (problems, n); the slack ξ_i of each training sample
    certificate_, certificates_, duality_gap_, objective_, n_iter_, history_ : as in `MKLClassifier`
    classes_, n_features_in_, feature_names_in_ : as in scikit-learn

    Notes
    -----
    [Vapnik09; Xu14, Eq. (2.25), (2.26)]; the weights of several kernels in both spaces are what [Xu14]
    names as future work: gap = that of SVM+ plus the Fenchel-Young gaps of both sets of weights.
    Symbols: paper λ → ``lam``, α∘y → ``dual_coef_``, v'z + ρ → ``slack_``.
    Differs from the paper: rows of NaN mark samples without privileged features; their slacks are their own,
    as in the C-SVC, and without ``privileged`` it is the C-SVC. Weights multiply C; a sample
    of weight 0 is ignored. Beyond two classes it is one-vs-rest.
    Before believing a gain, refit with the privileged rows shuffled (`kernelweave.evaluation`).

    Examples
    --------
    >>> import numpy as np
    >>> from kernelweave import SVMPlusClassifier
    >>> from kernelweave.kernels import Linear
    >>> rng = np.random.default_rng(0)
    >>> clean = rng.normal(size=(80, 2))
    >>> y = np.where(clean[:, 0] > 0, "yes", "no")
    >>> X = clean + rng.normal(size=(80, 2))
    >>> model = SVMPlusClassifier(kernel=Linear(), lam=0.1).fit(X, y, privileged=clean)
    >>> model.predict([[2.0, 0.0], [-2.0, 0.0]]).tolist()
    ['yes', 'no']
    >>> model.duality_gap_ < 1e-4
    True

    """

    defaults: ClassVar[dict[str, Callable[[], Any]]] = {
        "kernel": Gaussian,
        "privileged_kernel": Gaussian,
        "geometry": Simplex,
        "privileged_geometry": Simplex,
    }

    def __init__(
        self,
        *,
        C: float = 1.0,
        lam: float = 1.0,
        kernel: Any = None,
        privileged_kernel: Any = None,
        geometry: Any = None,
        privileged_geometry: Any = None,
        method: str = "auto",
        tol: float = 1e-4,
        max_iter: int | None = None,
        class_weight: Any = None,
        probability: bool = False,
        memory_limit: float | None = None,
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> None:
        self.C = C
        self.lam = lam
        self.kernel = kernel
        self.privileged_kernel = privileged_kernel
        self.geometry = geometry
        self.privileged_geometry = privileged_geometry
        self.method = method
        self.tol = tol
        self.max_iter = max_iter
        self.class_weight = class_weight
        self.probability = probability
        self.memory_limit = memory_limit
        self.n_jobs = n_jobs
        self.verbose = verbose

    @property
    def bank(self) -> Any:
        """The kernels of X as a bank, or "precomputed"."""
        return as_kernels("kernel", self.part("kernel"))

    def fit(self, X: Any, y: Any, privileged: Any = None, sample_weight: Any = None) -> Self:
        """Learn from samples X, labels y, and privileged features, one row per sample (NaN: none)."""
        self._check_parameters()
        if self.probability:
            calibrate(self, X, y, sample_weight, privileged=privileged)
            return self
        reset(self)
        require_same_rows(X, y)
        fitted = as_bank(self.bank).fit(check_input(self, X, reset=True))
        classes, index = encode_labels(y, fitted.n_samples)
        weight = sample_weights(sample_weight, self.class_weight, classes, index)
        Y = signs(index, classes.size)
        spaces = self._build_grams(fitted, privileged, 1 if Y.shape[1] > 1 else threads_for(self.n_jobs))
        results = self._solve(spaces, Y, weight, classes)
        self.classes_ = classes
        self.bank_ = fitted.for_prediction()
        self.kernel_names_ = fitted.names
        self._set_fitted(results, len(fitted))
        note_columns(self, X, y)
        warn_if_open(results, self.tol)
        return self

    def _check_parameters(self) -> None:
        check_number("C", self.C, above=0.0)
        check_number("lam", self.lam, above=0.0)
        check_number("tol", self.tol, above=0.0, below=1.0)
        check_count("max_iter", self.max_iter, optional=True)
        check_number("memory_limit", self.memory_limit, above=0.0, optional=True)
        check_choice("method", self.method, METHODS)
        for name in ("geometry", "privileged_geometry"):
            check_part(name, self.part(name), Geometry, "Simplex()")

    def _build_grams(self, fitted: FittedKernels, privileged: Any, n_threads: int) -> TwoSpaces:
        """Store the kernels of both spaces, the second for the samples with privileged features."""
        n = fitted.n_samples
        bank = as_kernels("privileged_kernel", self.part("privileged_kernel"))
        features, rows = None, np.zeros(0, dtype=np.intp)
        if privileged is not None:
            features, rows = read_privileged(privileged, n, pairwise=is_precomputed(bank))
        by_pairs = self.method != "interior" and rows.size in (0, n)
        require_matrices(2 if by_pairs else 8, n, self.memory_limit)
        how = (self.tol, self.memory_limit, n_threads)
        self.privileged_names_: tuple[str, ...] = ()
        if not rows.size:
            return TwoSpaces(store(fitted, *how), None, rows, self.lam)
        privileged_fitted = as_bank(bank).fit(features)
        self.privileged_names_ = privileged_fitted.names
        return TwoSpaces(store(fitted, *how), store(privileged_fitted, *how), rows, self.lam)

    def _solve(self, spaces: TwoSpaces, Y: Matrix, weight: Vector, classes: AnyArray) -> list[Result]:
        """Solve one binary problem per column of Y."""
        n_decision = spaces.decision.n_kernels
        geometry = BothGeometries(self.part("geometry"), self.part("privileged_geometry"), n_decision)
        geometry.check(spaces.n_kernels)
        has_privileged = np.isin(np.arange(spaces.n_samples), spaces.rows)
        fixed = (
            n_decision == 1 and spaces.n_kernels <= 2
        )  # weights to learn would ask for a loose solve first
        learner = SVMPlus(
            self.C,
            has_privileged,
            self.method,
            spaces.n_threads,
            n_decision,
            tol=0.9 * self.tol if fixed else None,
            max_dense=min(4_000, most_samples(8, self.memory_limit)),
            max_low_rank=min(8_000, most_samples(5, self.memory_limit)),
        )
        names = ["weights"] if Y.shape[1] == 1 else [f"class {label}" for label in classes]
        with gap_bars(self.verbose) as bar, blas_threads(1):
            jobs = [
                partial(self._train, Problem(spaces, y, learner, geometry, weight), bar(name, self.tol))
                for y, name in zip(Y.T, names, strict=True)
            ]
            return interruptible(jobs, threads_for(self.n_jobs))

    def _train(self, problem: Problem, progress: Progress | None, stop: Event) -> Result:
        result = Newton(tol=self.tol, max_iter=self.max_iter).run(
            problem, progress=raising_when_stopped(stop, progress)
        )
        if result.stopped == "interrupted":
            stop.set()
        return result

    def _set_fitted(self, results: list[Result], n_decision: int) -> None:
        solutions = [cast(SVMPlusSolution, result.inner) for result in results]
        coef = np.array([solution.coef[:, 0] for solution in solutions])
        etas = np.array([result.eta for result in results])
        self.kernel_weights_ = _single(etas[:, :n_decision])
        self.privileged_weights_ = _single(etas[:, n_decision:])
        self.support_ = np.flatnonzero(coef.any(axis=0))
        self.dual_coef_ = coef[:, self.support_]
        self.intercept_ = np.array([float(solution.intercept) for solution in solutions])
        self.slack_ = np.array([solution.xi for solution in solutions])
        self._set_certificates([result.certificate for result in results], self.tol)
        self.n_iter_ = max(result.n_iter for result in results)
        histories = [list(result.history) for result in results]
        self.history_ = histories[0] if len(results) == 1 else histories


def as_kernels(name: str, kernel: Any) -> Any:
    """Return a kernel as a bank of one; banks and the word "precomputed" stay what they are."""
    if isinstance(kernel, Kernel):
        return KernelBank([kernel])
    if isinstance(kernel, type) or not (hasattr(kernel, "fit") or kernel == PRECOMPUTED):
        what = f"the class {kernel.__name__}" if isinstance(kernel, type) else repr(kernel)
        raise TypeError(
            f"{name} must be a kernel such as Gaussian(), a KernelBank or 'precomputed'; got {what}."
        )
    return kernel


def _single(rows: AnyArray) -> AnyArray:
    return rows[0] if len(rows) == 1 else rows


def read_privileged(privileged: Any, n_samples: int, *, pairwise: bool) -> tuple[Any, Indices]:
    """Return the privileged features, and the samples they belong to: rows of NaN have none.

    ``pairwise``: the features are kernel matrices, whose columns are samples too.
    """
    if isinstance(privileged, Views):
        _check_n_rows(privileged.shape[0], n_samples)
        rows = _complete_rows(np.hstack([_missing_in_view(privileged[name]) for name in privileged.names]))
        return (privileged if rows.size == n_samples else privileged[rows]), rows
    if pairwise:
        return _read_matrices(privileged, n_samples)
    table = check_array(
        privileged,
        accept_sparse="csr",
        dtype=np.float64,
        ensure_all_finite="allow-nan",
        input_name="privileged",
    )
    _check_n_rows(table.shape[0], n_samples)
    rows = np.arange(n_samples) if is_sparse(table) else _complete_rows(np.isnan(table))
    features = privileged if hasattr(privileged, "columns") else table  # frames keep their names
    return (features if rows.size == n_samples else _safe_indexing(features, rows)), rows


def _read_matrices(privileged: Any, n_samples: int) -> tuple[AnyArray, Indices]:
    is_list = isinstance(privileged, list | tuple) and len(privileged) > 0 and np.ndim(privileged[0]) == 2
    stack = np.stack(privileged, axis=2) if is_list else np.asarray(privileged, dtype=np.float64)
    if stack.ndim not in (2, 3) or stack.shape[:2] != (n_samples, n_samples):
        raise ValueError(
            f"With privileged_kernel='precomputed', privileged must be a kernel matrix of shape "
            f"({n_samples}, {n_samples}), several as (.., .., L) or a list; got shape {stack.shape}. "
            "Cross-validation cuts its rows only: there, pass features Z with K* = ZZ' and "
            "privileged_kernel=Linear()."
        )
    known = ~np.isnan(stack.reshape(n_samples, -1)).all(axis=1)
    rows = _complete_rows(np.isnan(stack[:, known] if known.any() else stack).reshape(n_samples, -1))
    return stack[np.ix_(rows, rows)], rows


def _missing_in_view(view: Any) -> AnyArray:
    """Return by column which rows miss some values of this view, and which miss all."""
    if is_sparse(view):
        return np.zeros((view.shape[0], 1), dtype=bool)
    unknown = np.isnan(np.asarray(view, dtype=np.float64))
    return np.column_stack([unknown.any(axis=1), unknown.all(axis=1)])


def _complete_rows(missing: AnyArray) -> Indices:
    """Return the rows without NaN; rows that are only partly NaN are an error."""
    some = missing.any(axis=1)
    partly = np.flatnonzero(some & ~missing.all(axis=1))
    if partly.size:
        raise ValueError(
            f"{partly.size} row(s) of privileged are partly NaN, the first is row {partly[0]}: a sample "
            "without privileged features is a row of NaN only; impute what is missing, or blank the row."
        )
    rows = np.flatnonzero(~some)
    if not rows.size:
        warnings.warn(
            "Every row of privileged is NaN: no sample has privileged features, and the slacks are those of "
            "the C-SVC.",
            UserWarning,
            stacklevel=5,
        )
    return rows


def _check_n_rows(received: int, n_samples: int) -> None:
    if received != n_samples:
        raise ValueError(
            f"X has {n_samples} samples but privileged has {received} rows; they must agree, with NaN rows "
            "for samples without privileged features."
        )
