"""SampleAdaptiveMKLClassifier: limits, inputs, predictions from the definition, errors."""

import pickle
import warnings

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import load_digits
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import GridSearchCV, cross_val_score
from tests.datasets.data import load_or_skip

from kernelweave import KernelBank, MKLClassifier, SampleAdaptiveMKLClassifier, Views
from kernelweave.bank.scaled import RescaledKernels
from kernelweave.datasets.view_entries import ViewEntries, make_views, remove_entries, swap_entries
from kernelweave.errors import IncompatiblePartsError, IndefiniteKernelError
from kernelweave.experiments.common import standardised_views
from kernelweave.geometry import LpBall, Simplex
from kernelweave.kernels import Centering, Gaussian, Linear, UnitTrace
from kernelweave.learners import Hinge, NuHinge, SquaredHinge


@pytest.fixture(scope="module")
def data():
    clean = make_views(60, n_views=5, separation=2.5, random_state=(3, 0))
    return swap_entries(clean, 0.3, 3)


@pytest.fixture(scope="module")
def new():
    return make_views(50, n_views=5, separation=2.5, random_state=(3, 1))


PAPER = {"switching": "fewest", "fallback": False}


def adaptive(**params):
    """The paper's algorithm, unless told otherwise."""
    parts = {"geometry": LpBall(2.0), "max_flips": 2} | PAPER
    return SampleAdaptiveMKLClassifier(KernelBank.per_view(), **parts | params)


@pytest.fixture(scope="module")
def fitted(data):
    return adaptive().fit(data.X, data.y)


@pytest.mark.parametrize("geometry", [Simplex(), LpBall(2.0)], ids=repr)
@pytest.mark.parametrize("learner", [Hinge(C=3.0), NuHinge(nu=0.3), SquaredHinge(C=1.0)], ids=repr)
def test_without_flips_it_is_mkl_classifier(data, new, geometry, learner):
    parts = dict(geometry=geometry, learner=learner)
    plain = MKLClassifier(KernelBank.per_view(), **parts).fit(data.X, data.y)
    same = adaptive(max_flips=0, **parts).fit(data.X, data.y)
    np.testing.assert_array_equal(same.kernel_weights_, plain.kernel_weights_)
    np.testing.assert_array_equal(same.dual_coef_, plain.dual_coef_)
    np.testing.assert_allclose(same.decision_function(new.X), plain.decision_function(new.X), rtol=1e-12)
    assert same.certificate_ == plain.certificate_
    assert same.switches_.all()
    assert same.patterns_.shape == (1, 5)


def test_without_flips_a_view_missing_only_in_prediction_is_what_it_is_to_mkl_classifier():
    complete = make_views(60, n_views=3, separation=2.0, random_state=(0, 0))
    new = remove_entries(make_views(50, n_views=3, separation=2.0, random_state=(0, 1)), 0.4, 1)
    bank = KernelBank.per_view(Linear())  # uncentred, so that zero is not the mean
    shifted, later = (Views({k: np.asarray(t) + 3.0 for k, t in d.X.items()}) for d in (complete, new))
    one = MKLClassifier(bank).fit(shifted, complete.y)
    two = SampleAdaptiveMKLClassifier(bank, max_flips=0).fit(shifted, complete.y)
    np.testing.assert_allclose(one.decision_function(later), two.decision_function(later), atol=1e-10)


@pytest.mark.filterwarnings("ignore:The switches still changed")
@pytest.mark.parametrize("prior", [np.ones(5), np.ones((60, 5), dtype=int)], ids=["(M,)", "(n, M)"])
def test_a_first_round_is_mkl_classifier_too(data, prior):
    model = adaptive(max_rounds=1, tol=1e-7, prior=prior).fit(data.X, data.y)
    plain = MKLClassifier(KernelBank.per_view(), geometry=LpBall(2.0), tol=1e-7).fit(data.X, data.y)
    np.testing.assert_allclose(model.kernel_weights_, plain.kernel_weights_, atol=1e-4)
    assert model.objective_ == pytest.approx(plain.objective_, rel=1e-6)


