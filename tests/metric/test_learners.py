"""ITML, ITML+ and ITML-S: what they learn."""

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning
from tests.metric.metrics import (
    BOUNDS,
    LEARNERS,
    PAIRS,
    PRIVILEGED,
    V,
    Y,
    as_pairs,
    assert_same,
    bounds,
    fit,
    matrix,
    random_pairs,
)
from tests.reference import metrics as oracle

from kernelweave import ITML, ITMLPlus, ITMLSelect
from kernelweave.errors import InfeasibleError
from kernelweave.metric import LogDetProblem

OUTLIERS = np.arange(len(Y)) % 4 == 1  # pairs far out, in both spaces, whose weight will be zero
FAR = PAIRS + 30.0 * OUTLIERS[:, None, None] * np.random.default_rng(0).normal(size=PAIRS.shape)
FAR_HIDDEN = PRIVILEGED + 9.0 * OUTLIERS[:, None, None] * np.random.default_rng(1).normal(
    size=PRIVILEGED.shape
)
USED = ~OUTLIERS


def test_itml_learns_the_conic_optimum():
    optimum, M = oracle.itml(V, Y, 1.0, *BOUNDS)
    model = fit(tol=1e-9)
    assert_same(model.get_mahalanobis_matrix(), M)
    assert model.certificate_.lower - 1e-6 <= optimum <= model.certificate_.upper + 1e-6
    assert model.duality_gap_ == model.certificate_.relative_gap <= 1e-9


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


def test_a_weight_of_two_is_a_pair_twice():
    weight = np.where(np.arange(len(Y)) < 6, 2.0, 1.0)
    again = np.r_[np.arange(len(Y)), np.arange(6)]
    for cls in (ITML, ITMLPlus):
        model = cls(bounds=BOUNDS, tol=1e-9, random_state=0)
        model.fit(PAIRS, Y, privileged=PRIVILEGED, sample_weight=weight)
        twice = fit(cls, PAIRS[again], Y[again], PRIVILEGED[again], tol=1e-9)
        assert_same(model.get_mahalanobis_matrix(), twice.get_mahalanobis_matrix())


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
    assert thesis.duality_gap_ > 0.01 > 1e-6 > hard.duality_gap_


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


def test_progress_is_shown_on_request(capsys):
    fit(verbose=2)
    assert "gap" in capsys.readouterr().out


def test_stopping_early_warns_with_the_gap():
    with pytest.warns(ConvergenceWarning, match=r"relative duality gap of .* max_iter=1 sweeps"):
        assert fit(max_iter=1).n_iter_ == 1


def test_ctrl_c_keeps_the_best_metric_so_far(monkeypatch):
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
    assert model.n_iter_ == 2  # sweeps that count


@pytest.mark.parametrize("sign", [1, -1])
def test_pairs_of_one_kind_work(sign):
    model = fit(y=np.full(len(Y), sign))
    moved = np.linalg.slogdet(model.get_mahalanobis_matrix())[1]
    assert moved * sign < 0.0  # similar pairs pull together, dissimilar ones push apart
    assert model.threshold_ == pytest.approx(np.sqrt(BOUNDS).mean())
    assert model.duality_gap_ <= 1e-6


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
    assert not model.multipliers_[OUTLIERS].any()
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


def test_selection_weighs_the_pairs_in_both_stages():
    weight = np.where(np.arange(len(Y)) % 3 == 0, 6.0, 0.5)
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


@pytest.mark.parametrize("drop", [0.97, 0.99])
def test_a_share_that_drops_every_pair_is_named(drop):
    with pytest.raises(
        ValueError, match=f"drop={drop} leaves none of the 24 pairs to learn from; lower drop"
    ):
        ITMLSelect(drop=drop, random_state=0).fit(PAIRS, Y, privileged=PRIVILEGED)
