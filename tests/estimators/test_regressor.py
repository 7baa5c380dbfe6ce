"""The regressor: scikit-learn's machines as limits, several targets, paths and searches, certificates."""

import pickle

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import load_diabetes
from sklearn.kernel_ridge import KernelRidge
from sklearn.metrics import r2_score
from sklearn.model_selection import GridSearchCV, KFold, cross_val_score
from sklearn.svm import SVR
from tests.contracts.target_cases import samples
from tests.reference.targets import target_optimum

from kernelweave import KernelBank, MKLRegressor, MKLRegressorCV, Views, path
from kernelweave.geometry import (
    BoxSimplex,
    ElasticNetBall,
    GroupBox,
    LpBall,
    PowerSimplex,
    RidgeSimplex,
    Simplex,
    Uniform,
)
from kernelweave.kernels import Gaussian, Linear
from kernelweave.learners import EpsilonInsensitive, Square

GEOMETRIES = [
    (Uniform(), ("uniform",)),
    (Simplex(), ("simplex",)),
    (BoxSimplex(theta=0.4), ("box", 0.4)),
    (RidgeSimplex(theta=1.0), ("ridge", 1.0)),
    (PowerSimplex(theta=1.0, p=1.5), ("power", 1.0, 1.5)),
    (LpBall(p=1.5), ("lp", 1.5)),
    (LpBall(p=2.0), ("lp", 2.0)),
    (ElasticNetBall(v=0.4), ("elastic", 0.4)),
    (GroupBox(groups=[0, 0, 1, 1, 2], theta=0.5), ("group", [0, 0, 1, 1, 2], 0.5)),
]
LEARNERS = [
    (Square(C=1.0), ("square", 1.0), "real"),
    (Square(C=100.0), ("square", 100.0), "several"),
    (EpsilonInsensitive(C=10.0, epsilon=0.1), ("epsilon", 10.0, 0.1), "real"),
]


@pytest.fixture(scope="module")
def problem():
    return samples(0, n=45, M=5)


@pytest.fixture(scope="module")
def diabetes():
    X, y = load_diabetes(return_X_y=True, as_frame=True)
    return (X - X.mean()) / X.std(), (y - y.mean()) / y.std()


def fit(Ks, y, **params):
    return MKLRegressor("precomputed", **params).fit(Ks, y)


@pytest.mark.parametrize(("learner", "machine", "targets"), LEARNERS, ids=[repr(x[0]) for x in LEARNERS])
@pytest.mark.parametrize(("geometry", "weights"), GEOMETRIES, ids=[repr(x[0]) for x in GEOMETRIES])
def test_the_certificate_encloses_the_conic_optimum(problem, learner, machine, targets, geometry, weights):
    Ks, y = problem[0], problem[1][targets]
    optimum = target_optimum(Ks, y, machine, weights).value
    certificate = fit(Ks, y, learner=learner, geometry=geometry, tol=1e-6).certificate_
    assert certificate.lower <= optimum + 1e-7 * abs(optimum)
    assert optimum <= certificate.upper + 1e-7 * abs(optimum)
    assert certificate.relative_gap <= 1e-6


def test_one_kernel_is_kernel_ridge_and_svr(problem):
    K, y = problem[0][0], problem[1]["real"]
    new = K[:7] + 0.1
    ridge = fit([K], y, learner=Square(C=4.0, fit_intercept=False), tol=1e-8)
    theirs = KernelRidge(alpha=0.25, kernel="precomputed").fit(K, y)
    np.testing.assert_allclose(ridge.predict([new]), theirs.predict(new), rtol=1e-7)
    tube = fit([K], y, learner=EpsilonInsensitive(C=4.0, epsilon=0.2), tol=1e-10)
    svr = SVR(C=4.0, epsilon=0.2, kernel="precomputed", tol=1e-9).fit(K, y)
    np.testing.assert_allclose(tube.predict([new]), svr.predict(new), atol=1e-4)
    np.testing.assert_array_equal(tube.support_, np.sort(svr.support_))


def test_uniform_weights_are_the_average_kernel(problem):
    Ks, y = problem[0], problem[1]["real"]
    K = sum(Ks) / 5
    ours = fit(Ks, y, learner=Square(C=4.0, fit_intercept=False), geometry=Uniform()).predict(Ks)
    np.testing.assert_allclose(ours, KernelRidge(alpha=0.25, kernel="precomputed").fit(K, y).predict(K))
    tube = fit(Ks, y, learner=EpsilonInsensitive(C=4.0, epsilon=0.2), geometry=Uniform(), tol=1e-10)
    svr = SVR(C=4.0, epsilon=0.2, kernel="precomputed", tol=1e-9).fit(K, y)
    np.testing.assert_allclose(tube.predict(Ks), svr.predict(K), atol=1e-4)