def test_decisions_are_those_of_the_pattern_with_the_largest_score(data, new, fitted):
    bank = RescaledKernels(KernelBank.per_view().fit(data.X), Centering())
    v = np.zeros(60)
    v[fitted.support_] = fitted.dual_coef_[0]
    rows = [K for _, K in bank.cross(new.X)]
    G = np.column_stack(
        [fitted.kernel_weights_[m] * K @ (v * fitted.switches_[:, m]) for m, K in enumerate(rows)]
    )
    np.testing.assert_allclose(fitted.contributions(new.X), G, atol=1e-10)
    values, use = fitted.decision_function(new.X), fitted.kernel_use(new.X)
    for i in range(len(G)):
        scores = np.array([G[i] @ h + fitted.intercept_[0] for h in fitted.patterns_])
        best = np.abs(scores).argmax()
        assert values[i] == pytest.approx(scores[best])
        assert np.array_equal(use[i], fitted.patterns_[best] & (fitted.kernel_weights_ > 0))


def test_patterns_are_the_distinct_switches_with_their_counts(fitted):
    assert fitted.pattern_counts_.sum() == 60
    assert (np.diff(fitted.pattern_counts_) <= 0).all()
    for pattern, count in zip(fitted.patterns_, fitted.pattern_counts_, strict=True):
        assert (fitted.switches_ == pattern).all(axis=1).sum() == count
    assert ((~fitted.switches_).sum(axis=1) <= 2).all()


def test_on_corrupted_training_sets_switches_find_what_was_swapped_and_help():
    aucs, gains = [], []
    for seed in range(6):
        clean, test = (make_views(n, random_state=(seed, part)) for part, n in enumerate((60, 400)))
        bad = swap_entries(clean, 0.35, seed)
        parts = dict(geometry=LpBall(2.0), learner=Hinge(C=10.0))
        model = adaptive(max_flips=3, **parts).fit(bad.X, bad.y)
        plain = MKLClassifier(KernelBank.per_view(), **parts).fit(bad.X, bad.y)
        aucs.append(roc_auc_score(bad.corrupted.ravel(), ~model.switches_.ravel()))
        gains.append(model.score(test.X, test.y) - plain.score(test.X, test.y))
    assert np.mean(aucs) > 0.65
    assert np.mean(gains) > 0.005


def test_the_certificate_is_reached_and_rounds_fall(fitted):
    assert fitted.duality_gap_ <= 1e-4
    objectives = [r.certificate.upper for r in fitted.rounds_]
    assert (np.diff(objectives) <= 1e-4 * objectives[0]).all()
    assert fitted.objective_ == min(objectives)


def test_precomputed_kernels_give_the_same_as_their_bank(data, new):
    bank = KernelBank.per_view(Gaussian(), scaling=(Centering(), UnitTrace()))
    own = bank.fit(data.X)
    K = np.stack(list(own.grams()), axis=2)
    rows = np.stack([k for _, k in own.cross(new.X)], axis=2)
    parts = dict(learner=Hinge(C=100.0), geometry=LpBall(2.0), max_flips=2, **PAPER)
    by_bank = SampleAdaptiveMKLClassifier(bank, **parts).fit(data.X, data.y)
    given = SampleAdaptiveMKLClassifier("precomputed", **parts).fit(K, data.y)
    np.testing.assert_allclose(given.decision_function(rows), by_bank.decision_function(new.X), atol=2e-3)
    assert cross_val_score(given, K, data.y, cv=3).mean() > 0.6


def test_unit_trace_is_that_of_the_centred_kernels(data):
    model = adaptive(unit_trace=True, learner=Hinge(C=100.0)).fit(data.X, data.y)
    scaled = KernelBank.per_view(Gaussian(), scaling=(Centering(), UnitTrace()))
    same = SampleAdaptiveMKLClassifier(
        scaled, geometry=LpBall(2.0), max_flips=2, learner=Hinge(C=100.0), **PAPER
    )
    np.testing.assert_allclose(model.kernel_weights_, same.fit(data.X, data.y).kernel_weights_, atol=1e-3)


def test_traces_of_kernels_that_are_not_centred_are_refused(data):
    with pytest.raises(ValueError, match="needs centre=True"):
        adaptive(centre=False, unit_trace=True).fit(data.X, data.y)


