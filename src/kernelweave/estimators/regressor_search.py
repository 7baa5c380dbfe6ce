"""The cross-validated regressor."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

from kernelweave._typing import AnyArray, Matrix
from kernelweave.estimators.candidate import RegressorCandidate
from kernelweave.estimators.regressor import MKLRegressor
from kernelweave.estimators.searching import SearchedModel
from kernelweave.geometry import BoxSimplex


class MKLRegressorCV(SearchedModel, MKLRegressor):
    r"""`MKLRegressor` with C and the geometry's parameter chosen by cross-validation.

    .. math:: \max_{C, \theta} \; \frac1k \sum_{\text{folds}} \text{score}(\text{model}_{C, \theta})

    Parameters
    ----------
    bank, learner, solver, tol, max_iter, multioutput, dtype, memory_limit, random_state : as for
        `MKLRegressor`
    geometry : geometry or None, default=None
        The set of kernel weights; None is ``BoxSimplex()``, from the average kernel to the simplex.
    learner_param, learner_values, geometry_param, geometry_values, refit, n_jobs, verbose : as for
        `MKLClassifierCV`
    cv : int, splitter, iterable of (train, test) or None, default=None
        The folds; None is 5 of them, in the order of the samples.
    scoring : str, callable or None, default=None
        A scorer of scikit-learn's for predictions; None is R².

    Attributes
    ----------
    best_params_, best_score_, best_index_, best_estimator_, mean_score_, learner_values_, geometry_values_,
    cv_results_, n_splits_ : as for `MKLClassifierCV`
    kernel_weights_, certificate_, ... : all that `MKLRegressor` learns, of ``best_estimator_``

    Notes
    -----
    Kernels are stored once per fold and every candidate starts from its solved neighbours, as in
    `MKLClassifierCV`. Equal scores go to the simpler model.
    Differs from the paper: it is in none.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from kernelweave import KernelBank, MKLRegressorCV
    >>> X, y = load_diabetes(return_X_y=True)
    >>> bank = KernelBank.per_view(views={"body": [0, 1, 2, 3], "blood": slice(4, 10)})
    >>> search = MKLRegressorCV(bank, learner_values=[0.1, 1.0], geometry_values=[0.5, 1.0], cv=3)
    >>> search.fit(X / X.std(axis=0), (y - y.mean()) / y.std()).mean_score_.shape
    (2, 2)

    """

    model = MKLRegressor
    candidate = RegressorCandidate
    defaults: ClassVar[dict[str, Callable[[], Any]]] = MKLRegressor.defaults | {"geometry": BoxSimplex}

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
        multioutput: str = "shared",
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
            multioutput=multioutput,
            dtype=dtype,
            memory_limit=memory_limit,
            n_jobs=n_jobs,
            random_state=random_state,
            verbose=verbose,
        )

    def _split_targets(self, y: Any, columns: Matrix) -> AnyArray:  # noqa: ARG002 - they were checked
        return columns[:, 0] if columns.shape[1] == 1 else columns
