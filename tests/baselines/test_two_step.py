"""Classifiers that weigh the kernels first: what all of them do, by table."""

import pickle

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.datasets import load_wine
from sklearn.model_selection import GridSearchCV, KFold, cross_val_score
from sklearn.preprocessing import scale
from sklearn.utils.estimator_checks import parametrize_with_checks
from tests.estimators.banks import as_views, per_view
from tests.reference.conic import conic_optimum
from tests.reference.problems import random_problem

from kernelweave import (
    AlignedMKLClassifier,
    EasyMKLClassifier,
    FHeuristicClassifier,
    KernelBank,
    LPBetaClassifier,
    PWMKClassifier,
)
from kernelweave.baselines.two_step import BaselineClassifier, HoldsSamplesOut, TwoStepClassifier
from kernelweave.kernels import Gaussian, Linear
from kernelweave.learners import Hinge, MarginDistribution, NuHinge, SquaredHinge

MODELS = [
    AlignedMKLClassifier(),
    AlignedMKLClassifier(criterion="align"),
    AlignedMKLClassifier(criterion="kta"),
    EasyMKLClassifier(),
    FHeuristicClassifier(),
    PWMKClassifier(cv=3),
    LPBetaClassifier(cv=3),
]
every = pytest.mark.parametrize("model", MODELS, ids=str)
ON_ONE_KERNEL = [model for model in MODELS if not isinstance(model, LPBetaClassifier)]


@pytest.fixture(scope="module")
def wine():
    X, y = load_wine(return_X_y=True)
    return scale(X), np.array(["barolo", "grignolino", "barbera"])[y]


def three_groups():
    views = {"acids": [1, 2, 3], "colour": [9, 10, 11], "rest": [0, 4, 5, 6, 7, 8, 12]}
    return KernelBank.per_view([Gaussian()], views=views)


def with_bank(model, bank, **params):
    return clone(model).set_params(bank=bank, **params)


def subclasses(cls):
    return {cls} | {d for c in cls.__subclasses__() for d in subclasses(c)}


def test_every_class_has_a_row():
    ours = {c for c in subclasses(BaselineClassifier) if c.__module__.startswith("kernelweave.")}
    assert ours - {BaselineClassifier, HoldsSamplesOut, TwoStepClassifier} == {
        type(model) for model in MODELS
    }


@every
def test_words_as_labels_frames_and_views(cancer, model):
    X, y = cancer
    words = np.where(y == 1, "benign", "malignant")
    fitted = with_bank(model, per_view()).fit(X, words)
    assert fitted.score(X, words) > 0.9
    assert set(fitted.predict(X)) <= {"benign", "malignant"}
    assert fitted.kernel_weights_.shape == (6,)
    assert fitted.kernel_weights_.min() >= 0.0
    assert len(fitted.kernel_names_) == 6
    views = with_bank(model, KernelBank.per_view([Gaussian(), Linear()])).fit(as_views(X), words)
    assert views.kernel_names_ == fitted.kernel_names_
    np.testing.assert_allclose(views.kernel_weights_, fitted.kernel_weights_, atol=1e-9)
    np.testing.assert_allclose(views.decision_function(as_views(X)), fitted.decision_function(X), atol=1e-6)


@every
def test_the_combined_kernel_is_the_weighted_sum(cancer, model):
    X, y = cancer
    fitted = with_bank(model, per_view()).fit(X, y)
    grams = list(per_view().fit(X).grams())
    expected = sum(e * K for e, K in zip(fitted.kernel_weights_, grams, strict=True))
    np.testing.assert_allclose(fitted.combined_kernel(X), expected, atol=1e-10)
    np.testing.assert_allclose(fitted.combined_kernel(X[:3], X[5:9]), expected[:3, 5:9], atol=1e-10)


@every
def test_given_kernels_as_a_list_and_as_one_array(model):
    Ks, y = random_problem(0, n=60, M=4)
    stacked = np.stack(Ks, axis=2)
    from_list = with_bank(model, "precomputed").fit(Ks, y)
    from_array = with_bank(model, "precomputed").fit(stacked, y)
    np.testing.assert_allclose(from_list.kernel_weights_, from_array.kernel_weights_, atol=1e-12)
    np.testing.assert_allclose(
        from_list.decision_function([K[:7] for K in Ks]), from_array.decision_function(stacked[:7]), atol=1e-3
    )
    scores = cross_val_score(with_bank(model, "precomputed"), stacked, y, cv=3)
    assert scores.mean() > 0.5


