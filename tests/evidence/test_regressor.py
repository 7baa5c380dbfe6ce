"""The regressor by evidence: Gaussian processes with fixed kernels, landmarks, intervals, inputs, errors."""

import pickle

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, DotProduct
from sklearn.metrics import r2_score
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from tests.reference.evidence import conditional, restricted_log_likelihood

from kernelweave import EvidenceMKLRegressor, KernelBank, Landmarks, RandomFourier, Views, load, save
from kernelweave.evidence.regressor import exact_bytes, n_landmarks
from kernelweave.explain import contributions
from kernelweave.kernels import Centering, Gaussian, Linear, UnitVariance

N = 60
BANK = KernelBank([Linear(), Gaussian()])


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(N + 30, 4)) + 1.0
    y = np.sin(X[:, 0]) + 0.5 * X[:, 1] + 0.3 * rng.normal(size=N + 30)
    return X, y


@pytest.fixture(scope="module")
def several(data):
    X, y = data
    rng = np.random.default_rng(1)
    Y = np.stack([y + k * X[:, k % 4] + 0.2 * rng.normal(size=len(y)) for k in range(6)], axis=1)
    return X, Y


def grams(X, Z):
    """Two kernels by hand: the inner product, and a Gaussian of width 2."""
    return np.stack([X @ Z.T, np.exp(-((X[:, None] - Z) ** 2).sum(axis=2) / 8.0)])


def own(X):
    return np.stack([np.sum(X**2, axis=1), np.ones(len(X))], axis=1)


@pytest.fixture(scope="module")
def given(data):
    X, y = data
    model = EvidenceMKLRegressor("precomputed").fit(list(grams(X[:N], X[:N])), y[:N])
    return model, list(grams(X[N:], X[:N])), own(X[N:])


# -- oracles


def test_means_and_spread_are_those_of_a_gaussian_process(data, given):
    X, y = data
    model, rows, diagonals = given
    (a, b), noise = model.kernel_weights_, model.noise_variance_
    flat = 1e5  # the intercept: a constant kernel of large variance
    fixed = {"constant_value_bounds": "fixed"}
    kernel = (
        ConstantKernel(a, **fixed) * DotProduct(0.0, sigma_0_bounds="fixed")
        + ConstantKernel(b, **fixed) * RBF(2.0, length_scale_bounds="fixed")
        + ConstantKernel(flat, **fixed)
    )
    process = GaussianProcessRegressor(kernel, alpha=noise, optimizer=None).fit(X[:N], y[:N])
    expected, spread = process.predict(X[N:], return_std=True)  # of the function, without noise
    mean, std = model.predict(rows, return_std=True, diagonals=diagonals)
    np.testing.assert_allclose(mean, expected, atol=1e-5)
    np.testing.assert_allclose(np.sqrt(std**2 - noise), spread, atol=1e-4)
    np.testing.assert_allclose(model.predict(rows), mean, atol=1e-10)


def test_the_evidence_is_the_restricted_likelihood_at_the_weights(data, given):
    X, y = data
    model, *_ = given
    Ks = grams(X[:N], X[:N])
    expected = restricted_log_likelihood(Ks, y[:N], model.kernel_weights_, model.noise_variance_)
    assert model.log_evidence_ == pytest.approx(expected, abs=1e-8)


def test_sample_weights_divide_the_noise(data):
    X, y = data
    weight = np.random.default_rng(2).uniform(0.2, 3.0, N)
    Ks = grams(X[:N], X[:N])
    model = EvidenceMKLRegressor("precomputed").fit(list(Ks), y[:N], weight)
    variances, noise = model.kernel_weights_, model.noise_variance_
    rows = grams(X[N:], X[:N])
    mean, variance = conditional(Ks, rows, own(X[N:]).T, y[:N], variances, noise, noise, weight)
    found, std = model.predict(list(rows), return_std=True, diagonals=own(X[N:]))
    np.testing.assert_allclose(found, mean, atol=1e-5)
    np.testing.assert_allclose(std**2, variance, rtol=1e-4)
    expected = restricted_log_likelihood(Ks, y[:N], variances, noise, weight)
    assert model.log_evidence_ == pytest.approx(expected, abs=1e-8)
    again = EvidenceMKLRegressor("precomputed").fit(list(Ks), y[:N], 10.0 * weight)
    np.testing.assert_allclose(again.kernel_weights_, variances)
    assert again.noise_variance_ == pytest.approx(10.0 * noise)
    assert again.log_evidence_ == pytest.approx(expected, abs=1e-8)


