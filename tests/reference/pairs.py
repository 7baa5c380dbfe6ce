"""Naive twins of the passes over pairs of rows: every value is written down, in long double.

Kernels are numbered as in the compiled loops: ``argument`` 0 is the squared distance and 1 the inner product,
shapes are listed in `SHAPES`. All but the last are 1 at zero.
"""

import numpy as np

SHAPES = ("exp", "exp_root", "inverse", "inverse_root", "power")


def arguments(X, Z, argument):
    """Return t = ||x - z||^2 or x'z for all rows of X and Z."""
    X, Z = X.astype(np.longdouble), Z.astype(np.longdouble)
    t = np.zeros((len(X), len(Z)), dtype=np.longdouble)
    for x, z in zip(X.T, Z.T, strict=True):
        t += np.subtract.outer(x, z) ** 2 if argument == 0 else np.multiply.outer(x, z)
    return t


def rises(X, Z, argument, shape, degree, gamma, offset):
    """Return k_a(X, Z) for every kernel, of those that are 1 at zero k_a - 1 in all its digits."""
    t, found = arguments(X, Z, argument), []
    for number, power, rate, shift in zip(shape, degree, gamma.astype(np.longdouble), offset, strict=True):
        name = SHAPES[number]
        if name == "power":
            found.append(np.prod([rate * t + shift] * int(power), axis=0))
            continue
        u = np.sqrt(rate * t) if name.endswith("root") else rate * t
        found.append(np.expm1(-u) if name.startswith("exp") else -u / (1.0 + u))
    return np.array(found, dtype=np.longdouble).reshape(len(shape), len(X), len(Z))


def ones(shape):
    """Return 1 for every kernel that is 1 at zero, 0 for the others."""
    return np.array([SHAPES[number] != "power" for number in shape], dtype=np.longdouble)


def kernel_values(X, Z, *kernels):
    """Return k_a(X, Z) for every kernel."""
    return rises(X, Z, *kernels) + ones(kernels[1])[:, None, None]


def weighted_values(X, Z, *kernels, weights):
    """Return sum_a weights_a k_a(X, Z)."""
    return np.tensordot(weights.astype(np.longdouble), kernel_values(X, Z, *kernels), 1)


def products(X, Z, coef, *kernels):
    """Return sum_j k_a(x_i, z_j) coef[c, j], of shape (kernels, columns, rows of X).

    What is 1 at zero is added up apart: of coefficients that sum to zero nothing of it is left.
    """
    coef = coef.astype(np.longdouble)
    at_zero = ones(kernels[1])[:, None, None] * coef.sum(axis=1)[:, None]
    return (rises(X, Z, *kernels) @ coef.T).transpose(0, 2, 1) + at_zero


def sizes(X, Z, coef, *kernels):
    """Return sums of the sizes of all terms: what rounding is measured by."""
    values = np.abs(rises(X, Z, *kernels)) + ones(kernels[1])[:, None, None]
    return (values @ np.abs(coef).astype(np.longdouble).T).transpose(0, 2, 1)


def weighted_products(X, Z, coef, *kernels, weights):
    """Return sum_a weights_a sum_j k_a(x_i, z_j) coef[c, j]."""
    return np.tensordot(weights.astype(np.longdouble), products(X, Z, coef, *kernels), 1)


def energies(X, coef, *kernels):
    """Return 1/2 sum_c sum_ij coef[c, i] coef[c, j] k_a(x_i, x_j) for every kernel."""
    return 0.5 * np.sum(products(X, X, coef, *kernels) * coef, axis=(1, 2))
