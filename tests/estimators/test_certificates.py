"""Certificates are those of the kernels as given, whatever their storage, and the model attains the bound."""

import warnings
from dataclasses import replace

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning
from tests.reference.conic import conic_optimum
from tests.reference.problems import random_problem

from kernelweave import KernelBank, MKLClassifier
from kernelweave.estimators import training
from kernelweave.estimators.training import FitTask
from kernelweave.geometry import LpBall, Simplex
from kernelweave.gram import PackedGrams
from kernelweave.kernels import Linear, Polynomial
from kernelweave.learners import Hinge, NuHinge, SquaredHinge

LOSSES = {Hinge: lambda lack: lack, SquaredHinge: lambda lack: 0.5 * lack**2}


def gaussians(rng, n=80, noise=0.5):
    X = rng.normal(size=(n, 4))
    y = np.where(X[:, 0] + X[:, 1] ** 2 - 1 + noise * rng.normal(size=n) > 0, 1.0, -1.0)
    return [np.exp(-((x - x[:, None]) ** 2) / width) for x in X.T for width in (0.1, 1.0, 10.0)], y


def attained(model, grams, y, C, loss=LOSSES[Hinge]):
    """The objective of the model as it was returned, on the kernels as they were given."""
    K, v = np.tensordot(model.kernel_weights_, grams, axes=1), np.zeros(len(y))
    v[model.support_] = model.dual_coef_[0]
    lack = np.maximum(0.0, 1.0 - y * (K @ v + model.intercept_[0]))
    return 0.5 * v @ K @ v + np.sum(C * loss(lack))


@pytest.fixture
def asked(monkeypatch):
    """Which kernels a fit asks for beside those it holds, in turn."""
    seen = []

    def watch(name, usual):
        def watched(self):
            seen.append(name)
            return usual(self)

        monkeypatch.setattr(FitTask, name, watched)

    watch("exact_grams", FitTask.exact_grams)
    watch("float64_grams", FitTask.float64_grams)
    return seen


# -- float32


@pytest.mark.parametrize("dtype", ["auto", "float32"])
@pytest.mark.parametrize("C", [1.0, 100.0])
@pytest.mark.parametrize(("geometry", "name"), [(LpBall(2.0), ("lp", 2.0)), (Simplex(), ("simplex",))])
def test_float32_storage_certifies_the_kernels_as_given(dtype, C, geometry, name, in_float32):
    Ks, y = random_problem(0, n=60, M=6)
    optimum = conic_optimum(Ks, y, ("hinge", C), name).value
    model = MKLClassifier("precomputed", learner=Hinge(C=C), geometry=geometry, tol=1e-4, dtype=dtype)
    model.fit(Ks, y)
    assert model.certificate_.lower <= optimum * (1 + 1e-8)
    assert optimum <= model.certificate_.upper * (1 + 1e-8)
    assert model.duality_gap_ <= 1e-4
    assert model.history_[-1].certificate == model.certificate_


@pytest.mark.parametrize(("geometry", "name"), [(LpBall(2.0), ("lp", 2.0)), (Simplex(), ("simplex",))])
def test_a_loose_tolerance_is_certified_without_reading_the_kernels_again(
    rng, in_float32, asked, geometry, name
):
    grams, y = gaussians(rng)
    model = MKLClassifier("precomputed", geometry=geometry, learner=Hinge(C=10.0), tol=1e-3).fit(grams, y)
    assert asked == []
    assert model.duality_gap_ <= 1e-3
    assert model.storage_.error > 0.0
    optimum = conic_optimum(grams, y, ("hinge", 10.0), name).value
    assert model.certificate_.lower <= optimum * (1 + 1e-7)
    assert optimum <= model.certificate_.upper * (1 + 1e-7)


def test_where_rounding_opens_the_gap_the_kernels_are_read_and_nothing_is_solved_again(
    rng, in_float32, asked, monkeypatch
):
    grams, y = gaussians(rng)
    model = MKLClassifier("precomputed", geometry=LpBall(2.0), learner=Hinge(C=10.0), tol=1e-3)
    n_iter = model.fit(grams, y).n_iter_
    usual = PackedGrams.matvec_with_error

    def pessimistic(self, eta, coef):
        f, error = usual(self, eta, coef)
        return f, error + 0.01

    monkeypatch.setattr(PackedGrams, "matvec_with_error", pessimistic)
    model.fit(grams, y)
    assert asked == ["exact_grams"]
    assert model.n_iter_ == n_iter
    assert model.duality_gap_ <= 1e-3


def test_float32_that_rounding_keeps_open_goes_on_in_float64(in_float32, asked):
    Ks, y = random_problem(0, n=60, M=6)
    model = MKLClassifier("precomputed", learner=Hinge(C=1e4), tol=1e-9).fit(Ks, y)
    assert asked == ["exact_grams", "float64_grams"]
    assert model.duality_gap_ <= 1e-9
    assert model.n_iter_ == len(model.history_)
    assert model.storage_.error == 0.0
    seconds = [record.seconds for record in model.history_]
    assert seconds == sorted(seconds)


