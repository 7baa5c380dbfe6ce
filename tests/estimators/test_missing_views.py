"""Samples without some views, in training and in prediction."""

import pickle
import warnings

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.model_selection import cross_val_score
from tests.reference.conic import conic_optimum

from kernelweave import (
    AlignedMKLClassifier,
    Entry,
    KernelBank,
    Landmarks,
    MKLClassifier,
    MKLClassifierCV,
    SampleAdaptiveMKLClassifier,
    Views,
)
from kernelweave.bank.missing_views import fit_with_missing_views
from kernelweave.datasets.view_entries import make_views, remove_entries
from kernelweave.geometry import LpBall, Uniform
from kernelweave.kernels import Gaussian, Precomputed
from kernelweave.learners import Hinge

# That all kernels do no worse is an answer, not a fault.
pytestmark = pytest.mark.filterwarnings("ignore:The switches were left out")

BANK = KernelBank.per_view(Gaussian())
GEOMETRY = LpBall(2.0)


@pytest.fixture(scope="module")
def data():
    return remove_entries(make_views(60, n_views=4, separation=2.0, random_state=(0, 0)), 0.4, 0)


@pytest.fixture(scope="module")
def new():
    return remove_entries(make_views(200, n_views=4, separation=2.0, random_state=(0, 1)), 0.4, 1)


def adaptive(**params):
    return SampleAdaptiveMKLClassifier(BANK, geometry=GEOMETRY, **params)


def plain(**params):
    return MKLClassifier(BANK, geometry=GEOMETRY, **params)


def test_the_certificate_is_that_of_the_masked_kernels(data):
    grams = list(fit_with_missing_views(BANK, data.X).centred().grams())
    model = plain(tol=1e-6).fit(data.X, data.y)
    optimum = conic_optimum(grams, data.y.astype(float), ("hinge", 1.0), ("lp", 2.0)).value
    assert model.certificate_.lower <= optimum * (1 + 1e-6)
    assert optimum * (1 - 1e-6) <= model.certificate_.upper
    assert model.duality_gap_ <= 1e-6


def test_a_missing_view_says_nothing(data):
    model = plain().fit(data.X, data.y)
    one = Views({name: np.full((1, 5), 1.0 if m == 2 else np.nan) for m, name in enumerate(data.X.names)})
    (_, K), *_ = [pair for pair in model.bank_.cross(one) if pair[0] == 2]
    expected = model.kernel_weights_[2] * K[:, model.support_] @ model.dual_coef_[0] + model.intercept_
    np.testing.assert_allclose(model.decision_function(one), expected)


def test_models_predict_from_what_is_there(data, new):
    for model in (plain(), adaptive(max_flips=0, scale_margins=True), adaptive(max_flips=1)):
        assert model.fit(data.X, data.y).score(new.X, new.y) > 0.75


def test_without_flips_both_estimators_are_the_same(data, new):
    one, two = plain().fit(data.X, data.y), adaptive(max_flips=0).fit(data.X, data.y)
    np.testing.assert_allclose(one.decision_function(new.X), two.decision_function(new.X), atol=1e-12)
    np.testing.assert_array_equal(two.switches_, ~data.corrupted)


def test_missing_views_stay_off_and_further_flips_are_counted_from_there(data):
    model = adaptive(max_flips=1).fit(data.X, data.y)
    assert not (model.switches_ & data.corrupted).any()
    off = ~model.switches_ & ~data.corrupted
    assert off.sum(axis=1).max() == 1
    assert (model.patterns_.sum(axis=1) >= 3).all()


def test_margins_follow_the_views_a_sample_has(data):
    model = adaptive(max_flips=0, scale_margins=True).fit(data.X, data.y)
    norms_of = model.margins_[~data.corrupted.any(axis=1)]
    assert norms_of == pytest.approx(np.ones(norms_of.size))
    assert (model.margins_[data.corrupted.any(axis=1)] < 1).all()
    assert (model.margins_ > 0).all()


def test_kernel_use_shows_only_what_a_sample_has(data, new):
    use = adaptive(max_flips=1).fit(data.X, data.y).kernel_use(new.X)
    assert not (use & new.corrupted).any()
    assert use.any(axis=1).all()


def test_views_may_be_missing_in_prediction_only(new):
    clean = make_views(60, n_views=4, separation=2.0, random_state=(0, 0))
    for model in (plain(), adaptive(max_flips=1)):
        fitted = model.fit(clean.X, clean.y)
        again = pickle.loads(pickle.dumps(fitted))
        assert again.score(new.X, new.y) > 0.75