def test_samples_of_weight_zero_count_nothing(data):
    X, y = data
    weight = np.ones(N)
    weight[:10] = 0.0
    wild = y[:N].copy()
    wild[:10] = 1e3
    found = EvidenceMKLRegressor("precomputed").fit(list(grams(X[:N], X[:N])), wild, weight)
    left = EvidenceMKLRegressor("precomputed").fit(list(grams(X[10:N], X[10:N])), y[10:N])
    np.testing.assert_allclose(
        found.predict(list(grams(X[N:], X[:N]))), left.predict(list(grams(X[N:], X[10:N])))
    )


# -- scale, kernels, targets


def test_shifting_and_scaling_the_targets_shifts_and_scales_the_answer(data):
    X, y = data
    plain = EvidenceMKLRegressor(BANK).fit(X[:N], y[:N])
    moved = EvidenceMKLRegressor(BANK).fit(X[:N], 1e3 * y[:N] - 1e5)
    np.testing.assert_allclose(moved.kernel_weights_, 1e6 * plain.kernel_weights_, rtol=1e-6)
    np.testing.assert_allclose((moved.predict(X[N:]) + 1e5) / 1e3, plain.predict(X[N:]), atol=1e-8)
    np.testing.assert_allclose(moved.explained_variance_ratio_, plain.explained_variance_ratio_, rtol=1e-6)


def test_scaling_of_the_bank_changes_the_unit_of_weights_only(data):
    X, y = data
    plain = EvidenceMKLRegressor(BANK).fit(X[:N], y[:N])
    bank = KernelBank([Linear(), Gaussian()], scaling=(Centering(), UnitVariance()))
    scaled = EvidenceMKLRegressor(bank).fit(X[:N], y[:N])
    for one, other in zip(
        plain.predict(X[N:], return_std=True), scaled.predict(X[N:], return_std=True), strict=True
    ):
        np.testing.assert_allclose(one, other, rtol=1e-8)
    np.testing.assert_allclose(plain.explained_variance_ratio_, scaled.explained_variance_ratio_, rtol=1e-8)


def test_shares_of_variance_are_those_that_made_the_targets():
    rng = np.random.default_rng(7)
    X = rng.normal(size=(500, 400))
    parts = [X[:, own] @ rng.normal(size=(200, 8)) / np.sqrt(200) for own in (slice(200), slice(200, 400))]
    Y = np.sqrt(5.0) * parts[0] + np.sqrt(3.0) * parts[1] + np.sqrt(2.0) * rng.normal(size=(500, 8))
    bank = KernelBank.per_view([Linear()], views={"a": slice(200), "b": slice(200, 400)})
    model = EvidenceMKLRegressor(bank).fit(X, Y)
    assert model.explained_variance_ratio_.shape == model.kernel_weights_.shape == (8, 2)
    np.testing.assert_allclose(model.explained_variance_ratio_.mean(axis=0), [0.5, 0.3], atol=0.05)
    np.testing.assert_allclose(model.noise_variance_.mean(), 2.0, atol=0.3)


def test_one_target_comes_back_as_one_column_and_several_as_several(several):
    X, Y = several
    one = EvidenceMKLRegressor(BANK).fit(X[:N], Y[:N, 0])
    assert one.predict(X[N:]).shape == (30,)
    assert one.kernel_weights_.shape == (2,)
    assert isinstance(one.noise_variance_, float)
    many = EvidenceMKLRegressor(BANK).fit(X[:N], Y[:N])
    mean, std = many.predict(X[N:], return_std=True)
    assert mean.shape == std.shape == many.predict(X[N:]).shape == (30, 6)
    np.testing.assert_allclose(mean, many.predict(X[N:]), atol=1e-10)


