"""Limits and equivalences the papers state."""

import numpy as np
import pytest
from sklearn.svm import SVC, NuSVC
from tests.reference.problems import random_problem, single_kernel_problem

from kernelweave import MKLClassifier
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
from kernelweave.learners import Hinge, NuHinge

TOL = 1e-8


def fit(Ks, y, geometry, learner=None, tol=TOL):
    return MKLClassifier("precomputed", learner=learner, geometry=geometry, tol=tol).fit(Ks, y)


@pytest.fixture(params=[0, 1])
def problem(request):
    return random_problem(request.param, n=60, M=8)


def test_theta_of_one_over_m_is_exactly_the_average_kernel(problem):
    Ks, y = problem
    box, average = fit(Ks, y, BoxSimplex(theta=1 / 8)), fit(Ks, y, Uniform())
    np.testing.assert_array_equal(box.kernel_weights_, np.full(8, 1 / 8))
    np.testing.assert_array_equal(box.decision_function(Ks), average.decision_function(Ks))
    svc = SVC(kernel="precomputed", tol=1e-9).fit(np.mean(Ks, axis=0), y)
    np.testing.assert_allclose(
        box.decision_function(Ks), svc.decision_function(np.mean(Ks, axis=0)), atol=1e-5
    )


def test_nu_of_one_is_the_average_kernel_too(problem):
    Ks, y = problem
    np.testing.assert_array_equal(fit(Ks, y, BoxSimplex(nu=1.0)).kernel_weights_, np.full(8, 1 / 8))


@pytest.mark.parametrize(
    "geometry", [BoxSimplex(theta=1.0), BoxSimplex(theta=7.5), LpBall(p=1), ElasticNetBall(v=1.0)]
)
def test_no_cap_and_p_of_one_are_exactly_the_simplex(problem, geometry):
    Ks, y = problem
    hard, same = fit(Ks, y, Simplex()), fit(Ks, y, geometry)
    np.testing.assert_allclose(same.kernel_weights_, hard.kernel_weights_, atol=1e-12)
    np.testing.assert_allclose(same.decision_function(Ks), hard.decision_function(Ks), atol=1e-9)
    assert same.objective_ == pytest.approx(hard.objective_, rel=1e-10)


def test_a_group_per_kernel_is_the_box_simplex(problem):
    Ks, y = problem
    box, group = fit(Ks, y, BoxSimplex(theta=0.3), tol=1e-7), fit(Ks, y, GroupBox(theta=0.3), tol=1e-7)
    assert group.objective_ == pytest.approx(box.objective_, rel=1e-6)


def test_one_group_is_the_l2_ball(problem):
    Ks, y = problem
    ball, group = fit(Ks, y, LpBall(2.0), tol=1e-7), fit(Ks, y, GroupBox([0] * 8, theta=1.0), tol=1e-7)
    np.testing.assert_allclose(group.kernel_weights_, ball.kernel_weights_, atol=1e-2)
    assert group.objective_ == pytest.approx(ball.objective_, rel=1e-6)


def test_p_of_infinity_is_the_sum_of_the_kernels(problem):
    Ks, y = problem
    model = fit(Ks, y, LpBall(p=np.inf))
    np.testing.assert_array_equal(model.kernel_weights_, np.ones(8))
    svc = SVC(kernel="precomputed", tol=1e-9).fit(sum(Ks), y)
    np.testing.assert_allclose(model.decision_function(Ks), svc.decision_function(sum(Ks)), atol=1e-5)


def test_p_towards_one_tends_to_the_simplex(problem):
    Ks, y = problem
    hard = fit(Ks, y, Simplex(), tol=1e-7).objective_
    distance = [hard - fit(Ks, y, LpBall(p), tol=1e-7).objective_ for p in (1.5, 1.1, 1.01)]
    assert distance[0] > distance[1] > distance[2] > 0.0
    assert distance[2] < 0.02 * hard


def test_a_large_theta_makes_the_ridge_vanish_and_a_small_one_the_learning(problem):
    Ks, y = problem
    hard = fit(Ks, y, Simplex(), tol=1e-7)
    assert fit(Ks, y, RidgeSimplex(theta=1e6), tol=1e-7).objective_ == pytest.approx(
        hard.objective_, rel=1e-5
    )
    flat = fit(Ks, y, RidgeSimplex(theta=1e-6), tol=1e-7)
    np.testing.assert_allclose(flat.kernel_weights_, np.full(8, 1 / 8), atol=1e-4)


def test_the_power_of_two_is_the_ridge(problem):
    Ks, y = problem
    ridge, power = fit(Ks, y, RidgeSimplex(0.5), tol=1e-7), fit(Ks, y, PowerSimplex(0.5, 2.0), tol=1e-7)
    assert power.objective_ == pytest.approx(ridge.objective_, rel=1e-6)
    np.testing.assert_allclose(power.kernel_weights_, ridge.kernel_weights_, atol=1e-3)


GEOMETRIES = [
    Uniform(),
    Simplex(),
    BoxSimplex(),
    LpBall(1.0),
    LpBall(2.0),
    LpBall(np.inf),
    ElasticNetBall(),
    GroupBox(),
    RidgeSimplex(),
    PowerSimplex(),
]


@pytest.mark.parametrize("geometry", GEOMETRIES, ids=repr)
@pytest.mark.parametrize("C", [0.1, 1.0, 100.0])
def test_one_kernel_is_exactly_a_plain_svm(geometry, C):
    Ks, y = single_kernel_problem(0)
    model = fit(Ks, y, geometry, Hinge(C=C), tol=1e-9)
    np.testing.assert_array_equal(model.kernel_weights_, [1.0])
    svc = SVC(C=C, kernel="precomputed", tol=1e-10).fit(Ks[0], y)
    np.testing.assert_allclose(
        model.decision_function(Ks), svc.decision_function(Ks[0]), atol=1e-5 * max(1.0, C)
    )


def test_one_kernel_in_the_nu_form_is_scikit_learns_nu_svc():
    Ks, y = single_kernel_problem(1)
    model = fit(Ks, y, Simplex(), NuHinge(nu=0.35), tol=1e-9)
    svc = NuSVC(nu=0.35, kernel="precomputed", tol=1e-10).fit(Ks[0], y)
    np.testing.assert_allclose(model.decision_function(Ks), svc.decision_function(Ks[0]), atol=1e-4)


def test_the_share_of_kernels_in_use_is_at_least_nu(problem):
    Ks, y = problem
    for nu in (0.25, 0.5, 0.75):
        assert np.count_nonzero(fit(Ks, y, BoxSimplex(nu=nu), tol=1e-6).kernel_weights_) >= nu * 8


def test_duplicated_kernels_share_what_one_would_get(problem):
    Ks, y = problem
    once, twice = fit(Ks, y, Simplex(), tol=1e-7), fit(Ks + Ks, y, Simplex(), tol=1e-7)
    assert twice.objective_ == pytest.approx(once.objective_, rel=1e-6)
    np.testing.assert_allclose(
        twice.kernel_weights_[:8] + twice.kernel_weights_[8:], once.kernel_weights_, atol=1e-2
    )
