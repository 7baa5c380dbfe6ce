"""What every solver promises, by table."""

from dataclasses import replace

import numpy as np
import pytest
from tests.reference.conic import conic_optimum
from tests.reference.problems import duplicated_problem, random_problem, zero_kernel_problem

import kernelweave.solvers as solvers
import kernelweave.solvers.column_generation as column_generation
from kernelweave.errors import IncompatiblePartsError, IndefiniteKernelError
from kernelweave.geometry import BoxSimplex, ElasticNetBall, GroupBox, LpBall, RidgeSimplex, Simplex, Uniform
from kernelweave.gram import DenseGrams, LazyGrams, PackedGrams
from kernelweave.gram.source import MatrixSource
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
]
PAIRS = [(solver, name) for solver, names in CASES for name in names]
IDS = [f"{type(solver).__name__}-{name}" for solver, name in PAIRS]


@pytest.fixture(autouse=True)
def few_at_a_time(monkeypatch):
    monkeypatch.setattr(column_generation, "BATCH", 1)


@pytest.fixture(scope="module")
def problem():
    return random_problem(4, n=40, M=5)


def test_every_solver_has_a_row():
    exported = {getattr(solvers, name) for name in solvers.__all__}
    classes = {c for c in exported if isinstance(c, type) and issubclass(c, Solver) and c is not Solver}
    assert classes == {type(solver) for solver, _ in CASES} == set(SOLVERS)


@pytest.mark.parametrize(("solver", "name"), PAIRS, ids=IDS)
@pytest.mark.parametrize("learner", [(Hinge(1.0), ("hinge", 1.0)), (SquaredHinge(5.0), ("squared", 5.0))])
def test_it_reaches_its_tolerance_and_every_record_encloses_the_optimum(problem, solver, name, learner):
    Ks, y = problem
    geometry, set_oracle = GEOMETRIES[name]
    optimum = conic_optimum(Ks, y, learner[1], set_oracle).value
    result = solver.solve(DenseGrams(tuple(Ks)), y, learner[0], geometry)
    assert result.stopped == "converged"
    assert result.certificate.relative_gap <= solver.tol
    slack = 1e-8 * abs(optimum)
    for record in result.history:
        assert record.certificate.lower <= optimum + slack
        assert optimum <= record.certificate.upper + slack
    assert np.isfinite(geometry.value(result.eta))


@pytest.mark.parametrize(("solver", "name"), PAIRS, ids=IDS)
@pytest.mark.parametrize("sloppiness", [0.5, 0.05])
def test_bounds_hold_for_a_sloppy_learner(problem, solver, name, sloppiness):
    Ks, y = problem
    geometry, set_oracle = GEOMETRIES[name]
    optimum = conic_optimum(Ks, y, ("hinge", 1.0), set_oracle).value
    hasty = type(solver)(tol=1e-6, max_iter=12)
    result = hasty.solve(DenseGrams(tuple(Ks)), y, Hinge(1.0, tol=sloppiness), geometry)
    for record in result.history:
        assert record.certificate.lower <= optimum * (1 + 1e-8)
        assert optimum <= record.certificate.upper * (1 + 1e-8)


@pytest.mark.parametrize("solver", [s for s, _ in CASES], ids=lambda s: type(s).__name__)
def test_both_bounds_only_get_better(problem, solver):
    Ks, y = problem
    result = solver.solve(DenseGrams(tuple(Ks)), y, Hinge(1.0), Simplex())
    upper = [r.certificate.upper for r in result.history]
    lower = [r.certificate.lower for r in result.history]
    assert (np.diff(upper) <= 0).all()
    assert (np.diff(lower) >= 0).all()
    assert result.n_iter == len(upper) > 1


