"""What a report shows is what refitting by hand finds."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.dummy import DummyClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import brier_score_loss, confusion_matrix
from sklearn.model_selection import StratifiedKFold, cross_val_predict, cross_val_score
from sklearn.preprocessing import StandardScaler
from tests.report.samples import BANK, FOLDS, THREE, TWO, VIEWS, X, made, rng

import kernelweave as kw
from kernelweave import KernelBank, presets
from kernelweave.errors import NotOfferedError
from kernelweave.explain import contributions, leave_view_out
from kernelweave.geometry import BoxSimplex, ElasticNetBall, LpBall, RidgeSimplex, Uniform
from kernelweave.kernels import Gaussian, Linear
from kernelweave.report import gather_findings
from kernelweave.report.weight_path import path_parameter


def test_scores_are_those_of_cross_validation(found):
    scores = found.comparison.scores
    assert list(scores) == [
        "this model",
        "average kernel",
        "best single kernel",
        "concatenation",
        "most frequent class",
    ]
    for name, model in (
        ("this model", made()),
        ("average kernel", made(geometry=Uniform())),
        ("concatenation", made(KernelBank([Gaussian()]))),
        ("most frequent class", DummyClassifier()),
    ):
        np.testing.assert_allclose(scores[name], cross_val_score(model, X, TWO, cv=FOLDS))
    singles = [
        cross_val_score(made(KernelBank.per_view([kernel], views={view: columns})), X, TWO, cv=FOLDS)
        for view, columns in VIEWS.items()
        for kernel in (Linear(), Gaussian())
    ]
    assert all(score in np.transpose(singles)[k] for k, score in enumerate(scores["best single kernel"]))


def test_confusion_and_doubt_are_of_rows_the_model_had_not_seen(found):
    predicted = cross_val_predict(made(), X, TWO, cv=FOLDS)
    np.testing.assert_array_equal(found.confusion, confusion_matrix(TWO, predicted, labels=["no", "yes"]))
    values = cross_val_predict(made(), X, TWO, cv=FOLDS, method="decision_function")
    np.testing.assert_allclose(found.held.values, values, atol=1e-9)
    np.testing.assert_array_equal(found.doubt.rows, np.argsort(np.abs(values), kind="stable")[:10])
    np.testing.assert_allclose(found.doubt.parts.decision, values[found.doubt.rows], atol=1e-9)


def test_views_are_left_out_and_the_path_is_followed_as_by_hand(found):
    by_hand = leave_view_out(made(), X, TWO, cv=3)
    for view in VIEWS:
        np.testing.assert_allclose(found.costs.without[view], by_hand.without[view])
    path = found.path
    np.testing.assert_allclose(path.weights[0], 1 / 6)
    assert path.current == len(path.parameter.values) - 1
    np.testing.assert_allclose(path.weights[-1], found.weights, atol=1e-2)
    assert path.held_out[-1] == pytest.approx(np.mean(found.comparison.scores["this model"]), abs=0.03)
    assert path.held_out[path.best] == path.held_out.max()
    assert (path.gaps <= 1e-4).all()
    importance = contributions(found.model, X).by_view().importance()
    assert found.importance == importance


def test_calibration_counts_every_row_once(found):
    curve = found.calibration
    assert curve.counts.sum() == len(X)
    assert curve.event == "probability of yes"
    assert (np.diff(curve.predicted) > 0).all()
    assert (curve.predicted * curve.counts).sum() == pytest.approx((TWO == "yes").sum(), abs=4)
    assert curve.brier < 0.2


def test_with_several_classes_contributions_add_up_to_the_lead():
    found = gather_findings(made().fit(X, THREE), X, THREE, cv=3, n_resamples=2)
    top = np.sort(found.held.values, axis=1)
    np.testing.assert_allclose(
        found.doubt.parts.decision, (top[:, -1] - top[:, -2])[found.doubt.rows], atol=1e-9
    )
    assert found.confusion.sum() == 80
    assert all(" over " in words for words in found.doubt.toward)


def test_regression_shows_the_largest_errors():
    y = X[:, 0] + 0.1 * rng.normal(size=80)
    found = gather_findings(kw.MKLRegressor(BANK).fit(X, y), X, y, cv=3, n_resamples=2)
    errors = np.abs(found.held.predictions - y)
    assert errors[found.doubt.rows].min() >= np.delete(errors, found.doubt.rows).max()
    np.testing.assert_allclose(
        found.doubt.parts.decision, found.held.predictions[found.doubt.rows], atol=1e-9
    )
    assert found.metric == "R²"
    assert found.confusion is None
    assert found.comparison.scores["this model"] > 3 * [0.5]


def test_given_kernels_have_no_concatenation_and_one_view_cannot_be_left_out():
    matrices = np.stack([X[:, c] @ X[:, c].T for c in VIEWS.values()], axis=2)
    found = gather_findings(
        kw.MKLClassifier("precomputed").fit(matrices, TWO), matrices, TWO, cv=2, n_resamples=2
    )
    assert list(found.comparison.scores) == [
        "this model",
        "average kernel",
        "best single kernel",
        "most frequent class",
    ]
    assert set(found.costs.without) == {"kernel 0", "kernel 1", "kernel 2"}
    alone = gather_findings(kw.MKLClassifier(KernelBank([Linear()])).fit(X, TWO), X, TWO, cv=2, n_resamples=2)
    assert "one view only" in alone.reasons["costs"]
    assert alone.path is None


def test_what_a_method_cannot_give_has_its_reason():
    model = kw.ObscureClassifier(BANK, random_state=0).fit(X, TWO)
    found = gather_findings(model, X, TWO, cv=2, n_resamples=2)
    assert "no intervals" in found.reasons["stability"]
    assert found.path is None
    assert len(found.comparison.scores) == 5


def test_a_mistake_in_the_code_is_not_taken_for_a_refusal(found):
    with pytest.raises(TypeError, match="unsupported operand"):
        found.attempt("path", lambda: None + 1)
    with pytest.raises(AttributeError):
        found.attempt("path", lambda: None.weights)
    with pytest.raises(NotOfferedError):
        contributions(StandardScaler(), X)


def test_rows_without_a_label_are_always_trained_on_and_never_tested():
    few = np.where(np.arange(80) % 2, -1, (TWO == "yes").astype(int))
    model = kw.SemiSupervisedMKLClassifier(KernelBank.per_view([Linear()], views=VIEWS), C=1.0, max_rounds=2)
    found = gather_findings(model.fit(X, few), X, few, cv=2, n_resamples=2)
    labelled = np.flatnonzero(few >= 0)
    np.testing.assert_array_equal(found.held.tested, labelled)
    assert all(set(np.flatnonzero(few < 0)) <= set(train) for train, _ in found.held.splits)
    assert found.confusion.sum() == 40
    assert set(found.doubt.rows) <= set(labelled)
    assert len(found.comparison.scores) == 5
    folds = StratifiedKFold(2, shuffle=True, random_state=0)
    average = kw.MKLClassifier(KernelBank.per_view([Linear()], views=VIEWS), geometry=Uniform())
    expected = cross_val_score(average, X[labelled], few[labelled], cv=folds)
    np.testing.assert_allclose(found.comparison.scores["average kernel"], expected)
    costs = leave_view_out(model, X, few, cv=2)
    np.testing.assert_allclose(costs.scores, found.comparison.scores["this model"])


def test_bags_meet_the_set_kernel():
    bags = [rng.normal(size=(3, 2)) + 4.0 * (k % 2) * np.eye(3)[:, :1] for k in range(24)]
    y = np.arange(24) % 2
    found = gather_findings(kw.MultiInstanceMKLClassifier().fit(bags, y), bags, y, cv=2, n_resamples=2)
    assert len(found.comparison.scores) == 5
    average = kw.SetKernelMKLClassifier(geometry=Uniform())
    folds = StratifiedKFold(2, shuffle=True, random_state=0)
    whole = kw.Bags(np.vstack(bags), np.repeat(np.arange(24), 3))
    expected = cross_val_score(average, whole, y, cv=folds)
    np.testing.assert_allclose(found.comparison.scores["average kernel"], expected)
    assert "not a sum over kernels" in found.reasons["doubt"]


@pytest.mark.parametrize(
    ("model", "param", "current"),
    [
        (presets.simple_mkl(BANK), "geometry__theta", 1.0),
        (kw.MKLClassifier(BANK, geometry=BoxSimplex(nu=0.5)), "geometry__theta", 1 / 3),
        (presets.average_kernel(BANK), "geometry__theta", 1 / 6),
        (kw.MKLClassifier(BANK, geometry=RidgeSimplex(theta=2.0)), "geometry__theta", 2.0),
        (kw.MKLClassifier(BANK, geometry=LpBall(2.0)), "geometry__p", 2.0),
        (kw.MKLClassifier(BANK, geometry=ElasticNetBall(v=0.5)), "geometry__v", 0.5),
        (kw.FisherMKLClassifier(BANK), "p", 2.0),
    ],
)
def test_the_parameter_of_the_path_is_that_of_the_geometry(model, param, current):
    parameter = path_parameter(model.fit(X, TWO))
    assert (parameter.name, parameter.current) == (param, pytest.approx(current))
    parameter.model.set_params(**{param: parameter.values[0]}).fit(X[:30], TWO[:30])


@pytest.mark.parametrize("model", [kw.OneClassMKL(BANK), StandardScaler()])
def test_other_models_are_refused_in_one_sentence(model):
    with pytest.raises(TypeError, match="A report"):
        gather_findings(model.fit(X), X, TWO)


def test_rows_of_the_confusion_are_the_true_classes():
    y = np.where(X[:, 0] > -0.9, "often", "rarely")
    noisy = np.where(np.arange(80) % 9 == 0, "rarely", y)
    seen = gather_findings(made().fit(X, noisy), X, noisy, cv=3, n_resamples=2)
    np.testing.assert_array_equal(
        seen.confusion.sum(axis=1), [np.sum(noisy == c) for c in ("often", "rarely")]
    )
    assert seen.confusion[0, 1] != seen.confusion[1, 0]


def test_the_path_is_scored_on_rows_left_out_of_it(found):
    path = found.path
    cap = float(path.parameter.values[-1])
    by_hand = []
    for train, test in FOLDS.split(X, TWO):
        scaler = StandardScaler().fit(X[train])
        model = kw.MKLClassifier(BANK, geometry=BoxSimplex(theta=cap), tol=1e-6)
        model.fit(scaler.transform(X[train]), TWO[train])
        by_hand.append(model.score(scaler.transform(X[test]), TWO[test]))
        assert model.score(scaler.transform(X[train]), TWO[train]) != by_hand[-1]
    assert path.held_out[-1] == pytest.approx(np.mean(by_hand), abs=1e-12)


def test_without_probabilities_every_fold_is_calibrated_by_the_others(found):
    D = found.held.values
    P = np.empty(len(D))
    for fold in range(3):
        own = found.held.fold == fold
        scaler = StandardScaler().fit(D[~own, None])
        logistic = LogisticRegression(C=100.0).fit(scaler.transform(D[~own, None]), TWO[~own])
        P[own] = logistic.predict_proba(scaler.transform(D[own, None]))[:, 1]
    assert found.calibration.brier == pytest.approx(brier_score_loss(TWO == "yes", P), rel=1e-4)
    assert not found.calibration.is_own


def test_a_models_own_probabilities_are_shown():
    model = made(probability=True)
    seen = gather_findings(clone(model).fit(X, TWO), X, TWO, cv=3, n_resamples=2)
    P = np.empty(80)
    for train, test in FOLDS.split(X, TWO):
        P[test] = clone(model).fit(X[train], TWO[train]).predict_proba(X[test])[:, 1]
    assert seen.calibration.is_own
    assert seen.calibration.brier == pytest.approx(brier_score_loss(TWO == "yes", P), rel=1e-6)


def test_with_several_classes_doubt_is_a_small_lead():
    seen = gather_findings(made().fit(X, THREE), X, THREE, cv=3, n_resamples=2)
    top = np.sort(seen.held.values, axis=1)
    np.testing.assert_array_equal(seen.doubt.rows, np.argsort(top[:, -1] - top[:, -2], kind="stable")[:10])


def test_predictions_of_whole_numbers_are_not_cut_off():
    y = np.round(6.0 * X[:, 0] + 3.0 * X[:, 2]).astype(int)
    model = kw.MKLRegressor(BANK)
    seen = gather_findings(model.fit(X, y), X, y, cv=3, n_resamples=2)
    np.testing.assert_array_equal(seen.held.predictions, seen.held.values)
    assert np.abs(seen.held.predictions % 1.0).max() > 0.01
    np.testing.assert_allclose(seen.doubt.parts.decision, seen.held.predictions[seen.doubt.rows], atol=1e-9)
