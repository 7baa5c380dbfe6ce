"""Learners of pairs: weights, folds of scikit-learn, pairs left over, points by index."""

import numpy as np
import pytest
from sklearn.base import is_classifier
from sklearn.datasets import load_iris
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.utils import get_tags
from tests.metric.test_metric import BOUNDS, LEARNERS, PAIRS, PRIVILEGED, Y, assert_same

from kernelweave import ITML, ITMLPlus, ITMLSelect, SupervisedMetric
from kernelweave.metric.mahalanobis import STRATEGIES, best_threshold
from kernelweave.metric.supervised import pairs_from_labels

N = len(Y)
OUTLIERS = np.arange(N) % 4 == 1  # pairs far out, in both spaces, whose weight will be zero
FAR = PAIRS + 30.0 * OUTLIERS[:, None, None] * np.random.default_rng(0).normal(size=PAIRS.shape)
FAR_HIDDEN = PRIVILEGED + 9.0 * OUTLIERS[:, None, None] * np.random.default_rng(1).normal(
    size=PRIVILEGED.shape
)
USED = ~OUTLIERS


@pytest.mark.parametrize("prior", ["identity", "covariance"])
@pytest.mark.parametrize("cls", LEARNERS)
def test_pairs_of_weight_zero_might_as_well_not_be_there(cls, prior):
    given = {"privileged_prior": "matched"} if cls is ITMLPlus else {}
    given |= {"drop": 0.3} if cls is ITMLSelect else {}
    model = cls(prior=prior, tol=1e-9, random_state=0, **given)
    alone = model.fit(FAR[USED], Y[USED], privileged=FAR_HIDDEN[USED])
    bounds, threshold, M = alone.bounds_, alone.threshold_, alone.get_mahalanobis_matrix()
    kept = getattr(alone, "kept_", None)
    model.fit(FAR, Y, privileged=FAR_HIDDEN, sample_weight=USED.astype(float))
    assert model.bounds_ == pytest.approx(bounds)
    assert model.threshold_ == pytest.approx(threshold, rel=1e-5)
    assert_same(model.get_mahalanobis_matrix(), M)
    if kept is not None:
        np.testing.assert_array_equal(model.kept_[USED], kept)
        assert not model.kept_[OUTLIERS].any()


def test_privileged_features_of_weight_zero_only_are_none():
    hidden = np.where(OUTLIERS[:, None, None], PRIVILEGED, np.nan)
    given = dict(privileged=hidden, sample_weight=USED.astype(float))
    model = ITMLPlus(privileged_prior="matched", random_state=0).fit(PAIRS, Y, **given)
    assert model.privileged_matrix_ is None
    select = ITMLSelect(random_state=0).fit(PAIRS, Y, **given)
    assert select.selector_ is None
    plain = ITML(random_state=0).fit(PAIRS[USED], Y[USED]).get_mahalanobis_matrix()
    for fitted in (model, select):
        assert_same(fitted.get_mahalanobis_matrix(), plain)


def test_missing_privileged_rows_do_not_count_for_their_prior():
    known = np.arange(N) < 16
    hidden = np.where(
        known[:, None, None], PRIVILEGED + 50.0, np.nan
    )  # far from the zeros that stand for NaN
    given = dict(bounds=BOUNDS, privileged_prior="covariance", tol=1e-9, random_state=0)
    by_name = ITMLPlus(**given).fit(PAIRS, Y, privileged=hidden)
    P0 = np.linalg.inv(np.cov(np.unique(hidden[known].reshape(-1, hidden.shape[2]), axis=0), rowvar=False))
    by_hand = ITMLPlus(**given | {"privileged_prior": P0}).fit(PAIRS, Y, privileged=hidden)
    assert_same(by_name.get_mahalanobis_matrix(), by_hand.get_mahalanobis_matrix())