@pytest.mark.parametrize("further", [0, 1, 3])
def test_going_on_in_float64_counts_towards_max_iter(rng, in_float32, monkeypatch, further):
    grams, y = gaussians(rng)
    model = MKLClassifier("precomputed", geometry=LpBall(2.0), learner=Hinge(C=10.0), tol=1e-3)
    enough = model.fit(grams, y).n_iter_
    usual = training.certify
    monkeypatch.setattr(training, "certify", lambda *how: replace(usual(*how), stopped="rounding"))
    model.set_params(max_iter=enough + further)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model.fit(grams, y)
    assert enough + min(further, 1) <= model.n_iter_ <= enough + further


@pytest.mark.parametrize("C", [0.01, 1.0])
def test_roundings_that_conspire_do_not_fool_the_certificate(C):
    """Repeated rows make whole blocks of entries round alike: their errors add up instead of cancelling."""
    rng = np.random.default_rng(0)
    X = rng.integers(0, 3, size=(700, 2)).astype(float)
    y = rng.integers(0, 2, size=700)
    bank = KernelBank([Linear(), Polynomial(degree=2, gamma=1e-3)])
    fits = {}
    for dtype in ("float32", "float64"):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            fits[dtype] = (
                MKLClassifier(bank, learner=Hinge(C=C), tol=1e-4, dtype=dtype).fit(X, y).certificate_
            )
    exact = MKLClassifier(bank, learner=Hinge(C=C), tol=1e-7, dtype="float64").fit(X, y).certificate_
    for certificate in fits.values():
        assert certificate.lower <= exact.upper * (1 + 1e-12)
        assert exact.lower <= certificate.upper * (1 + 1e-12)


@pytest.mark.parametrize("learner", [NuHinge(nu=0.5), SquaredHinge(C=1.0)])
def test_the_reported_certificate_is_drawn_from_the_kernels_as_given(learner):
    """Two blocks of identical entries: in float32 every rounding points the same way."""
    i = np.arange(600)
    y, z = np.where(i % 2 == 0, 1, -1), np.where(i // 2 % 2 == 0, 1.0, -1.0)
    K = 1e4 * np.outer(z, z) + np.outer(y, y) / 3
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        stored = MKLClassifier("precomputed", learner=learner, dtype="float32").fit([K], y).certificate_
        exact = MKLClassifier("precomputed", learner=learner, dtype="float64").fit([K], y).certificate_
    assert stored.lower <= exact.upper + 1e-9 * abs(exact.upper)
    assert exact.lower <= stored.upper + 1e-9 * abs(exact.upper)


# -- the upper bound is attained by the model that is returned


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("C", [1.0, 1e2, 1e4])
@pytest.mark.parametrize("learner", [Hinge, SquaredHinge])
@pytest.mark.parametrize("geometry", [LpBall(2.0), Simplex()], ids=repr)
def test_the_model_is_as_good_as_its_bound(rng, dtype, C, learner, geometry):
    grams, y = gaussians(rng, n=150, noise=0.3)
    model = MKLClassifier("precomputed", learner=learner(C=C), geometry=geometry, tol=1e-2, dtype=dtype)
    value = attained(model.fit(grams, y), grams, y, C, LOSSES[learner])
    assert value <= model.certificate_.upper * (1 + 1e-9)
    assert value >= model.certificate_.lower


def test_unequal_prices_are_paid_by_the_intercept_that_is_returned():
    """A rounded kernel's best intercept may be off by its rounding, on the side where samples pay most."""
    K, y, C = np.array([[1.0, 0.3], [0.3, 0.7]]), np.array([1.0, -1.0]), 2500.0 * np.array([3.0, 0.25])
    for weights in ({"class_weight": {1.0: 3.0, -1.0: 0.25}}, {}):
        model = MKLClassifier(
            "precomputed", learner=Hinge(C=2500.0), geometry=LpBall(2.0), dtype="float32", **weights
        )
        model.fit([K], y, sample_weight=None if weights else [3.0, 0.25])
        assert attained(model, [K], y, C) <= model.certificate_.upper * (1 + 1e-9)


@pytest.mark.parametrize("seed", range(12))
def test_classes_with_prices_far_apart_attain_the_bound_in_float32(seed):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(60, 3))
    y = np.where(X[:, 0] > 0.2, 1.0, -1.0)  # separable
    grams = [np.exp(-((X[:, None] - X) ** 2).sum(axis=2) / width) for width in (1.0, 5.0, 20.0)]
    C = 10.0 ** rng.integers(0, 4) * np.where(y > 0, 10.0, 0.1)
    model = MKLClassifier("precomputed", learner=Hinge(C=1.0), geometry=LpBall(2.0), dtype="float32")
    model.fit(grams, y, sample_weight=C)
    value = attained(model, grams, y, C)
    assert model.certificate_.lower <= value <= model.certificate_.upper * (1 + 1e-9)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_what_centring_removes_is_given_back_to_the_intercept(cancer, dtype):
    X, y = cancer
    X = X / 6.0 + 1.0  # far from the origin, so that centring moves every decision value
    model = MKLClassifier(KernelBank([Polynomial(degree=2)]), dtype=dtype, tol=1e-5).fit(X, y)
    coef = np.zeros(len(y))
    coef[model.support_] = model.dual_coef_[0]
    free = (np.abs(coef) > 1e-3) & (np.abs(coef) < 1.0 - 1e-3)
    margins = np.where(y == 1, 1.0, -1.0) * model.decision_function(X)
    assert free.sum() >= 2
    np.testing.assert_allclose(margins[free], 1.0, atol=0.05)
