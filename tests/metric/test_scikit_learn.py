"""Learners of pairs inside scikit-learn: its own checks, which need rows, its folds, searches and routing."""

import pickle
from dataclasses import dataclass

import numpy as np
import pytest
from sklearn import config_context
from sklearn.base import clone, is_classifier
from sklearn.datasets import load_iris
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.utils import get_tags
from sklearn.utils.estimator_checks import parametrize_with_checks
from sklearn.utils.multiclass import check_classification_targets, type_of_target
from sklearn.utils.validation import assert_all_finite, check_is_fitted, column_or_1d, validate_data
from tests.metric.metrics import LEARNERS, PAIRS, PRIVILEGED, Y, fit

from kernelweave import ITML, ITMLPlus, ITMLSelect
from kernelweave.metric import pairs_from_labels


class OfRows:
    """A learner of pairs that takes the rows of a table, each paired with the origin, and any two classes.

    Privileged features are the last two columns.
    Shapes and names of classes are seen to here; numbers, weights and the state of the learner are its own.
    """

    def fit(self, X, y, sample_weight=None):
        X = validate_data(self, X, ensure_all_finite=False)
        y = column_or_1d(y, warn=True)
        assert_all_finite(y, input_name="y")
        check_classification_targets(y)
        if type_of_target(y) == "multiclass":
            raise ValueError("Only binary classification is supported. The type of the target is multiclass.")
        names, index = np.unique(y, return_inverse=True)
        if len(names) < 2:
            raise ValueError("These pairs are of 1 class.")
        super().fit(self.paired(X), 2 * index - 1, self.paired(X[:, -2:]), sample_weight)
        self.classes_ = names
        return self

    def decision_function(self, X):
        distances = self.pair_distance(X)
        return self.threshold_ - distances

    def score(self, X, y):
        return roc_auc_score(y == self.classes_[1], -self.pair_distance(X))

    def pair_distance(self, X):
        check_is_fitted(self)
        return super().pair_distance(
            self.paired(validate_data(self, X, reset=False, ensure_all_finite=False))
        )

    def predict(self, X):
        similar = super().predict(X) > 0
        return self.classes_[similar.astype(int)]

    @property
    def transform(self):
        raise AttributeError(
            "the map is one of points, not of pairs, and is tested as such in test_metric.py"
        )

    def paired(self, X):
        return np.stack([X, np.zeros_like(X)], axis=1)

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.two_d_array, tags.input_tags.three_d_array = True, False
        tags.transformer_tags = None
        return tags


@dataclass(eq=False, repr=False, kw_only=True)
class ITMLOfRows(OfRows, ITML):
    random_state: int = 0
    tol: float = 1e-14


@dataclass(eq=False, repr=False, kw_only=True)
class ITMLPlusOfRows(OfRows, ITMLPlus):
    random_state: int = 0
    tol: float = 1e-14


@dataclass(eq=False, repr=False, kw_only=True)
class ITMLSelectOfRows(OfRows, ITMLSelect):
    random_state: int = 0
    tol: float = 1e-14


EXEMPT = {
    "check_classifiers_train": "it expects 83 % accuracy on blobs, which the distance from the origin does "
    "not tell apart",
}


@pytest.mark.filterwarnings("ignore:Stopped at a relative duality gap")
@parametrize_with_checks(
    [ITMLOfRows(), ITMLPlusOfRows(), ITMLSelectOfRows()], expected_failed_checks=lambda _: EXEMPT
)
def test_scikit_learn_accepts_the_learner(estimator, check):
    check(estimator)


@pytest.mark.parametrize("cls", LEARNERS)
def test_learners_clone_pickle_and_repeat(cls):
    model = fit(cls, privileged=PRIVILEGED)
    again = clone(model).fit(PAIRS, Y, privileged=PRIVILEGED)
    restored = pickle.loads(pickle.dumps(model))
    for other in (again, restored):
        np.testing.assert_array_equal(other.get_mahalanobis_matrix(), model.get_mahalanobis_matrix())


def test_folds_keep_both_kinds_of_the_pairs_made_from_labels():
    X, labels = load_iris(return_X_y=True)
    ends, y = pairs_from_labels(labels, 60, random_state=0)
    model = ITML(preprocessor=X, tol=1e-3, random_state=0)
    assert is_classifier(model)
    assert get_tags(model).transformer_tags is not None  # it maps points
    auc = cross_val_score(model, ends, y)
    np.testing.assert_array_equal(auc, cross_val_score(model, ends, y, scoring="roc_auc"))
    assert (auc > 0.8).all()
    assert (cross_val_score(model, ends, y, scoring="accuracy") > 0.7).all()
    for learner, pairs in ((model, ends), (ITML(tol=1e-3, random_state=0), X[ends])):
        search = GridSearchCV(learner, {"gamma": [0.1, 1.0]}, cv=3).fit(pairs, y)
        assert np.isfinite(search.cv_results_["mean_test_score"]).all()
    np.testing.assert_array_equal(search.best_estimator_.classes_, [-1, 1])


def test_privileged_features_are_routed():
    with config_context(enable_metadata_routing=True):
        model = ITMLPlus(random_state=0).set_fit_request(privileged=True)
        scores = cross_val_score(model, PAIRS, Y, cv=3, params={"privileged": PRIVILEGED})
    assert np.isfinite(scores).all()
