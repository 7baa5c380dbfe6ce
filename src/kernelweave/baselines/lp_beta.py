"""LP-β: a machine on every kernel, their outputs mixed by a linear program."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
from joblib import effective_n_jobs

from kernelweave._threads import blas_threads
from kernelweave._typing import AnyArray
from kernelweave.bank.cross import contributions, layered_scores
from kernelweave.baselines.heuristics import held_out_in_threads
from kernelweave.baselines.mixing import Mixture, contest, mix
from kernelweave.baselines.two_step import BaselineClassifier
from kernelweave.estimators.inputs import check_input
from kernelweave.estimators.parameters import check_share
from kernelweave.estimators.progress import count_bar
from kernelweave.estimators.splits import stratified_folds
from kernelweave.estimators.task import Setting
from kernelweave.gram.memory import require_room
from kernelweave.learners import Machine
from kernelweave.solvers import Certificate


@dataclass(eq=False, repr=False, kw_only=True)
class LPBetaClassifier(BaselineClassifier):
    r"""LP-β: machines on single kernels, whose outputs are mixed with the largest soft margin.

    .. math:: \min_{\beta, \rho, \xi} -\rho + \tfrac{1}{\nu n}\sum_i \xi_i \quad\text{s.t.}\quad
       \sum_m \beta_m \big(f_{m,y_i}(x_i) - f_{m,c}(x_i)\big) + \xi_i \ge \rho \;\; \forall c \ne y_i,
       \quad \beta \ge 0,\; \textstyle\sum_m \beta_m = 1

    Parameters
    ----------
    bank : KernelBank, "precomputed" or None, default=None
        The kernels, as in `MKLClassifier`.
    learner : learner or None, default=None
        The machine on every kernel; None is ``Hinge(C=1.0)``.
    nu : float, default=0.5
        0 < ν ≤ 1: at most this share of the samples lies below the margin ρ. Small ν listens to the hardest
        samples, ν = 1 takes the kernel with the best mean margin.
    cv : int or splitter, default=5
        The program sees outputs for samples held out in these folds; stratified, fewer where a class is too
        small.
    tol : float, default=1e-4
        Relative duality gap of every machine.
    class_weight : dict, "balanced" or None, default=None
        Factor on C per class, and on the price of ξ of its samples.
    multiclass : {"shared", "per_class"}, default="shared"
        Beyond two classes one mixture for all (LP-β), or one for each class, with the classes compared on
        their own mixtures (LP-B).
    probability, memory_limit, n_jobs, verbose : as in `MKLClassifier`.

    Attributes
    ----------
    kernel_weights_ : array of shape (M,), or (classes, M); weights β of the machines, they sum to one
    certificate_, duality_gap_, objective_ : of the linear program
    dual_coef_ : array (M, machines, support), the machines on every kernel, before they are mixed
    support_, intercept_, kernel_names_, classes_ : as in `MKLClassifier`; the intercept of the mixture
    n_iter_ : machines solved

    Notes
    -----
    [Gehler09], the two-layer comparator of [Orabona10]. The program is solved by HiGHS. The weights are those
    of machines: `combined_kernel` takes them as weights of kernels, which is another predictor. Widths and
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

    walkable: ClassVar[tuple[str, ...]] = ()

    nu: float = 0.5
    cv: Any = 5

    def decision_function(self, X: Any) -> AnyArray:
        """Return one signed score per sample, or per sample and class beyond two classes."""
        self._require_fit()
        X = check_input(self, X, reset=False)
        eta = np.atleast_2d(self.kernel_weights_)
        values = layered_scores(self.bank_, X, eta, self.dual_coef_, self.support_) + self.intercept_
        return self._shaped(values)

    def _kernel_parts(self, X: Any) -> AnyArray:
        coef = self.dual_coef_.transpose(1, 0, 2)
        eta = np.broadcast_to(self.kernel_weights_, coef.shape[:2])
        X = check_input(self, X, reset=False)
        return contributions(self.bank_, X, eta[:, :, None] * coef, self.support_)

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_share("nu", self.nu, positive=True)

    def _fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        setting = self._read(X, y, sample_weight)
        self._check_parts(setting)
        Y = setting.columns
        index = (Y[:, 0] > 0).astype(int) if Y.shape[1] == 1 else Y.argmax(axis=1)
        folds = stratified_folds(self.cv, index)
        learner = self._learner if Y.shape[1] == 1 else self._learner.for_columns()
        target = Y[:, 0] if Y.shape[1] == 1 else Y
        n, M = setting.fitted.n_samples, len(setting.fitted)
        # One kernel and its part of a fold at a time, held-out values and coefficients of all.
        needed = 8 * (3 * n * n + 2 * M * Y.size)
        what = f"One of {M} kernels of {n} samples, its folds and the machines"
        require_room(needed, self.memory_limit, what, "raise memory_limit, or use fewer samples")
        outputs, machines = np.empty((M, *Y.shape)), []
        n_threads = effective_n_jobs(self.n_jobs)
        with count_bar(self.verbose, "kernels alone") as done:
            for m, K in enumerate(setting.fitted.grams()):
                outputs[m] = held_out_in_threads(
                    K, learner, target, setting.weight, folds, self.tol, n_threads
                )
                with blas_threads(1):
                    K = np.ascontiguousarray(K)
                    machines.append(learner.solve(K, target, setting.weight, tol=self.tol))
                done(len(setting.fitted))
        per_class = self.multiclass == "per_class"
        mixture = mix(contest(outputs, index, setting.weight, self.nu, per_class=per_class))
        self._keep_layers(setting, machines, mixture)
        self.n_iter_ = len(machines) * (len(folds) + 1)
        return self

    def _keep_layers(self, setting: Setting, machines: list[Machine], mixture: Mixture) -> None:
        """Set the learnt attributes: the first layer's machines and how they are mixed."""
        M, columns = len(machines), setting.columns.shape[1]
        n = setting.fitted.n_samples
        margins = np.array([np.where(m.margin > 0.0, m.margin, 1.0) for m in machines]).reshape(M, -1)
        coef = np.array([m.coef.reshape(n, columns).T for m in machines]) / margins[:, :, None]
        intercepts = np.array([m.intercept for m in machines]).reshape(M, columns) / margins
        weights = mixture.weights.reshape(-1, M)
        self.bank_ = setting.fitted.for_prediction()
        self.kernel_names_ = setting.fitted.names
        self.kernel_weights_ = weights[0] if len(weights) == 1 else weights
        self.support_ = np.flatnonzero(coef.any(axis=(0, 1)))
        self.dual_coef_ = coef[:, :, self.support_]
        self.intercept_ = np.einsum("cm,mc->c", np.broadcast_to(weights, (columns, M)), intercepts)
        self.certificate_ = Certificate(mixture.upper, mixture.lower)
        self.duality_gap_ = self.certificate_.relative_gap
        self.objective_ = self.certificate_.upper
