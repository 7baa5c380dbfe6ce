"""Learning on explicit features: certificates of the approximate kernels, against conic programs."""

import warnings
from itertools import pairwise

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning
from tests.papers.test_certificates import GEOMETRIES
from tests.reference.conic import conic_optimum, conic_optimum_shared
from tests.reference.targets import target_optimum

from kernelweave import KernelBank, Landmarks, MKLClassifier, MKLRegressor, RandomFourier
from kernelweave.errors import IncompatiblePartsError
from kernelweave.estimators.sample_blocks import TableBlocks
from kernelweave.geometry import LpBall, Simplex
from kernelweave.kernels import Gaussian, Laplacian, Linear, Polynomial
from kernelweave.learners import (
    EpsilonInsensitive,
    Fisher,
    Hinge,
    MarginDistribution,
    NuHinge,
    Square,
    SquaredHinge,
)
from kernelweave.solvers import FeatureNewton
from kernelweave.solvers.feature_problem import FeaturePoint, FeatureProblem

BANK = KernelBank(
    [
        *(Gaussian(width=w) for w in (0.5, 1.0, 2.0, 4.0)),
        Linear(),
        Polynomial(degree=2),
        Laplacian(),
        Linear(),
    ]
)
FEW = KernelBank([Gaussian(width=1.0), Gaussian(width=3.0), Linear()])
LEARNERS = [
    (Hinge(C=1.0), ("hinge", 1.0)),
    (SquaredHinge(C=1.0), ("squared", 1.0)),
    (EpsilonInsensitive(C=1.0, epsilon=0.1), ("epsilon", 1.0, 0.1)),
    (Square(C=1.0), ("square", 1.0)),
]