def test_selection_weighs_the_pairs_in_both_stages():
    weight = np.where(np.arange(N) % 3 == 0, 6.0, 0.5)
    given = dict(tol=1e-9, random_state=0)
    model = ITMLSelect(drop=0.25, bounds=BOUNDS, **given)
    model.fit(PAIRS, Y, privileged=PRIVILEGED, sample_weight=weight)
    first = ITML(**given).fit(PRIVILEGED, Y, sample_weight=weight)
    assert_same(model.selector_.get_mahalanobis_matrix(), first.get_mahalanobis_matrix())
    kept = model.kept_
    second = ITML(bounds=BOUNDS, **given).fit(PAIRS[kept], Y[kept], sample_weight=weight[kept])
    assert_same(model.get_mahalanobis_matrix(), second.get_mahalanobis_matrix())
    plain = ITML(bounds=BOUNDS, **given).fit(PAIRS[kept], Y[kept])
    gap = np.abs(model.get_mahalanobis_matrix() - plain.get_mahalanobis_matrix()).max()
    assert gap > 0.01 * np.abs(plain.get_mahalanobis_matrix()).max()


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_a_weight_counts_for_the_threshold_as_pairs_do(rng, strategy):
    for _ in range(20):
        D, signs, weight = rng.integers(0, 9, 12) / 2.0, rng.choice([-1.0, 1.0], 12), rng.integers(0, 4, 12)
        if len(np.unique(signs[weight > 0])) < 2:
            continue
        again = np.repeat(np.arange(12), weight)
        expected = best_threshold(D[again], signs[again], strategy, min_rate=0.5)
        used = weight > 0
        found = best_threshold(
            D[used], signs[used], strategy, min_rate=0.5, weight=weight[used].astype(float)
        )
        assert found == expected


@pytest.mark.parametrize("drop", [0.97, 0.99])
def test_a_share_that_drops_every_pair_is_named(drop):
    with pytest.raises(
        ValueError, match=f"drop={drop} leaves none of the 24 pairs to learn from; lower drop"
    ):
        ITMLSelect(drop=drop, random_state=0).fit(PAIRS, Y, privileged=PRIVILEGED)


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
    search = GridSearchCV(model, {"gamma": [0.1, 1.0]}, cv=3).fit(ends, y)
    assert np.isfinite(search.cv_results_["mean_test_score"]).all()
    np.testing.assert_array_equal(search.best_estimator_.classes_, [-1, 1])


@pytest.mark.parametrize(
    ("places", "message"),
    [
        ([-1], "X must be indices from 0 to 47, the rows of preprocessor; got -1 to -1"),
        ([0, 48], "X must be indices from 0 to 47, the rows of preprocessor; got 0 to 48"),
        ([0.5], "whole numbers as rows of preprocessor; got float64"),
    ],
)
def test_points_that_are_not_in_the_table_are_refused(places, message):
    table = PAIRS.reshape(2 * N, -1)
    model = ITML(preprocessor=table, random_state=0).fit(np.arange(2 * N).reshape(N, 2), Y)
    with pytest.raises(ValueError, match=message):
        model.transform(places)
    np.testing.assert_array_equal(model.transform([3]), model.transform(table[[3]]))


def test_a_metric_from_labels_names_its_columns():
    X, labels = load_iris(return_X_y=True, as_frame=True)
    model = SupervisedMetric(ITML(tol=1e-3), random_state=0).set_output(transform="pandas").fit(X, labels)
    frame = model.transform(X.iloc[:5])
    assert list(frame.columns) == list(model.get_feature_names_out())
    assert list(frame.columns) == [f"supervisedmetric{k}" for k in range(4)]
    assert list(frame.index) == list(X.index[:5])


@pytest.mark.parametrize("cls", LEARNERS)
def test_wrong_labels_of_weight_zero_do_not_move_the_threshold(cls):
    used = np.arange(N) % 2 == 0
    wrong = np.where(used, Y, 1)
    given = dict(bounds=BOUNDS, tol=1e-9, random_state=0)
    alone = cls(**given).fit(PAIRS[used], Y[used])
    model = cls(**given).fit(PAIRS, wrong, sample_weight=used.astype(float))
    assert model.threshold_ == pytest.approx(alone.threshold_, rel=1e-5)
    moved = best_threshold(model.pair_distance(PAIRS), wrong.astype(float))
    assert abs(moved - model.threshold_) > 0.01  # where they had a say
