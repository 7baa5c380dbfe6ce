"""Steps that leave kernels behind stay in the set and near where they should go."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.reference.conic import conic_optimum

from kernelweave import MKLClassifier
from kernelweave.geometry import LpBall
from kernelweave.gram import DenseGrams, MatrixSource, PackedGrams
from kernelweave.learners import Hinge
from kernelweave.solvers import BlockDescent, Problem, block, verify
from kernelweave.solvers.moves import BEHIND, mostly
from kernelweave.solvers.problem import Walk

M = 40


def weights(rng, p, spread):
    eta = rng.random(M) ** spread
    return eta / np.linalg.norm(eta, p)


@given(
    seed=st.integers(0, 10_000),
    p=st.sampled_from([1.5, 2.0, 4.0]),
    off=st.floats(1e-3, 0.3),
    spread=st.floats(0.2, 8.0),
)
def test_it_is_near_in_the_ball_and_many_keep_their_proportion(seed, p, off, spread):
    rng, ball = np.random.default_rng(seed), LpBall(p)
    before, after = weights(rng, p, 1.0), weights(rng, p, spread)
    near = mostly(ball, before, after, off)
    assert near.min() >= 0.0
    assert np.linalg.norm(near, p) == pytest.approx(1.0)
    if near is after:
        return
    ratio = near / before
    together = max(np.isclose(ratio, one, rtol=1e-12, atol=0.0).sum() for one in ratio)
    assert together >= BEHIND * M
    # Some multiple of it is as near as asked for: scaling is the last thing done.
    best = near * (near @ after) / (near @ near)
    assert np.linalg.norm(best - after) <= off * np.linalg.norm(after) * (1.0 + 1e-9)


def test_those_that_move_far_go_all_the_way():
    before, after = np.full(M, 0.2), np.full(M, 0.0101)
    after[:4] = 0.5, 0.4, 0.3, 0.2
    after[10:20] = 0.0099
    near = mostly(LpBall(2.0), before, after, 0.01)
    np.testing.assert_allclose(near[:4] / near[0], [1.0, 0.8, 0.6, 0.4])
    assert np.ptp(near[4:]) == 0.0


def test_nothing_is_left_behind_that_has_to_move(rng):
    before, after = weights(rng, 2.0, 1.0), weights(rng, 2.0, 1.0)
    assert mostly(LpBall(2.0), before, after, 1e-6) is after
    assert mostly(LpBall(2.0), np.zeros(M), after, 0.1) is after


@pytest.fixture(scope="module")
def many_kernels():
    rng = np.random.default_rng(7)
    X = rng.normal(size=(130, 24))
    y = np.where(X[:, 0] + X[:, 1] ** 2 - 1.0 + 0.5 * rng.normal(size=130) > 0, 1.0, -1.0)
    # Of low rank, so that the oracle is quick; two of them know something.
    Ks = [np.outer(x, x) + 0.5 * np.outer(x**2, x**2) for x in X.T]
    return Ks, y


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize(("p", "C"), [(2.0, 1.0), (2.0, 100.0), (4.0, 10.0)])
def test_bounds_enclose_the_optimum_where_sums_follow_their_weights(many_kernels, monkeypatch, p, C, dtype):
    Ks, y = many_kernels
    moves, follow = [], PackedGrams.move

    def counted(self, K, keep, change):
        moves.append(np.count_nonzero(change))
        follow(self, K, keep, change)

    monkeypatch.setattr(PackedGrams, "move", counted)
    stack = PackedGrams.pack([MatrixSource(Ks)], len(Ks), len(y), dtype)
    problem = Problem(stack, y, Hinge(C=C), LpBall(p))
    result = BlockDescent(tol=1e-4, relaxation=0.7).run(problem)
    assert moves
    assert max(moves) <= (1.0 - BEHIND) * len(Ks)
    optimum = conic_optimum(Ks, y, ("hinge", C), ("lp", p)).value
    slack = 1e-6 * optimum
    bounds = [record.certificate for record in result.history]
    bounds.append(verify(problem, lambda: DenseGrams(tuple(Ks), centre=True), result).certificate)
    for certificate in bounds:
        assert certificate.lower <= optimum + slack
        assert certificate.upper >= optimum - slack
    assert bounds[-1].relative_gap <= 2e-4


def test_the_model_of_a_walk_with_moves_has_the_value_its_certificate_says(many_kernels):
    Ks, y = many_kernels
    parts = {"learner": Hinge(C=10.0), "geometry": LpBall(2.0)}
    model = MKLClassifier("precomputed", **parts, tol=1e-3, dtype="float32").fit(Ks, y)
    K = np.tensordot(model.kernel_weights_, Ks, axes=1)
    v = np.zeros(len(y))
    v[model.support_] = model.dual_coef_.ravel()
    value = 0.5 * v @ K @ v + 10.0 * np.maximum(0.0, 1.0 - y * (K @ v + model.intercept_)).sum()
    assert model.certificate_.lower <= value <= model.certificate_.upper * (1.0 + 1e-9)
    assert model.certificate_.relative_gap <= 1e-3


def packed_problem(Ks, y, p, C, dtype="float64"):
    stack = PackedGrams.pack([MatrixSource(Ks)], len(Ks), len(y), dtype)
    return Problem(stack, y, Hinge(C=C), LpBall(p))


@pytest.mark.parametrize("p", [1.1, 4.0 / 3.0, 2.0, 4.0])
@pytest.mark.parametrize("from_few", [False, True])
def test_walks_that_leave_kernels_behind_end_as_soon_as_others(many_kernels, monkeypatch, p, from_few):
    Ks, y = many_kernels
    ball, start = LpBall(p), None
    if from_few:  # most weights are small and have to grow
        start = ball.scaled(np.where(np.arange(len(Ks)) < 2, 1.0, 1e-6))
    problem = packed_problem(Ks, y, p, 10.0)
    result = BlockDescent(tol=1e-3, relaxation=0.7).run(problem, start=start)
    monkeypatch.setattr(block, "mostly", lambda *parts: parts[2])
    whole = BlockDescent(tol=1e-3, relaxation=0.7).run(problem, start=start)
    assert result.stopped == whole.stopped == "converged"
    assert result.n_iter <= whole.n_iter + 3


@pytest.mark.parametrize("size", [1e3, 1e6])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_a_kernel_that_is_larger_than_all_others_is_no_trap(many_kernels, size, dtype):
    Ks, y = many_kernels
    z = np.random.default_rng(0).normal(size=len(y))
    problem = packed_problem([*Ks, size * np.outer(z, z)], y, 2.0, 1.0, dtype)
    result = BlockDescent(tol=1e-3, relaxation=0.7).run(problem)
    assert result.n_iter <= 20


def test_every_step_leads_on():
    before = np.full(M, 1.0 / np.sqrt(M))
    after = before * (1.0 + 1e-4 * np.linspace(-1.0, 1.0, M))  # all of it less than what may be off
    after /= np.linalg.norm(after)
    near = mostly(LpBall(2.0), before, after, 0.1)
    assert np.linalg.norm(near - after) <= 0.35 * np.linalg.norm(before - after)


def test_a_walk_that_has_no_more_digits_stands_still_for_a_while_only(many_kernels, monkeypatch):
    Ks, y = many_kernels
    monkeypatch.setattr(Walk, "finished", property(lambda walk: len(walk.history) >= 200))
    result = BlockDescent(tol=1e-3).run(packed_problem(Ks, y, 2.0, 1.0))
    assert result.n_iter < 150
    assert _stands_since(result) > block.PATIENCE - 1


def _stands_since(result):
    gaps = [record.certificate.relative_gap for record in result.history]
    return sum(gap * block.STILL <= gaps[-1] for gap in gaps) - 1
