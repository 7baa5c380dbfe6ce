"""The stochastic algorithms against the paper's lines, written with explicit vectors."""

import numpy as np
import pytest
from sklearn.datasets import load_iris
from tests.multiclass.problems import solve, stored_problem
from tests.reference.pnorm import Vectors, pnorm_problem

from kernelweave import KernelBank, ObscureClassifier
from kernelweave.kernels import Gaussian
from kernelweave.multiclass.problem import BoundTracker
from kernelweave.multiclass.stochastic import StochasticRun, proximal_step
from kernelweave.solvers import OnlineBatch, Pegasos


def orders(seed, n, epochs):
    rng = np.random.default_rng(seed)
    return np.concatenate([rng.permutation(n) for _ in range(epochs)])


def decision(Ks, result):
    return sum(e * K @ result.coef for e, K in zip(result.eta, Ks, strict=True))


@pytest.mark.parametrize("p", [1.1, 1.5, 2.0])
@pytest.mark.parametrize("C", [1.0, 100.0])
def test_both_stages_are_the_papers_lines(p, C):
    Ks, y = pnorm_problem(0, n=30)
    order, lam = orders(3, 30, 2 + 4), 1.0 / (C * 30)
    twin = Vectors(Ks, y, p)
    for i in order[:60]:
        twin.online(i, 2.0)
    R, S = twin.radius(lam), 0.0
    for t, i in enumerate(order[60:], start=1):
        S = twin.batch(i, t, S, R, lam)
    solver = OnlineBatch(online_epochs=2, batch_epochs=4, polish=False, batch=7)
    result = solve(solver, Ks, y, C, p, seed=3)
    np.testing.assert_allclose(decision(Ks, result), twin.decision(), atol=1e-7)
    np.testing.assert_allclose(result.norms, [np.linalg.norm(w) for w in twin.w()], rtol=1e-7)


def test_pegasos_is_the_step_q_over_lambda_t_in_the_ball():
    Ks, y = pnorm_problem(1, n=25)
    twin, lam = Vectors(Ks, y, 1.5), 1.0 / (5.0 * 25)
    for t, i in enumerate(orders(4, 25, 3), start=1):
        twin.pegasos(i, t, lam)
    result = solve(Pegasos(epochs=3, polish=False, batch=6), Ks, y, 5.0, 1.5, seed=4)
    np.testing.assert_allclose(decision(Ks, result), twin.decision(), atol=1e-8)


@pytest.mark.parametrize("solver", [OnlineBatch(2, 3), Pegasos(4)])
def test_batches_give_the_iterates_of_one_by_one(solver):
    Ks, y = pnorm_problem(2, n=40)
    results = [
        type(solver)(**solver.get_params() | {"batch": size}).solve(
            stored_problem(Ks, y, 10.0, 1.2), np.random.default_rng(0)
        )
        for size in (1, 7, 1000)
    ]
    for other in results[1:]:
        np.testing.assert_allclose(results[0].coef, other.coef, atol=1e-10)
        assert results[0].certificate.upper == pytest.approx(other.certificate.upper, rel=1e-9)


@pytest.mark.parametrize("C", [1.0, 1000.0])
def test_norms_kept_by_increments_agree_with_those_computed_anew(C):
    Ks, y = pnorm_problem(3, n=50)
    problem = stored_problem(Ks, y, C, 1.3)
    run = StochasticRun(problem, np.random.default_rng(0), R=np.sqrt(2.0 / problem.lam))
    for _ in range(2000):  # 10^5 steps
        run.run_epoch(proximal_step)
    B = run.iterate.coef
    np.testing.assert_allclose(run.iterate.s, [np.sum(B * (K @ B)) for K in Ks], rtol=1e-9)