def test_targets_by_themselves_are_fits_of_their_own(several):
    X, Y = several
    model = EvidenceMKLRegressor(BANK, pooled=False).fit(X[:N], Y[:N])
    for t in (0, 3):
        alone = EvidenceMKLRegressor(BANK).fit(X[:N], Y[:N, t])
        np.testing.assert_allclose(model.kernel_weights_[t], alone.kernel_weights_)
        np.testing.assert_allclose(model.predict(X[N:])[:, t], alone.predict(X[N:]))
        assert model.log_evidence_[t] == pytest.approx(alone.log_evidence_)
    assert model.prior_gap_ is None
    assert model.gradient_norm_.shape == (6,)


def test_five_targets_and_more_are_pooled(several):
    X, Y = several
    pooled = EvidenceMKLRegressor(BANK).fit(X[:N], Y[:N])
    assert pooled.gradient_norm_ is None
    assert 0.0 <= pooled.prior_gap_ <= 1e-3
    np.testing.assert_allclose(
        pooled.predict(X), EvidenceMKLRegressor(BANK, pooled=True).fit(X[:N], Y[:N]).predict(X)
    )
    assert EvidenceMKLRegressor(BANK).fit(X[:N], Y[:N, :4]).prior_gap_ is None


@pytest.mark.parametrize("pooled", [False, True])
def test_a_target_that_never_varies_is_known(data, pooled):
    X, y = data
    Y = np.stack([y, np.full(len(y), 0.1), y**2], axis=1)
    model = EvidenceMKLRegressor(BANK, pooled=pooled).fit(X[:N], Y[:N])
    mean, std = model.predict(X[N:], return_std=True)
    np.testing.assert_allclose(mean[:, 1], 0.1)
    assert not std[:, 1].any()
    assert std[:, [0, 2]].all()
    assert np.isinf(model.log_evidence_[1])
    np.testing.assert_allclose(EvidenceMKLRegressor(BANK).fit(X, np.ones(len(X))).predict(X), 1.0)


def test_kernels_that_never_vary_leave_the_mean(data):
    _, y = data
    model = EvidenceMKLRegressor("precomputed").fit([np.ones((N, N))], y[:N])
    mean, std = model.predict([np.ones((3, N))], return_std=True, diagonals=np.ones((3, 1)))
    np.testing.assert_allclose(mean, y[:N].mean())
    np.testing.assert_allclose(std, y[:N].std(ddof=1) * np.sqrt(1.0 + 1.0 / N))


@pytest.mark.parametrize("n_targets", [1, 6])
def test_a_kernel_that_never_varies_explains_nothing(several, n_targets):
    X, Y = several
    Ks, y = grams(X[:N], X[:N]), Y[:N, :n_targets]
    plain = EvidenceMKLRegressor("precomputed").fit(list(Ks), y)
    model = EvidenceMKLRegressor("precomputed").fit([*Ks, np.ones((N, N))], y)
    shares, expected = (np.atleast_2d(one.explained_variance_ratio_) for one in (model, plain))
    assert not shares[:, 2].any()
    np.testing.assert_allclose(shares[:, :2], expected, atol=0.02)
    assert not np.atleast_2d(model.kernel_weights_)[:, 2].any()


def test_an_infinite_spread_leaves_the_weights_to_the_likelihood(data):
    X, y = data
    free = EvidenceMKLRegressor(BANK, spread=np.inf, tol=1e-6).fit(X[:N], y[:N])
    wide = EvidenceMKLRegressor(BANK, spread=1e4, tol=1e-6).fit(X[:N], y[:N])
    np.testing.assert_allclose(free.kernel_weights_, wide.kernel_weights_, rtol=1e-4)


