"""Learnt metrics: distances, the linear map, and thresholds."""

import numpy as np
import pytest
from sklearn.exceptions import NotFittedError
from sklearn.metrics import fbeta_score
from tests.metric.metrics import BOUNDS, LEARNERS, PAIRS, V, Y, fit

from kernelweave import ITML
from kernelweave.metric.mahalanobis import STRATEGIES, best_threshold


def test_distances_scores_and_the_map_agree():
    model = fit()
    M = model.get_mahalanobis_matrix()
    expected = np.sqrt(np.einsum("ij,jk,ik->i", V, M, V))
    np.testing.assert_allclose(model.pair_distance(PAIRS), expected)
    np.testing.assert_allclose(model.pair_score(PAIRS), -expected)
    np.testing.assert_allclose(model.decision_function(PAIRS), -expected)
    mapped = model.transform(PAIRS[:, 0]) - model.transform(PAIRS[:, 1])
    np.testing.assert_allclose(np.linalg.norm(mapped, axis=1), expected)
    assert model.get_metric()(PAIRS[0, 0], PAIRS[0, 1]) == pytest.approx(expected[0])
    similar, different = expected[Y > 0], expected[Y < 0]
    assert model.score(PAIRS, Y) == pytest.approx((similar[:, None] < different).mean())


def test_the_threshold_is_the_most_accurate_one():
    model = fit()
    D = model.pair_distance(PAIRS)
    best = max(((t >= D) == (Y > 0)).mean() for t in np.r_[0.0, D])
    assert (model.predict(PAIRS) == Y).mean() == best


@pytest.mark.parametrize("rate", [0.0, 0.5, 0.9, 1.0])
def test_thresholds_keep_the_rate_asked_for(rate):
    model = fit()
    for strategy, kept, other in (("max_tpr", -1, 1), ("max_tnr", 1, -1)):
        predicted = model.calibrate_threshold(PAIRS, Y, strategy, min_rate=rate).predict(PAIRS)
        assert (predicted[kept == Y] == kept).mean() >= rate
        reached = (predicted[other == Y] == other).mean()
        D = model.pair_distance(PAIRS)
        for t in np.r_[0.0, D]:
            trial = np.where(t >= D, 1, -1)
            if (trial[kept == Y] == kept).mean() >= rate:
                assert (trial[other == Y] == other).mean() <= reached


def test_the_f_beta_threshold_and_a_given_one():
    model = fit()
    D = model.pair_distance(PAIRS)
    predicted = model.calibrate_threshold(PAIRS, Y, "f_beta", beta=2.0).predict(PAIRS)
    best = max(fbeta_score(Y, np.where(t >= D, 1, -1), beta=2.0) for t in D)
    assert fbeta_score(Y, predicted, beta=2.0) == pytest.approx(best)
    assert (model.set_threshold(0.0).predict(PAIRS) == -1).all()


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


@pytest.mark.parametrize("cls", LEARNERS)
def test_the_learnt_threshold_counts_the_weights(cls):
    weight = np.where(np.arange(len(Y)) % 2 == 0, 6.0, 0.5)
    model = cls(bounds=BOUNDS, random_state=0).fit(PAIRS, Y, sample_weight=weight)
    distances = model.pair_distance(PAIRS)
    assert model.threshold_ == best_threshold(distances, Y, weight=weight)
    assert abs(best_threshold(distances, Y) - model.threshold_) > 0.01


@pytest.mark.parametrize("cls", LEARNERS)
def test_wrong_labels_of_weight_zero_do_not_move_the_threshold(cls):
    used = np.arange(len(Y)) % 2 == 0
    wrong = np.where(used, Y, 1)
    given = dict(bounds=BOUNDS, tol=1e-9, random_state=0)
    alone = cls(**given).fit(PAIRS[used], Y[used])
    model = cls(**given).fit(PAIRS, wrong, sample_weight=used.astype(float))
    assert model.threshold_ == pytest.approx(alone.threshold_, rel=1e-5)
    moved = best_threshold(model.pair_distance(PAIRS), wrong.astype(float))
    assert abs(moved - model.threshold_) > 0.01  # were they counted


def test_an_unfitted_metric_says_so():
    with pytest.raises(NotFittedError):
        ITML().pair_distance(PAIRS)
