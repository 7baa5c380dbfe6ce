"""The naive loops against one-line numpy, scipy and duality."""

import numpy as np
import pytest
from scipy.optimize import linprog, minimize_scalar
from scipy.spatial.distance import cdist
from sklearn.metrics.pairwise import polynomial_kernel, rbf_kernel
from sklearn.svm import SVC

from . import loops, pairs, problems

N = 15


@pytest.fixture
def kernels():
    Ks, y = problems.random_problem(1, N, 4)
    return Ks, y


def test_packing_puts_the_lower_triangle_row_by_row(kernels):
    K = kernels[0][0]
    packed = loops.pack(K)
    assert np.array_equal(packed, K[np.tril_indices(N)])
    assert packed[7 * 8 // 2 + 3] == K[7, 3]
    assert np.array_equal(loops.unpack(packed), K)


def test_centring_comes_before_rounding(kernels):
    K = kernels[0][0] + 1e6
    P = np.eye(N) - 1.0 / N
    packed = loops.pack(K, centre=True, dtype=np.float32)
    assert packed.dtype == np.float32
    assert packed == pytest.approx((P @ K @ P)[np.tril_indices(N)], abs=1e-6)


@pytest.fixture
def drawn():
    """Coefficients, one column per vector, kernel weights and weights per sample."""
    rng = np.random.default_rng(0)
    return rng.standard_normal((N, 3)), rng.random(4), rng.random((4, N))


def test_passes_over_packed_kernels_are_matrix_products(kernels, drawn):
    (Ks, _), (V, eta, _) = kernels, drawn
    packed = np.array([loops.pack(K) for K in Ks])
    products = np.einsum("mij,jk->mik", Ks, V)
    assert loops.combine(packed, eta) == pytest.approx(np.einsum("m,mij->ij", eta, Ks))
    assert loops.matvecs(packed, V) == pytest.approx(products)
    assert loops.matvecs(packed, V, V > 0.0) == pytest.approx(np.where(V > 0.0, products, 0.0))
    assert loops.matvecs(packed, V[:, 0]).shape == (4, N, 1)
    assert loops.energies(packed, V) == pytest.approx([np.trace(V.T @ K @ V) / 2.0 for K in Ks])
    eta[1] *= -1.0
    product, size = loops.matvec_and_size(packed, eta, V.T)
    assert product == pytest.approx(np.einsum("m,mij,jk->ki", eta, Ks, V))
    assert size == pytest.approx(np.einsum("m,mij,jk->ki", np.abs(eta), np.abs(Ks), np.abs(V)))
    chosen = [2, 3, 11]
    few = [K[np.ix_(chosen, chosen)][np.tril_indices(3)] for K in Ks]
    assert loops.gather(packed, chosen) == pytest.approx(np.array(few))


def test_passes_over_matrices_are_matrix_products_of_their_lower_triangles(kernels, drawn):
    (Ks, _), (V, eta, shifts) = kernels, drawn
    upset = [K + np.triu(np.ones((N, N)), 1) for K in Ks]
    centred = np.array(Ks) - shifts[:, :, None] - shifts[:, None, :]
    assert loops.pack_matrices(upset, shifts) == pytest.approx(centred[:, *np.tril_indices(N)])
    chosen = [2, 3, 11]
    few = centred[:, chosen][:, :, chosen][:, *np.tril_indices(3)]
    assert loops.gather_matrices(upset, chosen, shifts[:, chosen]) == pytest.approx(few)
    assert loops.gather_matrices(upset, chosen, shifts[:, chosen], np.float32).dtype == np.float32
    products = np.einsum("ki,mij->mkj", V.T, Ks)
    assert loops.combine_matrices(upset, eta, eta @ shifts) == pytest.approx(
        np.einsum("m,mij->ij", eta, centred)
    )
    assert loops.matvecs_of_matrices(upset, V.T) == pytest.approx(products)
    assert loops.matvecs_of_matrices(upset, V.T, V.T > 0.0) == pytest.approx(
        np.where(V.T > 0.0, products, 0.0)
    )
    assert loops.matvec_of_matrices(upset, eta, V.T) == pytest.approx(np.tensordot(eta, products, axes=1))
    assert loops.energies_of_matrices(upset, V.T) == pytest.approx([np.trace(V.T @ K @ V) / 2.0 for K in Ks])


def test_the_check_of_matrices_reads_both_triangles(kernels, drawn):
    (Ks, _), (V, _, _) = kernels, drawn
    left, right = probes = V.T[:2]
    Ks = [Ks[0], Ks[1].copy(), Ks[2].copy()]
    Ks[1][3, 7] += 0.1  # above the diagonal
    Ks[2][7, 3] = Ks[2][3, 7] = 1e3
    roots = [2.0 * np.sqrt(np.diagonal(K)) for K in Ks]
    reports = loops.check_matrices(Ks, roots, probes)
    assert [minors for minors, _ in reports] == [True, True, False]
    assert [found for _, found in reports] == pytest.approx(
        [left @ K @ right - right @ K @ left for K in Ks], abs=1e-9
    )
    assert reports[1][1] == pytest.approx(0.1 * (left[3] * right[7] - right[3] * left[7]))


def test_reference_means_centre_about_the_mean_of_the_chosen(kernels):
    Ks, _ = kernels
    chosen = [0, 4, 14]
    centre = np.eye(N) - np.isin(np.arange(N), chosen) / 3.0  # phi(x) less the mean of the chosen
    for K, shift in zip(Ks, loops.reference_means(Ks, chosen), strict=True):
        assert K - shift[:, None] - shift == pytest.approx(centre @ K @ centre.T)


def test_local_weights_scale_rows_and_columns(kernels, drawn):
    (Ks, _), (V, eta, local) = kernels, drawn
    packed = np.array([loops.pack(K) for K in Ks])
    expected = np.einsum("m,mi,mij,mj->ij", eta, local, Ks, local)
    assert loops.combine_local(packed, eta, local) == pytest.approx(expected)
    weighted = np.einsum("mij,mj,jk->mik", Ks, local, V)
    assert loops.column_weighted_matvecs(packed, V, local) == pytest.approx(weighted)


def test_the_box_quadratic_is_the_svm_of_scikit_learn(kernels):
    Ks, y = kernels
    svm = SVC(C=2.0, kernel="precomputed", tol=1e-9).fit(Ks[0], y)
    v = np.zeros(N)
    v[svm.support_] = svm.dual_coef_[0]
    lo, hi = np.minimum(0.0, 2.0 * y), np.maximum(0.0, 2.0 * y)
    solution = loops.smo_solution(Ks[0], y, 0.0, lo, hi, np.zeros(N, int), [0.0])
    assert solution.v == pytest.approx(v, abs=1e-5)
    assert solution.value == pytest.approx(v @ Ks[0] @ v / 2.0 - np.abs(v).sum(), rel=1e-7)


def test_a_free_quadratic_solves_the_linear_system(kernels):
    K, s = kernels[0][0], np.linspace(-1.0, 1.0, N)
    diag = np.linspace(0.5, 2.0, N)
    expected = np.linalg.solve(K + np.diag(diag), s)
    solution = loops.smo_solution(K, s, diag, -np.inf, np.inf, -1, [])
    assert solution.v == pytest.approx(expected, abs=1e-5)
    assert solution.value == pytest.approx(-s @ expected / 2.0, rel=1e-7)


def test_hinge_duality_closes_at_the_solution(kernels):
    Ks, y = kernels
    C = np.linspace(0.5, 2.0, N)
    v, value = loops.smo_solution(
        Ks[0], y, 0.0, np.minimum(0, C * y), np.maximum(0, C * y), np.zeros(N, int), [0.0]
    )
    assert loops.hinge_primal(Ks[0], v, y, C).value == pytest.approx(-value, rel=1e-6)


def test_squared_hinge_duality_closes_at_the_solution(kernels):
    Ks, y = kernels
    C = np.linspace(0.5, 2.0, N)
    lo, hi = np.where(y > 0, 0.0, -np.inf), np.where(y > 0, np.inf, 0.0)
    v, value = loops.smo_solution(Ks[0], y, 1.0 / C, lo, hi, np.zeros(N, int), [0.0])
    assert loops.squared_hinge_primal(Ks[0], v, y, C).value == pytest.approx(-value, rel=1e-6)


def test_nu_duality_closes_at_the_solution(kernels):
    Ks, y = kernels
    C = 1.0 / (0.4 * N)
    group = np.where(y > 0, 0, 1)  # y'alpha = 0 and 1'alpha = 1: each class holds one half
    v, value = loops.smo_solution(
        Ks[0], 0.0, 0.0, np.minimum(0, C * y), np.maximum(0, C * y), group, [0.5, -0.5]
    )
    assert loops.nu_primal(Ks[0], v, y, 0.4).value == pytest.approx(-value, rel=1e-6)


@pytest.mark.parametrize("seed", range(3))
def test_the_best_bias_is_the_best_bias(kernels, seed):
    Ks, y = kernels
    v = np.random.default_rng(seed).standard_normal(N)
    C = np.linspace(0.1, 2.0, N)
    f, half_norm = Ks[1] @ v, v @ Ks[1] @ v / 2.0

    value, bias = loops.hinge_primal(Ks[1], v, y, C)
    # variables: slacks, b
    program = linprog(
        np.r_[C, 0.0], -np.c_[np.eye(N), y], y * f - 1.0, bounds=[(0, None)] * N + [(None, None)]
    )
    assert value == pytest.approx(half_norm + program.fun, rel=1e-9)
    assert value == pytest.approx(half_norm + C @ np.maximum(0.0, 1.0 - y * (f + bias)))

    value, bias = loops.squared_hinge_primal(Ks[1], v, y, C)
    search = minimize_scalar(
        lambda b: C @ np.maximum(0.0, 1.0 - y * (f + b)) ** 2 / 2.0, bracket=(-1.0, 1.0), tol=1e-12
    )
    assert value == pytest.approx(half_norm + search.fun, rel=1e-9)
    assert bias == pytest.approx(search.x, abs=1e-5)

    value, bias, rho = loops.nu_primal(Ks[1], v, y, 0.3)
    c = 1.0 / (0.3 * N)
    # variables: slacks, b, rho
    program = linprog(
        np.r_[np.full(N, c), 0.0, -1.0],
        np.c_[-np.eye(N), -y, np.ones(N)],
        y * f,
        bounds=[(0, None)] * N + [(None, None)] * 2,
    )
    assert value == pytest.approx(half_norm + program.fun, rel=1e-9)
    assert value == pytest.approx(half_norm + c * np.maximum(0.0, rho - y * (f + bias)).sum() - rho)


def test_a_nu_beyond_the_smaller_class_has_no_minimum(kernels):
    Ks, y = kernels
    y = np.where(np.arange(N) < 3, 1.0, -1.0)
    assert loops.nu_primal(Ks[0], np.zeros(N), y, 0.5).value == -np.inf


def test_kernels_of_pairs_are_those_of_scikit_learn():
    rng = np.random.default_rng(0)
    X, Z, coef, weights = (
        rng.normal(size=(N, 3)),
        rng.normal(size=(9, 3)),
        rng.normal(size=(2, 9)),
        rng.random(5),
    )
    D = cdist(X, Z)
    expected = np.array(
        [
            rbf_kernel(X, Z, gamma=0.3),
            np.exp(-np.sqrt(0.3) * D),
            1.0 / (1.0 + 0.3 * D**2),
            1.0 / (1.0 + np.sqrt(0.3) * D),
            (0.3 * D**2 + 0.5) ** 3,
        ]
    )
    numbers = np.full(5, 3), np.full(5, 0.3), np.full(5, 0.5)
    kernels = 0, np.arange(5), *numbers
    assert pairs.kernel_values(X, Z, *kernels).astype(float) == pytest.approx(expected)
    power = [1, np.array([4]), *(number[:1] for number in numbers)]
    inner = polynomial_kernel(X, Z, degree=3, gamma=0.3, coef0=0.5)
    assert pairs.kernel_values(X, Z, *power)[0].astype(float) == pytest.approx(inner)
    total = np.tensordot(weights, expected, 1)
    assert pairs.weighted_values(X, Z, *kernels, weights=weights).astype(float) == pytest.approx(total)
    products = np.einsum("aij,cj->aci", expected, coef)
    assert pairs.products(X, Z, coef, *kernels).astype(float) == pytest.approx(products)
    together = pairs.weighted_products(X, Z, coef, *kernels, weights=weights)
    assert together.astype(float) == pytest.approx(np.tensordot(weights, products, 1))
    own = [np.trace(coef @ K.astype(float) @ coef.T) / 2.0 for K in pairs.kernel_values(Z, Z, *kernels)]
    assert pairs.energies(Z, coef, *kernels).astype(float) == pytest.approx(own)
