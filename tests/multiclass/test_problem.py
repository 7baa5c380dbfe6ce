"""Bounds of the p-norm problem against an independent conic solver, and with rounding."""

import numpy as np
import pytest
from tests.multiclass.problems import encloses, solve, stored_problem
from tests.reference.pnorm import objective, pnorm_optimum, pnorm_problem

from kernelweave.multiclass.dual_ascent import AscentState
from kernelweave.multiclass.problem import BoundTracker, evaluate
from kernelweave.multiclass.rows import StoredRows
from kernelweave.solvers import DualAscent, OnlineBatch, Pegasos

SETTINGS = [(C, p) for C in (1.0, 10.0) for p in (1.1, 1.5, 2.0)]


@pytest.mark.parametrize(("C", "p"), SETTINGS)
@pytest.mark.parametrize("block", [None, 20])
def test_dual_ascent_closes_on_the_optimum(C, p, block):
    Ks, y = pnorm_problem(int(10 * p))
    optimum = pnorm_optimum(Ks, y, C, p)
    result = solve(DualAscent(tol=3e-5, block=block, max_passes=1000), Ks, y, C, p)
    assert result.stopped == "converged"
    assert result.certificate.relative_gap <= 3e-5
    for record in result.history:
        assert encloses(record.certificate, optimum)
    assert encloses(result.certificate, optimum)
    assert objective(Ks, y, result.coef, result.eta, C, p) == pytest.approx(
        result.certificate.upper, rel=1e-9
    )


@pytest.mark.parametrize(("C", "p"), SETTINGS)
def test_the_papers_algorithm_comes_near_and_its_bounds_hold(C, p):
    Ks, y = pnorm_problem(0)
    optimum = pnorm_optimum(Ks, y, C, p)
    near, epochs = (1.03, 100) if C == 1.0 else (1.2, 100 if p < 2 else 200)
    result = solve(OnlineBatch(online_epochs=5, batch_epochs=epochs), Ks, y, C, p)
    assert encloses(result.certificate, optimum)
    assert result.certificate.upper <= near * optimum
    assert objective(Ks, y, result.coef, result.eta, C, p) == pytest.approx(result.certificate.upper)
    lengths = [np.sqrt(np.sum(result.coef * (K @ result.coef))) for K in Ks]
    np.testing.assert_allclose(result.norms, result.eta * lengths, rtol=1e-9)


@pytest.mark.parametrize(
    "solver", [OnlineBatch(2, 3, polish=False), OnlineBatch(1, 0), Pegasos(2), Pegasos(3, polish=False)]
)
def test_bounds_hold_wherever_a_stochastic_solver_stops(solver):
    for seed in range(2):
        Ks, y = pnorm_problem(seed, n=30)
        for C, p in ((1.0, 1.1), (10.0, 2.0)):
            optimum = pnorm_optimum(Ks, y, C, p)
            result = solve(solver, Ks, y, C, p, seed=seed)
            assert encloses(result.certificate, optimum)
            assert result.certificate.lower > 0.0


def test_weights_multiply_the_losses():
    Ks, y = pnorm_problem(3, n=30)
    weight = np.random.default_rng(0).uniform(0.0, 2.0, 30)
    weight[7] = 0.0
    optimum = pnorm_optimum(Ks, y, 2.0, 1.3, weight)
    for solver, gap in ((DualAscent(tol=1e-6, max_passes=2000), 1e-6), (OnlineBatch(5, 100), 0.1)):
        result = solve(solver, Ks, y, 2.0, 1.3, weight)
        assert encloses(result.certificate, optimum)
        assert result.certificate.relative_gap <= gap


def test_p_two_is_the_sum_of_the_kernels():
    Ks, y = pnorm_problem(4, n=30)
    many = solve(DualAscent(tol=1e-6, max_passes=2000), Ks, y, 1.0, 2.0)
    one = solve(DualAscent(tol=1e-6, max_passes=2000), Ks.sum(axis=0)[None], y, 1.0, 1.5)
    np.testing.assert_allclose(many.eta, 1.0)
    assert many.certificate.upper == pytest.approx(one.certificate.upper, rel=3e-6)


@pytest.mark.parametrize("p", [1.1, 1.5])
def test_weights_lie_on_the_sphere_of_p_over_two_minus_p_and_fit_the_norms(p):
    Ks, y = pnorm_problem(5, n=30)
    result = solve(DualAscent(tol=1e-4), Ks, y, 1.0, p)
    assert np.linalg.norm(result.eta, p / (2.0 - p)) == pytest.approx(1.0)
    expected = (result.norms / np.linalg.norm(result.norms, p)) ** (2.0 - p)
    np.testing.assert_allclose(result.eta, expected, rtol=1e-6)


