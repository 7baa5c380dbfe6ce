"""What users give: pairs by value or by index, privileged features with gaps, and what is refused."""

import numpy as np
import pandas as pd
import pytest
from tests.metric.metrics import (
    BOUNDS,
    LEARNERS,
    PAIRS,
    PRIVILEGED,
    V,
    W,
    Y,
    assert_same,
    fit,
    matrix,
    with_entry,
)
from tests.reference import metrics as oracle

from kernelweave import ITML, ITMLPlus, ITMLSelect, SupervisedMetric

N = len(Y)
EQUAL = with_entry(PAIRS, np.flatnonzero(Y < 0)[0], 1.0)
ALONE = np.ones((3, 2, 4))


@pytest.mark.parametrize("share", [0.0, 0.5, 1.0])
def test_rows_of_nan_are_pairs_without_privileged_features(share):
    known = PRIVILEGED.copy()
    known[int(share * len(Y)) :, 1] = np.nan  # one of the two rows is enough
    one_side = np.where(np.isnan(known[:, 1]), np.nan, W)
    _, M, P = oracle.itml_plus(V, one_side, Y, 1.0, 1.0, 1.0, *BOUNDS)
    model = ITMLPlus(bounds=BOUNDS, tol=1e-9, random_state=0)
    if share == 0.0:
        with pytest.warns(UserWarning, match="None of the 24 pairs has privileged features"):
            model.fit(PAIRS, Y, privileged=known)
        assert model.privileged_matrix_ is None
        assert_same(matrix(tol=1e-9), M)  # and that is ITML
    else:
        model.fit(PAIRS, Y, privileged=known)
        assert_same(model.privileged_matrix_, P)
    assert model.told_.sum() == share * len(Y)
    assert_same(model.get_mahalanobis_matrix(), M)


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


@pytest.mark.parametrize("cls", LEARNERS)
def test_pairs_of_indices_are_the_same_pairs(cls):
    n = len(Y)
    table, hidden = PAIRS.reshape(2 * n, -1), PRIVILEGED.reshape(2 * n, -1)
    index = np.arange(2 * n).reshape(n, 2)
    given = fit(cls, privileged=PRIVILEGED)
    indexed = fit(cls, pairs=index, privileged=hidden, preprocessor=pd.DataFrame(table))
    np.testing.assert_allclose(given.get_mahalanobis_matrix(), indexed.get_mahalanobis_matrix(), rtol=1e-10)
    by_pair = fit(cls, pairs=index[::-1], y=Y[::-1], privileged=PRIVILEGED[::-1], preprocessor=table)
    assert_same(by_pair.get_mahalanobis_matrix(), given.get_mahalanobis_matrix(), 1e-3)
    np.testing.assert_allclose(given.pair_distance(PAIRS), indexed.pair_distance(index))
    np.testing.assert_allclose(given.transform(table[:3]), indexed.transform(np.arange(3)))


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


def test_dissimilar_pairs_of_equal_points_are_left_out_and_named():
    place = np.flatnonzero(Y < 0)[0]
    with pytest.warns(UserWarning, match=rf"1 dissimilar pairs .* \(number {place}\)"):
        model = fit(pairs=EQUAL)
    keep = np.arange(len(Y)) != place
    assert_same(model.get_mahalanobis_matrix(), matrix(pairs=PAIRS[keep], y=Y[keep]), 1e-3)


@pytest.mark.parametrize("cls", LEARNERS)
def test_similar_pairs_of_equal_points_change_nothing_in_itml(cls):
    place = np.flatnonzero(Y > 0)[0]
    keep = np.arange(len(Y)) != place
    model = fit(cls, pairs=with_entry(PAIRS, place, 1.0))
    assert_same(model.get_mahalanobis_matrix(), matrix(cls, pairs=PAIRS[keep], y=Y[keep]), 1e-3)


def test_equal_privileged_rows_are_none():
    equal = with_entry(PRIVILEGED, 2, 1.0)
    with pytest.warns(UserWarning, match=r"1 pairs have two equal rows .* \(number 2\)"):
        model = fit(ITMLPlus, privileged=equal)
    assert_same(
        model.get_mahalanobis_matrix(), matrix(ITMLPlus, privileged=with_entry(PRIVILEGED, 2, np.nan)), 1e-6
    )


@pytest.mark.filterwarnings("ignore:.*two equal points")
def test_only_hopeless_pairs_are_an_error():
    with pytest.raises(ValueError, match="No pair is left"):
        fit(pairs=ALONE, y=-np.ones(3))


