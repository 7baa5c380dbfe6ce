"""Alignment and the weights that maximise it, against their definitions and a conic solver."""

import cvxpy as cp
import numpy as np
import pytest
from tests.reference.problems import duplicated_problem, random_problem

from kernelweave import alignf_weights, alignment, centered_alignment

# Interior points stop at weights of 1e-4 where a kernel is nearly of use; polishing solves for those in use.
POLISHED = {"eps_abs": 1e-10, "eps_rel": 1e-10, "max_iter": 100_000, "polishing": True}


def cosine(K, T):
    top = sum(K[i, j] * T[i, j] for i in range(len(K)) for j in range(len(K)))
    return top / np.sqrt(sum(K.ravel() ** 2) * sum(T.ravel() ** 2))


def centring(K):
    n = len(K)
    P = np.eye(n) - np.ones((n, n)) / n
    return P @ K @ P


def conic_weights(Ks, T, centre):
    """The weights of Eq. (2.21) as min ||sum v_m K_m - T||^2 over v >= 0, on matrices of norm one."""
    columns = np.column_stack([(centring(K) if centre else K).ravel() for K in Ks])
    target = (centring(T) if centre else T).ravel()
    scale = np.linalg.norm(columns, axis=0)
    Q, R = np.linalg.qr(columns / scale)
    v = cp.Variable(len(Ks), nonneg=True)
    a = R.T @ Q.T @ target / np.linalg.norm(target)
    problem = cp.Problem(cp.Minimize(cp.quad_form(v, cp.psd_wrap(R.T @ R)) - 2.0 * a @ v))
    problem.solve(solver=cp.OSQP, **POLISHED)
    weights = v.value / scale
    return weights / np.linalg.norm(weights)


def combined(eta, Ks):
    return sum(e * K for e, K in zip(eta, Ks, strict=True))


def test_alignment_is_the_cosine_of_its_definition():
    Ks, y = random_problem(0, n=15, M=3)
    for K in Ks:
        assert alignment(K, Ks[0]) == pytest.approx(cosine(K, Ks[0]))
        assert alignment(K, y) == pytest.approx(cosine(K, np.outer(y, y)))
        assert centered_alignment(K, y) == pytest.approx(cosine(centring(K), centring(np.outer(y, y))))
    assert alignment(Ks[0], 3.0 * Ks[0]) == pytest.approx(1.0)
    assert alignment(np.zeros((15, 15)), y) == 0.0


def test_centred_alignment_ignores_constants_and_class_sizes_and_alignment_does_not():
    Ks, y = random_problem(1, n=30, M=2)
    assert centered_alignment(Ks[0] + 5.0, y) == pytest.approx(centered_alignment(Ks[0], y))
    assert abs(alignment(Ks[0] + 5.0, y) - alignment(Ks[0], y)) > 0.01
    rare = np.where(np.arange(30) < 3, 1.0, -1.0)
    assert alignment(np.ones((30, 30)), rare) > 0.6  # a constant kernel seems to fit rare classes
    assert centered_alignment(np.ones((30, 30)), rare) == 0.0


def test_labels_may_be_words_and_several():
    Ks, y = random_problem(2, n=20, M=1)
    words = np.where(y > 0, "yes", "no")
    assert alignment(Ks[0], words) == pytest.approx(alignment(Ks[0], y))
    three = np.arange(20) % 3
    T = np.where(three[:, None] == three, 1.0, -0.5)
    assert alignment(Ks[0], three) == pytest.approx(cosine(Ks[0], T))


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("centre", [True, False], ids=["alignf", "kta"])
def test_the_weights_are_those_of_the_conic_solver(seed, centre):
    Ks, y = random_problem(seed, n=40, M=7)
    eta = alignf_weights(Ks, y, centered=centre)
    np.testing.assert_allclose(eta, conic_weights(Ks, np.outer(y, y), centre), atol=1e-8)
    assert np.linalg.norm(eta) == pytest.approx(1.0)
    assert eta.min() >= 0.0


def test_random_full_rank_kernels_too(rng):
    y = np.where(np.arange(25) % 2, 1.0, -1.0)
    for _ in range(5):
        factors = rng.normal(size=(10, 25, 25)) + 0.3 * y[:, None] * rng.random((10, 1, 1))
        Ks = [A @ A.T for A in factors]
        np.testing.assert_allclose(alignf_weights(Ks, y), conic_weights(Ks, np.outer(y, y), True), atol=1e-8)


