"""Metric learners from pairs: what they promise to users."""

import pickle

import numpy as np
import pandas as pd
import pytest
from sklearn import config_context
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.model_selection import GridSearchCV, cross_val_score
from tests.metric.metrics import as_pairs, bounds, random_pairs
from tests.reference import metrics as oracle

from kernelweave import ITML, ITMLPlus, ITMLSelect, SupervisedMetric
from kernelweave.errors import InfeasibleError

V, W, Y = random_pairs(1)
PAIRS, PRIVILEGED = as_pairs(V), as_pairs(W)
BOUNDS = bounds(V)
LEARNERS = [ITML, ITMLPlus, ITMLSelect]


def fit(cls=ITML, pairs=PAIRS, y=Y, privileged=None, **params):
    return cls(random_state=0, **({"bounds": BOUNDS} | params)).fit(pairs, y, privileged=privileged)


def matrix(*args, **params):
    return fit(*args, **params).get_mahalanobis_matrix()


def assert_same(A, B, share=1e-4):
    np.testing.assert_allclose(A, B, atol=share * np.abs(B).max())


def test_itml_learns_the_conic_optimum():
    optimum, M = oracle.itml(V, Y, 1.0, *BOUNDS)
    model = fit(tol=1e-9)
    assert_same(model.get_mahalanobis_matrix(), M)
    assert model.certificate_.lower - 1e-6 <= optimum <= model.certificate_.upper + 1e-6
    assert model.duality_gap_ == model.certificate_.relative_gap <= 1e-9


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


def test_without_privileged_features_itml_plus_is_itml():
    np.testing.assert_array_equal(matrix(ITMLPlus), matrix(ITML))


@pytest.mark.parametrize("cls", LEARNERS)
def test_the_order_of_the_pairs_does_not_change_the_result(cls, rng):
    order = rng.permutation(len(Y))
    first = cls(random_state=0, tol=1e-9).fit(PAIRS, Y, privileged=PRIVILEGED)
    second = cls(random_state=1, tol=1e-9).fit(PAIRS[order], Y[order], privileged=PRIVILEGED[order])
    assert first.bounds_ == pytest.approx(second.bounds_)
    assert_same(first.get_mahalanobis_matrix(), second.get_mahalanobis_matrix())
    np.testing.assert_allclose(first.multipliers_[order], second.multipliers_, atol=1e-2)


def test_the_two_points_of_a_pair_may_be_swapped():
    assert_same(matrix(pairs=PAIRS[:, ::-1]), matrix(), 1e-9)


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


def test_a_weight_of_two_is_a_pair_twice():
    weight = np.where(np.arange(len(Y)) < 6, 2.0, 1.0)
    again = np.r_[np.arange(len(Y)), np.arange(6)]
    for cls in (ITML, ITMLPlus):
        model = cls(bounds=BOUNDS, tol=1e-9, random_state=0)
        model.fit(PAIRS, Y, privileged=PRIVILEGED, sample_weight=weight)
        twice = fit(cls, PAIRS[again], Y[again], PRIVILEGED[again], tol=1e-9)
        assert_same(model.get_mahalanobis_matrix(), twice.get_mahalanobis_matrix())


def test_a_weight_of_zero_is_no_pair():
    weight = (np.arange(len(Y)) >= 6).astype(float)
    model = ITML(bounds=BOUNDS, random_state=0).fit(PAIRS, Y, sample_weight=weight)
    assert_same(model.get_mahalanobis_matrix(), matrix(pairs=PAIRS[6:], y=Y[6:]), 1e-3)
    assert not model.multipliers_[:6].any()


def test_default_bounds_are_percentiles_of_squared_distances():
    X = np.unique(PAIRS.reshape(-1, 4), axis=0)
    D = ((X[:, None] - X) ** 2).sum(axis=2)[np.triu_indices(len(X), 1)]
    assert ITML().fit(PAIRS, Y).bounds_ == pytest.approx(tuple(np.percentile(D, [3, 97])))


def test_the_covariance_prior_does_not_depend_on_the_units(rng):
    A = rng.normal(size=(4, 4))
    M = ITML(prior="covariance", random_state=0).fit(PAIRS, Y).get_mahalanobis_matrix()
    moved = ITML(prior="covariance", random_state=0).fit(PAIRS @ A, Y).get_mahalanobis_matrix()
    assert_same(A @ moved @ A.T, M, 1e-3)


def test_a_matched_privileged_prior_does_not_depend_on_the_scale_of_the_features():
    near, far = (fit(ITMLPlus, privileged=f * PRIVILEGED, privileged_prior="matched") for f in (1.0, 50.0))
    assert_same(near.get_mahalanobis_matrix(), far.get_mahalanobis_matrix(), 1e-3)


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
    from sklearn.metrics import fbeta_score

    model = fit()
    D = model.pair_distance(PAIRS)
    predicted = model.calibrate_threshold(PAIRS, Y, "f_beta", beta=2.0).predict(PAIRS)
    best = max(fbeta_score(Y, np.where(t >= D, 1, -1), beta=2.0) for t in D)
    assert fbeta_score(Y, predicted, beta=2.0) == pytest.approx(best)
    assert (model.set_threshold(0.0).predict(PAIRS) == -1).all()