def test_noise_gets_the_variance_and_kernels_none():
    rng = np.random.default_rng(3)
    X = rng.normal(size=(200, 5))
    model = EvidenceMKLRegressor(BANK).fit(X, rng.normal(size=200))
    assert model.explained_variance_ratio_.sum() < 0.1
    assert model.noise_variance_ == pytest.approx(1.0, rel=0.25)


# -- landmarks


def test_all_samples_as_landmarks_are_the_kernels_themselves(several):
    X, Y = several
    exact = EvidenceMKLRegressor(BANK, pooled=True).fit(X[:N], Y[:N])
    on_features = EvidenceMKLRegressor(BANK, pooled=True, features=Landmarks(N)).fit(X[:N], Y[:N])
    for one, other in zip(
        exact.predict(X[N:], return_std=True), on_features.predict(X[N:], return_std=True), strict=True
    ):
        np.testing.assert_allclose(one, other, rtol=1e-4)
    np.testing.assert_allclose(on_features.kernel_weights_, exact.kernel_weights_, rtol=1e-3)
    np.testing.assert_allclose(on_features.log_evidence_, exact.log_evidence_, atol=0.01)


def test_landmarks_know_sample_weights(data):
    X, y = data
    weight = np.random.default_rng(2).uniform(0.2, 3.0, N)
    exact = EvidenceMKLRegressor(BANK).fit(X[:N], y[:N], weight)
    on_features = EvidenceMKLRegressor(BANK, features=Landmarks(N)).fit(X[:N], y[:N], weight)
    for one, other in zip(
        exact.predict(X[N:], return_std=True), on_features.predict(X[N:], return_std=True), strict=True
    ):
        np.testing.assert_allclose(one, other, rtol=1e-6)
    assert on_features.log_evidence_ == pytest.approx(exact.log_evidence_, abs=1e-6)


@pytest.mark.parametrize("features", [None, RandomFourier(1000)], ids=repr)
def test_many_samples_are_learnt_on_features(features):
    rng = np.random.default_rng(4)
    X = rng.normal(size=(900, 3))
    y = np.sin(2.0 * X[:, 0]) + X[:, 1] + 0.2 * rng.normal(size=900)
    few = EvidenceMKLRegressor(BANK, exact_up_to=200, features=features, random_state=0).fit(X[:500], y[:500])
    assert not hasattr(few, "dual_coef_")
    assert few.storage_.error > 0.0
    exact = EvidenceMKLRegressor(BANK).fit(X[:500], y[:500])
    assert few.score(X[500:], y[500:]) > exact.score(X[500:], y[500:]) - 0.03
    lower, upper = few.predict_interval(X[500:])
    assert 0.85 < ((lower <= y[500:]) & (y[500:] <= upper)).mean() < 0.95
    assert few.combined_kernel(X[:2], X[:3]).shape == (2, 3)
    np.testing.assert_allclose(contributions(few, X[:5]).decision, few.predict(X[:5]))


def test_far_from_the_landmarks_the_spread_is_that_of_the_prior(data):
    X, y = data
    bank = KernelBank([Gaussian(width=0.5)])
    model = EvidenceMKLRegressor(bank, features=Landmarks(10), random_state=0).fit(X[:N], y[:N])
    _, std = model.predict(X[:3] + 1e3, return_std=True)
    assert (std**2 > model.noise_variance_ + 0.9 * model.kernel_weights_[0]).all()


def test_what_does_not_fit_into_memory_is_refused(data):
    X, y = data
    limit = 0.9 * exact_bytes(N, 2)
    with pytest.raises(MemoryError, match=r"2 kernels of 60 samples need .* lower exact_up_to"):
        EvidenceMKLRegressor(BANK, memory_limit=limit).fit(X[:N], y[:N])
    with pytest.raises(MemoryError, match="use fewer samples"):
        EvidenceMKLRegressor("precomputed", memory_limit=limit).fit(list(grams(X[:N], X[:N])), y[:N])
    with pytest.raises(MemoryError, match=r"The products of .* features need .* fewer landmarks"):
        EvidenceMKLRegressor(BANK, memory_limit=limit, features=Landmarks(50)).fit(X[:N], y[:N])


