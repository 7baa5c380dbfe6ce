"""Naive twins of the compiled loops: each does by plain loops what its name says."""

from typing import NamedTuple

import cvxpy as cp
import numpy as np

from .cones import factor, solve


class SmoSolution(NamedTuple):
    """The minimiser and the minimum of a box-constrained quadratic."""

    v: np.ndarray
    value: float


class PrimalValue(NamedTuple):
    """A primal objective at its best bias."""

    value: float
    bias: float


class NuPrimalValue(NamedTuple):
    """The primal objective of the nu form at its best bias and margin."""

    value: float
    bias: float
    rho: float


def pack(K, centre=False, dtype=np.float64):
    """Return the lower triangle row by row: element (i, j), j <= i, at i (i + 1) / 2 + j.

    Centring (row, column and grand means) happens in double precision; only the result is rounded to dtype.
    """
    K = np.array(K, dtype=np.float64)
    n = len(K)
    if centre:
        means = [sum(K[i, j] for j in range(n)) / n for i in range(n)]
        grand = sum(means) / n
        K = np.array([[K[i, j] - means[i] - means[j] + grand for j in range(n)] for i in range(n)])
    return np.array([K[i, j] for i in range(n) for j in range(i + 1)], dtype=dtype)


def unpack(packed):
    """Return the full symmetric matrix of one packed triangle, in double precision."""
    n = round((np.sqrt(8 * len(packed) + 1) - 1) / 2)
    K = np.empty((n, n))
    for i in range(n):
        for j in range(i + 1):
            K[i, j] = K[j, i] = packed[i * (i + 1) // 2 + j]
    return K


def combine(packed, eta):
    """Return sum_m eta_m K_m as a full symmetric matrix."""
    total = 0.0
    for one, weight in zip(packed, eta, strict=True):
        total = total + weight * unpack(one)
    return total


def gather(packed, chosen):
    """Return the chosen rows and columns of every kernel as packed triangles of their own."""
    return np.array([pack([[unpack(one)[i, j] for j in chosen] for i in chosen]) for one in packed])


def matvecs(packed, V, needed=None):
    """Return K_m V for every kernel: shape (M, n, k) for V of shape (n, k), k = 1 for a vector.

    Entries that ``needed``, of the shape of V, does not mark are zero.
    """
    V = np.asarray(V, dtype=np.float64).reshape(len(V), -1)
    n, k = V.shape
    result = np.zeros((len(packed), n, k))
    for m, one in enumerate(packed):
        K = unpack(one)
        for i, c in np.ndindex(n, k):
            if needed is None or needed[i, c]:
                result[m, i, c] = sum(K[i, j] * V[j, c] for j in range(n))
    return result


def matvec_and_size(packed, eta, V):
    """Return V K(eta) and |V| sum_m |eta_m K_m| for V of shape (k, n)."""
    product, size = np.zeros(V.shape), np.zeros(V.shape)
    for one, weight in zip(packed, eta, strict=True):
        product += weight * matvecs([one], V.T)[0].T
        size += abs(weight) * matvecs([np.abs(one)], np.abs(V).T)[0].T
    return product, size


def energies(packed, V):
    """Return tr(V' K_m V) / 2 for every kernel."""
    V = np.asarray(V, dtype=np.float64).reshape(len(V), -1)
    return np.array(
        [0.5 * sum(V[i, c] * one[i, c] for i, c in np.ndindex(*V.shape)) for one in matvecs(packed, V)]
    )


def check_matrices(Ks, roots, probes):
    """Return for every matrix whether all |K_ij| <= roots_i roots_j, and left'K right - right'K left."""
    left, right = probes
    reports = []
    for K, root in zip(Ks, roots, strict=True):
        places = list(np.ndindex(*K.shape))
        minors = all(abs(K[i, j]) <= root[i] * root[j] for i, j in places)
        reports.append((minors, sum(K[i, j] * (left[i] * right[j] - right[i] * left[j]) for i, j in places)))
    return reports


def reference_means(Ks, chosen):
    """Return for every matrix the mean of its chosen rows, less half the mean of its chosen entries."""
    return np.array(
        [
            [
                sum(K[i, j] for i in chosen) / len(chosen)
                - 0.5 * sum(K[i, k] for i in chosen for k in chosen) / len(chosen) ** 2
                for j in range(len(K))
            ]
            for K in Ks
        ]
    )


def pack_matrices(Ks, shifts, dtype=np.float64):
    """Return the lower triangles of K_ij - shift_i - shift_j, rounded to dtype at the end."""
    return gather_matrices(Ks, range(len(Ks[0])), shifts, dtype)


def gather_matrices(Ks, chosen, shifts, dtype=np.float64):
    """Return the same for the chosen rows and columns; shifts have one entry per chosen row."""
    places = [(a, b) for a in range(len(chosen)) for b in range(a + 1)]
    return np.array(
        [
            [K[chosen[a], chosen[b]] - shift[a] - shift[b] for a, b in places]
            for K, shift in zip(Ks, shifts, strict=True)
        ]
    ).astype(dtype)


def combine_matrices(Ks, eta, shift):
    """Return sum_m eta_m K_m,ij - shift_i - shift_j, of lower triangles alone."""
    total = combine([pack(K) for K in Ks], eta)
    n = len(shift)
    return np.array([[total[i, j] - shift[i] - shift[j] for j in range(n)] for i in range(n)])


def energies_of_matrices(Ks, V):
    """Return tr(V K_m V') / 2 for every matrix and V of shape (k, n), of lower triangles alone."""
    return energies([pack(K) for K in Ks], V.T)


def matvec_of_matrices(Ks, eta, V):
    """Return V K(eta) for V of shape (k, n), of lower triangles alone."""
    return matvec_and_size([pack(K) for K in Ks], eta, V)[0]


def matvecs_of_matrices(Ks, V, needed=None):
    """Return V K_m for every matrix and V of shape (k, n), zero where ``needed`` does not mark an entry."""
    marked = None if needed is None else needed.T
    return matvecs([pack(K) for K in Ks], V.T, marked).transpose(0, 2, 1)


def combine_local(packed, eta, local):
    """Return sum_m eta_m diag(local_m) K_m diag(local_m) as a full symmetric matrix."""
    total = 0.0
    for one, weight, e in zip(packed, eta, local, strict=True):
        K = unpack(one)
        total = total + weight * np.array(
            [[e[i] * K[i, j] * e[j] for j in range(len(e))] for i in range(len(e))]
        )
    return total


def column_weighted_matvecs(packed, V, local):
    """Return K_m (local_m * V) for every kernel: shape (M, n, k) for V of shape (n, k)."""
    return np.array([matvecs([one], e[:, None] * V)[0] for one, e in zip(packed, local, strict=True)])


def smo_solution(K, s, diag, lo, hi, group, total, kink=0.0):
    """Minimise v'(K + diag(d))v / 2 - s'v + kink'|v| over lo <= v <= hi with fixed sums.

    `group` holds one group number per variable (negative: in no group), which sum to total; bounds may be
    infinite.
    """
    n = len(K)
    s, diag, lo, hi = (np.broadcast_to(np.asarray(x, dtype=np.float64), (n,)) for x in (s, diag, lo, hi))
    group = np.broadcast_to(np.asarray(group), (n,))
    bounds = np.abs(np.r_[lo, hi])
    unit = min(1.0, bounds[np.isfinite(bounds)].max(initial=0.0) or 1.0)  # small boxes have tiny optima
    u = cp.Variable(n)  # v = unit u
    constraints = [u[side] >= lo[side] / unit for side in [np.isfinite(lo)] if side.any()]
    constraints += [u[side] <= hi[side] / unit for side in [np.isfinite(hi)] if side.any()]
    constraints += [cp.sum(u[group == g]) == wanted / unit for g, wanted in enumerate(np.atleast_1d(total))]
    Q = np.asarray(K, dtype=np.float64) + np.diag(diag)
    kinked = np.broadcast_to(np.asarray(kink, dtype=np.float64), (n,)) @ cp.abs(u) / unit
    objective = cp.sum_squares(factor(Q).T @ u) / 2.0 - s @ u / unit + kinked
    value = solve(cp.Problem(cp.Minimize(objective), constraints))
    return SmoSolution(unit * u.value, unit**2 * value)


def hinge_primal(K, v, y, C):
    """Return min over b of v'Kv / 2 + sum_i C_i max(0, 1 - y_i (f_i + b)), f = Kv.

    The minimum of a convex piecewise linear function lies at one of its kinks b = y_i - f_i.
    """
    f, half_norm, C = _scores(K, v, C)

    def value(b):
        return half_norm + sum(C[i] * max(0.0, 1.0 - y[i] * (f[i] + b)) for i in range(len(f)))

    return PrimalValue(*min((value(y[i] - f[i]), y[i] - f[i]) for i in range(len(f))))


def squared_hinge_primal(K, v, y, C):
    """Return min over b of v'Kv / 2 + sum_i (C_i / 2) max(0, 1 - y_i (f_i + b))^2, f = Kv.

    Between two kinks the violators are fixed and their best b is the C-weighted mean of y_i - f_i.
    """
    f, half_norm, C = _scores(K, v, C)
    n = len(f)

    def value(b):
        return half_norm + sum(C[i] / 2.0 * max(0.0, 1.0 - y[i] * (f[i] + b)) ** 2 for i in range(n))

    kinks = sorted(y[i] - f[i] for i in range(n))
    candidates = list(kinks)
    for low, high in zip([kinks[0] - 1.0, *kinks], [*kinks, kinks[-1] + 1.0], strict=True):
        inside = (low + high) / 2.0
        violators = [i for i in range(n) if 1.0 - y[i] * (f[i] + inside) > 0.0]
        mass = sum(C[i] for i in violators)
        if mass > 0.0:
            candidates.append(sum(C[i] * (y[i] - f[i]) for i in violators) / mass)
    return PrimalValue(*min((value(b), b) for b in candidates))


def margin_distribution_primal(K, v, y, c):
    """Return min over r+ and r- of v'Kv / 2 + sum_i max(0, r_y - y_i f_i)^2 / (2 c_i) - r+ - r-, f = Kv.

    Between two kinks the violators are fixed; their best r is where the slope sum (r - y_i f_i) / c_i is 1.
    The bias is minus the middle of the two class means of f that the violations weigh.
    """
    f, total, c = _scores(K, v, c)
    means = []
    for sign in (1.0, -1.0):
        chosen = [i for i in range(len(f)) if y[i] == sign]
        kinks = sorted(y[i] * f[i] for i in chosen)
        candidates = []
        for k in range(1, len(kinks) + 1):
            below = [i for i in chosen if y[i] * f[i] <= kinks[k - 1]]
            mass = sum(1.0 / c[i] for i in below)
            candidates.append((1.0 + sum(y[i] * f[i] / c[i] for i in below)) / mass)
        value, r = min(
            (sum(max(0.0, r - y[i] * f[i]) ** 2 / (2.0 * c[i]) for i in chosen) - r, r) for r in candidates
        )
        total += value
        means.append(sum(max(0.0, r - y[i] * f[i]) / c[i] * f[i] for i in chosen))
    return PrimalValue(total, -sum(means) / 2.0)


def nu_primal(K, v, y, nu):
    """Return min over b and rho of v'Kv / 2 + sum_i max(0, rho - y_i (f_i + b)) / (nu n) - rho, f = Kv.

    With rho - b = u and rho + b = w it splits into two piecewise linear functions with kinks at y_i f_i. The
    minimum is -inf when nu exceeds twice the share of the smaller class.
    """
    n = len(y)
    f, half_norm, C = _scores(K, v, 1.0 / (nu * n))
    ends, total = [], half_norm
    for sign in (1.0, -1.0):
        margins = [y[i] * f[i] for i in range(n) if y[i] == sign]
        if len(margins) * C[0] < 0.5 * (1.0 - 1e-12):
            return NuPrimalValue(-np.inf, np.nan, np.inf)
        best, end = min((sum(C[0] * max(0.0, u - x) for x in margins) - u / 2.0, u) for u in margins)
        ends.append(end)
        total += best
    return NuPrimalValue(total, (ends[1] - ends[0]) / 2.0, (ends[0] + ends[1]) / 2.0)


def _scores(K, v, C):
    """Return f = Kv, v'Kv / 2 and C as one number per sample."""
    n = len(v)
    f = [sum(K[i][j] * v[j] for j in range(n)) for i in range(n)]
    return f, 0.5 * sum(v[i] * f[i] for i in range(n)), np.broadcast_to(np.asarray(C, dtype=np.float64), (n,))


def smo_plus_value(K, G, y, C, alpha, beta):
    """Return the dual objective of SVM+, to be minimised, entry by entry."""
    n = len(y)
    v = [alpha[i] * y[i] for i in range(n)]
    e = [alpha[i] + beta[i] - C for i in range(n)]
    pairs = [0.5 * (v[i] * K[i][j] * v[j] + e[i] * G[i][j] * e[j]) for i in range(n) for j in range(n)]
    return sum(pairs) - sum(alpha)


def smo_plus_solution(K, G, y, C):
    """Minimise the same over alpha, beta >= 0 with y'alpha = 0 and the sum of alpha + beta - C zero."""
    n = len(y)
    a, b = cp.Variable(n, nonneg=True), cp.Variable(n, nonneg=True)
    e = a + b - C
    energy = cp.sum_squares(factor(K).T @ cp.multiply(y, a)) + cp.sum_squares(factor(G).T @ e)
    return solve(cp.Problem(cp.Minimize(energy / 2.0 - cp.sum(a)), [y @ a == 0, cp.sum(e) == 0]))


def smo_views_value(A, B, y, epsilon, x):
    """Return the dual objective of SVM-2K in (a, b, c), to be minimised, entry by entry."""
    n, (a, b, c) = len(y), x
    u, w = [a[i] - c[i] for i in range(n)], [b[i] + c[i] for i in range(n)]
    pairs = [0.5 * (u[i] * A[i][j] * u[j] + w[i] * B[i][j] * w[j]) for i in range(n) for j in range(n)]
    return sum(pairs) - sum(y[i] * (a[i] + b[i]) - epsilon * abs(c[i]) for i in range(n))


def smo_views_solution(A, B, y, lo, hi, epsilon):
    """Minimise the same over the box with the sums of a - c and of b + c zero."""
    x = cp.Variable((3, len(y)))
    u, w = x[0] - x[2], x[1] + x[2]
    energy = cp.sum_squares(factor(A).T @ u) + cp.sum_squares(factor(B).T @ w)
    objective = energy / 2.0 - y @ (x[0] + x[1]) + epsilon * cp.norm1(x[2])
    return solve(cp.Problem(cp.Minimize(objective), [cp.sum(u) == 0, cp.sum(w) == 0, x >= lo, x <= hi]))
