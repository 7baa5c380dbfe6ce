"""The control sees the same folds, and only the order of the privileged rows differs."""

import numpy as np
import pytest
from sklearn import config_context
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.model_selection import GridSearchCV, KFold
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline

from kernelweave import ITML, ITMLPlus, SupervisedMetric, SVMPlusClassifier
from kernelweave.evaluation import permuted_control
from kernelweave.kernels import Linear
from kernelweave.metric.supervised import pairs_from_labels

RNG = np.random.default_rng(0)
LABELS = np.arange(45) % 3
POINTS = RNG.normal(size=(45, 3)) + LABELS[:, None]
HIDDEN = RNG.normal(size=(45, 2)) + LABELS[:, None]
ENDS, SAME = pairs_from_labels(LABELS, 60, random_state=0)  # similar pairs first


class Recorder(ClassifierMixin, BaseEstimator):
    """Scores 1 where the privileged rows belong to the samples, 0.5 where they do not, 0 without any."""

    def fit(self, X, y, privileged=None):
        self.classes_ = np.unique(y)
        self.value_ = 0.0
        if privileged is not None:
            assert sorted(privileged[:, 0]) == sorted(X[:, 0])  # of these samples, in whatever order
            self.value_ = 1.0 if np.array_equal(privileged, X) else 0.5
        return self

    def score(self, X, y):  # noqa: ARG002
        return self.value_


def test_rows_are_shuffled_within_each_training_part_and_nothing_else_changes():
    X = np.arange(20.0)[:, None]
    control = permuted_control(
        Recorder(), X, np.arange(20) % 2, X, cv=KFold(4), n_permutations=3, random_state=0
    )
    np.testing.assert_array_equal(control.scores, np.ones(4))
    np.testing.assert_array_equal(control.permuted, np.full((3, 4), 0.5))
    np.testing.assert_array_equal(control.without, np.zeros(4))
    assert control.gain == 0.5
    assert control.gain_of_shuffled == 0.5


def test_the_same_seed_shuffles_alike():
    X = np.random.default_rng(0).normal(size=(12, 1))
    y = np.arange(12) % 2

    class Order(Recorder):
        def fit(self, X, y, privileged=None):  # noqa: ARG002
            self.value_ = 0.0 if privileged is None else float(privileged[0, 0])
            return self

    first, again, other = (permuted_control(Order(), X, y, X, cv=3, random_state=seed) for seed in (1, 1, 2))
    np.testing.assert_array_equal(first.permuted, again.permuted)
    assert not np.array_equal(first.permuted, other.permuted)


def test_every_fold_of_sorted_pairs_has_both_kinds():
    control = permuted_control(
        ITMLPlus(tol=1e-3, random_state=0), POINTS[ENDS], SAME, HIDDEN[ENDS], random_state=0
    )
    for scores in (control.scores, control.permuted, control.without):
        assert np.isfinite(scores).all()


def test_a_table_of_points_is_the_rows_of_the_pairs():
    model = ITMLPlus(preprocessor=POINTS, tol=1e-3, random_state=0)
    by_point, by_pair = (
        permuted_control(model, ENDS, SAME, privileged, cv=3, random_state=0)
        for privileged in (HIDDEN, HIDDEN[ENDS])
    )
    np.testing.assert_allclose(by_point.scores, by_pair.scores)
    np.testing.assert_allclose(by_point.without, by_pair.without)
    search = permuted_control(GridSearchCV(model, {"lam": [1.0]}, cv=2), ENDS, SAME, HIDDEN, cv=3)
    np.testing.assert_allclose(search.scores, by_point.scores)


def test_points_of_training_pairs_change_places_with_each_other_only():
    tables = []

    class Watched(ITML):
        def fit(self, pairs, y, privileged=None, sample_weight=None):  # noqa: ARG002
            tables.append((np.unique(pairs), privileged))
            return super().fit(pairs, y)

    model = Watched(preprocessor=POINTS, tol=1e-3, random_state=0)
    permuted_control(model, ENDS, SAME, HIDDEN, cv=3, random_state=0)
    for _, table in tables[:3]:
        np.testing.assert_array_equal(table, HIDDEN)
    for points, table in tables[3:6]:
        others = np.setdiff1d(np.arange(45), points)
        np.testing.assert_array_equal(table[others], HIDDEN[others])
        np.testing.assert_array_equal(np.sort(table[points, 0]), np.sort(HIDDEN[points, 0]))
        assert (table[points] != HIDDEN[points]).any(axis=1).mean() > 0.8
    assert all(table is None for _, table in tables[6:])


def test_of_a_kernel_matrix_rows_and_columns_are_cut():
    y = LABELS > 0
    ready, linear = (
        permuted_control(SVMPlusClassifier(kernel=kernel), X, y, HIDDEN, cv=3, random_state=0)
        for kernel, X in (("precomputed", POINTS @ POINTS.T), (Linear(), POINTS))
    )
    np.testing.assert_allclose(ready.scores, linear.scores)
    np.testing.assert_allclose(ready.permuted, linear.permuted)
    np.testing.assert_allclose(ready.without, linear.without)


def test_a_pipeline_needs_a_route_for_privileged_features():
    metric = SupervisedMetric(ITMLPlus(tol=1e-3), random_state=0)
    for wrap in (lambda model: model, lambda model: GridSearchCV(model, {}, cv=2)):
        with pytest.raises(ValueError, match=r"by metadata routing only.*set_fit_request\(privileged=True\)"):
            permuted_control(
                wrap(make_pipeline(metric, KNeighborsClassifier())), POINTS, LABELS, HIDDEN, cv=3
            )
    with config_context(enable_metadata_routing=True):
        routed = make_pipeline(metric.set_fit_request(privileged=True), KNeighborsClassifier())
        control = permuted_control(routed, POINTS, LABELS, HIDDEN, cv=3, random_state=0)
    assert np.isfinite(control.scores).all()


@pytest.mark.parametrize("n", [0, -1, 1.5, True])
def test_at_least_one_shuffle_is_made(n):
    with pytest.raises(ValueError, match="n_permutations must be a whole number of at least 1"):
        permuted_control(Recorder(), POINTS, LABELS, POINTS, n_permutations=n)
