"""Candidates of a search: models on a fold's shared kernels, and how they are scored."""

from __future__ import annotations

from collections.abc import Callable
from inspect import signature
from typing import Any

from sklearn.metrics import check_scoring

from kernelweave._typing import AnyArray
from kernelweave.estimators.answers import accuracy
from kernelweave.estimators.classifier import MKLClassifier
from kernelweave.estimators.model import MKLModel
from kernelweave.estimators.regressor import MKLRegressor

Score = Callable[[Any, Any, AnyArray, AnyArray | None], float]


class Candidate(MKLModel):
    """A model that is fitted on a fold, scored and forgotten."""


class ClassifierCandidate(Candidate, MKLClassifier):
    """A candidate for classification."""

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Return the accuracy, without the checks of labels that are known to be in order."""
        return accuracy(self.predict(X), y, sample_weight)


class RegressorCandidate(Candidate, MKLRegressor):
    """A candidate for regression."""


def scorer_of(scoring: Any, kind: type[Candidate] = ClassifierCandidate) -> Score:
    """Return the score a parameter stands for, if decision values or predictions are all it needs.

    Weights are passed on where the scorer takes them.
    """
    if isinstance(scoring, list | tuple | set | dict):
        raise ValueError(
            f"scoring must be one scorer, which picks the best parameters; got {scoring!r}: name one of them."
        )
    scorer = check_scoring(kind(), scoring=scoring)
    needs = getattr(scorer, "_response_method", "predict")
    if "predict_proba" in needs and "decision_function" not in needs:  # a name, or several to choose from
        raise ValueError(
            f"scoring={scoring!r} needs probabilities, so a calibration of every candidate; a search scores "
            "decision values or predictions, such as 'accuracy', 'balanced_accuracy' or 'roc_auc'."
        )
    takes_weights = _takes_weights(scorer)

    def score(model: Any, X: Any, y: AnyArray, weight: AnyArray | None) -> float:
        weights = {"sample_weight": weight} if takes_weights and weight is not None else {}
        return float(scorer(model, X, y, **weights))

    return score


def _takes_weights(scorer: Any) -> bool:
    if hasattr(
        scorer, "_accept_sample_weight"
    ):  # one of scikit-learn's, around a function that may or may not
        return bool(scorer._accept_sample_weight())
    return "sample_weight" in signature(scorer).parameters
