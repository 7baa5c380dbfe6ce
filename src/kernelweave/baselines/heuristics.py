"""Weights by how good each kernel is alone: by its alignment with the labels, or by its accuracy."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from threading import Event
from typing import Any

import numpy as np

from kernelweave._threads import blas_threads, threads_for
from kernelweave._typing import AnyArray, Matrix, Vector
from kernelweave.baselines.target_alignment import label_moments
from kernelweave.baselines.two_step import HoldsSamplesOut, TwoStepClassifier, of_unit_sum
from kernelweave.estimators.class_targets import class_indices
from kernelweave.estimators.progress import count_bar, interruptible
from kernelweave.estimators.training import FitTask
from kernelweave.estimators.validation import Fold, check_share, mean_held_out, stratified_folds


class FHeuristicClassifier(TwoStepClassifier):
    r"""Every kernel counts in proportion to its own alignment with the labels; then one classifier.

    .. math:: \eta_m = A(K_m, T) / \textstyle\sum_h A(K_h, T), \qquad T = yy'

    Parameters
    ----------
    bank : KernelBank, "precomputed" or None, default=None
        The kernels, as in `MKLClassifier`.
    learner : learner or None, default=None
        The classifier of the second step; None is ``Hinge(C=1.0)``.
    tol : float, default=1e-4
        Relative duality gap of the classifier.
    class_weight : dict, "balanced" or None, default=None
        Factor on C per class, and on its samples in the alignment.
    multiclass : {"shared", "per_class"}, default="shared"
        As in `AlignedMKLClassifier`.
    probability, memory_limit, n_jobs, verbose : as in `MKLClassifier`.

    Attributes
    ----------
    kernel_weights_ : array of shape (M,), or (classes, M) with weights per class; they sum to one
    kernel_alignments_ : array (M,) or (classes, M), the alignment of every kernel alone
    certificate_, duality_gap_, objective_ : of the classifier on the combined kernel
    dual_coef_, support_, intercept_, kernel_names_, classes_ : as in `MKLClassifier`

    Notes
    -----
    [Qiu09], as [Gonen11, Sec. 3.2] states it for classification: alignment without centring, so that kernels
    with a large constant part all look alike; `AlignedMKLClassifier` (criterion "align") centres.
    Differs from the paper: several classes, and weights of samples, are covered too.

    Examples
    --------
    >>> import numpy as np
    >>> y = np.array([1, 1, -1, -1])
    >>> model = FHeuristicClassifier("precomputed").fit([np.outer(y, y) + 0.0, np.eye(4)], y)
    >>> model.kernel_weights_.round(3)
    array([0.667, 0.333])

    """

    def _weigh(self, task: FitTask) -> list[Vector]:
        each = [one.kernel_alignments() for one in label_moments(task, centred=False)]
        self.kernel_alignments_ = each[0] if len(each) == 1 else np.array(each)
        return [of_unit_sum(np.maximum(alignments, 0.0)) for alignments in each]


@dataclass(eq=False, repr=False, kw_only=True)
class PWMKClassifier(HoldsSamplesOut, TwoStepClassifier):
    r"""Every kernel counts by the cross-validated accuracy it reaches alone; then one classifier.

    .. math:: \eta_m = (\pi_m - \delta) / \textstyle\sum_h (\pi_h - \delta)

    Parameters
    ----------
    bank : KernelBank, "precomputed" or None, default=None
        The kernels, as in `MKLClassifier`.
    learner : learner or None, default=None
        The classifier, on every kernel alone and on their combination; None is ``Hinge(C=1.0)``.
    delta : float, default=0.4
        The threshold δ as a share of the smallest accuracy, from 0 (weights near even) to 1 (the worst kernel
        gets none).
    cv : int, splitter or pairs of indices, default=5
        Folds for the accuracies; stratified, fewer where a class is too small. With repeated folds a sample is
        judged by its mean decision value. ``fit(X, y, groups=...)`` is for splitters that need groups.
    tol : float, default=1e-4
        Relative duality gap of every classifier.
    class_weight : dict, "balanced" or None, default=None
        Factor on C per class, and on its samples in the accuracy.
    multiclass : {"shared", "per_class"}, default="shared"
        Beyond two classes, weights by the accuracy over all classes, or by that of each against the rest.
    probability, memory_limit, n_jobs, verbose : as in `MKLClassifier`.

    Attributes
    ----------
    kernel_weights_ : array of shape (M,), or (classes, M) with weights per class; they sum to one
    kernel_accuracies_ : array (M,) or (classes, M), the accuracy of every kernel alone
    certificate_, duality_gap_, objective_ : of the classifier on the combined kernel
    dual_coef_, support_, intercept_, kernel_names_, classes_ : as in `MKLClassifier`

    Notes
    -----
    [Tanabe08], as [Gonen11, Sec. 3.2] states it. Widths and scalings are those of all training samples, in
    every fold: they do not depend on labels.
    Differs from the paper: δ is given as a share of the smallest accuracy, so that every value is legal.

    Examples
    --------
    >>> import numpy as np
    >>> y = np.array([1, 1, 1, -1, -1, -1])
    >>> model = PWMKClassifier("precomputed", cv=3).fit([np.outer(y, y) + 0.0, np.eye(6)], y)
    >>> model.kernel_accuracies_
    array([1. , 0.5])

    """

    delta: float = 0.4
    cv: Any = 5

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_share("delta", self.delta)

    def _weigh(self, task: FitTask) -> list[Vector]:
        Y = np.column_stack(list(task.targets.values()))
        index, n_problems = class_indices(Y), len(task.targets)
        folds = stratified_folds(self.cv, index, task.data.groups)
        n_threads = threads_for(self.n_jobs)
        accuracies = np.empty((n_problems, len(task.kernels)))
        with count_bar(self.verbose, "kernels alone") as done:
            for m, K in enumerate(task.kernels.grams()):
                values = held_out_values(K, self._learner, Y, task.data.weight, folds, self.tol, n_threads)
                hits = (
                    (class_indices(values) == index)[:, None] if n_problems == 1 else (values > 0) == (Y > 0)
                )
                accuracies[:, m] = task.data.weight @ hits / task.data.weight.sum()
                done(len(task.kernels))
        self.kernel_accuracies_ = accuracies[0] if n_problems == 1 else accuracies
        return [of_unit_sum(row - self.delta * row.min()) for row in accuracies]


def held_out_values(
    K: Matrix, learner: Any, Y: Matrix, weight: Vector, folds: list[Fold], tol: float, n_threads: int
) -> Matrix:
    """Return the decision values (n, columns) on one kernel, every sample's without having trained on it.

    Y has one column ±1 per binary problem. The classifiers of the folds are trained side by side. Repeated folds
    give their mean.
    """
    learner, targets = fit_arguments(learner, Y)

    def predict_fold(fold: Fold, stop: Event) -> Matrix:
        if stop.is_set():
            raise KeyboardInterrupt
        train, test = fold
        inside = np.ascontiguousarray(K[np.ix_(train, train)])
        svm = learner.solve(inside, targets[train], weight[train], tol=tol)
        found = (K[np.ix_(test, train)] @ svm.coef + svm.intercept) / unit_margin(svm.margin)
        return np.asarray(found.reshape(test.size, -1))

    with blas_threads(1):
        values = interruptible([partial(predict_fold, fold) for fold in folds], n_threads)
    return mean_held_out(folds, values)


def fit_arguments(learner: Any, Y: Matrix) -> tuple[Any, AnyArray]:
    """Return the learner and the targets to solve for: one column as a vector, or several at once."""
    return (learner, Y[:, 0]) if Y.shape[1] == 1 else (learner.for_columns(), Y)


def unit_margin(margin: AnyArray) -> AnyArray:
    """Return what decision values are divided by, so that margins are 1; nothing where there is no margin."""
    return np.where(margin > 0.0, margin, 1.0)