def test_several_targets_share_their_weights_or_have_their_own(problem):
    Ks, Y = problem[0], problem[1]["several"]
    shared = fit(Ks, Y, tol=1e-6)
    assert shared.kernel_weights_.shape == (5,)
    assert shared.predict(Ks).shape == Y.shape
    own = fit(Ks, Y, tol=1e-6, multioutput="per_output")
    for c in range(2):
        alone = fit(Ks, Y[:, c], tol=1e-6)
        np.testing.assert_allclose(own.kernel_weights_[c], alone.kernel_weights_, atol=1e-9)
        np.testing.assert_allclose(own.predict(Ks)[:, c], alone.predict(Ks))
    assert own.objective_ <= shared.objective_ * (1 + 1e-6)
    tube = fit(Ks, Y, learner=EpsilonInsensitive(C=1.0))
    assert tube.predict(Ks).shape == Y.shape
    assert fit(Ks, Y[:, :1]).predict(Ks).shape == (45,)


def test_shifting_and_scaling_the_targets_shifts_and_scales_the_answer(problem):
    Ks, y = problem[0], problem[1]["real"]
    plain = fit(Ks, y, tol=1e-8)
    moved = fit(Ks, 1e3 * y - 1e5, tol=1e-8)
    np.testing.assert_allclose(moved.kernel_weights_, plain.kernel_weights_, atol=1e-3)
    np.testing.assert_allclose((moved.predict(Ks) + 1e5) / 1e3, plain.predict(Ks), atol=1e-4)


def test_sample_weights_are_costs_per_sample(problem):
    Ks, y = problem[0], problem[1]["real"]
    weight = np.random.default_rng(0).uniform(0.1, 3.0, size=45)
    for learner, machine in (
        (Square(C=2.0), ("square", 2.0 * weight)),
        (EpsilonInsensitive(C=2.0), ("epsilon", 2.0 * weight, 0.1)),
    ):
        optimum = target_optimum(Ks, y, machine, ("simplex",)).value
        model = MKLRegressor("precomputed", learner=learner, tol=1e-6).fit(Ks, y, sample_weight=weight)
        assert model.certificate_.lower <= optimum * (1 + 1e-7)
        assert optimum <= model.certificate_.upper * (1 + 1e-7)


def test_float32_storage_certifies_the_kernels_as_given(problem):
    Ks, y = problem[0], problem[1]["real"]
    optimum = target_optimum(Ks, y, ("square", 10.0), ("simplex",)).value
    model = fit(Ks, y, learner=Square(C=10.0), tol=1e-4, dtype="float32")
    assert model.certificate_.lower <= optimum * (1 + 1e-7)
    assert optimum <= model.certificate_.upper * (1 + 1e-7)


def test_tables_views_and_frames_predict_alike(diabetes):
    X, y = diabetes
    views = {"body": ["age", "sex", "bmi", "bp"], "blood": ["s1", "s2", "s3", "s4", "s5", "s6"]}
    bank = KernelBank.per_view([Gaussian(), Linear()], views=views)
    framed = MKLRegressor(bank, geometry=LpBall(2.0)).fit(X[:200], y[:200])
    split = Views({name: X[:200][columns] for name, columns in views.items()})
    viewed = MKLRegressor(KernelBank.per_view([Gaussian(), Linear()]), geometry=LpBall(2.0))
    viewed.fit(split, y[:200])
    new = Views({name: X[200:][columns] for name, columns in views.items()})
    np.testing.assert_allclose(framed.predict(X[200:]), viewed.predict(new), rtol=1e-9)
    assert r2_score(y[200:], framed.predict(X[200:])) > 0.3
    kernel = framed.combined_kernel(X[200:])
    values = kernel[:, framed.support_] @ framed.dual_coef_[0] + framed.intercept_
    np.testing.assert_allclose(values, framed.predict(X[200:]))
    again = pickle.loads(pickle.dumps(framed))
    np.testing.assert_array_equal(again.predict(X[200:]), framed.predict(X[200:]))
    assert repr(clone(framed)) == repr(framed)


