"""From labels to pairs."""

import numpy as np
import pytest
from sklearn.datasets import load_iris
from sklearn.utils.estimator_checks import parametrize_with_checks

from kernelweave import ITML, ITMLPlus, SupervisedMetric
from kernelweave.metric import pairs_from_labels

X, Y = load_iris(return_X_y=True)
NAMES = np.array(["setosa", "versicolor", "virginica"])[Y]


@parametrize_with_checks([SupervisedMetric(), SupervisedMetric(ITMLPlus(), n_pairs=40)])
def test_scikit_learn_accepts_the_estimator(estimator, check):
    check(estimator)


@pytest.mark.parametrize("n", [30, 150, 600])
@pytest.mark.parametrize("share", [0.2, 0.5])
def test_pairs_are_of_the_kinds_asked_for_and_none_comes_twice(rng, n, share):
    labels = rng.integers(0, 5, n)
    ends, sign = pairs_from_labels(labels, 100, share, random_state=0)
    assert ends.shape == (100, 2)
    assert (sign == 1).sum() == round(100 * share)
    np.testing.assert_array_equal(labels[ends[:, 0]] == labels[ends[:, 1]], sign == 1)
    assert len(np.unique(np.sort(ends, axis=1), axis=0)) == 100
    assert (ends[:, 0] != ends[:, 1]).all()


def test_all_pairs_are_taken_where_there_are_too_few():
    ends, sign = pairs_from_labels([0, 0, 1, 1], 1000)
    assert (sign == 1).sum() == 2
    assert (sign == -1).sum() == 4
    assert len(ends) == 6


def test_every_similar_pair_is_drawn_with_the_same_chance():
    labels = np.repeat([0, 1], [10, 200])  # 45 and 19900 pairs
    ends, _ = pairs_from_labels(labels, 2000, 0.99, random_state=0)
    share = (labels[ends[:1980, 0]] == 0).mean()
    assert share < 0.01  # by class first it would be a half


def test_it_is_the_learner_on_those_pairs():
    model = SupervisedMetric(ITML(gamma=2.0, random_state=0), random_state=0).fit(X, NAMES)
    direct = ITML(gamma=2.0, random_state=0).fit(X[model.pairs_], model.pair_labels_)
    np.testing.assert_allclose(model.get_mahalanobis_matrix(), direct.get_mahalanobis_matrix(), rtol=1e-9)
    np.testing.assert_allclose(model.pair_distance(X[model.pairs_]), direct.pair_distance(X[model.pairs_]))
    assert model.certificate_.relative_gap <= 1e-6
    assert model.learner_.preprocessor is None  # the samples are not kept


def test_privileged_features_go_by_sample(rng):
    hidden = X[:, 2:] + 0.01 * rng.normal(size=(150, 2))
    hidden[::3] = np.nan
    model = SupervisedMetric(ITMLPlus(tol=1e-3), random_state=0).fit(X[:, :2], Y, privileged=hidden)
    known = ~np.isnan(hidden[:, 0])
    np.testing.assert_array_equal(model.learner_.told_, known[model.pairs_].all(axis=1))


def test_a_metric_from_labels_names_its_columns():
    table, labels = load_iris(return_X_y=True, as_frame=True)
    model = SupervisedMetric(ITML(tol=1e-3), random_state=0).set_output(transform="pandas").fit(table, labels)
    mapped = model.transform(table.iloc[:5])
    assert list(mapped.columns) == list(model.get_feature_names_out())
    assert list(mapped.columns) == [f"supervisedmetric{k}" for k in range(4)]
    assert list(mapped.index) == list(table.index[:5])
