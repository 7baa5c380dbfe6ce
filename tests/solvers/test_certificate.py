"""Two bounds, how they are drawn, and that they hold for the kernels as given whatever rounding did."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.optimize import minimize_scalar
from sklearn.exceptions import ConvergenceWarning
from tests.reference.conic import assert_encloses, conic_optimum
from tests.reference.problems import random_problem

from kernelweave import MKLClassifier
from kernelweave.geometry import (
    BoxSimplex,
    ElasticNetBall,
    GroupBox,
    LpBall,
    RidgeSimplex,
    Simplex,
    Uniform,
)
from kernelweave.gram import DenseGrams, PackedGrams, StreamedGrams
from kernelweave.gram.source import matrix_sources
from kernelweave.learners import EpsilonInsensitive, Hinge, MarginDistribution, NuHinge, Square, SquaredHinge
from kernelweave.solvers import Certificate, CuttingPlane, Newton, OuterState, Problem, certify
from kernelweave.solvers.certificate import DualPoint, LowerBound, dual_point

NAN, INF = float("nan"), float("inf")
SETS = [(Simplex(), ("simplex",)), (LpBall(2.0), ("lp", 2.0)), (RidgeSimplex(0.5), ("ridge", 0.5))]
each_set = pytest.mark.parametrize(("geometry", "named"), SETS, ids=[repr(g) for g, _ in SETS])


def packed(Ks, centre=True):
    return DenseGrams(Ks, centre=centre).packed("float32")


def by_reference(Ks, centre=True):
    return DenseGrams(Ks, dtype="float32", centre=centre)


def streamed(Ks, centre=False):
    assert not centre
    return StreamedGrams(matrix_sources(Ks), len(Ks), len(Ks[0]), dtype="float32")


each_storage = pytest.mark.parametrize("held", [packed, by_reference])


class Counted(DenseGrams):
    """Matrices that know which of them were read for their energies, and how often those with weight."""

    used = 0

    def __init__(self, Ks):
        super().__init__(Ks)
        self.read = []

    def energies(self, coef, which=None):
        self.read.extend(range(self.n_kernels) if which is None else which.tolist())
        return super().energies(coef) if which is None else super().energies(coef)[which]

    def matvec(self, eta, coef):
        self.used += 1
        return super().matvec(eta, coef)


def never():
    raise AssertionError("the kernels as given were read again")


# -- the relative gap


@pytest.mark.parametrize("bounds", [(NAN, NAN), (1.0, NAN), (NAN, 1.0), (0.0, NAN), (INF, INF)])
def test_bounds_that_are_no_numbers_never_pass_for_converged(bounds):
    assert Certificate(*bounds).relative_gap == INF


def test_the_gap_is_a_share_of_the_objective():
    assert Certificate(1e-6, 0.5e-6).relative_gap == pytest.approx(0.5)
    assert Certificate(0.0, 0.0).relative_gap == 0.0
    assert Certificate(INF, 0.0).relative_gap == 1.0


def test_bounds_of_problems_that_share_nothing_add_up():
    total = Certificate.total([Certificate(3.0, 2.0), Certificate(1.5, 1.0)])
    assert total == Certificate(4.5, 3.0)


def test_a_certificate_prints_as_one_line_that_says_whether_the_tolerance_was_reached():
    within = Certificate(12.5, 12.499, tol=1e-4)
    assert str(within) == (
        "objective 12.5, lower bound 12.499, gap 0.001 (8e-05 of the objective): within the tolerance of 0.0001"
    )
    assert str(Certificate(2.0, 1.0, tol=1e-4)).endswith(
        "(0.5 of the objective): above the tolerance of 0.0001"
    )
    assert str(Certificate(2.0, 1.0)) == "objective 2, lower bound 1, gap 1 (0.5 of the objective)"
    assert str(Certificate(2.0, -INF, tol=0.1)).endswith("above the tolerance of 0.1")
    for one in (within, Certificate(np.float64(2.0), np.float64(1.0))):
        assert eval(repr(one)) == one
        assert eval(repr(one)).tol == one.tol
    assert repr(Certificate(np.float64(2.0), 1.0)) == "Certificate(upper=2.0, lower=1.0)"


def test_fits_say_whether_their_tolerance_was_reached(rng):
    X = rng.normal(size=(40, 3))
    y = np.where(X[:, 0] > 0, 1, 0)
    assert "within the tolerance of 0.0001" in str(MKLClassifier().fit(X, y).certificate_)
    assert "within the tolerance of 0.01" in str(
        MKLClassifier(solver=Newton(tol=1e-2)).fit(X, y).certificate_
    )
    with pytest.warns(ConvergenceWarning):
        model = MKLClassifier(max_iter=1).fit(X, np.arange(40) % 3)
    assert "above the tolerance of 0.0001" in str(model.certificate_)
    assert str(model.certificates_[0]).endswith("the tolerance of 0.0001")


# -- lower bounds from dual points


def point(g, h):
    return DualPoint(np.array([g, -g]), g, np.array(h))


def test_a_dual_point_proves_its_gain_less_what_the_best_weights_take():
    assert point(5.0, [1.0, 3.0]).value(Simplex()) == pytest.approx(5.0 - 3.0)
    assert point(5.0, [3.0, 4.0]).value(LpBall(2.0)) == pytest.approx(5.0 - 5.0)


def test_a_mixture_mixes_everything_and_says_so():
    mixed = point(1.0, [4.0, 0.0]).mixed_with(point(3.0, [0.0, 8.0]), 0.25)
    assert mixed.g == pytest.approx(1.5)
    np.testing.assert_allclose(mixed.h, [3.0, 2.0])
    np.testing.assert_allclose(mixed.coef, [1.5, -1.5])
    assert mixed.is_mixture
    assert not point(1.0, [1.0]).is_mixture


@pytest.mark.parametrize("geometry", [Simplex(), LpBall(2.0), RidgeSimplex(0.5)], ids=repr)
def test_two_points_prove_as_much_as_their_best_mixture(geometry):
    one, other = point(5.0, [4.0, 1.0]), point(5.3, [1.0, 4.5])
    bound = LowerBound(geometry)
    assert bound.value == -INF
    bound.add(one)
    assert bound.value == pytest.approx(one.value(geometry))
    bound.add(other)
    mixtures = [one.mixed_with(other, share).value(geometry) for share in np.linspace(0.0, 1.0, 10_001)]
    assert bound.value == pytest.approx(max(mixtures), rel=1e-4)
    assert bound.value <= max(mixtures) * (1 + 1e-4)
    assert bound.value <= bound.point.value(geometry) * (1 + 1e-12)
    assert bound.value > 1.1 * max(one.value(geometry), other.value(geometry))
    assert bound.point.is_mixture
    assert bound.point.value(geometry) == pytest.approx(bound.value)


def test_a_point_that_is_better_alone_replaces_the_mixture_and_a_worse_one_changes_nothing():
    bound = LowerBound(Simplex())
    for g, h in ((5.0, [4.0, 1.0]), (5.0, [1.0, 4.5]), (5.0, [1.0, 1.0])):
        bound.add(point(g, h))
    assert bound.value == pytest.approx(4.0)
    assert not bound.point.is_mixture
    bound.add(point(1.0, [1.0, 1.0]))
    assert bound.value == pytest.approx(4.0)


# -- rounding of arithmetic, in every evaluation


class Blurred(DenseGrams):
    """Kernels whose entries are all off by ``blur``, one way or the other, and that say so."""

    def __init__(self, Ks, blur, rng):
        signs = [np.triu(rng.choice([-1.0, 1.0], size=K.shape)) for K in Ks]
        super().__init__([K + blur * (S + np.triu(S, 1).T) for K, S in zip(Ks, signs, strict=True)])
        self.errors = np.full(self.n_kernels, blur)


@each_set
@pytest.mark.parametrize(
    ("learner", "kind"),
    [(Hinge(C=10.0), ("hinge", 10.0)), (SquaredHinge(C=10.0), ("squared", 10.0))],
    ids=repr,
)
def test_bounds_allow_for_as_much_rounding_as_the_stack_declares(geometry, named, learner, kind):
    Ks, y = random_problem(0, n=40, M=3)
    Ks = [K + 0.02 * np.eye(40) for K in Ks]  # definite, also once blurred
    optimum = conic_optimum(Ks, y, kind, named).value
    above, below = [], []
    for seed in range(12):
        stack = Blurred(Ks, 1e-4, np.random.default_rng(seed))
        problem = Problem(stack, y, learner, geometry)
        result = Newton(tol=1e-9, max_iter=30).run(problem)
        for record in result.history:
            assert_encloses(record.certificate, optimum)
        assert_encloses(certify(problem, result, lambda stack=stack: stack, 1e-9).certificate, optimum)
        without = Newton(tol=1e-9, max_iter=30).run(replace(problem, grams=DenseGrams(stack.matrices)))
        above.append(without.certificate.lower > optimum)
        below.append(without.certificate.upper < optimum)
    assert any(above)  # as the bounds of the blurred kernels do not
    assert any(below)


def test_an_evaluation_adds_both_allowances_and_the_penalty():
    Ks, y = random_problem(0, n=40, M=3)
    geometry, eta = RidgeSimplex(0.5), np.array([0.5, 0.3, 0.2])
    stack = Blurred(Ks, 1e-3, np.random.default_rng(0))
    state = OuterState(Problem(stack, y, Hinge(), geometry), tol=1e-6, max_iter=5)
    found = state.evaluate(eta)
    inner = found.inner
    assert found.rounding_allowance == inner.rounding_allowance(eta, stack.errors) > 0.0
    assert found.upper == pytest.approx(eta @ eta / (2 * 0.5) + inner.primal + found.rounding_allowance)
    np.testing.assert_allclose(found.h, [0.5 * inner.coef @ K @ inner.coef for K in stack.matrices])
    np.testing.assert_allclose(found.h_upper - found.h, inner.energy_allowance(stack.errors), rtol=1e-9)
    assert state.certificate.lower == pytest.approx(inner.g - geometry.conjugate(found.h_upper))
    assert inner.gap > 0.0  # so that primal and dual are told apart


def test_what_other_coefficients_prove_allows_for_rounding_too():
    Ks, y = random_problem(0, n=40, M=3)
    stack = Blurred(Ks, 1e-3, np.random.default_rng(0))
    state = OuterState(Problem(stack, y, Hinge(), Simplex()), tol=1e-6, max_iter=5)
    poor = state.evaluate(np.eye(3)[1]).inner
    better = Newton(tol=1e-3).run(Problem(DenseGrams(stack.matrices), y, Hinge(), Simplex())).inner
    new = dual_point(state.problem, stack, better.coef)
    state.add_dual_point(new)
    h = [0.5 * better.coef @ K @ better.coef for K in stack.matrices]
    np.testing.assert_allclose(new.h, h + better.energy_allowance(stack.errors))
    proved = np.abs(better.coef).sum() - new.h.max()
    assert proved > poor.g - (stack.energies(poor.coef)).max()
    assert state.certificate.lower == pytest.approx(proved)


# -- storage in float32, once at the end


@pytest.mark.parametrize("centre", [True, False])
def test_float32_storage_certifies_the_kernels_as_stored_up_to_rounding(centre):
    for seed in range(3):
        Ks, y = random_problem(seed, n=60, M=6)
        stack = packed(Ks, centre)
        stored = [stack.combine(row).astype(float) for row in np.eye(6)]
        for C in (1.0, 100.0):
            optimum = conic_optimum(stored, y, ("hinge", C), ("simplex",)).value
            result = Newton(tol=1e-3).solve(stack, y, Hinge(C), Simplex())
            for record in result.history:
                assert_encloses(record.certificate, optimum, 1e-5)


@pytest.mark.parametrize("C", [1.0, 100.0])
@each_set
@pytest.mark.parametrize("centre", [True, False])
@each_storage
def test_kernels_are_read_again_only_where_rounding_hides_the_rest(C, geometry, named, centre, held):
    for seed in range(3):
        Ks, y = random_problem(seed, n=60, M=6)
        Ks = [np.repeat(np.repeat(K, 3, axis=0), 3, axis=1) for K in Ks]  # copies: roundings add up
        y = np.repeat(y, 3)
        problem = Problem(held(Ks, centre), y, Hinge(C), geometry)
        result = Newton(tol=5e-4).run(problem)
        optimum = conic_optimum(Ks, y, ("hinge", C), named).value
        full = Counted(Ks)
        loose = certify(problem, result, never, 1e-3).certificate
        tight = certify(problem, result, lambda full=full: full, 0.0).certificate
        assert full.used == 1
        assert len(full.read) == len(set(full.read)) > 0
        for certificate in (loose, tight):
            assert_encloses(certificate, optimum)
        assert loose.lower <= tight.lower * (1 + 1e-12)
        assert loose.relative_gap <= 1e-3


@pytest.mark.parametrize("C", [1.0, 100.0])
@each_set
def test_what_was_streamed_is_computed_again_where_weights_are(C, geometry, named):
    for seed in range(3):
        Ks, y = random_problem(seed, n=60, M=6)
        problem = Problem(streamed(Ks), y, Hinge(C), geometry)
        result = Newton(tol=5e-4).run(problem)
        optimum = conic_optimum(Ks, y, ("hinge", C), named).value
        for tol in (1e-3, 0.0):
            full = Counted(Ks)
            certified = certify(problem, result, lambda full=full: full, tol)
            assert_encloses(certified.certificate, optimum)
            assert certified.certificate.relative_gap <= 1e-3
            assert full.used == 1  # what rounding does to many values at once is not bounded
            assert len(full.read) == len(set(full.read))


EVERY_SET = [
    Simplex(),
    BoxSimplex(theta=0.4),
    RidgeSimplex(theta=0.02),
    LpBall(1.5),
    ElasticNetBall(v=0.5),
    GroupBox(list("aabbccdd"), theta=0.6),
    Uniform(),
]


@pytest.mark.parametrize("geometry", EVERY_SET, ids=repr)
@pytest.mark.parametrize("learner", [Hinge(1.0), NuHinge(0.4)], ids=repr)
def test_energies_that_do_not_count_are_not_measured_and_the_bound_is_that_of_all(geometry, learner):
    Ks, y = random_problem(1, n=60, M=8)
    for held in (packed, streamed):
        problem = Problem(held(Ks, centre=False), y, learner, geometry)
        result = Newton(tol=1e-3).run(problem)
        v, full = result.proof.coef, Counted(Ks)
        certificate = certify(problem, result, lambda full=full: full, 0.0).certificate
        inner = learner.measure(np.zeros(60), v, y)
        h = np.array([0.5 * v @ K @ v for K in Ks]) + inner.energy_allowance(full.errors)
        assert certificate.lower == pytest.approx(inner.g - geometry.conjugate(h), rel=1e-9)
        counted = set(np.flatnonzero(geometry.maximizer(h)))
        assert counted <= set(full.read)
        assert len(full.read) == len(set(full.read))
        if len(counted) < 4:
            assert len(full.read) < 8


@pytest.mark.parametrize("excess", [0.0, 0.5, 10.0, INF])
def test_bounds_on_energies_however_loose_do_not_change_what_is_proved(monkeypatch, excess):
    Ks, y = random_problem(1, n=60, M=8)
    problem = Problem(packed(Ks, centre=False), y, Hinge(1.0), Simplex())
    result, full = Newton(tol=1e-3).run(problem), Counted(Ks)
    h = np.array([0.5 * result.proof.coef @ K @ result.proof.coef for K in Ks])
    spread = excess * h.max() * np.linspace(0.0, 1.0, 8) if np.isfinite(excess) else np.full(8, INF)
    monkeypatch.setattr(PackedGrams, "energy_errors", lambda *_: spread)
    certificate = certify(problem, result, lambda: full, 0.0).certificate
    assert certificate.lower == pytest.approx(result.proof.g - h.max(), rel=1e-6)
    assert len(full.read) == len(set(full.read))
    if excess in (10.0, INF):
        assert len(full.read) >= 7


LEARNERS = [
    Hinge(C=0.2, tol=1e-11),
    SquaredHinge(C=1e4, tol=1e-11),
    NuHinge(nu=0.5, tol=1e-11),
    MarginDistribution(lam=0.2, tol=1e-11),
    Square(C=1.0),
    EpsilonInsensitive(C=0.2, epsilon=0.1, tol=1e-11),
]


@pytest.mark.parametrize("learner", LEARNERS, ids=repr)
@pytest.mark.parametrize("way", ["up", "down"])
@pytest.mark.parametrize("mixed", [False, True])
@pytest.mark.parametrize("held", [packed, by_reference, streamed])
def test_bounds_hold_where_every_entry_was_rounded_the_same_way(learner, way, mixed, held):
    rng = np.random.default_rng(0)
    A = rng.integers(-3, 4, size=(30, 40)).astype(float)
    y = np.where(np.arange(30) % 2, 1.0, -1.0)
    K = (A @ A.T) * (1.0 + (-1.0 if way == "up" else 1.0) * 2.0**-26)  # whole numbers in float32
    stack = held([K], centre=False)
    np.testing.assert_array_equal(stack.combine(np.ones(1)), A @ A.T)
    problem = Problem(stack, y, learner, Simplex())
    result = Newton(tol=1e-3).run(problem)
    if mixed:
        result = replace(result, proof=replace(result.proof, is_mixture=True))
    exact = (lambda: StreamedGrams(stack.given, 1, 30)) if held is streamed else never
    certificate = certify(problem, result, exact, 1e-3).certificate
    optimum = learner.solve(K, y, tol=1e-11)
    # What was stored promises too much; energies of matrices that exist are those of the kernels themselves.
    if way == "up" and learner.solve(A @ A.T, y, tol=1e-11).primal < optimum.dual:
        assert result.certificate.upper < optimum.dual
    elif way == "down" and held is packed:
        assert result.certificate.lower > optimum.primal
    assert optimum.dual <= certificate.upper
    assert certificate.lower <= optimum.primal


@each_set
@pytest.mark.parametrize("way", ["up", "down"])
@pytest.mark.parametrize("learner", [LEARNERS[0], LEARNERS[1], LEARNERS[4]], ids=repr)
def test_bounds_of_several_kernels_hold_where_all_were_rounded_the_same_way(geometry, named, way, learner):
    rng = np.random.default_rng(1)
    grids = [A @ A.T for A in rng.integers(-3, 4, size=(3, 30, 40)).astype(float)]
    y = np.where(np.arange(30) % 2, 1.0, -1.0)
    Ks = [K * (1.0 + (-1.0 if way == "up" else 1.0) * 2.0**-26) for K in grids]
    sharp = Newton(tol=2e-10)
    exact = sharp.solve(DenseGrams(Ks), y, learner, geometry).certificate
    assert exact.relative_gap <= 2e-9
    problem = Problem(packed(Ks, centre=False), y, learner, geometry)
    result = sharp.run(problem)
    certificate = certify(problem, result, never, 1e-3).certificate
    assert certificate.lower <= exact.upper
    assert exact.lower <= certificate.upper
    # What was stored promises too little or too much: how far a sum in float32 hides it depends on its order.
    stored = sharp.solve(DenseGrams(grids), y, learner, geometry).certificate
    if way == "up":
        assert stored.upper < exact.lower
    else:
        assert stored.lower > exact.upper


@pytest.mark.parametrize("loose", [True, False])
def test_energies_of_mixtures_are_measured_before_they_prove_anything(loose):
    Ks, y = random_problem(0, n=60, M=6)
    problem = Problem(packed(Ks), y, Hinge(1.0), Simplex())
    result = Newton(tol=1e-4).run(problem)
    proof = result.proof.mixed_with(Newton(tol=1e-2).run(problem).proof, 0.01)
    wrong = replace(result, proof=replace(proof, h=0.0 * proof.h))  # as if kernels were indefinite
    exact, tol = (never, 1e-3) if loose else (lambda: DenseGrams(Ks), 0.0)
    certificate = certify(problem, wrong, exact, tol).certificate
    optimum = conic_optimum(Ks, y, ("hinge", 1.0), ("simplex",)).value
    assert_encloses(certificate, optimum)
    assert certificate.relative_gap <= 1e-3


@pytest.mark.parametrize("seed", range(4))
def test_what_a_cutting_plane_proves_holds_for_the_kernels_themselves(seed):
    rng = np.random.default_rng(seed)
    Ks = [np.outer(x, x) for x in rng.normal(size=(3, 40))]  # once rounded, they are indefinite
    y = np.where(np.arange(40) % 2, 1.0, -1.0)
    problem = Problem(packed(Ks), y, Hinge(100.0), Simplex())
    result = CuttingPlane(tol=1e-5, max_iter=30).run(problem)
    assert result.proof.is_mixture
    certificate = certify(problem, result, lambda: DenseGrams(Ks), 1e-3).certificate
    assert_encloses(certificate, conic_optimum(Ks, y, ("hinge", 100.0), ("simplex",)).value, 1e-7)


# -- what a certified result says


@pytest.fixture
def solved():
    Ks, y = random_problem(0, n=60, M=6)
    problem = Problem(packed(Ks), y, Hinge(1.0), Simplex())
    return Ks, problem, Newton(tol=1e-3).run(problem)


def test_the_certificate_is_that_of_the_last_record_too(solved):
    _, problem, result = solved
    certified = certify(problem, result, never, 1e-2)
    assert certified.history[-1].certificate == certified.certificate != result.certificate
    assert certified.history[:-1] == result.history[:-1]
    assert certified.n_iter == result.n_iter
    assert certified.stopped == "converged"


def test_why_it_stopped_follows_the_certificate(solved):
    Ks, problem, result = solved
    gap = result.certificate.relative_gap
    assert certify(problem, result, lambda: DenseGrams(Ks), 1e-3 * gap).stopped == "rounding"
    assert certify(problem, replace(result, stopped="max_iter"), never, 1e-2).stopped == "converged"
    open_still = replace(result, stopped="max_iter")
    assert certify(problem, open_still, lambda: DenseGrams(Ks), 1e-3 * gap).stopped == "max_iter"


def test_the_solution_attains_the_upper_bound_on_the_kernels_as_given(solved):
    Ks, problem, result = solved
    for exact, tol in ((never, 1e-2), (lambda: DenseGrams(Ks), 0.0)):
        certified = certify(problem, result, exact, tol)
        inner = certified.inner
        f = sum(w * K for w, K in zip(certified.eta, Ks, strict=True)) @ inner.coef
        # The intercept is one for centred kernels: on those as given the best one does as well.
        paid = minimize_scalar(lambda b, f=f: np.maximum(0.0, 1.0 - problem.y * (f + b)).sum()).fun
        assert 0.5 * inner.coef @ f + paid <= certified.certificate.upper * (1 + 1e-12)


class Broken(DenseGrams):
    """Kernels of which the errors are no numbers."""

    def matvec_with_error(self, eta, coef):
        f, error = super().matvec_with_error(eta, coef)
        return f, error + self.off

    def energy_errors(self, coef):
        return super().energy_errors(coef) + self.off


@each_set
@pytest.mark.parametrize("off", [INF, NAN])
def test_bounds_that_cannot_be_drawn_prove_nothing(geometry, named, off):
    Ks, y = random_problem(0, n=60, M=6)
    problem = Problem(packed(Ks), y, Hinge(1.0), geometry)
    result, broken = Newton(tol=1e-3).run(problem), Broken(Ks)
    broken.off = off
    certified = certify(replace(problem, grams=broken), result, lambda: broken, 1e-2)
    assert certified.certificate.upper == INF
    assert certified.certificate.lower <= result.certificate.upper  # drawn from energies that are numbers
    assert certified.stopped == "rounding"
    assert certified.inner is result.inner
    rescued = certify(replace(problem, grams=broken), result, lambda: DenseGrams(Ks), 1e-2)
    assert rescued.certificate.relative_gap <= 1e-2
    assert rescued.stopped == "converged"
