"""Random classification problems with several kernels, the same for the same seed."""

import numpy as np

NOISE_RATE = 0.1  # share of flipped labels: keeps every problem away from separability


def random_problem(seed, n=60, M=8):
    """Return (Ks, y): M positive semidefinite kernels with mean diagonal 1 and labels in {-1, +1}.

    The kernels cycle through Gaussians of several widths, linear kernels on one variable (rank one), noise
    that knows nothing of y, and a nearly exact copy of the first kernel.
    """
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, 5))
    score = X[:, 0] + 0.8 * np.sin(2.0 * X[:, 1]) + 0.5 * X[:, 2] * X[:, 3]
    y = np.where(score > np.median(score), 1.0, -1.0)
    y[rng.random(n) < NOISE_RATE] *= -1.0
    y[:2] = 1.0, -1.0  # both classes, whatever the noise did
    makers = [
        lambda k: gaussian(X, 2.0**k),
        lambda k: linear(X[:, k % X.shape[1]]),
        lambda k: gaussian(X[:, [k % X.shape[1]]], 0.7),
        lambda k: noise(rng, n, rank=n // 3 + 1 + k),
    ]
    Ks = [unit_mean_diagonal(makers[m % 4](m // 4)) for m in range(M)]
    if M >= 3:
        Ks[-1] = unit_mean_diagonal(Ks[0] + 1e-4 * noise(rng, n, rank=n))
    return Ks, y


def duplicated_problem(seed, n=60, M=8):
    """Return a random problem whose second half of kernels repeats the first half exactly."""
    Ks, y = random_problem(seed, n, M)
    half = (M + 1) // 2
    return [Ks[m % half].copy() for m in range(M)], y


def zero_kernel_problem(seed, n=60, M=8):
    """Return a random problem whose second kernel is zero everywhere."""
    Ks, y = random_problem(seed, n, max(M, 2))
    Ks[1] = np.zeros((n, n))
    return Ks, y


def imbalanced_problem(seed, n=60, M=8, positives=4):
    """Return a random problem with only a few positive samples."""
    Ks, y = random_problem(seed, n, M)
    rng = np.random.default_rng([seed, 1])
    chosen = rng.choice(np.flatnonzero(y > 0), positives, replace=False)
    y = np.full(n, -1.0)
    y[chosen] = 1.0
    return Ks, y


def single_kernel_problem(seed, n=60):
    """Return a random problem with one Gaussian kernel."""
    return random_problem(seed, n, 1)


def multiclass_labels(seed, n=60, classes=3):
    """Return Y of shape (n, classes): one column per class, +1 on its samples and -1 elsewhere."""
    rng = np.random.default_rng([seed, 2])
    labels = rng.permutation(np.arange(n) % classes)
    return np.where(labels[:, None] == np.arange(classes), 1.0, -1.0)


def gaussian(X, width):
    """Return exp(-||x - z||^2 / (2 width^2)) by its definition."""
    difference = X[:, None, :] - X[None, :, :]
    return np.exp(-np.sum(difference**2, axis=2) / (2.0 * width**2))


def linear(x):
    """Return the rank-one kernel x x'."""
    return np.outer(x, x)


def noise(rng, n, rank):
    """Return a random kernel of the given rank, independent of everything else."""
    Z = rng.standard_normal((n, rank))
    return Z @ Z.T / rank


def unit_mean_diagonal(K):
    """Scale a kernel to mean diagonal 1."""
    return K / np.mean(np.diag(K))
