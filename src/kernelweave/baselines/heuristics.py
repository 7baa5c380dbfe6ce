"""Weights by how each kernel does alone: by its alignment with the labels, or by its accuracy."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from threading import Event
from typing import Any

import numpy as np
from joblib import effective_n_jobs

from kernelweave._threads import blas_threads
from kernelweave._typing import Matrix, Vector
from kernelweave.baselines.aligned import label_moments
from kernelweave.baselines.single_kernels import accuracy, accuracy_weights, held_out
from kernelweave.baselines.two_step import TwoStepClassifier, class_index
from kernelweave.estimators.interrupt import interruptible
from kernelweave.estimators.parameters import check_share
from kernelweave.estimators.progress import count_bar
from kernelweave.estimators.splits import Fold, stratified_folds
from kernelweave.estimators.task import Task
from kernelweave.learners import Learner


class FHeuristicClassifier(TwoStepClassifier):
    r"""Every kernel counts in proportion to its own alignment with the labels; then one machine.

    .. math:: \eta_m = A(K_m, T) / \textstyle\sum_h A(K_h, T), \qquad T = yy'

    Parameters
    ----------
    bank : KernelBank, "precomputed" or None, default=None
        The kernels, as in `MKLClassifier`.
    learner : learner or None, default=None
        The machine of the second step; None is ``Hinge(C=1.0)``.
    tol : float, default=1e-4
        Relative duality gap of the machine.
    class_weight : dict, "balanced" or None, default=None
        Factor on C per class, and on its samples in the alignment.
    multiclass : {"shared", "per_class"}, default="shared"
        As in `AlignedMKLClassifier`.
    probability, memory_limit, n_jobs, verbose : as in `MKLClassifier`.

    Attributes
    ----------
    kernel_weights_ : array of shape (M,), or (classes, M) with weights per class; they sum to one
    kernel_alignments_ : array (M,) or (classes, M), the alignment of every kernel alone
    certificate_, duality_gap_, objective_ : of the machine on the combined kernel
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

    def _weigh(self, task: Task) -> list[Vector]:
        each = [one.of_kernels() for one in label_moments(task, centred=False)]
        self.kernel_alignments_ = each[0] if len(each) == 1 else np.array(each)
        return [accuracy_weights(np.maximum(a, 0.0), 0.0) for a in each]


@dataclass(eq=False, repr=False, kw_only=True)
class PWMKClassifier(TwoStepClassifier):
    r"""Every kernel counts by the cross-validated accuracy it reaches alone; then one machine.

    .. math:: \eta_m = (\pi_m - \delta) / \textstyle\sum_h (\pi_h - \delta)

    Parameters
    ----------
    bank : KernelBank, "precomputed" or None, default=None
        The kernels, as in `MKLClassifier`.
    learner : learner or None, default=None
        The machine, alone on every kernel and on their combination; None is ``Hinge(C=1.0)``.
    delta : float, default=0.4
        The threshold δ as a share of the smallest accuracy, from 0 (weights near even) to 1 (the worst kernel
        gets none).
    cv : int or splitter, default=5
        Folds for the accuracies; stratified, fewer where a class is too small.
    tol : float, default=1e-4
        Relative duality gap of every machine.
    class_weight : dict, "balanced" or None, default=None
        Factor on C per class, and on its samples in the accuracy.
    multiclass : {"shared", "per_class"}, default="shared"
        Beyond two classes, weights by the accuracy over all classes, or by that of each against the rest.
    probability, memory_limit, n_jobs, verbose : as in `MKLClassifier`.

    Attributes
    ----------
    kernel_weights_ : array of shape (M,), or (classes, M) with weights per class; they sum to one
    kernel_accuracies_ : array (M,) or (classes, M), the accuracy of every kernel alone
    certificate_, duality_gap_, objective_ : of the machine on the combined kernel
    dual_coef_, support_, intercept_, kernel_names_, classes_ : as in `MKLClassifier`

    Notes
    -----
    [Tanabe08], as [Gonen11, Sec. 3.2] states it. Widths and scalings are those of all training samples, in
    every fold: they do not see labels.
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

    def _weigh(self, task: Task) -> list[Vector]:
        index, targets = class_index(task), list(task.targets.values())
        Y = np.column_stack(targets)
        folds = stratified_folds(self.cv, index)
        learner = self._learner if Y.shape[1] == 1 else self._learner.for_columns()
        y = Y[:, 0] if Y.shape[1] == 1 else Y
        found = []
        with count_bar(self.verbose, "kernels alone") as done:
            for K in task.kernels.fitted.grams():
                values = self._held_out(K, learner, y, task.weight, folds)
                if len(targets) == 1:
                    found.append([accuracy(values, index, task.weight)])
                else:
                    found.append(
                        [
                            accuracy(values[:, c : c + 1], (column > 0).astype(int), task.weight)
                            for c, column in enumerate(targets)
                        ]
                    )
                done(task.kernels.n_kernels)
        accuracies = np.array(found).T
        self.kernel_accuracies_ = accuracies[0] if len(targets) == 1 else accuracies
        return [accuracy_weights(row, self.delta) for row in accuracies]

    def _held_out(self, K: Matrix, learner: Learner, y: Any, weight: Vector, folds: list[Fold]) -> Matrix:
        return held_out_in_threads(K, learner, y, weight, folds, self.tol, effective_n_jobs(self.n_jobs))


def held_out_in_threads(
    K: Matrix, learner: Learner, y: Any, weight: Vector, folds: list[Fold], tol: float, n_threads: int
) -> Matrix:
    """Return decision values on samples held out, the machines of the folds side by side."""

    def job(fold: Fold, stop: Event) -> Matrix:
        if stop.is_set():
            raise KeyboardInterrupt
        return held_out(K, learner, y, weight, fold, tol)

    with blas_threads(1):
        parts = interruptible([partial(job, fold) for fold in folds], n_threads)
    values = np.empty((K.shape[0], parts[0].shape[1]))
    for (_, test), part in zip(folds, parts, strict=True):
        values[test] = part
    return values