@pytest.mark.parametrize(
    "model",
    [
        plain(),
        adaptive(max_flips=1),
        AlignedMKLClassifier(BANK),
        MKLClassifier(BANK, features=Landmarks(20), random_state=0),
        MKLClassifier(KernelBank([Gaussian()])),  # one kernel of all views
    ],
    ids=["plain", "adaptive", "two steps", "features", "all views"],
)
def test_a_view_that_is_not_there_is_a_missing_one_with_a_warning(model, data, new):
    model.fit(data.X, data.y)
    absent = data.X.names[1]
    there = {name: table for name, table in new.X.items() if name != absent}
    rows = np.flatnonzero(~np.isnan(np.hstack(list(there.values()))).all(axis=1))
    there = {name: table[rows] for name, table in there.items()}
    lacking = Views({**there, absent: np.full((rows.size, 5), np.nan)})
    with pytest.warns(
        UserWarning, match=f"X has no view '{absent}', .* all samples are taken to lack it; X has"
    ):
        found = model.decision_function(there)
    np.testing.assert_allclose(found, model.decision_function(lacking), atol=1e-12)
    with pytest.warns(UserWarning, match=f"X has no view '{absent}'"):
        np.testing.assert_array_equal(model.predict(Views(there)), model.predict(lacking))


def test_a_view_that_is_not_there_may_be_of_words_sparse_or_square(rng):
    y = np.arange(40) % 2
    words = pd.DataFrame({"word": rng.choice(["a", "b", "c"], 40), "more": rng.choice(["d", "e"], 40)})
    X = rng.normal(size=(40, 3)) + y[:, None]
    views = {"x": X, "words": words, "sparse": sparse.csr_matrix(np.abs(X)), "square": X @ X.T}
    bank = KernelBank(
        [*(Entry(Gaussian(), view=v) for v in ("x", "words", "sparse")), ("square", Precomputed())]
    )
    model = MKLClassifier(bank, geometry=Uniform()).fit(views, y)
    everything = Views(views)
    for gone in ("words", "sparse", "square"):
        with pytest.warns(UserWarning, match=f"X has no view '{gone}'"):
            found = model.decision_function({name: views[name] for name in views if name != gone})
        which = [m for m, name in enumerate(views) if name != gone]
        parts = model._kernel_parts(everything)[:, 0]
        mean = parts.mean(axis=0)  # a missing view is the mean of the training samples
        expected = parts[:, which].sum(axis=1) + mean.sum() - mean[which].sum() + model.intercept_[0]
        np.testing.assert_allclose(found, expected, atol=1e-9)


def test_nobody_is_warned_of_a_view_that_counts_nothing(data):
    model = plain().fit(data.X, data.y)
    model.kernel_weights_ = model.kernel_weights_ * (np.arange(4) != 1)
    X = Views({name: np.ones((3, 5)) for m, name in enumerate(data.X.names) if m != 1})
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert model.decision_function(X).shape == (3,)


def test_a_table_with_declared_views_may_lack_some(data, new):
    columns = {name: slice(5 * m, 5 * m + 5) for m, name in enumerate(data.X.names)}
    bank = KernelBank.per_view(Gaussian(), views=columns)
    tables = [np.hstack([part.X[name] for name in part.X.names]) for part in (data, new)]
    for kind in (MKLClassifier, SampleAdaptiveMKLClassifier):
        by_table = kind(bank, geometry=GEOMETRY).fit(tables[0], data.y)
        by_views = kind(BANK, geometry=GEOMETRY).fit(data.X, data.y)
        np.testing.assert_allclose(
            by_table.decision_function(tables[1]), by_views.decision_function(new.X), atol=1e-9
        )


def test_precomputed_kernels_may_lack_samples(data):
    grams = [K.copy() for K in BANK.fit(make_views(60, n_views=4, random_state=(0, 0)).X).grams()]
    for K, gone in zip(grams, data.corrupted.T, strict=True):
        K[gone] = K[:, gone] = np.nan
    stack = np.stack(grams, axis=2)
    for kind in (MKLClassifier, SampleAdaptiveMKLClassifier):
        model = kind("precomputed", geometry=GEOMETRY).fit(stack, data.y)
        assert model.score(stack, data.y) > 0.8
        assert cross_val_score(kind("precomputed", geometry=GEOMETRY), stack, data.y, cv=3).mean() > 0.7


def test_cross_validation_and_searches_work(data):
    assert cross_val_score(adaptive(max_flips=1), data.X, data.y, cv=3).mean() > 0.7
    search = MKLClassifierCV(BANK, geometry=GEOMETRY, learner_values=[1.0, 10.0], geometry_values=[2.0], cv=3)
    assert search.fit(data.X, data.y).best_score_ > 0.7


def test_samples_of_more_classes_may_lack_views(data):
    y = np.arange(60) % 3
    model = adaptive(max_flips=1, learner=Hinge(C=1.0)).fit(data.X, y)
    assert not (model.switches_ & data.corrupted).any()


def test_samples_without_any_view_are_named(data):
    model = adaptive(max_flips=1).fit(data.X, data.y)
    nothing = Views({name: np.full((2, 5), np.nan) for name in data.X.names})
    for fitted in (model, plain().fit(data.X, data.y)):
        with pytest.raises(ValueError, match="Sample 0 has no view at all"):
            fitted.predict(nothing)


def test_a_prior_has_to_leave_a_view_the_sample_has(data):
    with pytest.raises(ValueError, match="at least one kernel"):
        adaptive(max_flips=1, prior=[1, 0, 0, 0]).fit(data.X, data.y)
