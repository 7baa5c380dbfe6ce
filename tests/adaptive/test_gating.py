"""Gated kernels: gradients by finite differences, values from the definition, restarts."""

import numpy as np
import pytest
from scipy.spatial.distance import cdist
from scipy.special import expit, softmax
from sklearn.svm import SVC
from tests.reference.problems import random_problem

from kernelweave.adaptive.gating import (
    GatedObjective,
    GaussianSoftmax,
    Sigmoid,
    Softmax,
    learn_gating,
)
from kernelweave.geometry import LpBall
from kernelweave.gram import DenseGrams
from kernelweave.learners import Hinge, SquaredHinge
from kernelweave.solvers import Problem

GATINGS = [(Softmax(), lambda a: softmax(a, axis=1)), (Sigmoid(), expit)]


@pytest.fixture
def data(rng):
    Ks, y = random_problem(0, 30, 3)
    stack = DenseGrams(Ks).packed("float64")
    return Ks, y, stack, np.column_stack([rng.normal(size=(30, 2)), np.ones(30)])


@pytest.mark.parametrize(("gating", "formula"), GATINGS, ids=["softmax", "sigmoid"])
def test_the_value_is_that_of_an_svm_on_the_gated_kernel(rng, data, gating, formula):
    Ks, y, stack, Z = data
    u = rng.normal(size=(3, 3))
    value, _ = GatedObjective(stack, y, Hinge(C=2.0), gating, Z, None, 1e-8)(u.ravel())
    eta = formula(Z @ u.T)
    K = sum(np.outer(eta[:, m], eta[:, m]) * Ks[m] for m in range(3))
    svm = SVC(C=2.0, kernel="precomputed", tol=1e-8).fit(K, y)
    v = np.zeros(30)
    v[svm.support_] = svm.dual_coef_[0]
    assert value == pytest.approx(np.abs(v).sum() - 0.5 * v @ K @ v, rel=1e-6)


@pytest.mark.parametrize("gating", [Softmax(), Sigmoid()], ids=repr)
@pytest.mark.parametrize("learner", [Hinge(C=2.0), SquaredHinge(C=2.0)], ids=repr)
def test_the_gradient_is_that_of_finite_differences(rng, data, gating, learner):
    _, y, stack, Z = data
    value = GatedObjective(stack, y, learner, gating, Z, np.linspace(0.5, 1.5, 30), 1e-11)
    u = rng.normal(size=9)
    gradient = value(u)[1]
    for k in range(9):
        step = 1e-5 * np.eye(9)[k]
        expected = (value(u + step)[0] - value(u - step)[0]) / 2e-5
        assert gradient[k] == pytest.approx(expected, rel=1e-3, abs=1e-4 * np.abs(gradient).max())


def learnt(data, **params):
    _, y, stack, Z = data
    problem = Problem(stack, y, Hinge(C=2.0), LpBall(np.inf), None)
    options = dict(tol=1e-5, max_iter=60, n_init=1, rng=np.random.default_rng(0)) | params
    return learn_gating(problem, Softmax(), Z[:, :2], **options)


def test_descent_starts_from_even_weights_and_only_falls(data):
    Ks, y, *_ = data
    found = learnt(data)
    assert (np.diff(found.values) <= 1e-5 * found.values[0]).all()
    assert found.values[-1] < 0.98 * found.values[0]
    svm = SVC(C=2.0, kernel="precomputed", tol=1e-8).fit(sum(Ks) / 9, y)
    v = svm.dual_coef_[0]
    even = np.abs(v).sum() - 0.5 * v @ (sum(Ks) / 9)[np.ix_(svm.support_, svm.support_)] @ v
    assert found.values[0] == pytest.approx(even, rel=1e-4)


def test_the_certificate_is_that_of_the_svm_for_the_gating_found(data):
    Ks, y, *_ = data
    found = learnt(data)
    K = sum(np.outer(e, e) * K for e, K in zip(found.weights.T, Ks, strict=True))
    svm = SVC(C=2.0, kernel="precomputed", tol=1e-9).fit(K, y)
    v = np.zeros(30)
    v[svm.support_] = svm.dual_coef_[0]
    optimum = np.abs(v).sum() - 0.5 * v @ K @ v
    assert found.result.certificate.lower <= optimum * (1 + 1e-7)
    assert optimum * (1 - 1e-7) <= found.result.certificate.upper
    assert found.result.certificate.relative_gap <= 1e-6


def test_a_further_restart_never_makes_it_worse(data):
    for seed in range(3):
        starts = [learnt(data, n_init=k + 1, rng=np.random.default_rng(seed)) for k in range(5)]
        values = np.array([found.values[-1] for found in starts])
        assert (np.diff(values) <= 0.0).all()
        assert [found.result.certificate.upper for found in starts] == pytest.approx(values, rel=1e-5)


def test_few_steps_are_reported(data):
    assert not learnt(data, max_iter=1).converged
    assert learnt(data).converged


def test_a_gaussian_gating_is_a_mixture_of_gaussians_with_shares_centres_and_widths(rng):
    centres, widths, shares = rng.normal(size=(3, 4)), rng.uniform(0.5, 2.0, 3), np.array([0.2, 0.5, 0.3])
    X = rng.normal(size=(20, 4))
    distances = ((X[:, None] - centres) ** 2).sum(axis=2)
    densities = shares * np.exp(-distances / (2.0 * widths**2))
    # log density = log share - |c|²/2w² + c'x/w² - |x|²/2w², with |x|² = d + √2d z.
    squares = -np.sqrt(8.0) / (2.0 * widths**2)
    constants = np.log(shares) - ((centres**2).sum(axis=1) + 4.0) / (2.0 * widths**2)
    coef = np.column_stack([centres / widths[:, None] ** 2, squares, constants])
    gating = GaussianSoftmax()
    found = gating.weights(gating.inputs(X) @ coef.T)
    np.testing.assert_allclose(found, densities / densities.sum(axis=1, keepdims=True), rtol=1e-10)


def test_starts_that_see_some_samples_end_about_as_low_as_those_that_see_all():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 2))
    y = np.where(np.where(X[:, 0] < 0, X[:, 1] > 0, (X**2).sum(axis=1) > 1.5), 1.0, -1.0)
    Ks = [X @ X.T, np.exp(-cdist(X, X, "sqeuclidean"))]
    problem = Problem(
        DenseGrams(Ks).packed("float64"), y, Hinge(C=2.0), LpBall(np.inf), rng.uniform(0.5, 1.5, 300)
    )
    options = dict(tol=1e-5, max_iter=100, n_init=3)
    some, every = (
        learn_gating(problem, Softmax(), X, rng=np.random.default_rng(0), n_leading=n, **options)
        for n in (100, 1000)
    )
    assert some.weights.shape == every.weights.shape == (300, 2)
    assert some.converged
    assert some.values[-1] <= 1.03 * every.values[-1]
    assert some.values[0] < 0.9 * every.values[0]  # the last descent starts near its end
    svm = some.result.certificate
    assert svm.lower <= some.values[-1] * (1 + 1e-4)
    assert some.values[-1] * (1 - 1e-4) <= svm.upper
