"""Descent on streamed kernels at its limits: rounding, vanishing optima, small blocks, models that are not convex."""

import numpy as np
import pytest

from kernelweave import Entry, KernelBank
from kernelweave.geometry import Point, RidgeSimplex, Simplex, Uniform
from kernelweave.geometry._qp import capped_simplex_step, capped_simplex_step_at_most
from kernelweave.gram import DenseGrams, PackedGrams, StreamedGrams
from kernelweave.kernels import (
    Centering,
    Gaussian,
    InverseSquareDistance,
    Linear,
    Polynomial,
    UnitTrace,
    UnitVariance,
)
from kernelweave.learners import Hinge, NuHinge, OneClass, SquaredHinge
from kernelweave.learners.solution import approximate_hessian
from kernelweave.solvers import CuttingPlane, Newton, Problem, StreamedDescent, WarmStart


def streamed(entries, X, dtype="float32"):
    fitted = KernelBank(entries).fit(X)
    return StreamedGrams(fitted.sources(), len(fitted), len(X), dtype=dtype, may_combine=False)


def labels(X, rng):
    return np.where(X[:, 0] + X[:, 1] ** 2 + 0.5 * rng.normal(size=len(X)) > 0.8, 1.0, -1.0)


def test_a_block_without_a_minimum_in_float32_leaves_the_best_iterate_for_float64(rng):
    # Far from the origin rounding gives the kernel eigenvalues far below −d, the curvature of the squared hinge.
    X = rng.normal(size=(200, 3))
    y, far = labels(X, rng), X + 1e5
    entries = [Entry(Linear(), scaling=UnitVariance()), Entry(Gaussian(width=2.0))]
    solver = StreamedDescent(tol=1e-4, n_coarse=60, block_size=40)
    rough = solver.run(Problem(streamed(entries, far), y, SquaredHinge(C=0.01), Uniform()))
    assert rough.stopped == "rounding"
    assert np.isfinite(rough.certificate.upper)
    assert np.isfinite(rough.inner.coef).all()
    exact = Problem(streamed(entries, far, "float64"), y, SquaredHinge(C=0.01), Uniform())
    assert solver.run(exact, WarmStart(rough.eta, rough.inner.coef)).stopped == "converged"


@pytest.mark.parametrize(
    "H", [[[-1.5e6, -18.0], [-18.0, -49.0]], [[-1.3e4, 77.0], [77.0, 5.7]], [[-1.0, 0.0], [0.0, -1.0]]]
)
def test_a_model_that_is_not_convex_still_leads_to_weights_in_the_set(H):
    eta, h = np.array([0.0, 1.0]), np.array([6e-3, 9e-4])
    x = capped_simplex_step(eta, h, np.array(H), 1.0)
    assert x.min() >= 0.0
    assert x.sum() == pytest.approx(1.0)
    x = capped_simplex_step_at_most(eta, h, np.array(H), 1.0)
    assert x.min() >= 0.0
    assert x.sum() <= 1.0 + 1e-9


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("n_steps", [2, 6])
def test_the_approximate_hessian_has_no_negative_eigenvalues_however_kernels_differ_in_size(
    dtype, n_steps, rng
):
    for _ in range(20):
        B = np.hstack([rng.normal(size=(40, 40)) * 10.0 ** rng.uniform(-3, 0, 40), np.full((40, 1), 3e3)])
        U = rng.normal(size=(40, 6)) * 10.0 ** rng.uniform(-3, 2, 6)
        E = (np.arange(40)[:, None] % 2 == np.arange(2)).astype(np.float64)
        H = approximate_hessian((B @ B.T).astype(dtype), np.zeros(40), U, E, n_steps)
        assert np.diagonal(H).min() >= 0.0
        roots = np.sqrt(np.where(np.diagonal(H) > 0.0, np.diagonal(H), 1.0))
        assert np.linalg.eigvalsh(H / np.outer(roots, roots)).min() >= -1e-9


