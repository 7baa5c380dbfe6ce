"""Samples, bags and banks of kernels for the tests of weak labels."""

import numpy as np
from sklearn.datasets import make_blobs

from kernelweave import (
    InstanceLabelMKLClassifier,
    KernelBank,
    MultiInstanceMKLClassifier,
    SetKernelMKLClassifier,
    SingleInstanceMKLClassifier,
    WitnessMKLClassifier,
)
from kernelweave.kernels import Gaussian, Laplacian
from kernelweave.weak_labels import KeyInstances
from kernelweave.weak_labels.multi_instance import BagProblem

BANK = KernelBank([Gaussian(), Laplacian()])
# Kernels of diagonal one and fixed width: where they are not centred they do not depend on other samples.
FIXED = KernelBank([Gaussian(gamma=0.2)])
FIXED_TWO = KernelBank([Gaussian(gamma=0.2), Gaussian(gamma=1.0)])
BASELINES = [
    SingleInstanceMKLClassifier,
    InstanceLabelMKLClassifier,
    WitnessMKLClassifier,
    SetKernelMKLClassifier,
]
BAG_CLASSIFIERS = [MultiInstanceMKLClassifier, *BASELINES]


def blobs(n=80, n_labelled=8, centers=2, seed=0):
    """Return samples, labels of which most are -1, and the true labels."""
    X, truth = make_blobs(n, centers=[[-2.5, 0], [2.5, 0], [0, 5]][:centers], random_state=seed)
    y = np.full(n, -1)
    for c in range(centers):
        places = np.flatnonzero(truth == c)[: n_labelled // centers]
        y[places] = truth[places]
    return X, y, truth


def witness_bags(n=30, seed=0):
    """Bags of 2 to 5 instances; in positive ones instance number 1 lies elsewhere."""
    rng = np.random.default_rng(seed)
    bags = [rng.normal(size=(rng.integers(2, 6), 3)) for _ in range(n)]
    y = np.arange(n) % 2
    for bag in bags[1::2]:
        bag[1] += 4.0
    return bags, y


def kernels(rng, n, M):
    """Return Gaussian kernels of n random points in 2, 3, ... dimensions."""
    Ks = []
    for m in range(M):
        X = rng.normal(size=(n, 2 + m))
        D = ((X[:, None] - X) ** 2).sum(axis=2)
        Ks.append(np.exp(-D / (2.0 + m)))
    return Ks


def bags_of(sizes, signs, counts):
    """Return the selections of bags whose points stand together."""
    ends = np.cumsum(sizes)
    members = tuple(np.arange(end - size, end) for size, end in zip(sizes, ends, strict=True))
    return KeyInstances.of_bags(np.array(signs), members, np.array(counts))


def bag_problem(kernel, n, C):
    """Return the bags of `witness_bags` with one kernel of their instances, and a price C for all of them."""
    bags, y = witness_bags(n)
    members = np.split(np.arange(sum(map(len, bags))), np.cumsum([len(bag) for bag in bags])[:-1])
    X = np.concatenate(bags)
    return BagProblem([kernel(X, X)], members, np.where(y == 1, 1.0, -1.0), np.full(n, C))
