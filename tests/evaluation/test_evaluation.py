"""Scores of pairs and ranks of identities, from their definitions."""

import numpy as np
import pytest

from kernelweave.evaluation import (
    cmc_curve,
    pair_average_precision,
    pair_roc_auc,
    rank_accuracy,
)


def test_average_precision_is_the_mean_precision_at_the_similar_pairs(rng):
    y, D = np.where(rng.random(50) < 0.3, 1, -1), rng.random(50)
    ranked = y[np.argsort(D)] == 1
    expected = np.mean([ranked[: k + 1].mean() for k in np.flatnonzero(ranked)])
    assert pair_average_precision(y, D) == pytest.approx(expected)


def test_auc_is_the_share_of_ordered_pairs_of_pairs(rng):
    y, D = np.where(rng.random(50) < 0.3, 1, -1), rng.integers(0, 9, 50)
    near, far = D[y == 1][:, None], D[y == -1]
    assert pair_roc_auc(y, D) == pytest.approx(((near < far) + 0.5 * (near == far)).mean())


def test_the_cmc_curve_counts_ranks_of_identities(rng):
    probes, gallery = rng.integers(0, 6, 20), np.r_[np.arange(6), rng.integers(0, 6, 10)]
    D = rng.random((20, 16))
    ranks = []
    for row, identity in zip(D, probes, strict=True):
        nearest = sorted((row[gallery == other].min(), other) for other in range(6))
        ranks.append([other for _, other in nearest].index(identity) + 1)
    expected = [np.mean(np.array(ranks) <= r) for r in range(1, 7)]
    np.testing.assert_allclose(cmc_curve(D, probes, gallery), expected)
    assert rank_accuracy(D, probes, gallery) == pytest.approx(expected[0])
    assert rank_accuracy(D, probes, gallery, rank=3) == pytest.approx(expected[2])
    assert rank_accuracy(D, probes, gallery, rank=99) == 1.0


def test_ties_earn_nothing():
    assert rank_accuracy(np.zeros((2, 2)), ["a", "b"], ["a", "b"]) == 0.0


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: pair_roc_auc([1, 1], [0.1, 0.2]), "both of them"),
        (lambda: pair_roc_auc([0, 1], [0.1, 0.2]), r"got the values \[0, 1\]"),
        (lambda: pair_average_precision([1, -1], [0.1]), "2 labels but 1 distances"),
        (lambda: pair_average_precision([1, -1], [0.1, np.nan]), "NaN"),
        (lambda: cmc_curve(np.ones((2, 3)), [0, 1], [0, 1]), r"\(2, 2\), not empty; got \(2, 3\)"),
        (lambda: cmc_curve(np.ones((1, 1)), ["x"], ["y"]), r"\['x'\] are not"),
        (lambda: cmc_curve([[np.nan]], [0], [0]), "finite"),
        (lambda: cmc_curve([[1.0]], [0], [0], max_rank=0), "max_rank"),
    ],
)
def test_bad_input_gets_one_sentence(call, message):
    with pytest.raises(ValueError, match=message):
        call()