def test_block_descent_never_raises_the_objective(problem):
    Ks, y = problem
    bank, values = DenseGrams(tuple(Ks)), []
    for rounds in range(1, 9):
        values.append(
            BlockDescent(tol=1e-12, max_iter=rounds)
            .solve(bank, y, Hinge(1.0, tol=1e-10), LpBall(1.5))
            .machine.primal
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


def test_newton_needs_few_machines():
    counts = []
    for seed in range(5):
        Ks, y = random_problem(seed)
        for geometry in (Simplex(), BoxSimplex(theta=0.3), LpBall(1.1), ElasticNetBall(0.5)):
            counts.append(Newton(tol=1e-6).solve(DenseGrams(tuple(Ks)), y, Hinge(1.0), geometry).n_iter)
    assert max(counts) <= 9
    assert np.median(counts) <= 6


@pytest.mark.parametrize("centre", [True, False])
def test_a_walk_on_float32_certifies_the_kernels_as_stored_up_to_rounding(centre):
    for seed in range(3):
        Ks, y = random_problem(seed, n=60, M=6)
        stack = PackedGrams.pack([MatrixSource(Ks)], 6, 60, "float32", centre)
        stored = [stack.combine(row).astype(float) for row in np.eye(6)]
        for C in (1.0, 100.0):
            optimum = conic_optimum(stored, y, ("hinge", C), ("simplex",)).value
            result = Newton(tol=1e-3).solve(stack, y, Hinge(C), Simplex())
            for record in result.history:
                assert record.certificate.lower <= optimum * (1 + 1e-5)
                assert optimum <= record.certificate.upper * (1 + 1e-5)


def test_verification_draws_the_certificate_from_other_kernels():
    Ks, y = random_problem(0, n=60, M=6)
    stack = PackedGrams.pack([MatrixSource(Ks)], 6, 60, "float32", True)
    result = Newton(tol=1e-4).solve(stack, y, Hinge(100.0), Simplex())
    problem = solvers.Problem(stack, y, Hinge(100.0), Simplex())
    _, exact = solvers.verify(problem, lambda: DenseGrams(tuple(Ks)), result)
    optimum = conic_optimum(Ks, y, ("hinge", 100.0), ("simplex",)).value
    assert exact.lower <= optimum * (1 + 1e-8)
    assert optimum <= exact.upper * (1 + 1e-8)
    assert exact.relative_gap <= 2e-4


def packed(Ks, centre=True):
    return PackedGrams.pack([MatrixSource(Ks)], len(Ks), len(Ks[0]), "float32", centre)


def by_reference(Ks, centre=True):
    return LazyGrams([MatrixSource(Ks)], len(Ks), len(Ks[0]), dtype="float32", centre=centre)


class Counted(DenseGrams):
    """Matrices that know how often all of them were read, and those with weight."""

    read = used = 0

    def images(self, coef):
        self.read += 1
        return super().images(coef)

    def image(self, eta, coef):
        self.used += 1
        return super().image(eta, coef)


@pytest.mark.parametrize("C", [1.0, 100.0])
@pytest.mark.parametrize(("geometry", "named"), [(Simplex(), ("simplex",)), (LpBall(2.0), ("lp", 2.0))])
@pytest.mark.parametrize("centre", [True, False])
@pytest.mark.parametrize("held", [packed, by_reference])
def test_kernels_are_read_again_only_where_rounding_hides_the_rest(C, geometry, named, centre, held):
    for seed in range(3):
        Ks, y = random_problem(seed, n=60, M=6)
        Ks = [np.repeat(np.repeat(K, 3, axis=0), 3, axis=1) for K in Ks]  # copies: roundings add up
        y = np.repeat(y, 3)
        stack = held(Ks, centre)
        problem = solvers.Problem(stack, y, Hinge(C), geometry)
        result = Newton(tol=5e-4).run(problem)
        optimum = conic_optimum(Ks, y, ("hinge", C), named).value
        quick, full = Counted(tuple(Ks)), Counted(tuple(Ks))
        _, loose = solvers.verify(problem, lambda quick=quick: quick, result, tol=1e-3)
        _, tight = solvers.verify(problem, lambda full=full: full, result)
        assert (quick.read, full.read, full.used) == (0, 1, 1)
        assert quick.used == 0
        for certificate in (loose, tight):
            assert certificate.lower <= optimum * (1 + 1e-8)
            assert optimum <= certificate.upper * (1 + 1e-8)
        assert loose.lower <= tight.lower * (1 + 1e-12)
        assert loose.relative_gap <= 1e-3


@pytest.mark.parametrize("learner", [Hinge(C=0.2, tol=1e-11), SquaredHinge(C=1e4, tol=1e-11)], ids=repr)
@pytest.mark.parametrize("way", ["up", "down"])
@pytest.mark.parametrize("mixed", [False, True])
@pytest.mark.parametrize("held", [packed, by_reference])
def test_bounds_hold_where_every_entry_was_rounded_the_same_way(learner, way, mixed, held):
    rng = np.random.default_rng(0)
    A = rng.integers(-3, 4, size=(30, 40)).astype(float)
    y = np.where(np.arange(30) % 2, 1.0, -1.0)
    K = (A @ A.T) * (1.0 + (-1.0 if way == "up" else 1.0) * 2.0**-26)  # whole numbers in float32
    stack = held([K], centre=False)
    np.testing.assert_array_equal(stack.combine(np.ones(1)), A @ A.T)
    problem = solvers.Problem(stack, y, learner, Simplex())
    result = Newton(tol=1e-3).run(problem)
    if mixed:  # a proof that is not the machine's own
        proof = replace(result.proof, coef=result.proof.coef * (1.0 - 1e-13))
        result = replace(result, proof=proof)
    exact = Counted((K,))
    _, certificate = solvers.verify(problem, lambda: exact, result, tol=1e-3)
    optimum = learner.solve(K, y)
    assert exact.used == exact.read == 0
    if way == "up":  # what was stored promises too much
        assert result.certificate.upper < optimum.dual
    elif held is packed:  # energies by reference are those of the kernels themselves
        assert result.certificate.lower > optimum.primal
    assert optimum.dual <= certificate.upper
    assert certificate.lower <= optimum.primal


def test_energies_of_mixtures_are_measured_before_they_prove_anything():
    Ks, y = random_problem(0, n=60, M=6)
    stack = PackedGrams.pack([MatrixSource(Ks)], 6, 60, "float32", True)
    problem = solvers.Problem(stack, y, Hinge(1.0), Simplex())
    result = Newton(tol=1e-4).run(problem)
    proof = result.proof.towards(Newton(tol=1e-2).run(problem).proof, 0.01)
    wrong = replace(result, proof=replace(proof, h=0.0 * proof.h))  # as if kernels were indefinite
    _, certificate = solvers.verify(problem, lambda: DenseGrams(tuple(Ks)), wrong, tol=1e-3)
    optimum = conic_optimum(Ks, y, ("hinge", 1.0), ("simplex",)).value
    assert certificate.lower <= optimum * (1 + 1e-8)
    assert certificate.relative_gap <= 1e-3


@pytest.mark.parametrize("seed", range(4))
def test_what_a_cutting_plane_proves_holds_for_the_kernels_themselves(seed):
    rng = np.random.default_rng(seed)
    Ks = [np.outer(x, x) for x in rng.normal(size=(3, 40))]  # once rounded, they are indefinite
    y = np.where(np.arange(40) % 2, 1.0, -1.0)
    stack = PackedGrams.pack([MatrixSource(Ks)], 3, 40, "float32", True)
    problem = solvers.Problem(stack, y, Hinge(100.0), Simplex())
    result = solvers.CuttingPlane(tol=1e-5, max_iter=30).run(problem)
    _, certificate = solvers.verify(problem, lambda: DenseGrams(tuple(Ks)), result, tol=1e-3)
    optimum = conic_optimum(Ks, y, ("hinge", 100.0), ("simplex",)).value
    assert certificate.lower <= optimum * (1 + 1e-7)
    assert optimum <= certificate.upper * (1 + 1e-7)


def test_a_warm_start_saves_machines(problem):
    Ks, y = problem
    bank = DenseGrams(tuple(Ks))
    cold = Newton(tol=1e-6).solve(bank, y, Hinge(1.0), Simplex())
    warm = Newton(tol=1e-6).solve(bank, y, Hinge(1.0), Simplex(), start=cold.eta, warm=cold.machine.coef)
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