@pytest.mark.parametrize("solver", [Newton(tol=1e-13), CuttingPlane(tol=1e-6)])
def test_weights_that_are_given_need_not_sum_to_one(solver, rng):
    X = rng.normal(size=(60, 2))
    grams = DenseGrams([X @ X.T, (1.0 + X @ X.T) ** 2])
    given = Point([0.5, 0.9])
    result = solver.run(Problem(grams, labels(X, rng), Hinge(C=1.0), given))
    np.testing.assert_array_equal(result.eta, [0.5, 0.9])
    assert result.certificate.relative_gap < 1e-6


def test_values_that_centring_left_are_rounded_like_the_terms_they_are_differences_of(rng):
    X = rng.normal(size=(80, 3)) + 1e5
    entries = [Entry(Polynomial(degree=3, gamma=1e-11, offset=1.0), scaling=Centering())]
    fitted = KernelBank(entries).fit(X)
    raw = (1e-11 * X @ X.T + 1.0) ** 3
    for grams in (
        streamed(entries, X, "float64"),
        PackedGrams.from_sources(fitted.sources(), 1, 80, dtype="float64", centre=False),
    ):
        assert np.diagonal(raw).max() <= grams.sizes[0] <= 4.0 * np.diagonal(raw).max()


def test_rounding_of_a_centred_kernel_does_not_make_it_indefinite(rng):
    X = rng.normal(size=(200, 4)) + 7e5 * rng.normal(size=4)
    fitted = KernelBank([Entry(Polynomial(degree=3, gamma=2e-13, offset=1.0), scaling=Centering())]).fit(X)
    grams = PackedGrams.from_sources(fitted.sources(), 1, 200, dtype="float64", centre=False)
    assert np.isfinite(
        Newton().run(Problem(grams, np.ones(200), OneClass(nu=0.5), Uniform())).certificate.upper
    )


@pytest.mark.parametrize("shift", [0.0, 1e3])
def test_where_hulls_overlap_the_optimum_is_zero_and_nobody_waits_for_a_share_of_it(shift, rng):
    X = np.repeat(rng.normal(size=(150, 1)), 2, axis=0)
    y, learner = np.tile([1.0, -1.0], 150), NuHinge(nu=0.5)
    entries = [Entry(Gaussian(width=1.0)), Entry(Linear())]
    for dense in (False, True):
        grams = streamed(entries, X + shift, "float64")
        grams = DenseGrams([grams.combine(eta) for eta in np.eye(2)]) if dense else grams
        result = (Newton() if dense else StreamedDescent(n_coarse=60)).run(
            Problem(grams, y, learner, Simplex())
        )
        assert result.stopped == "vanishing"
        assert result.certificate.lower <= 0.0 <= result.certificate.upper + 1e-12


def test_a_small_optimum_of_classes_that_are_apart_is_not_zero(rng):
    # The linear kernel is far from the origin: its entries are a million times the squared distances.
    X = rng.normal(size=(120, 2))
    y = np.where(X[:, 0] > 0, 1.0, -1.0)
    grams = streamed([Entry(Linear())], X + np.sign(X[:, :1]) + 2e3, "float64")
    assert StreamedDescent(tol=1e-3).run(Problem(grams, y, NuHinge(nu=0.5), Uniform())).stopped == "converged"


def test_blocks_far_smaller_than_the_table_get_there_while_the_bounds_differ_in_sign(rng):
    X = rng.normal(size=(300, 3))
    entries = [Entry(Gaussian(width=1.0)), Entry(InverseSquareDistance(gamma=0.1))]
    grams = streamed(entries, X, "float64")
    problem = Problem(grams, labels(X, rng), SquaredHinge(C=1e4), Uniform())
    result = StreamedDescent(tol=1e-2, n_coarse=60, block_size=40).run(problem)
    assert result.stopped == "converged"


def test_kernels_that_a_penalty_would_let_in_enter(rng):
    X = rng.normal(size=(150, 2))
    entries = [Entry(Gaussian(width=w), scaling=UnitTrace()) for w in (0.3, 1.0, 3.0)]
    problem = Problem(
        streamed(entries, X, "float64"), labels(X, rng), Hinge(C=10.0), RidgeSimplex(theta=1e-3)
    )
    start = WarmStart(np.array([0.0, 1.0, 0.0]), np.zeros(150))
    result = StreamedDescent(tol=1e-4).run(problem, start)
    assert result.stopped == "converged"
    assert np.count_nonzero(result.eta) > 1
