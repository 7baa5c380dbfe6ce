"""Input-output kernel learning: the stack of kernels, the convex problem of a round, and the rounds."""

import numpy as np
import pytest
from tests.reference import weak
from tests.weak_labels.data import bags_of, kernels

from kernelweave.geometry import GroupBox
from kernelweave.learners import UnbiasedSquaredHinge
from kernelweave.solvers import BlockDescent, Newton
from kernelweave.weak_labels import Exhaustive, InputOutputCuttingPlane, InputOutputGrams, Labelings
from kernelweave.weak_labels.ambiguity import selection_matrix
from kernelweave.weak_labels.cutting_plane import supervised_scores
from kernelweave.weak_labels.oracle import ScoredCandidate


def labelings(rng, n, T, M):
    return [[rng.choice([-1, 1], n).astype(np.int8) for _ in range(M)] for _ in range(T)]


def inner_problem(seed, n, T, M):
    rng = np.random.default_rng(seed)
    Ks, rows = kernels(rng, n, M), labelings(rng, n, T, M)
    C = np.where(np.arange(n) < 4, 100.0, rng.choice([0.1, 1.0]))
    stack = InputOutputGrams(Ks, Labelings.balanced(np.zeros(n), 0, n), rows)
    explicit = [weak.input_output_kernel(Ks[m], rows[t][m]) for t in range(T) for m in range(M)]
    groups = [range(t * M, (t + 1) * M) for t in range(T)]
    return stack, explicit, groups, C


def solved(stack, C, theta, M, tol=1e-6, solver=None):
    T = stack.n_kernels // M
    geometry = GroupBox(groups=np.repeat(np.arange(T), M).tolist(), theta=theta)
    solver = Newton(tol=tol) if solver is None else solver
    return solver.solve(stack, np.ones(len(C)), UnbiasedSquaredHinge(), geometry, weight=C)


CASES = [
    (1, 1, 1.0),
    (3, 1, 1.0),
    (3, 2, 1.0),
    (4, 2, 0.3),
    (5, 3, 0.24),
    (2, 3, 0.7),
    (6, 2, 5.0),
    (4, 1, 0.2),
]


@pytest.mark.parametrize(("T", "M", "theta"), CASES)
def test_the_certificate_encloses_the_conic_optimum(T, M, theta):
    stack, explicit, groups, C = inner_problem(10 * T + M, 18, T, M)
    optimum = weak.inner_optimum(explicit, groups, C, theta)
    for tol in (1e-1, 1e-3, 1e-6):
        certificate = solved(stack, C, theta, M, tol).certificate
        slack = 1e-7 * abs(optimum)
        assert certificate.lower - slack <= optimum <= certificate.upper + slack
        assert certificate.relative_gap <= tol


@pytest.mark.parametrize(("T", "M", "theta"), [(3, 2, 1.0), (4, 2, 0.3), (2, 3, 0.7)])
def test_the_nu_form_and_the_c_form_agree(T, M, theta):
    stack, explicit, groups, C = inner_problem(7 * T + M, 14, T, M)
    result = solved(stack, C, theta, M, 1e-8)
    P = result.certificate.upper
    assert weak.inner_optimum_nu(explicit, groups, C, theta) == pytest.approx(-1.0 / (4.0 * P), rel=1e-5)
    assert 0.5 * result.inner.coef.sum() == pytest.approx(P, rel=1e-5)


def test_block_descent_reaches_the_same_optimum():
    stack, _, _, C = inner_problem(5, 16, 4, 2)
    slow = solved(stack, C, 0.3, 2, solver=BlockDescent(tol=1e-3, max_iter=3000))
    quick = solved(stack, C, 0.3, 2)
    assert slow.certificate.lower <= quick.certificate.upper
    assert quick.certificate.lower <= slow.certificate.upper


def random_norms(rng):
    T, M = rng.integers(1, 6), rng.integers(1, 4)
    norms = rng.exponential(size=(T, M))
    norms[rng.random((T, M)) < 0.2] = 0.0
    if T > 1 and rng.random() < 0.4:  # ties between groups
        norms[1] = norms[0]
    if rng.random() < 0.2:
        norms[0] = 0.0
    return norms


@pytest.mark.parametrize("seed", range(5))
def test_the_closed_form_update_is_that_of_a_conic_solver(seed):
    rng = np.random.default_rng(seed)
    cases = [
        (norms, rng.choice([0.15, 0.25, 0.5, 1.0, 2.0])) for norms in (random_norms(rng) for _ in range(80))
    ]
    cases += [
        (norms, rng.choice([1.0, 1.2]) / len(norms)) for norms in (random_norms(rng) for _ in range(20))
    ]
    for (norms, theta), optimum in zip(cases, weak.block_updates(cases), strict=True):
        T, M = norms.shape
        geometry = GroupBox(groups=np.repeat(np.arange(T), M).tolist(), theta=theta)
        eta = geometry.reweight(norms.ravel())
        assert geometry.contains(eta)
        used = norms.ravel() > 0
        assert (eta[used] > 0).all()
        value = 0.5 * np.sum(norms.ravel()[used] ** 2 / eta[used])
        assert value == pytest.approx(optimum, rel=1e-4, abs=1e-5)


