"""EasyMKL: kernel weights from one margin-distribution classifier on the sum of all kernels."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from kernelweave._typing import Vector
from kernelweave.baselines.two_step import TwoStepClassifier, of_unit_sum
from kernelweave.estimators.training import FitTask
from kernelweave.learners import MarginDistribution


@dataclass(eq=False, repr=False, kw_only=True)
class EasyMKLClassifier(TwoStepClassifier):
    r"""EasyMKL: kernels count by the distance between the classes, for one classifier on their sum.

    .. math:: \gamma = \arg\min_{\gamma \in \Gamma} (1-\lambda)\, \gamma'Y \textstyle\sum_m K_m Y\gamma
       + \lambda \|\gamma\|^2, \qquad \eta_m \propto \gamma'Y K_m Y\gamma

    Parameters
    ----------
    bank : KernelBank, "precomputed" or None, default=None
        The kernels, as in `MKLClassifier`.
    learner : learner or None, default=None
        The classifier of the second step; None is ``MarginDistribution(lam)``, as published.
    lam : float, default=0.1
        0 ≤ λ < 1, from the margin between the classes to the distance of their means.
    tol : float, default=1e-4
        Relative duality gap of the second step.
    class_weight : dict, "balanced" or None, default=None
        Factor on the weight of the samples of a class, which pay λγ²/weight.
    multiclass : {"shared", "per_class"}, default="shared"
        Beyond two classes, one-vs-rest with one set of weights for all classes, or weights for each.
    probability, memory_limit, n_jobs, verbose : as in `MKLClassifier`.

    Attributes
    ----------
    kernel_weights_ : array of shape (M,), or (classes, M) with weights per class; they sum to one
    certificate_, duality_gap_, objective_ : of the classifier on the combined kernel
    dual_coef_, support_, intercept_, kernel_names_, classes_ : as in `MKLClassifier`

    Notes
    -----
    [Aiolli15]. The problem there, max over ‖η‖₂ = 1 of the min over γ, is relaxed to the one above by
    ‖d‖₂ ≤ ‖d‖₁; ``MKLClassifier(bank, learner=MarginDistribution(lam), geometry=LpBall(2))`` solves it as it
    stands. Symbols: paper γ∘y → ``coef`` of the first step, d_m → the energies 2h_m.
    Differs from the paper: weights sum to one (theirs have length one), so that the combined kernel has the
    size of its parts; kernels are scaled by the bank, by default to mean diagonal one.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from kernelweave import EasyMKLClassifier, KernelBank
    >>> X, y = load_breast_cancer(return_X_y=True, as_frame=True)
    >>> views = {"mean": slice(0, 10), "error": slice(10, 20), "worst": slice(20, 30)}
    >>> model = EasyMKLClassifier(KernelBank.per_view(views=views)).fit((X - X.mean()) / X.std(), y)
    >>> model.kernel_weights_.round(2)
    array([...])

    """

    path_params: ClassVar[tuple[str, ...]] = ("learner__", "lam")

    lam: float = 0.1

    @property
    def _learner(self) -> Any:
        return MarginDistribution(lam=self.lam) if self.learner is None else self.learner

    def _check_parameters(self) -> None:
        super()._check_parameters()
        MarginDistribution(lam=self.lam).check(np.array([1.0, -1.0]), np.ones(2))

    def _weigh(self, task: FitTask) -> list[Vector]:
        grams, first_step = task.grams, MarginDistribution(lam=self.lam)
        K = grams.combine(np.ones(grams.n_kernels))
        weights = []
        for y in task.targets.values():
            learner = first_step if y.ndim == 1 else first_step.for_columns()
            # The weights change with the root of the gap, so 1e-9 gives them four to five digits.
            distances = grams.energies(learner.solve(K, y, task.data.weight, tol=1e-9).coef)
            weights.append(of_unit_sum(np.maximum(distances, 0.0)))
        return weights
