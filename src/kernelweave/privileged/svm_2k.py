"""The estimator of SVM-2K: one classifier per view, and a price on their disagreement."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from threading import Event
from typing import Any, ClassVar, Self

import numpy as np

from kernelweave._threads import blas_threads, threads_for
from kernelweave._typing import AnyArray, Matrix, Vector
from kernelweave.bank import KernelBank
from kernelweave.bank.cross import contributions, scores
from kernelweave.bank.protocol import FittedKernels
from kernelweave.estimators.base import KernelClassifier, reset
from kernelweave.estimators.calibration import calibrate
from kernelweave.estimators.column_notes import note_columns
from kernelweave.estimators.progress import gap_bars, interruptible, raising_when_stopped
from kernelweave.estimators.training import stop_reason, warn_of_gap
from kernelweave.estimators.validation import (
    as_bank,
    check_choice,
    check_count,
    check_from_zero,
    check_input,
    check_number,
    encode_labels,
    require_same_rows,
    sample_weights,
    signs,
)
from kernelweave.kernels import Gaussian, Linear
from kernelweave.privileged.storage import matrices, most_samples, require_matrices
from kernelweave.privileged.svm_2k_problem import SVM2KPrices, SVM2KSolution, TwoViews
from kernelweave.privileged.svm_2k_solver import METHODS, TwoViewSolver
from kernelweave.solvers import Progress


def two_kernels() -> KernelBank:
    """Return the default: a linear and a Gaussian kernel of all columns."""
    return KernelBank([Linear(), Gaussian()])


class SVM2K(KernelClassifier):
    r"""The two-view support vector machine SVM-2K, certified.

    .. math:: \min \tfrac12\|w\|^2 + \tfrac12\|v\|^2 + C_A\sum_i \xi^A_i + C_B\sum_i \xi^B_i + D\sum_i \eta_i,
       \quad |f_A(x_i) - f_B(x_i)| \le \eta_i + \epsilon,\; \eta_i \ge 0

    with the hinge slacks ξ of both classifiers; it predicts by (f_A + f_B)/2.

    Parameters
    ----------
    bank : KernelBank, "precomputed" or None, default=None
        Exactly two kernels, one per view; None is a linear and a Gaussian kernel of all columns.
    C : float, default=1.0
        Price of a margin violation in the first view, C > 0.
    C_b : float or None, default=None
        The same in the second view; None is ``C``.
    D : float, default=1.0
        Price of a disagreement, D > 0. Small: two separate classifiers; large: two that agree.
    epsilon : float, default=0.1
        Disagreement that costs nothing, at least 0.
    method : {"auto", "interior", "smo"}, default="auto"
        How it is solved: by interior point, or by SMO from both views' C-SVCs. "auto" is SMO, and the interior
        point where SMO is slow and there are at most 4,000 samples.
    tol : float, default=1e-4
        Relative duality gap to stop at.
    max_iter : int or None, default=None
        Most rounds of SMO and steps of the interior point together; None is 100.
    class_weight : dict, "balanced" or None, default=None
        Factor on all prices per class.
    probability : bool, default=False
        Also fit scikit-learn's sigmoid calibration (5-fold), which `predict_proba` needs.
    memory_limit : float or None, default=None
        Most bytes for the stored kernels; None is 80 % of what is free.
    n_jobs : int or None, default=None
        Threads over the classes, or of the linear algebra; None is 1, −1 is all.
    verbose : int, default=0
        1 shows progress while it lasts, 2 leaves it on the screen.

    Attributes
    ----------
    dual_coef_ : array of shape (problems, 2, support vectors), coefficients of both views
    support_, intercept_ : indices of the support vectors; intercepts of shape (problems, 2)
    kernel_names_, kernel_weights_ : names of the two kernels; ½ each, for both views count alike
    certificate_, certificates_, duality_gap_, objective_, n_iter_ : as in `MKLClassifier`
    classes_, n_features_in_, feature_names_in_ : as in scikit-learn

    Notes
    -----
    [Farquhar06; Xu14, Eq. (2.22)]. Symbols: paper C^A, C^B, D, ε → ``C``, ``C_b``, ``D``, ``epsilon``.
    Differs from the paper: [Xu14] prints no η ≥ 0, without which ε would only shift the objective; it is
    required here, as in [Farquhar06]. Beyond two classes it is one-vs-rest; weights multiply all prices.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from kernelweave import KernelBank
    >>> from kernelweave.estimators import SVM2K
    >>> from kernelweave.kernels import Gaussian
    >>> X, y = load_breast_cancer(return_X_y=True, as_frame=True)
    >>> bank = KernelBank.per_view([Gaussian()], views={"mean": slice(0, 10), "worst": slice(20, 30)})
    >>> model = SVM2K(bank, D=0.5).fit(X / X.std(), y)
    >>> model.duality_gap_ < 1e-4, model.view_decisions(X / X.std()).shape
    (True, (569, 2))

    """

    defaults: ClassVar[dict[str, Callable[[], Any]]] = {"bank": two_kernels}

    def __init__(
        self,
        bank: Any = None,
        *,
        C: float = 1.0,
        C_b: float | None = None,
        D: float = 1.0,
        epsilon: float = 0.1,
        method: str = "auto",
        tol: float = 1e-4,
        max_iter: int | None = None,
        class_weight: Any = None,
        probability: bool = False,
        memory_limit: float | None = None,
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> None:
        self.bank = bank
        self.C = C
        self.C_b = C_b
        self.D = D
        self.epsilon = epsilon
        self.method = method
        self.tol = tol
        self.max_iter = max_iter
        self.class_weight = class_weight
        self.probability = probability
        self.memory_limit = memory_limit
        self.n_jobs = n_jobs
        self.verbose = verbose

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Learn both classifiers from samples X and their labels y."""
        self._check_parameters()
        if self.probability:
            calibrate(self, X, y, sample_weight)
            return self
        reset(self)
        require_same_rows(X, y)
        fitted = as_bank(self.part("bank")).fit(check_input(self, X, reset=True))
        if len(fitted) != 2:
            names = ", ".join(fitted.names)
            raise ValueError(f"SVM2K takes two kernels, one per view; the bank has {len(fitted)} ({names}).")
        classes, index = encode_labels(y, fitted.n_samples)
        weight = sample_weights(sample_weight, self.class_weight, classes, index)
        solutions = self._solve(fitted, signs(index, classes.size), weight, classes)
        self.classes_ = classes
        self.bank_ = fitted.for_prediction()
        self.kernel_names_ = fitted.names
        self.kernel_weights_ = np.full(2, 0.5)
        self._set_fitted(solutions)
        note_columns(self, X, y)
        worst = max(solutions, key=lambda solution: solution.relative_gap)
        if worst.stopped != "converged":
            warn_of_gap(worst.certificate, self.tol, stop_reason(worst.stopped, worst.steps))
        return self

    def view_decisions(self, X: Any) -> AnyArray:
        """Return f_A and f_B by column, of shape (rows, 2), or (rows, classes, 2) beyond two classes."""
        self._require_fit()
        X = check_input(self, X, reset=False)
        coef = self.dual_coef_.reshape(-1, self.support_.size)
        eta = np.tile(np.eye(2), (len(self.dual_coef_), 1))
        values = scores(self.bank_, X, eta, coef, self.support_, self._n_threads)
        values = values.reshape(-1, len(self.dual_coef_), 2) + self.intercept_
        return np.asarray(values[:, 0] if self.classes_.size == 2 else values)

    def decision_function(self, X: Any) -> AnyArray:
        """Return the mean of both views' scores, per sample, and per class beyond two classes."""
        return np.asarray(self.view_decisions(X).mean(axis=-1))

    def _kernel_parts(self, X: Any) -> AnyArray:
        X = check_input(self, X, reset=False)
        return contributions(self.bank_, X, 0.5 * self.dual_coef_, self.support_, self._n_threads)

    def _kernel_rest(self) -> AnyArray:
        return np.asarray(self.intercept_.mean(axis=1))

    def _check_parameters(self) -> None:
        for name in ("C", "D"):
            check_number(name, getattr(self, name), above=0.0)
        check_number("C_b", self.C_b, above=0.0, optional=True)
        check_number("tol", self.tol, above=0.0, below=1.0)
        check_count("max_iter", self.max_iter, optional=True)
        check_number("memory_limit", self.memory_limit, above=0.0, optional=True)
        check_from_zero("epsilon", self.epsilon)
        check_choice("method", self.method, METHODS)

    def _solve(
        self, fitted: FittedKernels, Y: Matrix, weight: Vector, classes: AnyArray
    ) -> list[SVM2KSolution]:
        n_jobs = threads_for(self.n_jobs)
        require_matrices(2, fitted.n_samples, self.memory_limit)
        K_a, K_b = matrices(fitted, self.tol, self.memory_limit, n_jobs)
        with gap_bars(self.verbose, "step") as bars, blas_threads(n_jobs if Y.shape[1] == 1 else 1):
            names = ["both views"] if Y.shape[1] == 1 else [f"class {label}" for label in classes]
            jobs = [
                partial(self._train, K_a, K_b, y, weight, bars(name, self.tol))
                for y, name in zip(Y.T, names, strict=True)
            ]
            return interruptible(jobs, n_jobs)

    def _train(
        self, K_a: Matrix, K_b: Matrix, y: Vector, weight: Vector, progress: Progress | None, stop: Event
    ) -> SVM2KSolution:
        """Solve one binary problem on the samples that have any weight."""
        used = np.flatnonzero(weight > 0.0)
        C_b = self.C if self.C_b is None else self.C_b
        price = weight[used]
        prices = SVM2KPrices(self.C * price, C_b * price, self.D * price, self.epsilon)
        if used.size < y.size:
            K_a, K_b = K_a[np.ix_(used, used)], K_b[np.ix_(used, used)]
        solver = TwoViewSolver(
            self.tol,
            self.method,
            max_iter=100 if self.max_iter is None else self.max_iter,
            max_dense=min(4_000, most_samples(TwoViewSolver.MATRICES, self.memory_limit)),
        )
        solution = solver.solve(TwoViews(K_a, K_b, y[used], prices), raising_when_stopped(stop, progress))
        if solution.stopped == "interrupted":
            stop.set()
        coef = np.zeros((y.size, 2))
        coef[used] = solution.coef
        return replace(solution, coef=coef)

    def _set_fitted(self, solutions: list[SVM2KSolution]) -> None:
        coef = np.array([solution.coef.T for solution in solutions])
        self.support_ = np.flatnonzero(coef.any(axis=(0, 1)))
        self.dual_coef_ = coef[:, :, self.support_]
        self.intercept_ = np.array([solution.intercept for solution in solutions])
        self.n_iter_ = max(solution.steps for solution in solutions)
        self._set_certificates([solution.certificate for solution in solutions], self.tol)
