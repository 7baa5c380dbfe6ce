"""The quadratic programs that blocks are solved on, and the model of the weights that a block gives."""

import numpy as np
import pytest
from tests.reference.problems import gaussian
from tests.solvers.test_streamed import table, target

from kernelweave.learners import (
    EpsilonInsensitive,
    Hinge,
    MarginDistribution,
    NuHinge,
    OneClass,
    SquaredHinge,
)
from kernelweave.learners.program import DualProgram
from kernelweave.learners.solution import approximate_hessian, reduced_hessian

LEARNERS = [
    Hinge(C=1.0),
    NuHinge(nu=0.4),
    SquaredHinge(C=2.0),
    EpsilonInsensitive(C=1.0, epsilon=0.2),
    OneClass(nu=0.3),
    MarginDistribution(lam=0.2),
    EpsilonInsensitive(epsilon=0.0),
    Hinge(C=1000.0),
    NuHinge(nu=0.05),
    OneClass(nu=1.0),
    SquaredHinge(C=1e-3),
]


def programs():
    """Yield (name, program, y) of every learner whose dual is one, with and without weights."""
    X, score = table(23, 120)
    weight = np.random.default_rng(1).choice([0.0, 0.5, 1.0, 4.0], size=120)
    for learner in LEARNERS:
        for w in (np.ones(120), weight):
            yield learner, learner.program(target(learner, score), w), X


PROGRAMS = [pytest.param(*case, id=f"{case[0]!r} {i % 2}") for i, case in enumerate(programs())]
each_program = pytest.mark.parametrize(("learner", "program", "X"), PROGRAMS)


def assert_feasible(program, v):
    assert np.isfinite(v).all()
    assert (v >= program.lo).all()
    assert (v <= program.hi).all()
    sums = np.bincount(program.group, weights=v, minlength=program.sums.size)
    np.testing.assert_allclose(sums, program.sums, atol=1e-9 * max(np.abs(v).sum(), 1.0))


def objective(program, K, v):
    return 0.5 * v @ K @ v - program.gain(v)


@each_program
@pytest.mark.parametrize("scale", [0.0, 1e-6, 1.0, 1e6])
def test_suggested_coefficients_are_feasible(learner, program, X, scale, rng):
    assert_feasible(program, program.warm_coefficients_from(scale * rng.normal(size=120)))
    assert_feasible(program, program.warm_coefficients_from(program.s + scale))
    assert_feasible(program, program.warm_coefficients_from(np.full(120, scale)))


@pytest.mark.parametrize("learner", [Hinge(), SquaredHinge(), EpsilonInsensitive(epsilon=0.1)], ids=repr)
def test_decision_values_of_the_solution_suggest_coefficients_near_it(learner):
    X, score = table(24, 120)
    y, K = target(learner, score), gaussian(X, 2.0)
    found = learner.solve(K, y, tol=1e-8)
    program, v = found.programs[0]
    suggested = program.warm_coefficients_from(K @ v)
    nothing = objective(program, K, program.feasible(None))
    assert objective(program, K, suggested) < 0.5 * (nothing + objective(program, K, v))


def positive_definite(rng, X):
    return gaussian(X, 1.0) + 0.05 * np.eye(len(X)), rng.normal(size=len(X))


@each_program
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_the_optimum_of_a_block_does_not_raise_the_objective(learner, program, X, dtype, rng):
    K, f = positive_definite(rng, X)
    v = program.warm_coefficients_from(f)
    value = objective(program, K, v)
    for _ in range(6):
        block = np.sort(rng.choice(120, 40, replace=False))
        part = program.on_block(block, K[np.ix_(block, block)].astype(dtype), v, K @ v)
        moved, _, _ = part.descend(K[np.ix_(block, block)].astype(dtype), v[block], 1e-8)
        v = v.copy()
        v[block] = moved
        assert_feasible(program, v)
        now = objective(program, K, v)
        assert now <= value + 1e-5 * abs(value) * (dtype == np.float32) + 1e-11 * max(abs(value), 1.0)
        value = now


@each_program
def test_a_block_of_all_samples_is_the_problem_itself(learner, program, X, rng):
    K, f = positive_definite(rng, X)
    v, every = program.warm_coefficients_from(f), np.arange(120)
    part = program.on_block(every, K, v, K @ v)
    np.testing.assert_allclose(part.s, program.s, atol=1e-9 * max(np.abs(K @ v).max(), 1.0))
    np.testing.assert_allclose(part.sums, program.sums, atol=1e-9 * max(np.abs(v).sum(), 1.0))
    for name in ("d", "lo", "hi", "group"):
        np.testing.assert_array_equal(getattr(part, name), getattr(program, name))


