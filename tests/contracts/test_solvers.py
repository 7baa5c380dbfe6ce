"""What every solver promises, by table."""

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from tests.reference.conic import assert_encloses, conic_optimum
from tests.reference.problems import duplicated_problem, random_problem, zero_kernel_problem

import kernelweave.solvers as solvers
from kernelweave.errors import IncompatiblePartsError, IndefiniteKernelError
from kernelweave.geometry import BoxSimplex, ElasticNetBall, GroupBox, LpBall, RidgeSimplex, Simplex, Uniform
from kernelweave.gram import DenseGrams, StreamedGrams
from kernelweave.gram.source import matrix_sources
from kernelweave.learners import Hinge, SquaredHinge
from kernelweave.solvers import (
    SOLVERS,
    BlockDescent,
    ColumnGeneration,
    CuttingPlane,
    Newton,
    ProjectedGradient,
    ReducedGradient,
    Solver,
    StreamedDescent,
    WarmStart,
)

# solver, geometries it is tried on (with their oracle), the relative gap it must reach
GEOMETRIES = {
    "simplex": (Simplex(), ("simplex",)),
    "box": (BoxSimplex(theta=0.4), ("box", 0.4)),
    "ridge": (RidgeSimplex(theta=0.5), ("ridge", 0.5)),
    "l2": (LpBall(2.0), ("lp", 2.0)),
    "elastic": (ElasticNetBall(0.5), ("elastic", 0.5)),
    "group": (GroupBox([0, 0, 1, 1, 2], 0.6), ("group", [0, 0, 1, 1, 2], 0.6)),
}
CASES = [
    (Newton(tol=1e-6), list(GEOMETRIES)),
    (BlockDescent(tol=1e-4, max_iter=3000), ["l2", "box", "elastic", "ridge"]),
    (ProjectedGradient(tol=1e-4), ["simplex", "box", "ridge", "l2", "elastic"]),
    (ReducedGradient(tol=1e-4), ["simplex"]),
    (CuttingPlane(tol=1e-3), ["simplex", "box", "ridge", "l2", "elastic"]),
    (ColumnGeneration(tol=1e-5), ["simplex", "box", "ridge"]),
    (StreamedDescent(tol=1e-4, n_coarse=10), list(GEOMETRIES)),
]
PAIRS = [(solver, name) for solver, names in CASES for name in names]
IDS = [f"{type(solver).__name__}-{name}" for solver, name in PAIRS]


@pytest.fixture(autouse=True)
def few_at_a_time(monkeypatch):
    monkeypatch.setattr(ColumnGeneration, "batch", 1)


def held(solver, Ks):
    """The kernels as a solver takes them."""
    if isinstance(solver, StreamedDescent):
        return StreamedGrams(matrix_sources(Ks), len(Ks), len(Ks[0]))
    return DenseGrams(tuple(Ks))


@pytest.fixture(scope="module")
def problem():
    return random_problem(4, n=40, M=5)


def test_every_solver_has_a_row():
    exported = {getattr(solvers, name) for name in solvers.__all__}
    classes = {c for c in exported if isinstance(c, type) and issubclass(c, Solver) and c is not Solver}
    assert classes == {type(solver) for solver, _ in CASES}
    assert classes - {StreamedDescent} == set(SOLVERS)  # it is chosen by how kernels are held


@pytest.mark.parametrize(("solver", "name"), PAIRS, ids=IDS)
@pytest.mark.parametrize("learner", [(Hinge(1.0), ("hinge", 1.0)), (SquaredHinge(5.0), ("squared", 5.0))])
def test_it_reaches_its_tolerance_and_every_record_encloses_the_optimum(problem, solver, name, learner):
    Ks, y = problem
    geometry, set_oracle = GEOMETRIES[name]
    optimum = conic_optimum(Ks, y, learner[1], set_oracle).value
    result = solver.solve(held(solver, Ks), y, learner[0], geometry)
    assert result.stopped == "converged"
    assert result.certificate.relative_gap <= solver.tol
    for record in result.history:
        assert_encloses(record.certificate, optimum)
    assert np.isfinite(geometry.value(result.eta))


@pytest.mark.parametrize(("solver", "name"), PAIRS, ids=IDS)
@pytest.mark.parametrize("sloppiness", [0.5, 0.05])
def test_bounds_hold_for_a_sloppy_learner(problem, solver, name, sloppiness):
    Ks, y = problem
    geometry, set_oracle = GEOMETRIES[name]
    optimum = conic_optimum(Ks, y, ("hinge", 1.0), set_oracle).value
    hasty = replace(solver, tol=1e-6, max_iter=12)
    result = hasty.solve(held(solver, Ks), y, Hinge(1.0, tol=sloppiness), geometry)
    for record in result.history:
        assert_encloses(record.certificate, optimum)


