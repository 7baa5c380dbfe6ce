"""Weak labels as conic programs: input-output kernel learning, straight from its text."""

import cvxpy as cp
import numpy as np
from tests.reference.cones import factor, solve


def group_norm_support(lengths, theta):
    """Return max of e'lengths over sum e <= 1, 0 <= e <= theta, as a convex expression, by duality."""
    tau = cp.Variable(nonneg=True)
    return tau + theta * cp.sum(cp.pos(lengths - tau))


def inner_optimum(Ks, groups, C, theta):
    """Return max over alpha >= 0 of 1'alpha - sum alpha^2/2C - support(h), C form.

    ``Ks`` are the input-output kernels, formed entry by entry, ``groups`` lists of their indices.
    """
    n = len(C)
    alpha, h = cp.Variable(n, nonneg=True), cp.Variable(len(Ks))
    constraints = [cp.sum_squares(factor(K).T @ alpha) / 2 <= h[k] for k, K in enumerate(Ks)]
    lengths = cp.hstack([cp.norm(h[list(group)]) for group in groups])
    gain = cp.sum(alpha) - cp.sum(cp.multiply(0.5 / C, cp.square(alpha)))
    return solve(cp.Problem(cp.Maximize(gain - group_norm_support(lengths, theta)), constraints))


def inner_optimum_nu(Ks, groups, C, theta):
    """Return the nu form of the thesis: 1'alpha = 1 and no linear term."""
    n = len(C)
    alpha, h = cp.Variable(n, nonneg=True), cp.Variable(len(Ks))
    constraints = [cp.sum_squares(factor(K).T @ alpha) / 2 <= h[k] for k, K in enumerate(Ks)]
    constraints.append(cp.sum(alpha) == 1)
    lengths = cp.hstack([cp.norm(h[list(group)]) for group in groups])
    gain = -cp.sum(cp.multiply(0.5 / C, cp.square(alpha)))
    return solve(cp.Problem(cp.Maximize(gain - group_norm_support(lengths, theta)), constraints))


def full_optimum(kernels, C):
    """Return the hard-margin optimum over all groups that take any candidate for each kernel.

    ``kernels`` are lists with the input-output kernels of all candidates, one list for each kernel m:
    max over alpha of g - sqrt(sum_m max over candidates of h_m^2).
    """
    alpha, top = cp.Variable(len(C), nonneg=True), cp.Variable(len(kernels))
    constraints = [
        cp.sum_squares(factor(K).T @ alpha) / 2 <= top[m] for m, each in enumerate(kernels) for K in each
    ]
    gain = cp.sum(alpha) - cp.sum(cp.multiply(0.5 / C, cp.square(alpha)))
    return solve(cp.Problem(cp.Maximize(gain - cp.norm(top)), constraints))


def block_updates(cases):
    """Return, per case (norms, theta), the least sum of norms^2 / (2 d) over the capped groups of d.

    The cases share nothing: one program with all of them is solved, many times faster than each alone.
    """
    costs, constraints = [], []
    for norms, theta in cases:
        d = cp.Variable(norms.shape, nonneg=True)
        lengths = cp.norm(d, axis=1)
        constraints += [cp.sum(lengths) <= 1, lengths <= theta]
        used = np.argwhere(norms > 0)
        costs.append(sum((cp.quad_over_lin(norms[t, m], d[t, m]) / 2 for t, m in used), start=cp.Constant(0)))
    solve(cp.Problem(cp.Minimize(sum(costs)), constraints))
    return [float(cost.value) for cost in costs]


def best_labeling(K, alpha, candidates):
    """Return the largest sum over i, j of alpha_i alpha_j y_i y_j K_ij, by looking at every labeling."""
    n = len(alpha)
    return max(
        sum(alpha[i] * alpha[j] * y[i] * y[j] * K[i, j] for i in range(n) for j in range(n))
        for y in candidates
    )


def input_output_kernel(K, y):
    """Return K ∘ yy', entry by entry."""
    n = len(y)
    return np.array([[K[i, j] * y[i] * y[j] for j in range(n)] for i in range(n)])


def bag_kernel(K, chosen, signs):
    """Return the mean kernel value over the chosen instances of two bags, times both signs."""
    n = len(chosen)
    return np.array(
        [
            [signs[a] * signs[b] * np.mean([K[i, j] for i in chosen[a] for j in chosen[b]]) for b in range(n)]
            for a in range(n)
        ]
    )