def test_parts_can_be_tuned_by_scikit_learn(diabetes):
    X, y = diabetes
    grid = {"learner__C": [0.1, 1.0], "geometry__p": [1.0, 2.0]}
    search = GridSearchCV(MKLRegressor(geometry=LpBall(2.0), tol=1e-3), grid, cv=2).fit(X[:80], y[:80])
    assert set(search.best_params_) == set(grid)
    Ks = np.stack(list(KernelBank([Linear(), Gaussian()]).fit(X[:80]).grams()), axis=2)
    assert np.isfinite(cross_val_score(MKLRegressor("precomputed"), Ks, y[:80], cv=3)).all()


@pytest.mark.parametrize(
    ("learner", "param", "values"),
    [
        (Square(), "learner__C", [0.1, 1.0, 10.0]),
        (EpsilonInsensitive(), "learner__epsilon", [0.5, 0.2, 0.1]),
        (EpsilonInsensitive(), "geometry__theta", [0.25, 0.5, 1.0]),
    ],
)
def test_a_path_is_what_fits_from_scratch_find(problem, learner, param, values):
    Ks, y = problem[0], problem[1]["real"]
    model = MKLRegressor("precomputed", learner=learner, geometry=BoxSimplex(theta=1.0), tol=1e-6)
    walk = path(model, Ks, y, param=param, values=values, X_test=Ks, y_test=y)
    for value, certificate, score in zip(values, walk.certificates, walk.test_score, strict=True):
        alone = clone(model).set_params(**{param: value}).fit(Ks, y)
        assert certificate.lower <= alone.certificate_.upper * (1 + 1e-9)
        assert alone.certificate_.lower <= certificate.upper * (1 + 1e-9)
        assert score == pytest.approx(alone.score(Ks, y), abs=1e-3)


@pytest.mark.parametrize("learner", [Square(), EpsilonInsensitive()])
def test_a_search_scores_as_fits_from_scratch_do(diabetes, learner):
    X, y = diabetes[0][:120], diabetes[1][:120]
    bank = KernelBank([Linear(), Gaussian(), Gaussian(width=1.0)])
    folds = KFold(3)
    search = MKLRegressorCV(
        bank, learner=learner, learner_values=[0.1, 10.0], geometry_values=[0.4, 1.0], cv=folds, tol=1e-6
    ).fit(X, y)
    for i, C in enumerate(search.learner_values_):
        for j, theta in enumerate(search.geometry_values_):
            model = MKLRegressor(
                bank, learner=clone(learner, safe=False), geometry=BoxSimplex(theta=theta), tol=1e-6
            )
            scores = cross_val_score(model.set_params(learner__C=C), X, y, cv=folds)
            assert search.mean_score_[i, j] == pytest.approx(scores.mean(), abs=2e-3)
    assert search.best_score_ == search.mean_score_.max()
    assert search.best_estimator_.get_params()["learner__C"] == search.best_params_["learner__C"]
    np.testing.assert_array_equal(search.predict(X), search.best_estimator_.predict(X))
    assert len(search.frame()) == 2 * 2 * 3


def test_a_search_takes_several_targets_precomputed_kernels_and_other_scores(problem):
    Ks, Y = problem[0], problem[1]["several"]
    search = MKLRegressorCV(
        "precomputed",
        learner_values=[1.0, 10.0],
        geometry_values=[0.5],
        cv=3,
        scoring="neg_mean_squared_error",
    ).fit(Ks, Y)
    assert search.best_score_ < 0.0
    assert search.predict(Ks).shape == Y.shape
    assert search.score(Ks, Y) <= 0.0


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda Ks, _: fit(Ks, None), "requires y to be passed"),
        (lambda Ks, y: fit(Ks, y[:-1]), "X has 45 samples but y has 44 targets"),
        (lambda Ks, y: fit(Ks, np.where(y > 0, np.nan, y)), "NaN"),
        (
            lambda Ks, y: fit(Ks, y, multioutput="raw"),
            "multioutput must be 'shared' or 'per_output'; got 'raw'",
        ),
        (lambda Ks, y: fit(Ks, y, learner="ridge"), r"learner must be a Learner such as Square\(C=1.0\)"),
        (
            lambda Ks, y: MKLRegressor("precomputed").fit(Ks, y, sample_weight=np.zeros(45)),
            "at least one non-zero number",
        ),
        (lambda Ks, y: fit(Ks, y.reshape(5, 9)), "X has 45 samples but y has 5 targets"),
    ],
)
def test_mistakes_are_named(problem, call, message):
    with pytest.raises((ValueError, TypeError), match=message):
        call(problem[0], problem[1]["real"])


def test_a_constant_target_is_answered_by_the_intercept(problem):
    model = fit(problem[0], np.full(45, 3.0))
    np.testing.assert_allclose(model.predict(problem[0]), 3.0)