def test_landmarks_become_fewer_with_more_kernels():
    assert [n_landmarks(M) for M in (1, 4, 20, 100)] == [500, 500, 200, 50]


# -- intervals, parts


def test_intervals_hold_what_they_say():
    rng = np.random.default_rng(5)
    held = {0.5: [], 0.9: []}
    for _ in range(8):
        X = rng.normal(size=(480, 3))
        y = X[:, 0] + np.sin(X[:, 1]) + 0.5 * rng.normal(size=480)
        model = EvidenceMKLRegressor(BANK).fit(X[:80], y[:80])
        for coverage, found in held.items():
            lower, upper = model.predict_interval(X[80:], coverage)
            found.append(((lower <= y[80:]) & (y[80:] <= upper)).mean())
    assert np.mean(held[0.5]) == pytest.approx(0.5, abs=0.04)
    assert np.mean(held[0.9]) == pytest.approx(0.9, abs=0.03)


def test_parts_of_kernels_sum_to_the_score(several):
    X, Y = several
    model = EvidenceMKLRegressor(BANK).fit(X[:N], Y[:N])
    parts = model.score_by_kernel(X[N:], Y[N:])
    assert parts.shape == (6, 2)
    predicted = model.predict(X[N:])
    predicted += Y[N:].mean(axis=0) - predicted.mean(axis=0)
    np.testing.assert_allclose(parts.sum(axis=1), r2_score(Y[N:], predicted, multioutput="raw_values"))
    one = EvidenceMKLRegressor(BANK).fit(X[:N], Y[:N, 0])
    assert one.score_by_kernel(X[N:], Y[N:, 0]).shape == (2,)


def test_contributions_and_the_combined_kernel_are_those_of_the_weights(data):
    X, y = data
    model = EvidenceMKLRegressor(BANK).fit(X[:N], y[:N])
    np.testing.assert_allclose(contributions(model, X[N:]).decision, model.predict(X[N:]))
    linear, gaussian = dict(model.bank_.cross(X[N:])).values()
    a, b = model.kernel_weights_
    np.testing.assert_allclose(model.combined_kernel(X[N:]), a * linear + b * gaussian)


# -- inputs


def test_frames_views_gaps_and_words(data):
    X, y = data
    frame = pd.DataFrame(X, columns=list("abcd"))
    frame["word"] = np.where(X[:, 2] > 1.0, "high", "low")
    frame.loc[3, "a"] = np.nan
    model = EvidenceMKLRegressor().fit(frame[:N], y[:N])
    assert model.score(frame[N:], y[N:]) > 0.5
    assert model.feature_names_in_.tolist() == ["a", "b", "c", "d", "word"]
    assert len(model.columns_) == 5
    views = Views({"one": X[:, :2], "two": X[:, 2:]})
    model = EvidenceMKLRegressor(KernelBank.per_view([Linear(), Gaussian()])).fit(views[:N], y[:N])
    assert len(model.kernel_names_) == 4
    assert model.predict_interval(views[N:])[0].shape == (30,)


def test_it_works_inside_pipelines_searches_and_pickles(several):
    X, Y = several
    pipeline = make_pipeline(StandardScaler(), EvidenceMKLRegressor(BANK))
    assert cross_val_score(pipeline, X, Y[:, 0], cv=3).mean() > 0.3
    search = GridSearchCV(EvidenceMKLRegressor(BANK), {"spread": [0.5, 2.0]}, cv=2).fit(X, Y[:, 0])
    assert search.best_params_["spread"] in (0.5, 2.0)
    model = clone(EvidenceMKLRegressor(BANK, pooled=True)).fit(X, Y)
    again = pickle.loads(pickle.dumps(model))
    for one, other in zip(model.predict(X, return_std=True), again.predict(X, return_std=True), strict=True):
        np.testing.assert_array_equal(one, other)