def test_the_mean_is_the_mean_of_the_iterates_even_when_the_factor_is_multiplied_out():
    Ks, y = pnorm_problem(4, n=20)
    problem = stored_problem(Ks, y, 1.0, 1.5)
    run = StochasticRun(problem, np.random.default_rng(0), batch=5, R=np.sqrt(2.0 / problem.lam))
    run.iterate.smallest_factor = 0.3
    run.iterate.start_averaging()
    coefs = []

    def watched(run, k):
        active = proximal_step(run, k)
        coefs.append(run.iterate.coef.copy())
        return active

    for _ in range(3):
        run.run_epoch(watched)
    np.testing.assert_allclose(run.iterate.mean, np.mean(coefs, axis=0), atol=1e-12)


def test_an_unbounded_region_erases_the_start_and_nothing_else():
    Ks, y = pnorm_problem(5, n=20)
    run = StochasticRun(stored_problem(Ks, y, 1.0, 1.5), np.random.default_rng(0))
    run.iterate.start_averaging()
    run.run_epoch(proximal_step)
    assert np.isfinite(run.iterate.coef).all()
    assert np.isfinite(run.iterate.mean).all()
    assert run.iterate.coef.any()


def test_the_online_stage_stops_when_it_separates():
    rng = np.random.default_rng(0)
    y = np.repeat([0, 1, 2], 10)
    X = np.eye(3)[y] * 5.0 + 0.1 * rng.normal(size=(30, 3))
    problem = stored_problem((X @ X.T)[None], y, 1.0, 1.5)
    result = OnlineBatch(online_epochs=50, batch_epochs=0).solve(problem, rng)
    assert result.passes < 50


def test_polish_is_better_than_the_last_iterate():
    wins = 0
    for seed in range(4):
        Ks, y = pnorm_problem(seed)
        values = [
            OnlineBatch(3, 10, polish=polish)
            .solve(stored_problem(Ks, y, 10.0, 1.5), np.random.default_rng(seed))
            .certificate.upper
            for polish in (True, False)
        ]
        wins += values[0] < values[1]
    assert wins >= 3


@pytest.mark.parametrize("solver", [OnlineBatch(2, 4), Pegasos(4)])
def test_polish_returns_a_multiple_of_the_mean(solver):
    Ks, y = pnorm_problem(0, n=30)
    problem = stored_problem(Ks, y, 10.0, 1.5)
    run = StochasticRun(problem, np.random.default_rng(0))
    solver._run(run, BoundTracker(problem, None))
    coef, mean = solve(solver, Ks, y, 10.0, 1.5).coef, run.iterate.mean
    np.testing.assert_allclose(coef / np.linalg.norm(coef), mean / np.linalg.norm(mean), atol=1e-12)


def test_records_are_kept_on_the_way():
    Ks, y = pnorm_problem(6, n=30)
    for solver in (OnlineBatch(1, 6, record_every=2), Pegasos(6, record_every=2)):
        result = solve(solver, Ks, y, 1.0, 1.5)
        assert len(result.history) >= 4
        assert (np.diff([r.seconds for r in result.history]) >= 0).all()


@pytest.mark.parametrize(
    ("bad", "name"),
    [
        (OnlineBatch(0), "OnlineBatch.online_epochs"),
        (OnlineBatch(1, -1), "OnlineBatch.batch_epochs"),
        (OnlineBatch(eta=0.0), "OnlineBatch.eta"),
        (OnlineBatch(batch=0), "OnlineBatch.batch"),
        (Pegasos(0), "Pegasos.epochs"),
    ],
)
def test_bad_parameters_are_named(bad, name):
    Ks, y = pnorm_problem(0, n=10)
    with pytest.raises(ValueError, match=f"{name} must be"):
        solve(bad, Ks, y, 1.0, 1.5)


def test_the_mean_of_iterates_stays_finite_when_steps_are_huge():
    X, y = load_iris(return_X_y=True)
    bank = KernelBank([Gaussian(scale=s) for s in (0.5, 2.0)])
    model = ObscureClassifier(bank, C=1e4, p=1.5, solver=Pegasos(epochs=4), random_state=0).fit(X, y)
    assert np.isfinite(model.dual_coef_).all()
    assert np.isfinite(model.kernel_weights_).all()
    assert 0.0 <= model.bounds_.lower <= model.bounds_.upper <= 1.0
    assert model.score(X, y) > 0.6
