"""LP-β: a classifier on every kernel, their outputs mixed by a linear program with a soft margin."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
from scipy.optimize import linprog
from scipy.sparse import csr_array, hstack

from kernelweave._threads import blas_threads, threads_for
from kernelweave._typing import AnyArray, Matrix, Vector
from kernelweave.bank.cross import contributions, layered_scores
from kernelweave.baselines.heuristics import fit_arguments, held_out_values, unit_margin
from kernelweave.baselines.two_step import HoldsSamplesOut
from kernelweave.estimators.class_targets import class_indices
from kernelweave.estimators.progress import count_bar
from kernelweave.estimators.training import TrainingData
from kernelweave.estimators.validation import Fold, check_input, check_share, stratified_folds
from kernelweave.gram.memory import require_room
from kernelweave.learners import InnerSolution
from kernelweave.learners.bias import margin_quantile
from kernelweave.solvers import Certificate


@dataclass(eq=False, repr=False, kw_only=True)
class LPBetaClassifier(HoldsSamplesOut):
    r"""LP-β: classifiers on single kernels, whose outputs are mixed with the largest soft margin.

    .. math:: \min_{\beta, \rho, \xi} -\rho + \tfrac{1}{\nu n}\sum_i \xi_i \quad\text{s.t.}\quad
       \sum_m \beta_m \big(f_{m,y_i}(x_i) - f_{m,c}(x_i)\big) + \xi_i \ge \rho \;\; \forall c \ne y_i,
       \quad \beta \ge 0,\; \textstyle\sum_m \beta_m = 1

    Parameters
    ----------
    bank : KernelBank, "precomputed" or None, default=None
        The kernels, as in `MKLClassifier`.
    learner : learner or None, default=None
        The classifier on every kernel; None is ``Hinge(C=1.0)``.
    nu : float, default=0.5
        0 < ν ≤ 1: at most this share of the samples lies below the margin ρ. Small ν looks at the hardest
        samples only, ν = 1 takes the kernel with the best mean margin.
    cv : int, splitter or pairs of indices, default=5
        The program is given outputs for samples held out in these folds; stratified, fewer where a class is
        too small. Repeated folds give the mean of the outputs. ``fit(X, y, groups=...)`` is for splitters that
        need groups.
    tol : float, default=1e-4
        Relative duality gap of every classifier.
    class_weight : dict, "balanced" or None, default=None
        Factor on C per class, and on the price of ξ of its samples.
    multiclass : {"shared", "per_class"}, default="shared"
        Beyond two classes one mixture for all (LP-β), or one for each class, with the classes compared on
        their own mixtures (LP-B).
    probability, memory_limit, n_jobs, verbose : as in `MKLClassifier`.

    Attributes
    ----------
    kernel_weights_ : array of shape (M,), or (classes, M); weights β of the classifiers, they sum to one
    certificate_, duality_gap_, objective_ : of the linear program
    dual_coef_ : array (M, problems, support), the classifiers on every kernel, before they are mixed
    support_, intercept_, kernel_names_, classes_ : as in `MKLClassifier`; the intercept of the mixture
    n_iter_ : classifiers trained

    Notes
    -----
    [Gehler09], the two-layer comparator of [Orabona10]. The program is solved by HiGHS. The weights are those
    of classifiers: `combined_kernel` takes them as weights of kernels, which is another predictor. Widths and
    scalings are those of all training samples, in every fold.
    Differs from the paper: one C for all kernels (there each has its own by cross-validation; give a tuned
    learner), and samples have weights.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from kernelweave import KernelBank, LPBetaClassifier
    >>> X, y = load_breast_cancer(return_X_y=True, as_frame=True)
    >>> views = {"mean": slice(0, 10), "error": slice(10, 20), "worst": slice(20, 30)}
    >>> model = LPBetaClassifier(KernelBank.per_view(views=views)).fit((X - X.mean()) / X.std(), y)
    >>> model.kernel_weights_.round(2)
    array([...])

    """

    path_params: ClassVar[tuple[str, ...]] = ()
    refits_on_resamples: ClassVar[bool] = False
    weighs_samples_alike: ClassVar[bool] = False

    nu: float = 0.5
    cv: Any = 5

    def decision_function(self, X: Any) -> AnyArray:
        """Return one signed score per sample, or per sample and class beyond two classes."""
        self._require_fit()
        X = check_input(self, X, reset=False)
        eta = np.atleast_2d(self.kernel_weights_)
        values = layered_scores(self.bank_, X, eta, self.dual_coef_, self.support_, self._n_threads)
        return self._shaped(values + self.intercept_)

    def _kernel_parts(self, X: Any) -> AnyArray:
        X = check_input(self, X, reset=False)
        coef = self.dual_coef_.transpose(1, 0, 2)
        eta = np.broadcast_to(self.kernel_weights_, coef.shape[:2])
        return contributions(self.bank_, X, eta[:, :, None] * coef, self.support_, self._n_threads)

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_share("nu", self.nu, positive=True)

    def _fit(self, X: Any, y: Any, sample_weight: Any = None, groups: Any = None) -> Self:
        data = self._validate(X, y, sample_weight)
        self._check_parts(data)
        index = class_indices(data.Y)
        folds = stratified_folds(self.cv, index, groups)
        outputs, classifiers = self._train_alone(data, folds)
        margins = MarginProgram.of_outputs(
            outputs, index, data.weight, self.nu, per_class=self.multiclass == "per_class"
        )
        self._set_layers(data, classifiers, margins.solve())
        self.n_iter_ = len(classifiers) * (len(folds) + 1)
        return self

    def _train_alone(self, data: TrainingData, folds: list[Fold]) -> tuple[AnyArray, list[InnerSolution]]:
        """Return for every kernel its outputs for held-out samples, (M, n, columns), and its classifier."""
        Y, n, M = data.Y, data.kernels.n_samples, len(data.kernels)
        # One kernel and its part of a fold at a time; held-out values and coefficients of all.
        needed = 8 * (3 * n * n + 2 * M * Y.size)
        what = f"One of {M} kernels of {n} samples, its folds and the classifiers"
        require_room(needed, self.memory_limit, what, "raise memory_limit, or use fewer samples")
        learner, targets = fit_arguments(self._learner, Y)
        outputs, classifiers = np.empty((M, *Y.shape)), []
        n_threads = threads_for(self.n_jobs)
        with count_bar(self.verbose, "kernels alone") as done:
            for m, K in enumerate(data.kernels.grams()):
                outputs[m] = held_out_values(K, self._learner, Y, data.weight, folds, self.tol, n_threads)
                with blas_threads(1):
                    K = np.ascontiguousarray(K)
                    classifiers.append(learner.solve(K, targets, data.weight, tol=self.tol))
                done(M)
        return outputs, classifiers

    def _set_layers(self, data: TrainingData, classifiers: list[InnerSolution], mixture: Mixture) -> None:
        """Set the learnt attributes: the classifiers of the first layer and how they are mixed."""
        M, (n, columns) = len(classifiers), data.Y.shape
        margins = np.array([unit_margin(svm.margin) for svm in classifiers]).reshape(M, columns)
        coef = np.array([svm.coef.reshape(n, columns).T for svm in classifiers]) / margins[:, :, None]
        intercepts = np.array([svm.intercept for svm in classifiers]).reshape(M, columns) / margins
        weights = mixture.weights.reshape(-1, M)
        assert data.classes is not None
        self.classes_ = data.classes
        self.bank_ = data.kernels.for_prediction()
        self.kernel_names_ = data.kernels.names
        self.kernel_weights_ = weights[0] if len(weights) == 1 else weights
        self.support_ = np.flatnonzero(coef.any(axis=(0, 1)))
        self.dual_coef_ = coef[:, :, self.support_]
        self.intercept_ = np.einsum("cm,mc->c", np.broadcast_to(weights, (columns, M)), intercepts)
        self.certificate_ = mixture.certificate
        self.duality_gap_ = self.certificate_.relative_gap
        self.objective_ = self.certificate_.upper


@dataclass(frozen=True)
class Mixture:
    """Weights on their simplices, and bounds of the optimum of −ρ + Σ cost_i ξ_i."""

    weights: Vector
    certificate: Certificate


@dataclass(frozen=True)
class MarginProgram:
    r"""The linear program min −ρ + Σ_i cost_i ξ_i subject to Σ_v A_rv w_v + ξ_i ≥ ρ, w on simplices.

    Row r of A is a margin of the sample i = ``sample[r]``: of its class against one other class.

    Parameters
    ----------
    A : array of shape (rows, variables)
    sample : array of shape (rows,), which sample a row is a margin of.
    group : array of shape (variables,), which simplex a variable is on.
    cost : array of shape (n,), the price of ξ_i; the costs sum to 1/ν.
    """

    A: Matrix
    sample: AnyArray
    group: AnyArray
    cost: Vector

    @classmethod
    def of_outputs(
        cls, outputs: AnyArray, index: AnyArray, weight: Vector, nu: float, *, per_class: bool
    ) -> MarginProgram:
        """Return the program that mixes outputs (M, n, columns), for all classes or ``per_class``."""
        M, n, columns = outputs.shape
        cost = weight / (nu * weight.sum())
        if columns == 1:
            A = (np.where(index == 1, 1.0, -1.0) * outputs[:, :, 0]).T
            return cls(np.ascontiguousarray(A), np.arange(n), np.zeros(M, dtype=int), cost)
        sample, other = np.nonzero(index[:, None] != np.arange(columns))
        own_output, other_output = outputs[:, sample, index[sample]].T, outputs[:, sample, other].T
        if not per_class:
            return cls(own_output - other_output, sample, np.zeros(M, dtype=int), cost)
        A, rows = np.zeros((sample.size, columns, M)), np.arange(sample.size)
        A[rows, index[sample]] = own_output
        A[rows, other] = -other_output
        return cls(A.reshape(sample.size, -1), sample, np.repeat(np.arange(columns), M), cost)

    def solve(self) -> Mixture:
        """Solve the program by HiGHS; the bounds hold whatever the accuracy of its solution."""
        n_rows, n_weights = self.A.shape
        n, n_groups = self.cost.size, self.group.max() + 1
        slack = csr_array((np.ones(n_rows), (np.arange(n_rows), self.sample)), shape=(n_rows, n))
        sums = np.zeros((n_groups, n_weights + 1 + n))
        sums[:, :n_weights] = self.group == np.arange(n_groups)[:, None]
        found = linprog(  # type: ignore[call-overload]  # sparse matrices are legal, the stubs do not know
            np.concatenate([np.zeros(n_weights), [-1.0], self.cost]),
            A_ub=hstack([csr_array(-self.A), csr_array(np.ones((n_rows, 1))), -slack], format="csr"),
            b_ub=np.zeros(n_rows),
            A_eq=csr_array(sums),
            b_eq=np.ones(n_groups),
            bounds=[(0.0, None)] * n_weights + [(None, None)] + [(0.0, None)] * n,
            method="highs",
        )
        if found.x is None:
            raise RuntimeError(f"The linear program of the mixture was not solved: {found.message}")
        weights = np.maximum(found.x[:n_weights], 0.0)
        weights /= np.bincount(self.group, weights)[self.group]
        upper, lower = self.primal(weights), self.dual(self.feasible_prices(-found.ineqlin.marginals))
        return Mixture(weights, Certificate(upper, min(lower, upper)))  # they may cross in the last digit

    def primal(self, weights: Vector) -> float:
        """Return the objective at these weights, with the best ρ."""
        worst = np.full(self.cost.size, np.inf)
        np.minimum.at(worst, self.sample, self.A @ weights)
        rho = margin_quantile(worst, self.cost, 1.0)
        return float(self.cost @ np.maximum(0.0, rho - worst)) - rho

    def dual(self, prices: Vector) -> float:
        """Return the dual value of feasible prices of the rows: in a simplex the best variable takes all."""
        gains = prices @ self.A
        return -float(sum(gains[self.group == g].max() for g in range(self.group.max() + 1)))

    def feasible_prices(self, prices: Vector) -> Vector:
        """Return the solver's dual variables made feasible: ≥ 0, of sum one, at most cost_i per sample.

        What the rows of a sample pay above its cost is cut off; what is then missing in the sum is shared out
        in proportion to the room that the samples have below their costs.
        """
        n, prices = self.cost.size, np.maximum(prices, 0.0)
        paid = np.bincount(self.sample, prices, minlength=n)
        wanted = np.minimum(paid, self.cost)
        missing, room = 1.0 - wanted.sum(), self.cost - wanted
        if missing < 0.0:
            wanted = wanted / wanted.sum()
        elif room.sum() > 0.0:
            wanted = wanted + room * (missing / room.sum())
        # Each sample's price goes to its rows as the solver divides it, evenly where it gives none.
        count = np.bincount(self.sample, minlength=n)[self.sample]
        share = np.divide(prices, paid[self.sample], out=1.0 / count, where=paid[self.sample] > 0.0)
        return np.asarray(share * wanted[self.sample])