def samples(n=70, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 4))
    X[:, 3] = 1.0  # a constant column
    X[n // 2 :][:5] = X[:5]  # duplicated rows
    score = X[:, 0] + X[:, 1] ** 2 - 1.0 + 0.5 * rng.normal(size=n)
    return X, score, np.where(score > 0.0, 1, -1)


def fitted(learner, X, score, y, *, bank=BANK, **params):
    how = {"features": Landmarks(20), "tol": 1e-6, "random_state": 0} | params
    if "real" in learner.learns_from:
        return MKLRegressor(bank, learner=learner, **how).fit(X, score)
    return MKLClassifier(bank, learner=learner, **how).fit(X, y)


def kernels_of(model, X):
    """Return Phi_m Phi_m', by the features of the model."""
    Phi = model.features_.transform(X)
    return [Phi[:, a:b] @ Phi[:, a:b].T for a, b in pairwise(model.features_.offsets)]


def optimum_of(model, loss, weights, X, score, y):
    oracle, target = (
        (target_optimum, score) if loss[0] in ("square", "epsilon", "no bias") else (conic_optimum, y)
    )
    return oracle(kernels_of(model, X), target, loss, weights).value


def assert_encloses(certificate, optimum, accuracy=2e-7):
    slack = accuracy * max(abs(optimum), abs(certificate.upper))
    assert certificate.lower <= optimum + slack
    assert optimum <= certificate.upper + slack


@pytest.mark.parametrize(("learner", "loss"), LEARNERS, ids=[repr(p) for p, _ in LEARNERS])
@pytest.mark.parametrize(("geometry", "weights"), GEOMETRIES, ids=[repr(p) for p, _ in GEOMETRIES])
def test_the_certificate_encloses_the_optimum_of_the_approximate_kernels(learner, loss, geometry, weights):
    data = samples(40)
    model = fitted(learner, *data, geometry=geometry, features=Landmarks(12))
    assert model.duality_gap_ <= 1e-6
    assert_encloses(model.certificate_, optimum_of(model, loss, weights, *data))
    assert np.isfinite(geometry.value(model.kernel_weights_))


@pytest.mark.parametrize("C", [0.01, 10.0, 1000.0])
@pytest.mark.parametrize("kind", ["hinge", "squared", "epsilon", "square"])
def test_small_and_large_prices_are_certified_or_warned_about(kind, C):
    learner, loss = {
        "hinge": (Hinge(C=C), ("hinge", C)),
        "squared": (SquaredHinge(C=C), ("squared", C)),
        "epsilon": (EpsilonInsensitive(C=C, epsilon=0.1), ("epsilon", C, 0.1)),
        "square": (Square(C=C), ("square", C)),
    }[kind]
    data = samples(seed=1)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model = fitted(learner, *data, bank=FEW)
    assert (model.duality_gap_ > 1e-6) == any(one.category is ConvergenceWarning for one in caught)
    assert model.duality_gap_ <= 1e-4
    assert_encloses(model.certificate_, optimum_of(model, loss, ("simplex",), *data))


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("learner", [Hinge(C=2.0), SquaredHinge(C=2.0)], ids=repr)
def test_weights_of_samples_are_prices_of_their_own(learner, seed):
    X, _, y = samples(seed=seed)
    weight = np.random.default_rng(seed).uniform(0.0, 2.0, len(y))
    weight[::7] = 0.0
    how = {"features": Landmarks(15), "tol": 1e-6, "random_state": seed}
    model = MKLClassifier(FEW, learner=learner, **how).fit(X, y, sample_weight=weight)
    loss = ("hinge" if isinstance(learner, Hinge) else "squared", 2.0 * weight)
    assert_encloses(model.certificate_, conic_optimum(kernels_of(model, X), y, loss, ("simplex",)).value)
    factors = MKLClassifier(FEW, learner=learner, class_weight={-1: 0.5, 1: 3.0}, **how).fit(X, y)
    loss = (loss[0], 2.0 * np.where(y > 0, 3.0, 0.5))
    assert_encloses(factors.certificate_, conic_optimum(kernels_of(factors, X), y, loss, ("simplex",)).value)


@pytest.mark.parametrize("geometry", [(Simplex(), ("simplex",)), (LpBall(2.0), ("lp", 2.0))], ids=repr)
def test_classes_share_their_weights_or_have_their_own(geometry):
    X, score, _ = samples()
    y = np.digitize(score, [-0.5, 0.8])
    Y = np.where(y[:, None] == np.arange(3), 1.0, -1.0)
    how = {"geometry": geometry[0], "features": Landmarks(15), "tol": 1e-6, "random_state": 0}
    shared = MKLClassifier(FEW, multiclass="shared", **how).fit(X, y)
    assert shared.kernel_weights_.shape == (3,)
    optimum = conic_optimum_shared(kernels_of(shared, X), Y, ("hinge", 1.0), geometry[1]).value
    assert_encloses(shared.certificate_, optimum)
    own = MKLClassifier(FEW, multiclass="per_class", **how).fit(X, y)
    assert own.kernel_weights_.shape == (3, 3)
    for c, certificate in enumerate(own.certificates_):
        optimum = conic_optimum(kernels_of(own, X), Y[:, c], ("hinge", 1.0), geometry[1]).value
        assert_encloses(certificate, optimum)


@pytest.mark.parametrize("loss", [("square", 1.0), ("epsilon", 1.0, 0.1), ("no bias", 1.0)], ids=repr)
def test_several_targets_share_their_weights(loss):
    X, score, _ = samples()
    Y = np.column_stack([score, X[:, 0] * X[:, 1]])
    learner = {
        "square": Square(C=1.0),
        "epsilon": EpsilonInsensitive(C=1.0, epsilon=0.1),
        "no bias": Square(C=1.0, fit_intercept=False),
    }[loss[0]]
    model = MKLRegressor(FEW, learner=learner, features=Landmarks(15), tol=1e-6, random_state=0).fit(X, Y)
    assert_encloses(model.certificate_, target_optimum(kernels_of(model, X), Y, loss, ("simplex",)).value)
    assert model.predict(X).shape == Y.shape


@pytest.mark.parametrize("learner", [learner for learner, _ in LEARNERS], ids=repr)
def test_with_all_samples_as_landmarks_the_model_is_the_exact_one(learner):
    X, score, y = samples()
    model = fitted(learner, X, score, y, bank=FEW, features=Landmarks(500))
    exact = fitted(learner, X, score, y, bank=FEW, features=None)
    for one, other in ((model, exact), (exact, model)):
        assert one.certificate_.lower <= other.certificate_.upper * (1 + 1e-7)
    assert model.storage_.error < 1e-6
    values = [
        m.predict(X) if "real" in learner.learns_from else m.decision_function(X) for m in (model, exact)
    ]
    np.testing.assert_allclose(*values, atol=5e-3)


@pytest.mark.parametrize(
    ("learner", "loss"),
    [
        (Hinge(C=0.01), ("hinge", 0.01)),
        (SquaredHinge(C=0.01), ("squared", 0.01)),
        (EpsilonInsensitive(C=0.01, epsilon=0.1), ("epsilon", 0.01, 0.1)),
        (Square(C=0.001), ("square", 0.001)),
    ],
    ids=repr,
)
def test_bounds_hold_far_from_the_optimum_where_slopes_do_not_sum_to_zero(rng, learner, loss):
    X, score, _ = samples(40)
    score, y = score + 10.0, np.where(np.arange(40) < 3, -1, 1)
    model = fitted(learner, X, score, y, bank=FEW, features=Landmarks(10))
    optimum = optimum_of(model, loss, ("simplex",), X, score, y)
    targets = score if "real" in learner.learns_from else y.astype(float)
    blocks, maps = TableBlocks(X, targets[:, None], np.ones(40)), model.features_
    problem = FeatureProblem(blocks, maps, learner, Simplex(), "float64")
    for size in (0.0, 0.01, 0.1):
        w = tuple(size * rng.normal(size=(features, 1)) for features in maps.sizes)
        point = FeaturePoint(np.arange(3), rng.dirichlet(np.ones(3)), w, 10.0 * size * rng.normal(size=1))
        sums = problem.pass_over(point, None, np.ones(1), 0.1, which=range(3))
        certificate = problem.bounds(point, sums, 0.1, range(3)).certificate
        assert certificate.lower <= optimum * (1.0 + 1e-7) <= certificate.upper * (1.0 + 2e-7)


@pytest.mark.parametrize("share", [1.0, 0.4])
def test_kernels_out_of_use_have_the_energies_of_all_samples(rng, share):
    X, score, y = samples(60)
    maps = fitted(Hinge(), X, score, y, bank=FEW, features=Landmarks(15)).features_
    targets = np.where(score > np.median(score), 1.0, -1.0)
    # With a large intercept only one class has slopes: the others' rows may be left out, and no more.
    bias = np.array([0.0 if share == 1.0 else 50.0])
    problem = FeatureProblem(
        TableBlocks(X, targets[:, None], np.ones(60)), maps, Hinge(), Simplex(), "float64"
    )
    point = FeaturePoint(np.array([0]), np.ones(1), (0.01 * rng.normal(size=(maps.sizes[0], 1)),), bias)
    sums = problem.pass_over(point, None, np.ones(1), 0.1, which=range(3))
    raw = maps.raw(X, range(3))
    f = raw[0] @ maps.transforms[0] @ point.w[0][:, 0] + bias
    v = np.clip((1.0 - targets * f) / 0.1, 0.0, 1.0) * targets  # slopes of the hinge with its kink smoothed
    for R, product in zip(raw, sums.products, strict=True):
        np.testing.assert_allclose(product[:, 0, 0], R.T @ np.maximum(v, 0.0), atol=1e-9)
        np.testing.assert_allclose(product[:, 1, 0], R.T @ np.minimum(v, 0.0), atol=1e-9)


def test_random_fourier_features_are_certified_too():
    data = samples()
    model = fitted(Hinge(), *data, bank=FEW, features=RandomFourier(30))
    assert_encloses(model.certificate_, optimum_of(model, ("hinge", 1.0), ("simplex",), *data))


def test_every_record_of_all_kernels_encloses_the_optimum_in_single_precision_too(monkeypatch):
    monkeypatch.setattr("kernelweave.solvers.feature_newton.MANY", 0)
    data = samples()
    model = fitted(Hinge(), *data, tol=1e-4)
    assert model.duality_gap_ <= 1e-4  # in double precision, where single precision does not get there
    assert_encloses(model.certificate_, optimum_of(model, ("hinge", 1.0), ("simplex",), *data))


def test_levels_of_few_samples_lead_to_the_same_optimum(monkeypatch):
    X, _, y = samples(2_000)
    how = {"features": Landmarks(20), "random_state": 0}
    usual = FeatureNewton._levels

    def on_hundreds(self, samples):
        return [(samples.sample(300), 1e-2, True), *usual(self, samples)[-1:]]

    alone = MKLClassifier(FEW, **how).fit(X, y)
    monkeypatch.setattr(FeatureNewton, "_levels", on_hundreds)
    by_level = MKLClassifier(FEW, **how).fit(X, y)
    assert by_level.certificate_.lower <= alone.certificate_.upper
    assert alone.certificate_.lower <= by_level.certificate_.upper


@pytest.mark.parametrize("width", [4.0, 0.1])
@pytest.mark.parametrize("learner", [Hinge(C=2.0), EpsilonInsensitive(C=2.0, epsilon=0.3)], ids=repr)
def test_losses_smoothed_over_less_have_the_slopes_that_the_step_counts_on(rng, learner, width):
    program = learner.elementwise(np.where(rng.random(50) > 0.5, 1.0, -1.0), rng.uniform(0.1, 2.0, 50))
    residual = rng.normal(size=50)
    v, rate = program.smoothed(width).slopes(residual)
    between = rate > 0.0
    steeper, _ = program.smoothed(width / 3.0).slopes(residual)
    bound = np.maximum(program.hi, -program.lo)
    expected = np.clip(3.0 * v[between], -bound[between], bound[between])
    np.testing.assert_allclose(steeper[between], expected, atol=1e-12)


@pytest.mark.parametrize("learner", [NuHinge(nu=0.5), Fisher(), MarginDistribution()], ids=repr)
def test_learners_whose_samples_depend_on_each_other_cannot(learner):
    X, _, y = samples()
    with pytest.raises(IncompatiblePartsError, match=r"cannot learn on features.*Hinge, SquaredHinge"):
        MKLClassifier(FEW, learner=learner, features=Landmarks(5)).fit(X, y)


def test_a_budget_of_passes_is_kept_and_warned_about():
    X, _, y = samples()
    with pytest.warns(ConvergenceWarning, match=r"max_iter=.* is reached"):
        model = MKLClassifier(FEW, features=Landmarks(20), max_iter=3, tol=1e-6, random_state=0).fit(X, y)
    assert_encloses(model.certificate_, optimum_of(model, ("hinge", 1.0), ("simplex",), X, None, y))


@pytest.mark.parametrize("after", [1, 2, 5, 9])
def test_an_interrupt_keeps_the_best_so_far_with_its_certificate(after, monkeypatch):
    X, _, y = samples()
    usual, calls = FeatureProblem.pass_over, []

    def interrupted(self, *args, **kwargs):
        calls.append(1)
        if len(calls) == after + 1:
            raise KeyboardInterrupt
        return usual(self, *args, **kwargs)

    monkeypatch.setattr(FeatureProblem, "pass_over", interrupted)
    with pytest.warns(ConvergenceWarning, match="it was interrupted"):
        model = MKLClassifier(FEW, features=Landmarks(20), tol=1e-6, random_state=0).fit(X, y)
    assert_encloses(model.certificate_, optimum_of(model, ("hinge", 1.0), ("simplex",), X, None, y))
    assert model.predict(X).shape == y.shape