@pytest.mark.filterwarnings("ignore:The switches tell the class")
def test_more_classes_have_switches_each(data):
    y = np.array(["a", "b", "c"])[np.arange(60) % 3]
    views = Views({k: np.asarray(t) + 3.0 * (np.arange(60) % 3)[:, None] for k, t in data.X.items()})
    model = adaptive(n_jobs=2).fit(views, y)
    assert model.switches_.shape == (3, 60, 5)
    assert len(model.patterns_) == len(model.pattern_counts_) == 3
    assert model.decision_function(views).shape == (60, 3)
    assert model.kernel_use(views).shape == (60, 5)
    assert model.contributions(views).shape == (60, 3, 5)
    assert model.score(views, y) > 0.9


def test_the_score_of_a_class_is_the_best_over_its_patterns(data):
    y = np.arange(60) % 3
    model = adaptive().fit(data.X, y)
    G, values = model.contributions(data.X), model.decision_function(data.X)
    for c in range(3):
        best = (G[:, c] @ model.patterns_[c].T).max(axis=1) + model.intercept_[c]
        np.testing.assert_allclose(values[:, c], best, atol=1e-12)


def test_the_use_of_kernels_is_that_of_the_predicted_class():
    rng = np.random.default_rng(0)
    y = np.arange(60) % 3
    # Every class shows in a view of its own alone.
    views = Views({f"v{c}": rng.normal(size=(60, 3)) + 4.0 * (y == c)[:, None] for c in range(3)})
    model = SampleAdaptiveMKLClassifier(
        KernelBank.per_view(Linear()), geometry=Simplex(), max_flips=1, **PAPER
    )
    model.fit(views, y)
    assert (model.kernel_weights_.argmax(axis=1) == np.arange(3)).all()
    use, predicted = model.kernel_use(views), model.predict(views)
    assert not (use & (model.kernel_weights_[predicted] == 0.0)).any()
    assert use[np.arange(60), predicted].mean() > 0.8


def test_the_support_of_a_sparse_fit_may_be_the_prior(data):
    sparse = MKLClassifier(
        KernelBank.per_view([Gaussian(), Linear()], scaling=(Centering(), UnitTrace())), learner=Hinge(C=30.0)
    )
    weights = sparse.fit(data.X, data.y).kernel_weights_
    model = SampleAdaptiveMKLClassifier(sparse.bank, learner=Hinge(C=30.0), prior="support", max_flips=0)
    model.fit(data.X, data.y)
    assert (weights == 0).any()
    assert np.array_equal(model.patterns_, weights[None] > 0)


def test_pickling_cloning_and_searching_work(data, new, fitted):
    again = pickle.loads(pickle.dumps(fitted))
    np.testing.assert_array_equal(again.decision_function(new.X), fitted.decision_function(new.X))
    search = GridSearchCV(clone(fitted), {"max_flips": [0, 2], "learner__C": [1.0]}, cv=2)
    assert search.fit(data.X, data.y).best_params_["max_flips"] in (0, 2)


def test_probabilities_are_calibrated(data):
    model = adaptive(probability=True, tol=1e-3).fit(data.X, data.y)
    assert model.predict_proba(data.X).sum(axis=1) == pytest.approx(np.ones(60))
    assert model.switches_.shape == (60, 5)
    assert not hasattr(model.set_params(probability=False).fit(data.X, data.y), "calibration_")


def test_the_learnt_kernel_is_the_weighted_sum_of_the_centred_ones(data, new, fitted):
    bank = RescaledKernels(KernelBank.per_view().fit(data.X), Centering())
    K = sum(w * K for w, (_, K) in zip(fitted.kernel_weights_, bank.cross(new.X), strict=True))
    np.testing.assert_allclose(fitted.combined_kernel(new.X), K, atol=1e-12)
    np.testing.assert_allclose(
        fitted.combined_kernel(data.X), fitted.combined_kernel(data.X, data.X), atol=1e-12
    )


def test_a_warning_says_that_rounds_were_cut_off(data):
    with pytest.warns(ConvergenceWarning, match="still changed after max_rounds=1 rounds"):
        short = adaptive(max_rounds=1).fit(data.X, data.y)
    assert short.cut_off_
    assert not adaptive().fit(data.X, data.y).cut_off_


