"""The cross-validated classifier."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np

from kernelweave._typing import AnyArray, Matrix
from kernelweave.estimators.calibration import require_enough
from kernelweave.estimators.candidate import ClassifierCandidate
from kernelweave.estimators.classifier import MKLClassifier
from kernelweave.estimators.searching import SearchedModel
from kernelweave.geometry import BoxSimplex


class MKLClassifierCV(SearchedModel, MKLClassifier):
    r"""`MKLClassifier` with C and the geometry's parameter chosen by cross-validation.

    .. math:: \max_{C, \theta} \; \frac1k \sum_{\text{folds}} \text{score}(\text{model}_{C, \theta})

    In every fold the bank is fitted to the training samples and the Gram matrices are stored once for all
    candidates; each candidate starts from its solved neighbours on the grid; the decision values of all of
    them on the held-out samples come from one pass over the kernels.

    Parameters
    ----------
    bank, learner, solver, tol, max_iter, class_weight, multiclass, probability, dtype, memory_limit,
    random_state : as for `MKLClassifier`
        With ``probability`` only the final model is calibrated.
    geometry : geometry or None, default=None
        The set of kernel weights; None is ``BoxSimplex()``, from the average kernel to the simplex.
    learner_param : str or None, default=None
        The parameter of the learner to search; None is its natural one: C, or nu for `NuHinge`.
    learner_values : sequence or None, default=None
        Its values; None is 0.01 to 100 in powers of ten, or shares of the largest legal nu.
    geometry_param : str or None, default=None
        The parameter of the geometry to search; None is its natural one: theta, p or v (nu where the
        `BoxSimplex` was given by nu), and nothing for `Simplex` and `Uniform`.
    geometry_values : sequence or None, default=None
        Its values; None takes the geometry's own: θ in equal ratios from the smallest legal one, 1/M, to 1.
    cv : int, splitter, iterable of (train, test) or None, default=None
        The folds; None is 5 stratified ones.
    scoring : str, callable or None, default=None
        A scorer of scikit-learn's that needs decision values or predictions; None is the accuracy.
    refit : bool, default=True
        Fit `MKLClassifier` with the best parameters to all samples; False leaves nothing to predict with.
    n_jobs : int or None, default=None
        Folds to run side by side, on threads; those left over work inside the folds. None is 1, −1 is all.
    verbose : int, default=0
        1 shows a bar over all candidates and folds with the time left.

    Attributes
    ----------
    best_params_ : dict, as for ``set_params`` of `MKLClassifier`
    best_score_ : float, the mean score of the best candidate over the folds
    best_index_ : tuple (i, j), the place of the best candidate in ``mean_score_``
    best_estimator_ : MKLClassifier fitted to all samples; with ``refit`` only
    mean_score_ : array of shape (learner values, geometry values)
    learner_values_, geometry_values_ : tuples, the axes of ``mean_score_``; (None,) where nothing is varied
    cv_results_ : dict of columns, one row per candidate and fold: the parameters, ``fold``, ``score``,
        ``relative_gap``, ``machines``, ``seconds``, ``active_kernels``; `frame` makes a table of it
    n_splits_ : int
    kernel_weights_, certificate_, ... : all that `MKLClassifier` learns, of ``best_estimator_``

    Notes
    -----
    Equal scores go to the simpler model: the smaller C (the larger nu), then the more even weights (smaller θ
    or v, larger p); values of any other parameter count from first to last as given. Held-out samples count
    by ``sample_weight`` where the scorer takes weights, else once each. Ctrl-C before the last candidate is
    done raises KeyboardInterrupt.
    Differs from the paper: it is in none; the scores are those of fits from scratch, up to ``tol``.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from kernelweave import KernelBank, MKLClassifierCV
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> views = {"mean": slice(0, 10), "error": slice(10, 20), "worst": slice(20, 30)}
    >>> search = MKLClassifierCV(KernelBank.per_view(views=views), geometry_values=[1 / 3, 0.6, 1.0], cv=3)
    >>> search.fit(X / X.std(axis=0), y).mean_score_.shape
    (5, 3)
    >>> sorted(search.best_params_)
    ['geometry__theta', 'learner__C']
    >>> search.duality_gap_ < 1e-4
    True

    """

    model = MKLClassifier
    candidate = ClassifierCandidate
    defaults: ClassVar[dict[str, Callable[[], Any]]] = MKLClassifier.defaults | {"geometry": BoxSimplex}

    def __init__(
        self,
        bank: Any = None,
        *,
        learner: Any = None,
        geometry: Any = None,
        learner_param: str | None = None,
        learner_values: Any = None,
        geometry_param: str | None = None,
        geometry_values: Any = None,
        cv: Any = None,
        scoring: Any = None,
        refit: bool = True,
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
        super().__init__(
            bank,
            learner=learner,
            geometry=geometry,
            learner_param=learner_param,
            learner_values=learner_values,
            geometry_param=geometry_param,
            geometry_values=geometry_values,
            cv=cv,
            scoring=scoring,
            refit=refit,
            solver=solver,
            tol=tol,
            max_iter=max_iter,
            class_weight=class_weight,
            multiclass=multiclass,
            probability=probability,
            dtype=dtype,
            memory_limit=memory_limit,
            n_jobs=n_jobs,
            random_state=random_state,
            verbose=verbose,
        )

    def _split_targets(self, y: Any, columns: Matrix) -> AnyArray:  # noqa: ARG002 - labels, not signs
        labels = np.asarray(y).ravel()
        if self.probability:
            require_enough(labels)
        return labels
