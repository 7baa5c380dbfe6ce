"""Alignment, its moments and the weights that maximise it, against definitions and a conic solver."""

import cvxpy as cp
import numpy as np
import pytest
from sklearn.svm import SVC
from tests.reference.problems import duplicated_problem, random_problem

from kernelweave import AlignedMKLClassifier, KernelBank, alignf_weights, alignment, centered_alignment
from kernelweave.baselines.target_alignment import moments, simplex_code
from kernelweave.gram.source import matrix_sources
from kernelweave.kernels import FromFunction, Gaussian, Linear
from kernelweave.learners import Hinge

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


def by_definition(Ks, codes, weight, centred):
    """The moments of explicitly centred and weighted matrices, entry by entry."""
    n = len(weight)
    P = np.eye(n) - np.outer(np.ones(n), weight) / weight.sum() if centred else np.eye(n)
    roots = np.diag(np.sqrt(weight))
    Ks = [roots @ P @ K @ P.T @ roots for K in Ks]
    T = roots @ P @ codes
    products = np.array([[sum((K * L).ravel()) for L in Ks] for K in Ks])
    targets = np.array([[t @ K @ t for t in T.T] for K in Ks])
    return products, targets, np.linalg.norm(T @ T.T)


@pytest.fixture(params=[False, True], ids=["plain", "centred"])
def centred(request):
    return request.param


def test_moments_are_those_of_explicit_matrices(centred, rng):
    Ks, _ = random_problem(0, n=30, M=5)
    codes, weight = rng.normal(size=(30, 2)), rng.uniform(0.0, 2.0, 30)
    [found] = moments(matrix_sources(Ks), 5, codes, weight, centred=centred)
    products, targets, norm = by_definition(Ks, codes, weight, centred)
    np.testing.assert_allclose(found.products, products, rtol=1e-11, atol=1e-12 * products.max())
    with_target = targets.sum(axis=1)
    np.testing.assert_allclose(found.with_target, with_target, rtol=1e-11, atol=1e-12 * with_target.max())
    assert found.target_norm == pytest.approx(norm, rel=1e-12)


def test_each_column_is_a_target_of_its_own(centred, rng):
    Ks, _ = random_problem(1, n=20, M=3)
    codes, weight = rng.normal(size=(20, 3)), np.ones(20)
    found = moments(matrix_sources(Ks), 3, codes, weight, centred=centred, per_column=True)
    for c in range(3):
        [alone] = moments(matrix_sources(Ks), 3, codes[:, [c]], weight, centred=centred)
        np.testing.assert_allclose(found[c].with_target, by_definition(Ks, codes, weight, centred)[1][:, c])
        np.testing.assert_allclose(found[c].kernel_alignments(), alone.kernel_alignments(), rtol=1e-12)


def test_blocks_and_kinds_kernel_alignments_do_not_matter(centred, rng):
    X = rng.normal(size=(25, 4))
    bank = KernelBank([Gaussian(), Linear(), FromFunction(lambda A, B: A @ B.T + 1.0), Gaussian(scale=9.0)])
    fitted = bank.fit(X)
    codes, weight = rng.normal(size=(25, 1)), rng.uniform(0.5, 2.0, 25)
    products, _, _ = by_definition(list(fitted.grams()), codes, weight, centred)
    for entries in (1, 700, 1 << 23):
        [found] = moments(fitted.sources(), 4, codes, weight, centred=centred, block_entries=entries)
        np.testing.assert_allclose(found.products, products, rtol=1e-10)


def test_in_moments_a_weight_of_two_is_a_sample_twice_and_of_zero_none(centred):
    Ks, y = random_problem(2, n=24, M=4)
    weight = np.ones(24)
    weight[:5], weight[5:9] = 2.0, 0.0
    order = np.repeat(np.arange(24), weight.astype(int))
    [weighted] = moments(matrix_sources(Ks), 4, y[:, None], weight, centred=centred)
    copies = [np.ascontiguousarray(K[np.ix_(order, order)]) for K in Ks]
    [repeated] = moments(matrix_sources(copies), 4, y[order][:, None], np.ones(order.size), centred=centred)
    np.testing.assert_allclose(weighted.products, repeated.products, rtol=1e-10)
    np.testing.assert_allclose(weighted.with_target, repeated.with_target, rtol=1e-9, atol=1e-10)


