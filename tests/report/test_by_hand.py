"""Every number of a page, found again by hand: curves, tables, baselines, intervals."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import t as student
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import brier_score_loss
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from tests.report.test_study import BANK, FOLDS, THREE, TWO, VIEWS, X, made

import kernelweave as kw
from kernelweave import KernelBank, write_report
from kernelweave.geometry import BoxSimplex
from kernelweave.kernels import Gaussian
from kernelweave.learners import Hinge, SquaredHinge
from kernelweave.report import study
from kernelweave.report.baselines import AVERAGE, CONCATENATED, SINGLE, baselines
from kernelweave.report.page import _scores, _views, _weights


@pytest.fixture(scope="module")
def found():
    return study(made().fit(X, TWO), X, TWO, cv=3, n_resamples=5)


def corrected_interval(d, share):
    """Nadeau and Bengio's interval of a mean over k splits that share training rows."""
    k = len(d)
    error = np.sqrt((1.0 / k + share / (1.0 - share)) * np.var(d, ddof=1))
    reach = student.ppf(0.975, k - 1) * error
    return np.mean(d) - reach, np.mean(d) + reach


def test_differences_are_ours_minus_theirs_and_allow_for_shared_rows(found):
    own = np.array(found.contest.scores["this model"])
    for row in _scores(found)[1:]:
        d = own - np.array(found.contest.scores[row["name"]])
        assert row["gain"].difference == pytest.approx(d.mean(), abs=1e-12)
        if d.std() > 0.0:
            assert row["gain"].interval == pytest.approx(corrected_interval(d, 1 / 3), rel=0.02)
    for view, cost in found.costs.costs().items():
        d = found.costs.scores - found.costs.without[view]
        assert cost.difference == pytest.approx(d.mean(), abs=1e-12)
        if d.std() > 0.0:
            assert cost.interval == pytest.approx(corrected_interval(d, 1 / 3), rel=0.02)


def test_a_view_weighs_what_its_kernels_weigh_together(found):
    kernels = _weights(found)
    for row in _views(found):
        own = [kernel["weight"] for kernel in kernels if kernel["view"] == row["name"]]
        assert len(own) == 2
        assert row["weight"] == pytest.approx(sum(own))


def test_rows_of_the_confusion_are_the_true_classes():
    y = np.where(X[:, 0] > -0.9, "often", "rarely")
    noisy = np.where(np.arange(80) % 9 == 0, "rarely", y)
    seen = study(made().fit(X, noisy), X, noisy, cv=3, n_resamples=2)
    np.testing.assert_array_equal(
        seen.confusion.sum(axis=1), [np.sum(noisy == c) for c in ("often", "rarely")]
    )
    assert seen.confusion[0, 1] != seen.confusion[1, 0]


def test_the_path_is_scored_on_rows_left_out_of_it(found):
    walk = found.walk
    cap = float(walk.course.values[-1])
    by_hand = []
    for train, test in FOLDS.split(X, TWO):
        scaler = StandardScaler().fit(X[train])
        model = kw.MKLClassifier(BANK, geometry=BoxSimplex(theta=cap), tol=1e-6)
        model.fit(scaler.transform(X[train]), TWO[train])
        by_hand.append(model.score(scaler.transform(X[test]), TWO[test]))
        assert model.score(scaler.transform(X[train]), TWO[train]) != by_hand[-1]
    assert walk.held_out[-1] == pytest.approx(np.mean(by_hand), abs=1e-12)


def test_without_probabilities_every_fold_is_calibrated_by_the_others(found):
    D = found.held.values
    P = np.empty(len(D))
    for fold in range(3):
        own = found.held.fold == fold
        scaler = StandardScaler().fit(D[~own, None])
        machine = LogisticRegression(C=100.0).fit(scaler.transform(D[~own, None]), TWO[~own])
        P[own] = machine.predict_proba(scaler.transform(D[own, None]))[:, 1]
    assert found.calibration.brier == pytest.approx(brier_score_loss(TWO == "yes", P), rel=1e-4)
    assert not found.calibration.is_own


def test_a_models_own_probabilities_are_shown():
    model = made(probability=True)
    seen = study(clone(model).fit(X, TWO), X, TWO, cv=3, n_resamples=2)
    P = np.empty(80)
    for train, test in FOLDS.split(X, TWO):
        P[test] = clone(model).fit(X[train], TWO[train]).predict_proba(X[test])[:, 1]
    assert seen.calibration.is_own
    assert seen.calibration.brier == pytest.approx(brier_score_loss(TWO == "yes", P), rel=1e-6)