@every
def test_several_classes_with_shared_weights_or_weights_for_each(wine, model):
    X, y = wine
    shared = with_bank(model, three_groups()).fit(X, y)
    each = with_bank(model, three_groups(), multiclass="per_class").fit(X, y)
    assert shared.kernel_weights_.shape == (3,)
    assert each.kernel_weights_.shape == (3, 3)
    for fitted in (shared, each):
        assert fitted.score(X, y) > 0.95
        assert fitted.decision_function(X).shape == (len(y), 3)
        assert fitted.combined_kernel(X[:4]).shape == (4, len(y))


@pytest.mark.parametrize("model", [m for m in ON_ONE_KERNEL if not isinstance(m, EasyMKLClassifier)], ids=str)
def test_weights_for_each_class_are_those_of_the_class_against_the_rest(wine, model):
    X, y = wine
    each = with_bank(model, three_groups(), multiclass="per_class").fit(X, y)
    if isinstance(model, PWMKClassifier):  # its folds depend on all classes: give it the same ones
        each.set_params(cv=KFold(4, shuffle=True, random_state=0)).fit(X, y)
    for c, label in enumerate(each.classes_):
        alone = clone(each).fit(X, y == label)
        np.testing.assert_allclose(each.kernel_weights_[c], alone.kernel_weights_, atol=1e-8)
        np.testing.assert_allclose(each.decision_function(X)[:, c], alone.decision_function(X), atol=1e-2)


@every
def test_fits_survive_pickling_and_repeat_exactly(cancer, model):
    X, y = cancer
    fitted = with_bank(model, per_view()).fit(X, y)
    again = clone(fitted).fit(X, y)
    back = pickle.loads(pickle.dumps(fitted))
    np.testing.assert_array_equal(again.decision_function(X), fitted.decision_function(X))
    np.testing.assert_array_equal(back.decision_function(X), fitted.decision_function(X))


@every
def test_threads_change_nothing_but_the_way(wine, model):
    X, y = wine
    one, two = (with_bank(model, three_groups(), n_jobs=jobs).fit(X, y) for jobs in (1, 2))
    np.testing.assert_allclose(one.kernel_weights_, two.kernel_weights_, atol=1e-9)
    np.testing.assert_allclose(one.decision_function(X), two.decision_function(X), atol=1e-6)


@every
def test_probabilities_when_asked_for(cancer, model):
    X, y = cancer
    fitted = with_bank(model, per_view(), probability=True).fit(X, y)
    chances = fitted.predict_proba(X)
    np.testing.assert_allclose(chances.sum(axis=1), 1.0)
    assert ((chances[:, 1] > 0.5) == (y == 1)).mean() > 0.9
    assert not hasattr(clone(model), "predict_proba")


@every
def test_a_bar_shows_the_way(cancer, model, capsys):
    X, y = cancer
    with_bank(model, per_view(), verbose=2).fit(X, y)
    shown = capsys.readouterr().out
    assert "kernels alone" in shown or "gap" in shown


@every
def test_a_search_reaches_the_learner(cancer, model):
    X, y = cancer
    grid = {"learner": [Hinge(C=0.1), SquaredHinge(), NuHinge(nu=0.3), MarginDistribution(lam=0.3)]}
    search = GridSearchCV(with_bank(model, per_view()), grid, cv=2).fit(X, y)
    assert search.best_score_ > 0.85
    deeper = with_bank(model, per_view(), learner=Hinge()).set_params(learner__C=5.0)
    assert deeper.learner == Hinge(C=5.0)


@pytest.mark.parametrize("model", ON_ONE_KERNEL, ids=str)
@pytest.mark.parametrize(
    ("learner", "oracle"),
    [(Hinge(C=2.0), ("hinge", 2.0)), (MarginDistribution(lam=0.5), ("distribution", 1.0))],
)
def test_the_certificate_encloses_the_optimum_for_the_learnt_weights(model, learner, oracle):
    Ks, y = random_problem(1, n=60, M=5)
    fitted = with_bank(model, "precomputed", learner=learner, tol=1e-6).fit(Ks, y)
    optimum = conic_optimum(Ks, y, oracle, ("point", fitted.kernel_weights_)).value
    accuracy = 1e-7 * abs(optimum)
    assert fitted.certificate_.lower - accuracy <= optimum <= fitted.certificate_.upper + accuracy
    assert fitted.duality_gap_ <= 1e-6