def test_a_warning_says_that_switches_tell_the_class(data):
    X = Views({name: np.asarray(table) + 20.0 for name, table in data.X.items()})
    parts = dict(max_flips=2, learner=Hinge(C=0.01), **PAPER)
    model = SampleAdaptiveMKLClassifier(KernelBank.per_view(Linear()), centre=False, **parts)
    with pytest.warns(UserWarning, match="The switches tell the class"):
        model.fit(X, data.y)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model.set_params(centre=True).fit(X, data.y)


@pytest.fixture(scope="module")
def ten_classes():
    X, y = load_digits(return_X_y=True)
    order = np.random.default_rng(0).permutation(len(y))[:600]
    X, y = X[order], y[order]
    quarters = {
        f"{a}{b}": X.reshape(-1, 2, 4, 2, 4)[:, a, :, b].reshape(-1, 16) for a in (0, 1) for b in (0, 1)
    }
    return Views(quarters), y


DIGITS = dict(bank=KernelBank.per_view(), learner=Hinge(C=10.0), tol=1e-3)


def test_switches_that_know_the_label_collapse_on_ten_classes_and_a_warning_says_so(ten_classes):
    X, y = ten_classes
    plain = MKLClassifier(**DIGITS).fit(X[:300], y[:300])
    with pytest.warns(UserWarning, match="The switches tell the class"):
        paper = SampleAdaptiveMKLClassifier(**DIGITS, max_flips=2, **PAPER).fit(X[:300], y[:300])
    assert paper.score(X[300:], y[300:]) < plain.score(X[300:], y[300:]) - 0.05


@pytest.mark.parametrize("switching", ["margin", "fewest"])
def test_on_ten_classes_the_fit_ends_no_more_than_a_point_below_mkl_or_falls_back(ten_classes, switching):
    X, y = ten_classes
    plain = MKLClassifier(**DIGITS).fit(X[:300], y[:300])
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model = SampleAdaptiveMKLClassifier(**DIGITS, switching=switching).fit(X[:300], y[:300])
    assert model.fell_back_ == any("left out" in str(one.message) for one in caught)
    assert model.fell_back_ == (model.comparison_.losses > model.comparison_.wins)
    assert model.score(X[300:], y[300:]) >= plain.score(X[300:], y[300:]) - 0.01
    if switching == "fewest":  # what collapses loses on held-out samples
        assert model.fell_back_


def test_on_mfeat_the_fit_ends_no_more_than_a_point_below_mkl_or_falls_back():
    digits = load_or_skip("mfeat")
    order = np.random.default_rng(0).permutation(len(digits.y))
    train, test = order[:400], order[400:]
    X = standardised_views(digits.X, train)
    plain = MKLClassifier(**DIGITS).fit(X[train], digits.y[train])
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "The switches were left out")
        model = SampleAdaptiveMKLClassifier(**DIGITS).fit(X[train], digits.y[train])
    score = plain.score(X[test], digits.y[test])
    assert model.fell_back_ or model.score(X[test], digits.y[test]) >= score - 0.01
    assert np.abs(model.association_) < 0.25


def test_a_fit_that_fell_back_is_mkl_classifier(ten_classes):
    X, y = ten_classes
    with pytest.warns(UserWarning, match="left out: on held-out samples they are right"):
        model = SampleAdaptiveMKLClassifier(**DIGITS | {"tol": 1e-6}, switching="fewest").fit(
            X[:200], y[:200]
        )
    plain = MKLClassifier(**DIGITS | {"tol": 1e-6}, multiclass="per_class").fit(X[:200], y[:200])
    assert model.switches_.shape == (200, 4)
    assert model.switches_.all()
    assert model.patterns_.tolist() == [[True] * 4]
    expected = plain.decision_function(X[200:])
    np.testing.assert_allclose(model.decision_function(X[200:]), expected, atol=2e-3)


