"""What the multiple-kernel estimators share: parts with defaults, and kernels of new samples."""

from __future__ import annotations

from abc import ABC
from collections.abc import Callable, Sequence
from dataclasses import replace
from inspect import signature
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from kernelweave._threads import threads_for
from kernelweave._typing import AnyArray, Matrix, Vector
from kernelweave.bank.column_table import ColumnTable
from kernelweave.bank.cross import scores, weighted_contributions
from kernelweave.estimators.learnt_kernel import KernelFeatures, LearntKernel
from kernelweave.estimators.validation import as_one_array, as_samples, check_input, is_precomputed
from kernelweave.solvers import Certificate


def reset(estimator: Any) -> None:
    """Remove what an earlier fit has learnt."""
    for name in fitted_attributes(estimator):
        delattr(estimator, name)


def fitted_attributes(estimator: Any) -> dict[str, Any]:
    """Return what a fit has learnt, by attribute."""
    return {name: value for name, value in vars(estimator).items() if name.endswith("_")}


class KernelEstimator(LearntKernel, BaseEstimator, ABC):  # type: ignore[misc]
    """An estimator over a bank of kernels."""

    bank: Any
    # Whether a sample may lack views: rows of NaN.
    accepts_missing_views: ClassVar[bool] = False
    # Whether single empty cells may stand in the data.
    fills_gaps: ClassVar[bool] = True
    defaults: ClassVar[dict[str, Callable[[], Any]]] = {}
    # Parts in place of those where the bank is left at its default too: they suit its kernels.
    defaults_without_bank: ClassVar[dict[str, Callable[[], Any]]] = {}

    def part(self, name: str) -> Any:
        """Return the part, or a fresh default where the parameter is None."""
        value = getattr(self, name)
        if value is not None:
            return value
        if name in self.defaults_without_bank and (
            self.bank is None or getattr(self.bank, "is_default", False)
        ):
            return self.defaults_without_bank[name]()
        return self.defaults[name]()

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Restore a stored estimator; parameters that its version did not have yet get their defaults."""
        super().__setstate__(state)
        for name, parameter in signature(type(self)).parameters.items():
            if name not in self.__dict__:
                setattr(self, name, parameter.default)

    def set_params(self, **params: Any) -> Self:
        """Set parameters; ``part__name`` also reaches into a part left at its default."""
        for name in self.defaults:
            if getattr(self, name) is None and any(key.startswith(f"{name}__") for key in params):
                setattr(self, name, self.part(name))
        super().set_params(**params)
        return self

    @property
    def columns_(self) -> ColumnTable:
        """What was done with every column of the data: type, encoding, cells filled, what is odd about it."""
        return self._columns_used().with_notes(getattr(self, "odd_columns_", ()))

    def _columns_used(self) -> ColumnTable:
        """Return what the bank did with every column."""
        self._require_fit("bank_")
        return self.bank_.columns  # type: ignore[no-any-return]

    def _kernel_parts(self, X: Any) -> AnyArray:
        """Return what every kernel adds to the decision values: (rows, problems, M), without intercept."""
        X = check_input(self, X, reset=False)
        eta = np.broadcast_to(self.kernel_weights_, (len(self.dual_coef_), len(self.bank_)))
        return weighted_contributions(self.bank_, X, eta, self.dual_coef_, self.support_, self._n_threads)

    @property
    def _n_threads(self) -> int:
        """How many threads passes over new samples have."""
        return threads_for(getattr(self, "n_jobs", None))

    def _kernel_rest(self) -> AnyArray:
        """Return what no kernel adds to the decision values: (problems,)."""
        return np.asarray(self.intercept_, dtype=np.float64)

    def _values(self, X: Any) -> AnyArray:
        """Return the decision values of new samples."""
        self._require_fit()
        return decision_values([self], X)[0]

    def _shaped(self, values: AnyArray) -> AnyArray:
        """Return decision values, one column per problem, in the shape the user expects."""
        return np.asarray(values[:, 0] if values.shape[1] == 1 else values)

    def _set_certificates(self, certificates: list[Certificate], tol: float) -> None:
        """Set what is known of the optimum, from one certificate per problem solved to a relative gap of ``tol``."""
        self.certificates_ = [replace(one, tol=tol) for one in certificates]
        self.certificate_ = replace(Certificate.total(certificates), tol=tol)
        self.duality_gap_ = self.certificate_.relative_gap
        self.objective_ = self.certificate_.upper

    def _require_fit(self, attribute: str | None = None) -> None:
        """Raise NotFittedError unless there is something learnt to predict with."""
        check_is_fitted(self, attribute)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        precomputed = is_precomputed(self.bank)
        tags.input_tags.pairwise = precomputed
        tags.input_tags.three_d_array = precomputed
        tags.input_tags.two_d_array = not precomputed
        tags.input_tags.sparse = not precomputed  # as far as the kernels take it; they say so if not
        tags.input_tags.allow_nan = not precomputed and self.fills_gaps
        tags.input_tags.string = not precomputed
        return tags


def wants_probability(estimator: Any) -> bool:
    """Tell whether predict_proba is on offer, or say how to get it."""
    if not estimator.probability:
        raise AttributeError(
            f"predict_proba needs {type(estimator).__name__}(probability=True) before fit; "
            "decision_function works without."
        )
    return True


class KernelClassifier(ClassifierMixin, KernelFeatures, KernelEstimator):  # type: ignore[misc]
    """A classifier whose decision is Σ eta_m k_m(x, ·) on ``dual_coef_``, plus ``intercept_``."""

    probability: bool

    def decision_function(self, X: Any) -> AnyArray:
        """Return one signed score per sample, or per sample and class beyond two classes."""
        return self._values(X)

    def predict(self, X: Any) -> AnyArray:
        """Return the class of each sample; of several labels, a matrix of indicators."""
        values = self.decision_function(X)
        if getattr(self, "multilabel_", False):  # files of earlier versions do not say
            return (values > 0).astype(int)
        return predicted_classes(values, self.classes_)

    @available_if(wants_probability)  # type: ignore[untyped-decorator]
    def predict_proba(self, X: Any) -> Matrix:
        """Return calibrated class probabilities; needs ``probability=True`` at fit."""
        self._require_fit("calibration_")
        X = as_one_array(X) if is_precomputed(self.bank) else as_samples(X)
        return self.calibration_.predict_proba(X)  # type: ignore[no-any-return]


def predicted_classes(values: AnyArray, classes: AnyArray) -> AnyArray:
    """Return the class with the highest decision value in each row."""
    index = (values > 0).astype(int) if values.ndim == 1 else values.argmax(axis=1)
    return np.asarray(classes[index])


def accuracy(predicted: AnyArray, y: AnyArray, weight: AnyArray | None = None) -> float:
    """Return the share of right predictions, NaN where no sample has weight; labels are known to be valid.

    Of several labels all have to be right.
    """
    hits = (predicted == y).reshape(len(y), -1).all(axis=1)
    if weight is None:
        return float(hits.mean())
    total = float(np.sum(weight))
    return float(hits @ weight) / total if total > 0.0 else np.nan


def decision_values(models: Sequence[Any], X: Any) -> list[AnyArray]:
    """Return the decision values of models that share a bank, in one pass over the kernels of X."""
    values = _linear(models, [model.dual_coef_ for model in models], X)
    return [model._shaped(part + model.intercept_) for model, part in zip(models, values, strict=True)]


def values_along(model: Any, X: Any, coef: Matrix, intercept: Vector) -> Matrix:
    """Return the values of other combinations of a model's support, one column per row of ``coef``."""
    return np.asarray(_linear([model], [coef], X)[0] + intercept)