def test_a_large_constant_does_not_drown_what_centring_leaves(rng):
    x = rng.normal(size=(40, 1))
    y = np.sign(x)
    small = [1e-3 * x @ x.T, 1e-3 * y @ y.T]
    large = [K + 1e3 for K in small]
    [a] = moments(matrix_sources(small), 2, y, np.ones(40), centred=True)
    [b] = moments(matrix_sources(large), 2, y, np.ones(40), centred=True)
    np.testing.assert_allclose(b.products, a.products, rtol=1e-8)  # the matrices carry ten digits of it
    np.testing.assert_allclose(b.kernel_alignments(), a.kernel_alignments(), rtol=1e-8)


def test_a_constant_kernel_has_no_direction():
    Ks, y = random_problem(3, n=20, M=2)
    useless = matrix_sources([Ks[0], np.full((20, 20), 7.3)])
    [found] = moments(useless, 2, y[:, None], np.ones(20), centred=True)
    assert found.products[1, 1] == 0.0
    assert found.kernel_alignments()[1] == 0.0
    assert found.combined_alignment(np.array([0.0, 1.0])) == 0.0


@pytest.mark.parametrize("classes", [2, 3, 5])
def test_the_code_is_one_within_a_class_and_even_between(classes, rng):
    index = rng.integers(0, classes, 30)
    code = simplex_code(index, classes)
    same = index[:, None] == index
    np.testing.assert_allclose(code @ code.T, np.where(same, 1.0, -1.0 / (classes - 1)), atol=1e-12)


@pytest.mark.parametrize("criterion", ["alignf", "align", "kta"])
def test_weights_and_alignments_are_those_of_the_functions(criterion):
    Ks, y = random_problem(5, n=50, M=6)
    fitted = AlignedMKLClassifier("precomputed", criterion=criterion).fit(Ks, y)
    cosine = alignment if criterion == "kta" else centered_alignment
    each = np.array([cosine(K, y) for K in Ks])
    expected = {
        "alignf": alignf_weights(Ks, y),
        "align": each / np.linalg.norm(each),
        "kta": alignf_weights(Ks, y, centered=False),
    }[criterion]
    np.testing.assert_allclose(fitted.kernel_weights_, expected, atol=1e-9)
    np.testing.assert_allclose(fitted.kernel_alignments_, each, atol=1e-10)
    combined = sum(e * K for e, K in zip(expected, Ks, strict=True))
    assert fitted.alignment_ == pytest.approx(cosine(combined, y))


def test_several_classes_are_aligned_with_the_kernel_of_the_classes():
    Ks, _ = random_problem(6, n=48, M=5)
    y = np.arange(48) % 3
    fitted = AlignedMKLClassifier("precomputed").fit(Ks, y)
    np.testing.assert_allclose(fitted.kernel_weights_, alignf_weights(Ks, y), atol=1e-9)
    T = np.where(y[:, None] == y, 1.0, -0.5)
    np.testing.assert_allclose(fitted.kernel_weights_, alignf_weights(Ks, T), atol=1e-8)


def test_the_second_step_is_an_ordinary_svm():
    Ks, y = random_problem(7, n=60, M=5)
    fitted = AlignedMKLClassifier("precomputed", learner=Hinge(C=3.0), tol=1e-9).fit(Ks, y)
    K = fitted.combined_kernel(Ks)
    svc = SVC(C=3.0, kernel="precomputed", tol=1e-9).fit(K, y)
    np.testing.assert_allclose(fitted.decision_function(Ks), svc.decision_function(K), atol=1e-4)