CASES = {
    "two-dimensional pairs": (lambda: fit(pairs=V), r"shape \(n, 2, d\).*got an array of shape \(24, 4\)"),
    "triplets": (lambda: fit(pairs=np.ones((5, 3, 2))), r"got an array of shape \(5, 3, 2\)"),
    "NaN in a pair": (lambda: fit(pairs=with_entry(PAIRS, (0, 0, 0), np.nan)), "NaN"),
    "no pairs": (lambda: fit(pairs=PAIRS[:0], y=Y[:0]), r"0 sample"),
    "labels 0 and 1": (lambda: fit(y=(Y > 0).astype(int)), r"\+1 for similar.*got the values \[0, 1\]"),
    "no labels": (lambda: fit(y=None), "need labels y"),
    "too many labels": (lambda: fit(y=np.r_[Y, 1]), "24 pairs but 25 labels"),
    "u above l": (lambda: fit(bounds=(3.0, 2.0)), r"0 < u < l.*got u=3, l=2"),
    "u equal to l": (lambda: fit(bounds=(2.0, 2.0)), r"0 < u < l"),
    "u zero": (lambda: fit(bounds=(0.0, 2.0)), r"0 < u < l"),
    "one bound": (lambda: fit(bounds=(1.0,)), "two squared distances"),
    "points without spread": (
        lambda: fit(pairs=ALONE, y=np.ones(3), bounds=None),
        "percentile.*cannot serve as bounds",
    ),
    "gamma 0": (lambda: fit(gamma=0.0), "gamma must be a number above 0; got 0.0"),
    "gamma infinite": (lambda: fit(gamma=np.inf), "gamma must be"),
    "lam negative": (lambda: fit(ITMLPlus, lam=-1.0), "lam must be"),
    "kappa 0": (lambda: fit(ITMLPlus, kappa=0.0), "kappa must be a number above 0 or None"),
    "drop 1": (lambda: fit(ITMLSelect, drop=1.0), "drop must be"),
    "soft form with the thesis's steps": (
        lambda: fit(ITMLPlus, projections="uncorrected"),
        "need kappa=None",
    ),
    "unknown steps": (lambda: fit(ITMLPlus, projections="thesis"), "projections must be"),
    "unknown prior": (lambda: fit(prior="unit"), "prior must be 'identity'"),
    "prior of another size": (lambda: fit(prior=np.eye(3)), r"got shape \(3, 3\)"),
    "indefinite prior": (lambda: fit(prior=np.diag([1.0, 1.0, 1.0, -1.0])), "positive definite"),
    "asymmetric prior": (lambda: fit(prior=np.triu(np.ones((4, 4)))), "symmetric"),
    "singular covariance": (lambda: fit(pairs=PAIRS[..., [0, 0, 1, 2]], prior="covariance"), "collinear"),
    "privileged rows missing": (
        lambda: fit(ITMLPlus, privileged=PRIVILEGED[:5]),
        r"privileged must have shape \(24, 2, g\).*got \(5, 2, 3\)",
    ),
    "privileged row partly NaN": (
        lambda: fit(ITMLPlus, privileged=with_entry(PRIVILEGED, (3, 0, 1), np.nan)),
        "known or NaN throughout, but 1 rows have some NaN",
    ),
    "privileged infinite": (
        lambda: fit(ITMLPlus, privileged=with_entry(PRIVILEGED, (3, 0, 1), np.inf)),
        "infinity",
    ),
    "index beyond the table": (
        lambda: fit(pairs=np.array([[0, 99]]), y=[1], preprocessor=V),
        r"indices from 0 to 23.*got 0 to 99",
    ),
    "indices that are not whole": (
        lambda: fit(pairs=V[:, :2], preprocessor=V),
        "whole numbers as rows of preprocessor",
    ),
    "new pairs of another size": (lambda: fit().pair_distance(PAIRS[..., :2]), "expecting 4 features"),
    "new points of another size": (lambda: fit().transform(V[:, :2]), "expecting 4 features"),
    "calibration with one kind": (
        lambda: fit().calibrate_threshold(PAIRS[Y > 0], Y[Y > 0]),
        "similar and dissimilar pairs",
    ),
    "unknown strategy": (lambda: fit().calibrate_threshold(PAIRS, Y, "best"), "strategy must be"),
    "no rate": (lambda: fit().calibrate_threshold(PAIRS, Y, "max_tpr"), "min_rate must be"),
    "one class": (lambda: SupervisedMetric().fit(V, np.zeros(24)), "at least 2 classes"),
}


@pytest.mark.parametrize("name", CASES)
def test_bad_input_gets_one_sentence(name):
    call, message = CASES[name]
    with pytest.raises(ValueError, match=message) as raised:
        call()
    assert "\n" not in str(raised.value) or name in ("no pairs", "NaN in a pair")
