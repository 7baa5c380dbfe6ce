"""The multiple-kernel Fisher discriminant."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, ClassVar

import numpy as np

from kernelweave._typing import AnyArray, Matrix, Vector
from kernelweave.bank import KernelBank
from kernelweave.estimators.base import values_along
from kernelweave.estimators.classifier import MKLClassifier
from kernelweave.estimators.training import FitResult, FitTask, TrainingData
from kernelweave.estimators.validation import check_choice
from kernelweave.geometry import LpBall, Simplex
from kernelweave.kernels import Centering, UnitTrace
from kernelweave.learners import Discriminant, Fisher
from kernelweave.learners.fisher import Axes, axes, fewest_errors
from kernelweave.learners.ridge import RidgeSolution, product
from kernelweave.solvers import Newton


class FisherMKLClassifier(MKLClassifier):
    r"""The kernel Fisher discriminant with weights learnt in the lp ball, with a duality-gap certificate.

    .. math:: \min_{\beta \ge 0, \|\beta\|_p \le 1} \max_\alpha
       \alpha'a - \tfrac14\alpha'\alpha - \tfrac1{4\lambda}\sum_k \beta_k \alpha'\tilde K_k\alpha

    Parameters
    ----------
    bank : KernelBank, "precomputed" or None, default=None
        The kernels, as for `MKLClassifier`; None is `KernelBank.prepared()`, centred and of unit
        trace.
    p : float, default=2.0
        Norm of the weights, 1 ≤ p ≤ inf: 1 selects kernels, 2 keeps all, inf is their plain sum.
    reg : float, default=1e-4
        λ > 0, the ridge on the scatter matrix, in the units of the kernels: with kernels of unit trace the
        paper's grid is 1e-1 to 1e-9.
    threshold : {"midpoint", "leave_one_out", "zero"}, default="midpoint"
        Where the axis is cut: midway between the projected class means; where the leave-one-out error is
        least; or at the projected mean of all samples, which favours the larger class. The joint discriminant
        has no axis to cut: it takes the nearest class mean, and "midpoint" only.
    multiclass : {"per_class", "shared", "joint"}, default="per_class"
        Beyond two classes: one-vs-rest with weights per class or shared ones, or the joint discriminant with
        at most classes − 1 axes, shared weights and the nearest class mean along them.
    solver : Solver or None, default=None
        None chooses as `MKLClassifier` does, for the default ``tol`` ``Newton()``; ``CuttingPlane()`` is the
        semi-infinite program of the paper, ``BlockDescent()`` the closed form.
    tol : float, default=1e-6
        Relative duality gap to stop at. Newton's last step usually leaves far less.
    max_iter, class_weight, probability, dtype, memory_limit, n_jobs, random_state, verbose : as for
        `MKLClassifier`; weights of classes and samples count as repeated samples.

    Attributes
    ----------
    kernel_weights_ : array of shape (M,), or (classes, M) with weights per class
    objective_ : J₂ at the learnt weights, the upper bound of ``certificate_``; summed over the classes
    axis_coef_, axis_intercept_ : the discriminant axes of `transform`, one row per axis
    kernel_names_, dual_coef_, support_, intercept_, certificate_, certificates_, duality_gap_, storage_,
    n_iter_, history_, classes_, n_features_in_ : as for `MKLClassifier`

    Notes
    -----
    [Yan09, Eq. (14)] for p = 2, [Ye08] for p = 1 and for the joint form. Kernels need not be centred: the
    intercept does it, with the training means (see `Fisher`). p = 1 is solved on the simplex, where the
    optimum lies.
    Symbols: β → ``kernel_weights_``, α/(2λ) → ``dual_coef_``, λ → ``reg``.
    Differs from the paper: any p ≥ 1; the default solver takes Newton steps in β; the threshold is stated.
    (13) has ‖β‖₂ = 1; the ball of (18) is used, whose optimum lies there unless all kernels vanish.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from kernelweave import FisherMKLClassifier, KernelBank
    >>> from kernelweave.kernels import UnitTrace
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> views = {"mean": slice(0, 10), "error": slice(10, 20), "worst": slice(20, 30)}
    >>> bank = KernelBank.per_view(views=views, scaling=UnitTrace())
    >>> model = FisherMKLClassifier(bank, p=2.0).fit(X / X.std(axis=0), y)
    >>> model.transform(X / X.std(axis=0)).shape
    (569, 1)
    >>> model.duality_gap_ < 1e-6
    True

    """

    multiclass_choices: ClassVar[tuple[str, ...]] = ("per_class", "shared", "joint")
    takes_indicators: ClassVar[bool] = False
    path_params: ClassVar[tuple[str, ...]] = ("p", "reg")
    accepts_missing_views: ClassVar[bool] = False  # its threshold and shrinkage look at all samples
    defaults_without_bank: ClassVar[dict[str, Callable[[], Any]]] = {}
    defaults: ClassVar[dict[str, Callable[[], Any]]] = {
        "bank": partial(KernelBank.prepared, scaling=(Centering(), UnitTrace())),
        "solver": Newton,
    }

    def __init__(
        self,
        bank: Any = None,
        *,
        p: float = 2.0,
        reg: float = 1e-4,
        threshold: str = "midpoint",
        multiclass: str = "per_class",
        solver: Any = None,
        tol: float = 1e-6,
        max_iter: int | None = None,
        class_weight: Any = None,
        probability: bool = False,
        dtype: str = "auto",
        memory_limit: float | None = None,
        n_jobs: int | None = None,
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        self.bank = bank
        self.p = p
        self.reg = reg
        self.threshold = threshold
        self.multiclass = multiclass
        self.solver = solver
        self.tol = tol
        self.max_iter = max_iter
        self.class_weight = class_weight
        self.probability = probability
        self.dtype = dtype
        self.memory_limit = memory_limit
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    def transform(self, X: Any) -> Matrix:
        """Return the samples along the discriminant axes, with the training mean at the origin.

        One axis for two classes, one per class in one-vs-rest, along which the training samples have unit variance;
        the joint discriminant has at most classes − 1, the most telling first, in units of the scatter within the
        classes.
        """
        self._require_fit()
        return values_along(self, X, self.axis_coef_, self.axis_intercept_)

    @property
    def _learner(self) -> Fisher:
        return Fisher(self.reg)

    @property
    def _geometry(self) -> Simplex | LpBall:
        return Simplex() if self.p == 1 else LpBall(self.p)

    @property
    def _n_features_out(self) -> int:
        return len(self.axis_coef_)

    def _joint_learner(self, learner: Any) -> Any:
        return Discriminant(self.reg) if self.multiclass == "joint" else super()._joint_learner(learner)

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_choice("threshold", self.threshold, ("midpoint", "leave_one_out", "zero"))

    def _check_parts(self, data: TrainingData) -> None:
        super()._check_parts(data)
        if self.multiclass == "joint" and data.Y.shape[1] > 1 and self.threshold != "midpoint":
            raise ValueError(
                "multiclass='joint' predicts the nearest class mean and cuts no axis: leave threshold at "
                f"'midpoint', or choose 'per_class' or 'shared'; got threshold={self.threshold!r}."
            )

    def _set_fitted(self, task: FitTask, results: Sequence[FitResult]) -> None:
        super()._set_fitted(task, results)
        scale = self._learner.scale()
        centred = _axis_intercepts(results) / scale
        spread = _spreads(task, results) / scale
        self.axis_coef_, self.axis_intercept_ = self.dual_coef_ / spread[:, None], centred / spread
        if self.multiclass == "joint" and len(self.classes_) > 2:
            along = _joint_axes(task, results[0])
            self.axis_coef_ = along.rotation.T @ self.dual_coef_
            self.axis_intercept_ = centred @ along.rotation
            self.dual_coef_ = along.centroids @ self.axis_coef_
            lengths = np.sum(along.centroids**2, axis=1)
            self.intercept_ = along.centroids @ self.axis_intercept_ - 0.5 * lengths
        elif self.threshold == "zero":
            self.intercept_ = centred
        elif self.threshold == "leave_one_out":
            self.intercept_ = centred - _leave_one_out_cuts(task, results) / scale


def _axis_intercepts(results: Sequence[FitResult]) -> Vector:
    """Return what centres the decision values of each problem, in terms of the kernels as they are."""
    return np.concatenate(
        [r.intercept + np.atleast_1d(_ridge(r).bias - _ridge(r).intercept) for r in results]
    )


def _spreads(task: FitTask, results: Sequence[FitResult]) -> Vector:
    """Return the standard deviation of the training samples along the axis of every problem, 1 where it is 0."""
    found, share = [], task.data.weight / task.data.weight.sum()
    for one in results:
        values = task.grams.matvec_with_error(one.result.eta, _columns(_ridge(one).coef))[0]
        found.append(np.sqrt(share @ (values - share @ values) ** 2))
    spread = np.concatenate(found)
    return np.where(spread > 0.0, spread, 1.0)


def _leave_one_out_cuts(task: FitTask, results: Sequence[FitResult]) -> Vector:
    """Return where to cut each axis so that samples left out are separated best."""
    cuts = []
    for y, one in zip(task.targets.values(), results, strict=True):
        inner, Y = _ridge(one), _columns(y)
        assert inner.ridge is not None
        held_out = inner.ridge.left_out(task.grams.combine(one.result.eta), _columns(inner.coef))
        midpoints = np.atleast_1d(inner.bias - inner.intercept)
        cuts += [
            fewest_errors(held_out[:, c], Y[:, c] > 0.0, task.data.weight, float(midpoints[c]))
            for c in range(Y.shape[1])
        ]
    return np.array(cuts)


def _joint_axes(task: FitTask, solved: FitResult) -> Axes:
    """Return the axes of the joint discriminant and the class means along them."""
    inner = _ridge(solved)
    (Y,) = task.targets.values()
    F = product(task.grams.combine(solved.result.eta), inner.coef)
    targets = Discriminant().targets(Y, task.data.weight)
    return axes((F + inner.bias) / inner.scale, targets, Y > 0.0, task.data.weight)


def _ridge(solved: FitResult) -> RidgeSolution:
    inner = solved.result.inner
    assert isinstance(inner, RidgeSolution)
    return inner


def _columns(x: AnyArray) -> Matrix:
    return x.reshape(x.shape[0], -1)
