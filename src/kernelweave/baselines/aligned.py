"""Weights by alignment with the labels, then any machine."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from kernelweave._typing import Vector
from kernelweave.baselines.moments import Moments, moments, simplex_code
from kernelweave.baselines.target_alignment import best_aligned, independently_aligned
from kernelweave.baselines.two_step import TwoStepClassifier, class_index
from kernelweave.estimators.parameters import check_choice
from kernelweave.estimators.task import Task

CRITERIA = {
    "alignf": (True, best_aligned),
    "align": (True, independently_aligned),
    "kta": (False, best_aligned),
}


def label_moments(task: Task, *, centred: bool) -> list[Moments]:
    """Return the moments of every problem of a task: of its column ±1, or of all classes together."""
    kernels, targets = task.kernels, list(task.targets.values())
    if len(targets) == 1:
        assert task.classes is not None
        codes = simplex_code(class_index(task), task.classes.size)
    else:
        codes = np.column_stack(targets)
    found = moments(kernels.fitted.sources(), kernels.n_kernels, codes, task.weight, centred=centred)
    return [found] if len(targets) == 1 else [found.column(c) for c in range(len(targets))]


@dataclass(eq=False, repr=False, kw_only=True)
class AlignedMKLClassifier(TwoStepClassifier):
    r"""Kernel weights by alignment with the labels, then one machine on the combined kernel.

    .. math:: \max_{\eta \ge 0} \frac{\langle K(\eta), T\rangle}{\|K(\eta)\| \|T\|}, \qquad T = yy'

    Parameters
    ----------
    bank : KernelBank, "precomputed" or None, default=None
        The kernels, as in `MKLClassifier`.
    learner : learner or None, default=None
        The machine of the second step; None is ``Hinge(C=1.0)``.
    criterion : {"alignf", "align", "kta"}, default="alignf"
        "alignf" maximises the centred alignment of the combination; "align" weighs each kernel by its own
        centred alignment; "kta" maximises the alignment without centring.
    tol : float, default=1e-4
        Relative duality gap of the machine; the weights are exact.
    class_weight : dict, "balanced" or None, default=None
        Factor on C per class, and on its samples in the alignment.
    multiclass : {"shared", "per_class"}, default="shared"
        Beyond two classes: one set of weights from T = 1 within a class and −1/(classes − 1) between two, or
        weights for each class against the rest.
    probability, memory_limit, n_jobs, verbose : as in `MKLClassifier`.

    Attributes
    ----------
    kernel_weights_ : array of shape (M,), or (classes, M) with weights per class; of unit length
    alignment_ : float or array (classes,), the alignment reached, centred unless the criterion is "kta"
    kernel_alignments_ : array (M,) or (classes, M), that of every kernel alone
    certificate_, duality_gap_, objective_ : of the machine on the combined kernel
    dual_coef_, support_, intercept_, kernel_names_, classes_ : as in `MKLClassifier`

    Notes
    -----
    "alignf" is [Cortes12, Sec. 4.2]; [Xu14, Eq. (2.20), (2.21)], a non-negative least squares problem;
    "align" [Cortes12, Sec. 4.1]; "kta" [Cristianini01]; [Xu14, Eq. (2.18), (2.19)]. Samples count by
    their weights. Symbols: paper μ → ``kernel_weights_``.
    Differs from the paper: several classes, and weights of samples, are covered too.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from kernelweave import AlignedMKLClassifier, KernelBank
    >>> X, y = load_breast_cancer(return_X_y=True, as_frame=True)
    >>> views = {"mean": slice(0, 10), "error": slice(10, 20), "worst": slice(20, 30)}
    >>> model = AlignedMKLClassifier(KernelBank.per_view(views=views)).fit((X - X.mean()) / X.std(), y)
    >>> model.kernel_weights_.argmax(), bool(model.alignment_ > model.kernel_alignments_.max())
    (np.int64(2), True)

    """

    criterion: str = "alignf"

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_choice("criterion", self.criterion, tuple(CRITERIA))

    def _weigh(self, task: Task) -> list[Vector]:
        centred, rule = CRITERIA[self.criterion]
        found = label_moments(task, centred=centred)
        weights = [rule(one) for one in found]
        reached = np.array([one.of_combination(eta) for one, eta in zip(found, weights, strict=True)])
        each = np.array([one.of_kernels() for one in found])
        self.alignment_ = float(reached[0]) if len(found) == 1 else reached
        self.kernel_alignments_ = each[0] if len(found) == 1 else each
        return weights