@every
def test_weights_of_samples_and_classes_count(cancer, model):
    X, y = cancer
    heavy = np.where(np.arange(len(y)) < 40, 5.0, 1.0)
    plain = with_bank(model, per_view()).fit(X, y)
    weighted = with_bank(model, per_view()).fit(X, y, sample_weight=heavy)
    balanced = with_bank(model, per_view(), class_weight="balanced").fit(X, y)
    for other in (weighted, balanced):
        assert np.abs(other.decision_function(X) - plain.decision_function(X)).max() > 1e-3


@every
@pytest.mark.parametrize(
    ("params", "error", "message"),
    [
        ({"tol": 0.0}, ValueError, "tol must be a number between 0 and 1; got 0.0"),
        ({"multiclass": "ovo"}, ValueError, "multiclass must be 'shared' or 'per_class'; got 'ovo'"),
        ({"learner": "svm"}, TypeError, "learner must be a Learner such as"),
        ({"bank": "given"}, ValueError, "bank must be a KernelBank or 'precomputed'; got the string 'given'"),
    ],
)
def test_wrong_parameters_are_named(cancer, model, params, error, message):
    X, y = cancer
    with pytest.raises(error, match=message):
        with_bank(model, per_view()).set_params(**params).fit(X, y)


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (
            AlignedMKLClassifier(criterion="aligned"),
            "criterion must be 'alignf' or 'align' or 'kta'; got 'ali",
        ),
        (EasyMKLClassifier(lam=1.0), "lam must be a number from 0 to below 1; got 1.0"),
        (PWMKClassifier(delta=1.5), "delta must be a number from 0 to 1; got 1.5"),
        (PWMKClassifier(cv=1), "cv must be at least 2 folds, a splitter or pairs of indices; got 1"),
        (LPBetaClassifier(nu=0.0), "nu must be a number above 0 and at most 1; got 0.0"),
        (LPBetaClassifier(cv=[([0, 1], [2])]), "hold every sample out, and all equally often; 159 of 160"),
        (LPBetaClassifier(cv=KFold(2)), "Fold 0 trains on 1 of 2 classes"),
    ],
    ids=str,
)
def test_wrong_parameters_of_their_own_are_named(cancer, model, message):
    X, y = cancer
    if "trains on" in message:
        y = pd.Series(np.arange(len(y)) < 80)
    with pytest.raises(ValueError, match=message):
        with_bank(model, per_view()).fit(X, y)


def test_a_class_of_one_sample_cannot_be_held_out(cancer):
    X, _ = cancer
    with pytest.raises(ValueError, match="at least 2 samples to be held out in turn; one class has 1"):
        PWMKClassifier(per_view()).fit(X, np.arange(len(X)) == 0)


# scikit-learn's own checks.
WEIGHTS = (
    "it compares decision values to 1e-7, fits stop at a relative gap of 1e-4; and widths of distance "
    "kernels and folds are made of the samples, each counted once. That a weight means repetition is "
    "tested in tests/baselines/test_target_alignment.py"
)
EXEMPT = {
    "check_sample_weight_equivalence_on_dense_data": WEIGHTS,
    "check_sample_weight_equivalence_on_sparse_data": WEIGHTS,
}
EVEN = "its distributions over the two classes sum to one each: weights count within a class only"
FEW = KernelBank([Linear(), Gaussian()])
CHECKED = [
    AlignedMKLClassifier(),
    AlignedMKLClassifier(FEW, criterion="align", multiclass="per_class"),
    AlignedMKLClassifier(FEW, criterion="kta"),
    EasyMKLClassifier(FEW),
    EasyMKLClassifier(FEW, multiclass="per_class"),
    FHeuristicClassifier(FEW),
    PWMKClassifier(FEW, cv=2),
    LPBetaClassifier(FEW, cv=2),
    LPBetaClassifier(FEW, cv=2, multiclass="per_class"),
]


def exemptions(estimator):
    even = {"check_class_weight_classifiers": EVEN} if isinstance(estimator, EasyMKLClassifier) else {}
    return EXEMPT | even


@pytest.mark.filterwarnings("ignore:Stopped at a relative duality gap")
@parametrize_with_checks(CHECKED, expected_failed_checks=exemptions)
def test_scikit_learn_accepts_the_estimator(estimator, check):
    check(estimator)