def test_the_plain_form_is_the_quadratically_constrained_program():
    Ks, y = random_problem(4, n=40, M=6)
    Ks = [K / np.linalg.norm(K) for K in Ks]
    G = np.array([[np.sum(K * L) for L in Ks] for K in Ks])
    a = np.array([y @ K @ y for K in Ks])
    mu = cp.Variable(6, nonneg=True)
    root = np.linalg.cholesky(G)
    cp.Problem(cp.Maximize(a @ mu), [cp.norm(root.T @ mu) <= 1]).solve(solver=cp.CLARABEL)
    expected = mu.value / np.linalg.norm(mu.value)
    np.testing.assert_allclose(alignf_weights(Ks, y, centered=False), expected, atol=1e-3)


@pytest.mark.parametrize(("function", "centre"), [(centered_alignment, True), (alignment, False)])
def test_no_other_weights_are_better_aligned(function, centre, rng):
    Ks, y = random_problem(5, n=30, M=5)
    best = function(combined(alignf_weights(Ks, y, centered=centre), Ks), y)
    for _ in range(200):
        eta = rng.exponential(size=5) * (rng.random(5) < 0.6) + 1e-9
        assert function(combined(eta, Ks), y) <= best + 1e-12
    assert best >= max(function(K, y) for K in Ks) - 1e-12


def test_a_target_kernel_takes_the_place_of_labels():
    Ks, y = random_problem(6, n=30, M=5)
    np.testing.assert_allclose(alignf_weights(Ks, np.outer(y, y)), alignf_weights(Ks, y), atol=1e-9)
    T = np.outer(np.linspace(-1, 2, 30), np.linspace(-1, 2, 30))
    np.testing.assert_allclose(alignf_weights(Ks, T), conic_weights(Ks, T, True), atol=1e-8)


def test_one_array_and_a_list_are_the_same():
    Ks, y = random_problem(7, n=20, M=4)
    np.testing.assert_array_equal(alignf_weights(np.stack(Ks, axis=2), y), alignf_weights(Ks, y))


def test_a_kernel_ten_times_as_large_gets_a_tenth_of_the_weight():
    Ks, y = random_problem(8, n=30, M=5)
    eta = alignf_weights(Ks, y)
    scaled = alignf_weights([10.0 * Ks[0], *Ks[1:]], y) * np.array([10.0, 1.0, 1.0, 1.0, 1.0])
    np.testing.assert_allclose(scaled / np.linalg.norm(scaled), eta, atol=1e-10)


def test_duplicates_zeros_and_constants_do_no_harm():
    Ks, y = duplicated_problem(0, n=30, M=6)
    eta = alignf_weights(Ks, y)
    alone = centered_alignment(combined(alignf_weights(Ks[:3], y), Ks[:3]), y)
    assert centered_alignment(combined(eta, Ks), y) == pytest.approx(alone, rel=1e-9)
    useless = [np.zeros((30, 30)), np.full((30, 30), 2.0), Ks[0]]
    np.testing.assert_allclose(alignf_weights(useless, y), [0.0, 0.0, 1.0], atol=1e-12)
    np.testing.assert_allclose(alignf_weights(useless[:2], y), [0.5**0.5, 0.5**0.5])


@pytest.mark.parametrize(
    ("kernels", "y", "message"),
    [
        ([], [1, -1], "at least one matrix"),
        ([np.eye(2), np.eye(3)], [1, -1], "kernel 0 has 2 and kernel 1 has 3"),
        ([np.ones((2, 3))], [1, -1], r"kernel 0 must be a square matrix; got shape \(2, 3\)"),
        ([np.full((2, 2), np.nan)], [1, -1], "kernel 0 must be finite"),
        ([np.eye(2)], [1, 1], r"at least 2 classes; it has 1"),
        ([np.eye(2)], [1, 2, 3], r"must be 2 labels or a kernel of shape \(2, 2\); got shape \(3,\)"),
        ([np.eye(3)], [0.1, 0.2, 0.7], r"continuous values: for those pass the target kernel"),
    ],
)
def test_errors_say_what_was_received(kernels, y, message):
    with pytest.raises(ValueError, match=message):
        alignf_weights(kernels, y)


def test_a_target_of_another_size_is_named():
    with pytest.raises(ValueError, match="has 2 samples and the target 3"):
        alignment(np.eye(2), np.eye(3))