def test_with_several_classes_kernels_and_views_have_the_same_intervals():
    bank = KernelBank.per_view([Gaussian()], views=VIEWS)
    seen = study(make_pipeline(kw.MKLClassifier(bank)).fit(X, THREE), X, THREE, cv=3, n_resamples=12)
    kernels, views = _weights(seen), _views(seen)
    for kernel, view in zip(kernels, views, strict=True):
        assert kernel["spread"][:2] == pytest.approx(view["spread"], abs=1e-12)
    mean = seen.stability.resampled.mean(axis=1)
    share = (mean > 1e-6 * mean.max(axis=1, keepdims=True)).mean(axis=0)
    assert [kernel["spread"][2] for kernel in kernels] == pytest.approx(share.tolist())


def test_with_several_classes_doubt_is_a_small_lead():
    seen = study(made().fit(X, THREE), X, THREE, cv=3, n_resamples=2)
    top = np.sort(seen.held.values, axis=1)
    np.testing.assert_array_equal(seen.doubt.rows, np.argsort(top[:, -1] - top[:, -2], kind="stable")[:10])


def test_predictions_of_whole_numbers_are_not_cut_off():
    y = np.round(6.0 * X[:, 0] + 3.0 * X[:, 2]).astype(int)
    model = kw.MKLRegressor(BANK)
    seen = study(model.fit(X, y), X, y, cv=3, n_resamples=2)
    np.testing.assert_array_equal(seen.held.predictions, seen.held.values)
    assert np.abs(seen.held.predictions % 1.0).max() > 0.01
    np.testing.assert_allclose(seen.doubt.parts.decision, seen.held.predictions[seen.doubt.rows], atol=1e-9)


def test_baselines_have_the_models_loss_and_look_at_its_columns_only():
    leaking = np.column_stack([X, TWO == "yes"])
    model = made(learner=SquaredHinge(C=7.0)).fit(leaking, TWO)
    found = baselines(model, model[-1], TWO)
    for one in (found[name] for name in (AVERAGE, SINGLE, CONCATENATED)):
        inner = getattr(one, "estimator", one)
        assert inner[-1].learner == SquaredHinge(C=7.0)
    assert found[SINGLE].cv == 3
    assert len(found[SINGLE].param_grid["mklclassifier__bank"]) == 6
    joined = clone(found[CONCATENATED]).fit(leaking, TWO)
    alone = make_pipeline(
        StandardScaler(), kw.MKLClassifier(KernelBank([Gaussian()]), learner=SquaredHinge(C=7.0))
    )
    np.testing.assert_allclose(
        joined.decision_function(leaking), alone.fit(X, TWO).decision_function(X), atol=1e-3
    )


def test_baselines_of_a_search_choose_among_the_same_prices():
    grid = {"mklclassifier__learner__C": [0.1, 10.0]}
    model = GridSearchCV(made(learner=Hinge()), grid, cv=2).fit(X, TWO)
    found = baselines(model, model.best_estimator_[-1], TWO)
    for name in (AVERAGE, SINGLE, CONCATENATED):
        assert found[name].param_grid["mklclassifier__learner__C"] == [0.1, 10.0]
    own = kw.MKLClassifierCV(BANK, learner_values=(0.5, 5.0), cv=2).fit(X, TWO)
    assert baselines(own, own.best_estimator_, TWO)[AVERAGE].param_grid["learner__C"] == [0.5, 5.0]
    inside = make_pipeline(StandardScaler(), own).fit(X, TWO)
    prices = baselines(inside, inside[-1].best_estimator_, TWO)[AVERAGE].param_grid
    assert list(prices.values()) == [[0.5, 5.0]]


def test_a_page_says_when_the_bounds_have_not_met(tmp_path):
    model = kw.MKLClassifier(BANK).fit(X, TWO)
    closed = write_report(model, X, TWO, tmp_path / "a.html", cv=2, n_resamples=2).read_text()
    assert "as good as it can be" in closed
    assert "have not met" not in closed
    model.certificate_ = replace(model.certificate_, lower=0.5 * model.certificate_.lower)
    notes = ["Stopped too early."]
    still = write_report(model, X, TWO, tmp_path / "b.html", cv=2, n_resamples=2, notes=notes).read_text()
    assert "have not met" in still
    assert "as good as it can be" not in still
    assert "Stopped too early." in still