def test_the_stack_is_what_its_definition_says(rng):
    Ks, rows = kernels(rng, 9, 2), labelings(rng, 9, 3, 2)
    stack = InputOutputGrams(Ks, Labelings.balanced(np.zeros(9), 0, 9), rows)
    explicit = [weak.input_output_kernel(Ks[m], rows[t][m]) for t in range(3) for m in range(2)]
    eta, v = rng.random(6), rng.normal(size=9)
    np.testing.assert_allclose(stack.combine(eta), sum(e * K for e, K in zip(eta, explicit, strict=True)))
    np.testing.assert_allclose(stack.matvecs(v), [K @ v for K in explicit])
    V = rng.normal(size=(9, 2))
    np.testing.assert_allclose(stack.matvecs(V), [K @ V for K in explicit])
    np.testing.assert_allclose(stack.energies(v), [0.5 * v @ K @ v for K in explicit])
    f = sum(K @ c for K, c in zip(Ks, stack.point_coef(eta, np.abs(v)), strict=True))
    slow = sum(eta[2 * t + m] * Ks[m] @ (rows[t][m] * np.abs(v)) for t in range(3) for m in range(2))
    np.testing.assert_allclose(f, slow)


def test_the_bag_kernels_are_the_convolution_of_the_chosen_instances(rng):
    keys = bags_of([3, 4, 1, 5], [1, 1, -1, 1], [1, 2, 1, 2])
    (K,) = kernels(rng, 13, 1)
    rows = [[keys.from_scores(rng.normal(size=13))] for _ in range(2)]
    stack = InputOutputGrams((K,), keys, rows)
    chosen = [[[j for j in places if row[0][j]] for places in keys.groups] for row in rows]
    explicit = [weak.bag_kernel(K, picks, keys.signs) for picks in chosen]
    eta, v = rng.random(2), rng.random(4)
    np.testing.assert_allclose(stack.combine(eta), sum(e * B for e, B in zip(eta, explicit, strict=True)))
    np.testing.assert_allclose(stack.matvecs(v), [B @ v for B in explicit])


@pytest.mark.parametrize("seed", range(3))
def test_with_an_exhaustive_oracle_the_cutting_plane_solves_the_full_problem(seed):
    rng = np.random.default_rng(seed)
    n, M = 10, 2
    Ks = kernels(rng, n, M)
    known = np.r_[1.0, -1.0, 1.0, -1.0, np.zeros(6)]
    balanced = Labelings.balanced(known, 3, 3)
    C = np.where(known != 0, 100.0, 0.5)
    every = list(balanced.all_candidates())
    plane = InputOutputCuttingPlane(max_rounds=60, violation_tol=1e-7, tol=1e-8, oracle=Exhaustive())
    outcome = plane.solve(Ks, balanced, C, [every[0].astype(float)])
    assert outcome.stopped in ("no violated candidate", "repeated candidate")
    explicit = [[weak.input_output_kernel(K, y.astype(float)) for y in every] for K in Ks]
    optimum = weak.full_optimum(explicit, C)
    assert outcome.result.certificate.upper == pytest.approx(optimum, rel=1e-5)


def tiny_problem(ambiguity, seed):
    """Return kernels of the points, the ambiguity, prices, and the input-output kernels of all candidates."""
    rng = np.random.default_rng(seed)
    if ambiguity == "semi-supervised":
        known = np.r_[1.0, -1.0, 1.0, -1.0, np.zeros(6)]
        candidates, C = Labelings.balanced(known, 2, 4), np.where(known != 0, 100.0, 0.1)
    else:
        sizes, signs = rng.integers(2, 5, size=4), np.array([1.0, -1.0, 1.0, -1.0])
        if ambiguity == "output":
            candidates, C = Labelings.of_bags(signs, sizes, np.ones(4, int)), np.full(sizes.sum(), 10.0)
        else:
            candidates, C = bags_of(np.where(signs > 0, sizes, 1), signs, np.ones(4, int)), np.full(4, 10.0)
    Ks = kernels(rng, candidates.n_points, 2)

    def explicit(K, h):
        if ambiguity == "input":
            chosen = [[j for j in places if h[j]] for places in candidates.groups]
            return weak.bag_kernel(K, chosen, candidates.signs)
        return weak.input_output_kernel(K, h.astype(float))

    return Ks, candidates, C, [[explicit(K, h) for h in candidates.all_candidates()] for K in Ks]