def test_the_hard_form_says_when_there_is_no_solution():
    V, W, y = random_pairs(0, n=60, d=3, g=2)
    with pytest.raises(InfeasibleError, match=r"kappa=None.*has no solution"):
        fit(ITMLPlus, as_pairs(V), y, as_pairs(W), kappa=None)


def test_the_steps_of_the_thesis_are_there_by_name():
    V, W, y = random_pairs(4, n=8)
    given = dict(pairs=as_pairs(V), y=y, privileged=as_pairs(W), bounds=bounds(V), kappa=None)
    hard = fit(ITMLPlus, **given)
    with pytest.warns(ConvergenceWarning, match="uncorrected steps of the thesis"):
        thesis = fit(ITMLPlus, **given, projections="uncorrected")
    assert thesis.certificate_.lower <= hard.certificate_.upper
    assert thesis.objective_ > hard.objective_
    assert thesis.duality_gap_ > 0.01 > 1e-7 > hard.duality_gap_


def test_selection_drops_the_pairs_that_privileged_features_contradict():
    model = fit(ITMLSelect, privileged=PRIVILEGED, drop=0.25)
    far = model.selector_.pair_distance(PRIVILEGED)
    for sign in (1, -1):
        dropped, kept = far[(sign == Y) & ~model.kept_], far[(sign == Y) & model.kept_]
        assert len(dropped) == round(0.25 * (sign == Y).sum())
        assert (sign * dropped).min() >= (sign * kept).max()
    assert_same(model.get_mahalanobis_matrix(), matrix(pairs=PAIRS[model.kept_], y=Y[model.kept_]), 1e-3)


def test_selection_without_dropping_is_itml():
    np.testing.assert_array_equal(matrix(ITMLSelect, privileged=PRIVILEGED, drop=0.0), matrix())
    np.testing.assert_array_equal(matrix(ITMLSelect), matrix())


@pytest.mark.parametrize("cls", LEARNERS)
def test_learners_clone_pickle_and_repeat(cls):
    model = fit(cls, privileged=PRIVILEGED)
    again = clone(model).fit(PAIRS, Y, privileged=PRIVILEGED)
    restored = pickle.loads(pickle.dumps(model))
    for other in (again, restored):
        np.testing.assert_array_equal(other.get_mahalanobis_matrix(), model.get_mahalanobis_matrix())


def test_scikit_learn_splits_and_searches_pairs():
    assert len(cross_val_score(ITML(random_state=0), PAIRS, Y, cv=3)) == 3
    search = GridSearchCV(ITML(random_state=0), {"gamma": [0.1, 1.0]}, cv=3).fit(PAIRS, Y)
    assert search.best_params_["gamma"] in (0.1, 1.0)


def test_privileged_features_are_routed():
    with config_context(enable_metadata_routing=True):
        model = ITMLPlus(random_state=0).set_fit_request(privileged=True)
        scores = cross_val_score(model, PAIRS, Y, cv=3, params={"privileged": PRIVILEGED})
    assert np.isfinite(scores).all()


def test_progress_is_shown_on_request(capsys):
    fit(verbose=2)
    assert "gap" in capsys.readouterr().out


def test_stopping_early_warns_with_the_gap():
    with pytest.warns(ConvergenceWarning, match=r"relative duality gap of .* max_iter=1 sweeps"):
        assert fit(max_iter=1).n_iter_ == 1


def test_ctrl_c_keeps_the_best_metric_so_far(monkeypatch):
    from kernelweave.metric import LogDetProblem

    sweep, calls = LogDetProblem.sweep, []

    def interrupted(self, *args):
        calls.append(1)
        if len(calls) == 3:
            raise KeyboardInterrupt
        return sweep(self, *args)

    monkeypatch.setattr(LogDetProblem, "sweep", interrupted)
    with pytest.warns(ConvergenceWarning, match="interrupted"):
        model = fit()
    assert np.isfinite(model.certificate_.upper)


def with_entry(array, place, value):
    out = array.copy()
    out[place] = value
    return out


EQUAL = with_entry(PAIRS, np.flatnonzero(Y < 0)[0], 1.0)
ALONE = np.ones((3, 2, 4))


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


@pytest.mark.parametrize("sign", [1, -1])
def test_pairs_of_one_kind_work(sign):
    model = fit(y=np.full(len(Y), sign))
    moved = np.linalg.slogdet(model.get_mahalanobis_matrix())[1]
    assert moved * sign < 0.0  # similar pairs pull together, dissimilar ones push apart
    assert model.threshold_ == pytest.approx(np.sqrt(BOUNDS).mean())
    assert model.duality_gap_ <= 1e-7


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


@pytest.mark.filterwarnings("ignore:.*two equal points")
def test_only_hopeless_pairs_are_an_error():
    with pytest.raises(ValueError, match="No pair is left"):
        fit(pairs=ALONE, y=-np.ones(3))


def test_an_unfitted_metric_says_so():
    with pytest.raises(NotFittedError):
        ITML().pair_distance(PAIRS)