def _linear(models: Sequence[Any], coefs: Sequence[Matrix], X: Any) -> list[Matrix]:
    """Return Σ_j k(x, x_j) coef_j under the weights of each model, all models in one pass."""
    first = models[0]
    X = check_input(first, X, reset=False)
    counts = [len(coef) for coef in coefs]
    ends = np.cumsum(counts)
    stacked = np.zeros((ends[-1], first.bank_.n_samples))
    eta = np.empty((ends[-1], len(first.bank_)))
    for model, coef, end, count in zip(models, coefs, ends, counts, strict=True):
        stacked[end - count : end, model.support_] = coef
        eta[end - count : end] = model.kernel_weights_
    columns = np.flatnonzero(stacked.any(axis=0))
    values = scores(first.bank_, X, eta, stacked[:, columns], columns, first._n_threads)
    return np.split(values, ends[:-1], axis=1)


class KnownDecisions:
    """A fitted model whose decision values for some samples X are known: scorers ask it instead of the model.

    Of these samples, recognised by being the same object, the values are as given; everything else is the
    model's own.
    """

    def __init__(self, model: Any, X: Any, values: AnyArray) -> None:
        self._model, self._X, self._known = model, X, values

    def __getattr__(self, name: str) -> Any:
        return getattr(self._model, name)

    def _values(self, X: Any) -> AnyArray:
        return self._known if X is self._X else self._model._values(X)

    def decision_function(self, X: Any) -> AnyArray:
        """Return the decision values, known or the model's."""
        return self._values(X)

    def predict(self, X: Any) -> AnyArray:
        """Return what the model predicts from the decision values."""
        return type(self._model).predict(self, X)  # type: ignore[no-any-return]

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Return what the model's own ``score`` makes of the decision values."""
        return float(type(self._model).score(self, X, y, sample_weight))