def test_p_near_one_neither_overflows_nor_loses_the_bounds():
    Ks, y = pnorm_problem(6, n=30)
    result = solve(DualAscent(tol=1e-3, max_passes=500), Ks, y, 1.0, 1.01)
    assert encloses(result.certificate, pnorm_optimum(Ks, y, 1.0, 1.01))
    assert result.certificate.relative_gap <= 1e-3


@pytest.mark.parametrize("odd", ["zero", "duplicated", "one"])
def test_odd_but_legal_kernels_are_certified_too(odd):
    Ks, y = pnorm_problem(7, n=30)
    Ks = {"zero": np.array([Ks[0], 0 * Ks[0]]), "duplicated": Ks[[0, 0, 1]], "one": Ks[:1]}[odd]
    optimum = pnorm_optimum(Ks, y, 1.0, 1.5)
    result = solve(DualAscent(tol=1e-4, max_passes=500), Ks, y, 1.0, 1.5)
    assert encloses(result.certificate, optimum)
    assert result.stopped == "converged"
    if odd == "zero":
        assert result.eta[1] == result.norms[1] == 0.0


def test_a_pass_limit_is_kept_and_named():
    Ks, y = pnorm_problem(8)
    result = solve(DualAscent(tol=1e-9, max_passes=2.0), Ks, y, 10.0, 1.5)
    assert result.stopped == "max_passes"
    assert 2.0 <= result.passes < 4.0
    assert encloses(result.certificate, pnorm_optimum(Ks, y, 10.0, 1.5))


class CoarseRows(StoredRows):
    """Kernels whose products are rounded to six digits or so."""

    @property
    def entry_errors(self):
        return np.full(self.n_kernels, 1e-6)


@pytest.mark.parametrize("p", [1.2, 2.0])
def test_the_upper_bound_exceeds_the_true_value_whatever_rounding_did(p):
    Ks, y = pnorm_problem(2, n=40)
    problem = stored_problem(Ks, y, 10.0, p, rows=CoarseRows)
    solved = solve(DualAscent(tol=1e-2), Ks, y, 10.0, p)
    A = solved.coef * problem.scale
    G = (Ks @ A).transpose(0, 2, 1)
    lengths = np.sqrt((A * A).sum(axis=0))
    rng = np.random.default_rng(1)
    for _ in range(50):
        noise = 1e-6 * lengths[None, :, None] * rng.normal(size=G.shape)
        found = evaluate(problem, A, G + noise, rescale=False)
        assert found.upper >= objective(Ks, y, A / problem.scale, found.eta, 10.0, p)


def test_the_upper_bound_pays_for_errors_that_all_scores_share():
    Ks, y = pnorm_problem(2, n=40)
    problem = stored_problem(Ks, y, 10.0, 1.2, rows=CoarseRows)
    A = 0.01 * solve(DualAscent(tol=1e-2), Ks, y, 10.0, 1.2).coef * problem.scale  # every sample has a loss
    sign = np.where(np.arange(3)[:, None] == y, 1.0, -1.0)  # own classes score too high, others too low
    noise = 0.5e-6 * np.sqrt((A * A).sum(axis=0))[:, None] * sign
    found = evaluate(problem, A, (Ks @ A).transpose(0, 2, 1) + noise, rescale=False)
    assert found.upper >= objective(Ks, y, A / problem.scale, found.eta, 10.0, 1.2)


@pytest.mark.parametrize("block", [None, 20])
def test_the_rounding_of_products_is_counted_from_their_first_step_on(block):
    problem = stored_problem(*pnorm_problem(3, n=40), 1.0, 1.5)
    state = AscentState.start(problem, np.random.default_rng(0))
    state.ascend(state.evaluate(), DualAscent(block=block))
    np.testing.assert_allclose(state.step_squares, (state.A**2).sum(axis=0))
    assert state.A.any()


def test_the_final_bounds_come_from_products_computed_anew():
    Ks, y = pnorm_problem(3, n=40)
    problem = stored_problem(Ks, y, 1.0, 1.5)
    optimum = pnorm_optimum(Ks, y, 1.0, 1.5)
    solved = DualAscent(tol=1e-3).solve(problem, np.random.default_rng(0))
    state = AscentState.start(problem, np.random.default_rng(0))
    state.A = np.clip(solved.coef * problem.scale, None, 1.0)
    state.G = 0.9 * (Ks @ state.A).transpose(0, 2, 1)  # products that have drifted from their coefficients
    tracker = BoundTracker(problem, None)
    tracker.add(state.A, state.evaluate())
    assert not tracker.certificate.lower <= optimum <= tracker.certificate.upper
    certified = state.recertify(tracker).certificate
    assert encloses(certified, optimum)
    assert certified.relative_gap < 1e-2