@pytest.mark.parametrize("ambiguity", ["semi-supervised", "output", "input"])
def test_the_rounds_reach_the_optimum_over_all_candidates(ambiguity):
    reached = 0
    for seed in range(25):
        Ks, candidates, C, explicit = tiny_problem(ambiguity, seed)
        plane = InputOutputCuttingPlane(max_rounds=100, violation_tol=1e-6, tol=1e-7)
        scores = np.random.default_rng(seed).normal(size=candidates.n_points)
        found = plane.solve(Ks, candidates, C, [scores]).result.certificate
        optimum = weak.full_optimum(explicit, C)
        assert found.upper >= optimum * (1.0 - 1e-6)
        reached += found.upper <= optimum * (1.0 + 1e-4)
    assert reached >= 24


def test_with_a_cap_the_candidates_found_are_not_better_than_all_of_them():
    rng = np.random.default_rng(4)
    (K,) = kernels(rng, 8, 1)
    known = np.r_[1.0, -1.0, np.zeros(6)]
    balanced = Labelings.balanced(known, 3, 3)
    C = np.where(known != 0, 100.0, 0.5)
    every = list(balanced.all_candidates())
    plane = InputOutputCuttingPlane(
        theta=1.2, max_rounds=60, violation_tol=0.0, tol=1e-7, oracle=Exhaustive()
    )
    outcome = plane.solve([K], balanced, C, [every[0].astype(float)])
    explicit = [weak.input_output_kernel(K, y.astype(float)) for y in every]
    cap = 1.2 / len(outcome.candidates)
    optimum = weak.inner_optimum(explicit, [[k] for k in range(len(every))], C, cap)
    # It need not be the optimum: a cap below one needs the second best candidate as well, and only the most
    # violated one is ever added.
    assert outcome.result.certificate.upper >= optimum * (1 - 1e-6)
    assert outcome.stopped == "no violated candidate"


def test_the_first_scores_are_those_of_an_svm_with_the_average_kernel(rng):
    Ks, C = kernels(rng, 12, 3), rng.random(4) + 0.5
    A = selection_matrix(np.array([0, 3, 7, 8]), 12)
    y = np.array([1.0, -1.0, 1.0, -1.0])
    K = sum(Ks) / 3
    # The coefficients of the squared hinge without bias: those that are not zero solve a linear system.
    alpha = np.linalg.solve(np.outer(y, y) * (A @ K @ A.T) + np.diag(1 / C), np.ones(4))
    assert (alpha > 0).all()
    np.testing.assert_allclose(supervised_scores(Ks, A, y, C), K @ (A.T @ (y * alpha)), rtol=1e-5)


def test_the_result_says_why_the_rounds_ended():
    rng = np.random.default_rng(0)
    Ks = kernels(rng, 20, 2)
    known = np.r_[np.ones(3), -np.ones(3), np.zeros(14)]
    balanced = Labelings.balanced(known, 7, 7)
    C = np.where(known != 0, 100.0, 0.1)
    starts = [rng.normal(size=20)]
    capped = InputOutputCuttingPlane(theta=1.2, max_rounds=2).solve(Ks, balanced, C, starts)
    assert (capped.stopped, len(capped.candidates)) == ("round cap", 2)
    ended = InputOutputCuttingPlane(max_rounds=100, violation_tol=1e-4).solve(Ks, balanced, C, starts)
    assert ended.stopped in ("no violated candidate", "repeated candidate")
    keys = {b"".join(h.tobytes() for h in row) for row in ended.candidates}
    assert len(keys) == len(ended.candidates)
    assert all(r.certificate.relative_gap <= 1e-3 for r in ended.rounds)


def test_a_known_candidate_gives_way_to_the_next_best_one_that_is_violated():
    h = np.ones(2, dtype=np.int8)
    found = [[ScoredCandidate(h, value) for value in values] for values in ((2.0, 8.0, 4.0), (6.0, 1.0))]
    plane = InputOutputCuttingPlane(violation_tol=0.01)

    def first_new(least, known):
        group, violation = plane._first_new(found, least, lambda each: values(each) in known)
        return None if group is None else values(group), violation

    def values(group):
        return tuple(each.value for each in group)

    assert first_new(1.0, set())[0] == (2.0, 6.0)  # the searches' own first choice
    assert first_new(1.0, {(2.0, 6.0)}) == ((8.0, 6.0), pytest.approx(5.0 - 1.0))
    assert first_new(1.0, {(2.0, 6.0), (8.0, 6.0)})[0] == (8.0, 1.0)
    known = {(2.0, 6.0), (8.0, 6.0), (8.0, 1.0)}
    assert first_new(1.0, known)[0] == (4.0, 6.0)
    assert first_new(4.5, known) == (None, pytest.approx(5.0 / 4.5 - 1.0))  # what is left is not violated
    assert first_new(5.5, set())[0] is None