@each_program
def test_a_part_has_the_numbers_of_its_samples(learner, program, X):
    rows = np.array([3, 5, 70, 119])
    part = program.at(rows)
    for name in ("s", "d", "lo", "hi", "group"):
        np.testing.assert_array_equal(getattr(part, name), getattr(program, name)[rows])
    np.testing.assert_array_equal(part.sums, program.sums)
    assert (part.kink is None) == (program.kink is None)
    if program.kink is not None:
        np.testing.assert_array_equal(part.kink, program.kink[rows])


@each_program
def test_violations_are_the_slopes_of_the_objective(learner, program, X, rng):
    K, f = positive_definite(rng, X)
    v = program.warm_coefficients_from(f)
    inside = np.isfinite(program.hi)
    v[::7] = np.where(inside, program.hi, v)[::7]
    v[1::7] = np.where(np.isfinite(program.lo), program.lo, v)[1::7]
    v[2::7] = np.clip(0.0, program.lo, program.hi)[2::7]
    up, down = program.violations(v, K @ v)
    size = np.abs(np.concatenate([K @ v + program.d * v, program.s])).max()
    for i in range(120):
        room = min(program.hi[i] - v[i], 1e6), min(v[i] - program.lo[i], 1e6)
        for side, (slope, space) in enumerate(zip((up[i], down[i]), room, strict=True)):
            if space <= 0.0:
                assert slope == -np.inf
                continue
            # The least step that crosses no kink; the objective is quadratic there.
            step = min(space, 1.0, abs(v[i]) if v[i] != 0.0 else np.inf)
            if step < 1e-9:
                continue
            moved = v.copy()
            moved[i] += step if side == 0 else -step
            fall = objective(program, K, v) - objective(program, K, moved)
            curvature = 0.5 * (K[i, i] + program.d[i]) * step
            assert slope - curvature == pytest.approx(fall / step, abs=1e-6 * size * max(1.0, 1e-3 / step))


@each_program
def test_at_the_solution_no_pair_of_violations_is_left(learner, program, X, rng):
    K, _ = positive_definite(rng, X)
    v, f, _ = program.descend(K, program.feasible(None), 1e-7)
    up, down = program.violations(v, f)
    for g in range(program.sums.size):
        inside = program.group == g
        assert up[inside].max() + down[inside].max() <= 1e-6


def test_a_program_without_free_coordinates_suggests_the_only_point_there_is():
    program = DualProgram(
        s=np.ones(3),
        d=np.zeros(3),
        lo=np.zeros(3),
        hi=np.full(3, 1 / 3),
        group=np.zeros(3, dtype=np.int64),
        sums=np.ones(1),
    )
    np.testing.assert_allclose(program.warm_coefficients_from(np.array([1.0, -5.0, 3.0])), np.full(3, 1 / 3))


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("n_groups", [0, 1, 2])
@pytest.mark.parametrize("ridge", [0.0, 0.3])
def test_with_many_steps_the_approximate_hessian_is_the_hessian(dtype, n_groups, ridge, rng):
    n = 40
    B = rng.normal(size=(n, n))
    A = (B @ B.T / n + np.eye(n)).astype(dtype)
    U, d = rng.normal(size=(n, 5)), np.full(n, ridge)
    E = (np.arange(n)[:, None] % max(n_groups, 1) == np.arange(n_groups)).astype(np.float64)
    inverse = np.linalg.inv(A.astype(np.float64) + np.diag(d))
    H = U.T @ inverse @ U
    if n_groups:
        H -= U.T @ inverse @ E @ np.linalg.solve(E.T @ inverse @ E, E.T @ inverse @ U)
    full = A.copy()
    full[np.diag_indices(n)] += dtype(ridge)
    accuracy = dict(rtol=1e-6, atol=1e-6) if dtype is np.float64 else dict(rtol=2e-3, atol=2e-3)
    np.testing.assert_allclose(approximate_hessian(A, d, U, E, 200), H, **accuracy)
    np.testing.assert_allclose(reduced_hessian(full, U, E, 1), H, **accuracy)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("rank", [0, 1, 3, 20])
@pytest.mark.parametrize("n_steps", [1, 6, 60])
def test_the_approximate_hessian_of_a_singular_system_is_a_finite_model(dtype, rank, n_steps, rng):
    Z = rng.normal(size=(20, max(rank, 1))) * bool(rank)
    A = (Z @ Z.T).astype(dtype)
    U = np.column_stack([Z @ rng.normal(size=Z.shape[1]), A.astype(float) @ rng.normal(size=20)])
    H = approximate_hessian(A, np.zeros(20), U, np.ones((20, 1)), n_steps)
    assert np.isfinite(H).all()
    assert np.linalg.eigvalsh(H).min() >= -1e-3 * max(np.abs(H).max(), 1e-12)
