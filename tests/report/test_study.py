"""What a report tells is what refitting by hand finds."""

import numpy as np
import pytest
from sklearn.dummy import DummyClassifier
from sklearn.metrics import confusion_matrix
from sklearn.model_selection import StratifiedKFold, cross_val_predict, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import kernelweave as kw
from kernelweave import KernelBank, presets
from kernelweave.errors import NotOfferedError
from kernelweave.explain import contributions, leave_view_out
from kernelweave.geometry import BoxSimplex, ElasticNetBall, LpBall, RidgeSimplex, Uniform
from kernelweave.kernels import Gaussian, Linear
from kernelweave.report import study
from kernelweave.report.walk import course_of

rng = np.random.default_rng(0)
X = rng.normal(size=(80, 6))
TWO = np.where(X[:, 0] + 0.5 * X[:, 2] + 0.3 * rng.normal(size=80) > 0, "yes", "no")
THREE = np.digitize(X[:, 0] + X[:, 2], [-0.7, 0.7])
VIEWS = {"a": [0, 1], "b": [2, 3], "c": [4, 5]}
BANK = KernelBank.per_view([Linear(), Gaussian()], views=VIEWS)
FOLDS = StratifiedKFold(3, shuffle=True, random_state=0)


def made(bank=BANK, **parts):
    return make_pipeline(StandardScaler(), kw.MKLClassifier(bank, **parts))


@pytest.fixture(scope="module")
def found():
    return study(made().fit(X, TWO), X, TWO, cv=3, n_resamples=5)


def test_scores_are_those_of_cross_validation(found):
    scores = found.contest.scores
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
    said = cross_val_predict(made(), X, TWO, cv=FOLDS)
    np.testing.assert_array_equal(found.confusion, confusion_matrix(TWO, said, labels=["no", "yes"]))
    values = cross_val_predict(made(), X, TWO, cv=FOLDS, method="decision_function")
    np.testing.assert_allclose(found.held.values, values, atol=1e-9)
    np.testing.assert_array_equal(found.doubt.rows, np.argsort(np.abs(values), kind="stable")[:10])
    np.testing.assert_allclose(found.doubt.parts.decision, values[found.doubt.rows], atol=1e-9)


def test_views_are_left_out_and_weights_walked_as_by_hand(found):
    by_hand = leave_view_out(made(), X, TWO, cv=3)
    for view in VIEWS:
        np.testing.assert_allclose(found.costs.without[view], by_hand.without[view])
    walk = found.walk
    np.testing.assert_allclose(walk.weights[0], 1 / 6)
    assert walk.here == len(walk.course.values) - 1
    np.testing.assert_allclose(walk.weights[-1], found.weights, atol=1e-2)
    assert walk.held_out[-1] == pytest.approx(np.mean(found.contest.scores["this model"]), abs=0.03)
    assert walk.held_out[walk.best] == walk.held_out.max()
    assert (walk.gaps <= 1e-4).all()
    importance = contributions(found.model, X).by_view().importance()
    assert found.importance == importance


def test_calibration_counts_every_row_once(found):
    curve = found.calibration
    assert curve.counts.sum() == len(X)
    assert curve.of == "probability of yes"
    assert (np.diff(curve.said) > 0).all()
    assert (curve.said * curve.counts).sum() == pytest.approx((TWO == "yes").sum(), abs=4)
    assert curve.brier < 0.2


def test_with_several_classes_contributions_add_up_to_the_lead():
    found = study(made().fit(X, THREE), X, THREE, cv=3, n_resamples=2)
    top = np.sort(found.held.values, axis=1)
    np.testing.assert_allclose(
        found.doubt.parts.decision, (top[:, -1] - top[:, -2])[found.doubt.rows], atol=1e-9
    )
    assert found.confusion.sum() == 80
    assert all(" over " in words for words in found.doubt.against)


def test_regression_shows_the_largest_errors():
    y = X[:, 0] + 0.1 * rng.normal(size=80)
    found = study(kw.MKLRegressor(BANK).fit(X, y), X, y, cv=3, n_resamples=2)
    errors = np.abs(found.held.predictions - y)
    assert errors[found.doubt.rows].min() >= np.delete(errors, found.doubt.rows).max()
    np.testing.assert_allclose(
        found.doubt.parts.decision, found.held.predictions[found.doubt.rows], atol=1e-9
    )
    assert found.metric == "R²"
    assert found.confusion is None
    assert found.contest.scores["this model"] > 3 * [0.5]