def test_a_model_on_landmarks_comes_back_from_its_file(data, tmp_path):
    pytest.importorskip("skops")
    X, y = data
    model = EvidenceMKLRegressor(BANK, features=Landmarks(20), random_state=0).fit(X[:N], y[:N])
    save(model, tmp_path / "model.kw")
    again = load(tmp_path / "model.kw")
    for one, other in zip(model.predict(X, return_std=True), again.predict(X, return_std=True), strict=True):
        np.testing.assert_array_equal(one, other)


def test_precomputed_kernels_may_be_one_array(data, given):
    X, y = data
    model, rows, diagonals = given
    block = EvidenceMKLRegressor("precomputed").fit(np.moveaxis(grams(X[:N], X[:N]), 0, 2), y[:N])
    new = np.stack(rows, axis=2)
    np.testing.assert_allclose(block.predict(new), model.predict(rows))
    found = block.predict_interval(new, diagonals=diagonals)
    np.testing.assert_allclose(found, model.predict_interval(rows, diagonals=diagonals))
    assert cross_val_score(block, np.moveaxis(grams(X, X), 0, 2), y, cv=3).mean() > 0.3


def test_many_new_samples_are_read_in_slices(data, monkeypatch):
    X, y = data
    model = EvidenceMKLRegressor(BANK).fit(X[:N], y[:N])
    whole = model.predict(X, return_std=True)
    monkeypatch.setattr("kernelweave.evidence.regressor.VALUES_PER_SLICE", 7 * 2 * N)
    for one, other in zip(whole, model.predict(X, return_std=True), strict=True):
        np.testing.assert_allclose(one, other)


def test_many_targets_are_predicted_as_few_are(several, monkeypatch):
    X, Y = several
    model = EvidenceMKLRegressor(BANK).fit(X[:N], Y[:N])
    few = model.predict(X)
    monkeypatch.setattr("kernelweave.evidence.regressor.FEW_TARGETS", 2)
    np.testing.assert_allclose(model.predict(X), few)


# -- errors


def test_errors_say_what_would_work(data, given):
    X, y = data
    model, rows, diagonals = given
    with pytest.raises(ValueError, match=r"k\(x, x\) of new samples"):
        model.predict(rows, return_std=True)
    with pytest.raises(ValueError, match="an array of shape \\(30, 2\\); received shape \\(30,\\)"):
        model.predict(rows, return_std=True, diagonals=diagonals[:, 0])
    with pytest.raises(ValueError, match="coverage must be a number between 0 and 1; got 90"):
        model.predict_interval(rows, 90)
    with pytest.raises(ValueError, match="3 samples at least, with a weight above 0; got n_samples = 2"):
        EvidenceMKLRegressor(BANK).fit(X[:N], y[:N], [1.0, 1.0] + [0.0] * (N - 2))
    with pytest.raises(ValueError, match="pooled must be True, False or None; got 'all'"):
        EvidenceMKLRegressor(BANK, pooled="all").fit(X, y)
    with pytest.raises(ValueError, match="spread must be a number above 0; got 0"):
        EvidenceMKLRegressor(BANK, spread=0).fit(X, y)
    with pytest.raises(TypeError, match=r"features must be a Features such as Landmarks\(300\)"):
        EvidenceMKLRegressor(BANK, features=30).fit(X, y)
    with pytest.raises(ValueError, match="Features need a bank that computes its kernels"):
        EvidenceMKLRegressor("precomputed", features=Landmarks(5)).fit([np.eye(9)], y[:9])
    with pytest.raises(NotFittedError):
        EvidenceMKLRegressor(BANK).predict(X)


def test_a_search_that_is_cut_short_warns(data):
    X, y = data
    with pytest.warns(
        ConvergenceWarning, match="expected to raise the log likelihood by .* in 1 of 1 targets"
    ):
        EvidenceMKLRegressor(BANK, tol=1e-9, max_iter=1).fit(X, y)