def test_switches_by_margin_are_shared_by_the_classes_and_leave_new_samples_all_kernels(ten_classes):
    X, y = ten_classes
    X = swap_entries(ViewEntries(X[:300], y[:300], np.zeros((300, 4), dtype=bool)), 0.3, 0).X
    model = SampleAdaptiveMKLClassifier(**DIGITS, fallback=False, max_flips=2).fit(X, y[:300])
    assert model.comparison_ is None
    assert model.switches_.shape == (300, 4)
    off = (~model.switches_).sum(axis=1)
    assert off.max() == 2
    assert model.patterns_.tolist() == [[True] * 4]
    parts = model.contributions(X)
    np.testing.assert_allclose(model.decision_function(X), parts.sum(axis=2) + model.intercept_, atol=1e-10)


def test_switches_by_margin_help_where_training_samples_are_corrupted_and_do_not_tell_the_class():
    gains, aucs, associations = [], [], []
    for seed in range(6):
        train, test = (make_views(n, random_state=(seed, part)) for part, n in enumerate((60, 400)))
        bad = swap_entries(train, 0.35, seed)
        parts = dict(bank=KernelBank.per_view(), geometry=LpBall(2.0), learner=Hinge(C=10.0))
        model = SampleAdaptiveMKLClassifier(**parts, max_flips=3, fallback=False).fit(bad.X, bad.y)
        gains.append(
            model.score(test.X, test.y) - MKLClassifier(**parts).fit(bad.X, bad.y).score(test.X, test.y)
        )
        aucs.append(roc_auc_score(bad.corrupted.ravel(), ~model.switches_.ravel()))
        associations.append(model.association_)
    assert np.mean(gains) > 0.005
    assert np.mean(aucs) > 0.6
    assert max(associations) < 0.25


def test_a_class_of_one_sample_cannot_be_held_out(data):
    y = np.r_[2, np.arange(59) % 2]
    with pytest.warns(UserWarning, match="a class has one sample"):
        model = adaptive(switching="margin", fallback=True).fit(data.X, y)
    assert model.fell_back_
    assert model.comparison_ is None


def test_an_interrupt_while_switches_are_judged_leaves_a_model_of_all_kernels(data, monkeypatch):
    def interrupt(*args):
        raise KeyboardInterrupt

    monkeypatch.setattr("kernelweave.adaptive.sample_adaptive.compare_with_mkl", interrupt)
    with pytest.warns(ConvergenceWarning, match="interrupted"):
        model = adaptive(fallback=True).fit(data.X, data.y)
    assert model.switches_.all()
    assert model.score(data.X, data.y) > 0.6


@pytest.mark.parametrize("max_flips", [-1, 6, 1.5, True, "all"])
def test_flips_outside_zero_to_the_number_of_kernels_are_refused(data, max_flips):
    with pytest.raises(ValueError, match=r"max_flips must be None or a whole number from 0 to .* here 5"):
        adaptive(max_flips=max_flips).fit(data.X, data.y)


@pytest.mark.parametrize(
    ("prior", "message"),
    [
        (np.ones(4), r"shape \(5,\)"),
        (np.ones((59, 5)), r"shape \(60, 5\)"),
        ([0, 1, 2, 1, 1], "True and False or 1 and 0"),
        (np.zeros(5), "at least one kernel; sample 0"),
        ("sparse", "'support' or an array"),
    ],
)
def test_a_wrong_prior_is_named(data, prior, message):
    with pytest.raises(ValueError, match=message):
        adaptive(prior=prior).fit(data.X, data.y)


def test_learnt_margins_need_a_learner_with_margins_of_one(data):
    with pytest.raises(IncompatiblePartsError, match="Hinge"):
        adaptive(scale_margins=True, learner=NuHinge()).fit(data.X, data.y)


@pytest.mark.parametrize("learner", [Hinge(C=1.0), SquaredHinge(C=1.0)], ids=repr)
def test_the_papers_margins_are_positive(data, learner):
    model = adaptive(scale_margins=True, learner=learner).fit(data.X, data.y)
    assert (model.margins_ > 0).all()
    assert (model.margins_ < 1).any()


def test_an_indefinite_kernel_is_named(data):
    K = [np.eye(60), np.outer(data.y, data.y) * -1.0 + np.eye(60) * 1.5]
    with pytest.raises((IndefiniteKernelError, ValueError), match=r"[Kk]ernel 1"):
        SampleAdaptiveMKLClassifier("precomputed", max_flips=1).fit(K, data.y)