def test_given_kernels_have_no_concatenation_and_one_view_cannot_be_left_out():
    matrices = np.stack([X[:, c] @ X[:, c].T for c in VIEWS.values()], axis=2)
    found = study(kw.MKLClassifier("precomputed").fit(matrices, TWO), matrices, TWO, cv=2, n_resamples=2)
    assert list(found.contest.scores) == [
        "this model",
        "average kernel",
        "best single kernel",
        "most frequent class",
    ]
    assert set(found.costs.without) == {"kernel 0", "kernel 1", "kernel 2"}
    alone = study(kw.MKLClassifier(KernelBank([Linear()])).fit(X, TWO), X, TWO, cv=2, n_resamples=2)
    assert "one view only" in alone.reasons["costs"]
    assert alone.walk is None


def test_what_a_method_cannot_give_has_its_reason():
    model = kw.ObscureClassifier(BANK, random_state=0).fit(X, TWO)
    found = study(model, X, TWO, cv=2, n_resamples=2)
    assert "no intervals" in found.reasons["stability"]
    assert found.walk is None
    assert len(found.contest.scores) == 5


def test_a_mistake_in_the_code_is_not_taken_for_a_refusal(found):
    with pytest.raises(TypeError, match="unsupported operand"):
        found.attempt("walk", lambda: None + 1)
    with pytest.raises(AttributeError):
        found.attempt("walk", lambda: None.weights)
    with pytest.raises(NotOfferedError):
        contributions(StandardScaler(), X)


def test_rows_without_a_label_are_never_tested():
    few = np.where(np.arange(80) % 2, -1, (TWO == "yes").astype(int))
    model = kw.SemiSupervisedMKLClassifier(KernelBank.per_view([Linear()], views=VIEWS), C=1.0, max_rounds=2)
    found = study(model.fit(X, few), X, few, cv=2, n_resamples=2)
    told = np.flatnonzero(few >= 0)
    np.testing.assert_array_equal(found.held.tested, told)
    assert found.confusion.sum() == 40
    assert set(found.doubt.rows) <= set(told)
    assert len(found.contest.scores) == 5
    folds = StratifiedKFold(2, shuffle=True, random_state=0)
    average = kw.MKLClassifier(KernelBank.per_view([Linear()], views=VIEWS), geometry=Uniform())
    expected = cross_val_score(average, X[told], few[told], cv=folds)
    np.testing.assert_allclose(found.contest.scores["average kernel"], expected)
    costs = leave_view_out(model, X, few, cv=2)
    np.testing.assert_allclose(costs.scores, found.contest.scores["this model"])


def test_bags_meet_the_set_kernel():
    bags = [rng.normal(size=(3, 2)) + 4.0 * (k % 2) * np.eye(3)[:, :1] for k in range(24)]
    y = np.arange(24) % 2
    found = study(kw.MultiInstanceMKLClassifier().fit(bags, y), bags, y, cv=2, n_resamples=2)
    assert len(found.contest.scores) == 5
    average = kw.SetKernelMKLClassifier(geometry=Uniform())
    folds = StratifiedKFold(2, shuffle=True, random_state=0)
    whole = kw.Bags(np.vstack(bags), np.repeat(np.arange(24), 3))
    expected = cross_val_score(average, whole, y, cv=folds)
    np.testing.assert_allclose(found.contest.scores["average kernel"], expected)
    assert "not a sum over kernels" in found.reasons["doubt"]


@pytest.mark.parametrize(
    ("model", "param", "now"),
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
def test_the_parameter_walked_is_that_of_the_geometry(model, param, now):
    course = course_of(model.fit(X, TWO))
    assert (course.param, course.now) == (param, pytest.approx(now))
    course.model.set_params(**{param: course.values[0]}).fit(X[:30], TWO[:30])


@pytest.mark.parametrize("model", [kw.OneClassMKL(BANK), StandardScaler()])
def test_other_models_are_refused_in_one_sentence(model):
    with pytest.raises(TypeError, match="A report"):
        study(model.fit(X), X, TWO)