@pytest.mark.parametrize("solver", [s for s, _ in CASES], ids=lambda s: type(s).__name__)
def test_both_bounds_only_get_better(problem, solver):
    Ks, y = problem
    result = solver.solve(held(solver, Ks), y, Hinge(1.0), Simplex())
    upper = [r.certificate.upper for r in result.history]
    lower = [r.certificate.lower for r in result.history]
    assert all(now <= before for before, now in pairwise(upper))
    assert all(now >= before for before, now in pairwise(lower))
    assert np.isfinite([upper[-1], lower[-1]]).all()
    assert result.n_iter == len(upper) > 1


def test_block_descent_never_raises_the_objective(problem):
    Ks, y = problem
    bank, values = DenseGrams(tuple(Ks)), []
    for rounds in range(1, 9):
        values.append(
            BlockDescent(tol=1e-12, max_iter=rounds)
            .solve(bank, y, Hinge(1.0, tol=1e-10), LpBall(1.5))
            .inner.primal
        )
    assert (np.diff(values) <= 1e-8).all()
    assert values[0] - values[-1] > 1e-3


@pytest.mark.parametrize("make", [duplicated_problem, zero_kernel_problem])
def test_newton_copes_with_odd_but_legal_kernels(make):
    Ks, y = make(0, n=40, M=6)
    for geometry, oracle in (GEOMETRIES[k] for k in ("simplex", "l2", "ridge")):
        optimum = conic_optimum(Ks, y, ("hinge", 1.0), oracle).value
        certificate = Newton(tol=1e-6).solve(DenseGrams(tuple(Ks)), y, Hinge(1.0), geometry).certificate
        assert certificate.lower * (1 - 1e-8) <= optimum <= certificate.upper * (1 + 1e-8)
        assert certificate.relative_gap <= 1e-6


def test_a_zero_kernel_gets_no_weight_on_the_simplex():
    Ks, y = zero_kernel_problem(0, n=40, M=6)
    eta = Newton(tol=1e-6).solve(DenseGrams(tuple(Ks)), y, Hinge(1.0), Simplex()).eta
    assert eta[1] == 0.0


def test_newton_selects_with_exact_zeros():
    Ks, y = random_problem(0)
    eta = Newton(tol=1e-6).solve(DenseGrams(tuple(Ks)), y, Hinge(1.0), Simplex()).eta
    assert 0 < np.count_nonzero(eta) < len(Ks)
    assert eta.sum() == pytest.approx(1.0, abs=1e-12)


def test_newton_needs_few_inner_solves():
    counts = []
    for seed in range(5):
        Ks, y = random_problem(seed)
        for geometry in (Simplex(), BoxSimplex(theta=0.3), LpBall(1.1), ElasticNetBall(0.5)):
            counts.append(Newton(tol=1e-6).solve(DenseGrams(tuple(Ks)), y, Hinge(1.0), geometry).n_iter)
    assert max(counts) <= 9
    assert np.median(counts) <= 6


def test_a_warm_start_saves_inner_solves(problem):
    Ks, y = problem
    bank = DenseGrams(tuple(Ks))
    cold = Newton(tol=1e-6).solve(bank, y, Hinge(1.0), Simplex())
    start = WarmStart(cold.eta, cold.inner.coef)
    warm = Newton(tol=1e-6).solve(bank, y, Hinge(1.0), Simplex(), start=start)
    assert warm.n_iter <= 2 < cold.n_iter


def test_weights_are_never_interrupted_without_an_answer(problem):
    Ks, y = problem

    def stop(record):
        if len(seen) == 3:
            raise KeyboardInterrupt
        seen.append(record)

    seen = []
    result = Newton(tol=1e-9).solve(DenseGrams(tuple(Ks)), y, Hinge(1.0), Simplex(), progress=stop)
    assert result.stopped == "interrupted"
    assert np.isfinite(result.certificate.gap)


def test_an_incompatible_pair_names_what_would_work():
    bank = DenseGrams((np.eye(4), np.ones((4, 4))))
    with pytest.raises(
        IncompatiblePartsError, match=r"ReducedGradient cannot be used with LpBall\(p=2.0\).*reduced_dir"
    ):
        ReducedGradient().solve(bank, np.array([1.0, -1, 1, -1]), Hinge(), LpBall(2.0))
    with pytest.raises(
        IncompatiblePartsError, match=r"Solvers that accept it: Newton, BlockDescent, Proj.*CuttingPlane"
    ):
        ReducedGradient().solve(bank, np.array([1.0, -1, 1, -1]), Hinge(), RidgeSimplex())


def test_an_indefinite_kernel_is_found_on_the_way(rng):
    Ks, y = random_problem(0, n=30, M=3)
    Ks[1] = Ks[1] - 5.0 * np.eye(30)
    with pytest.raises(IndefiniteKernelError, match="Kernel 1 is not positive semidefinite"):
        Newton().solve(DenseGrams(tuple(Ks)), y, Hinge(), Uniform())
