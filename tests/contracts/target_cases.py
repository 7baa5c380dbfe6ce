"""The tables of all learners: those of two classes told apart by a margin, and those of other targets."""

import numpy as np
from tests.reference.conic import conic_optimum
from tests.reference.problems import random_problem
from tests.reference.targets import target_optimum

from kernelweave.learners import (
    Discriminant,
    EpsilonInsensitive,
    Fisher,
    Hinge,
    MarginDistribution,
    NuHinge,
    OneClass,
    Square,
    SquaredHinge,
)


def samples(seed, n=40, M=4):
    """Return kernels and, by name, targets that fit the learners."""
    Ks, y = random_problem(seed, n=n, M=M)
    rng = np.random.default_rng([seed, 1])
    smooth = Ks[0] @ rng.normal(size=n)
    real = smooth / smooth.std() + 0.3 * rng.normal(size=n)
    classes = np.digitize(real, np.quantile(real, [0.3, 0.6]))
    return Ks, {
        "real": real,
        "several": np.column_stack([real, Ks[1] @ rng.normal(size=n)]),
        "signs": y,
        "classes": np.where(classes[:, None] == np.arange(3), 1.0, -1.0),
        "none": np.ones(n),
    }


# learner, the same for the conic oracle, its targets
CASES = [
    (Square(C=1.0), ("square", 1.0), "real"),
    (Square(C=100.0), ("square", 100.0), "several"),
    (Square(C=10.0, fit_intercept=False), ("no bias", 10.0), "real"),
    (EpsilonInsensitive(C=1.0, epsilon=0.1), ("epsilon", 1.0, 0.1), "real"),
    (EpsilonInsensitive(C=100.0, epsilon=0.5), ("epsilon", 100.0, 0.5), "real"),
    (EpsilonInsensitive(C=1.0, epsilon=0.0), ("epsilon", 1.0, 0.0), "real"),
    (Fisher(reg=1e-4), ("fisher", 1e-4), "signs"),
    (Fisher(reg=0.1), ("fisher", 0.1), "signs"),
    (Discriminant(reg=1e-2), ("discriminant", 1e-2), "classes"),
    (OneClass(nu=0.2), ("one class", 0.2), "none"),
    (OneClass(nu=1.0), ("one class", 1.0), "none"),
]
BINARY = [
    (Hinge(C=1.0), ("hinge", 1.0), "signs"),
    (Hinge(C=100.0), ("hinge", 100.0), "signs"),
    (SquaredHinge(C=10.0), ("squared", 10.0), "signs"),
    (NuHinge(nu=0.4), ("nu", 0.4), "signs"),
    (MarginDistribution(lam=0.2), ("distribution", 0.25), "signs"),
]


def ids(cases):
    return [f"{learner!r}-{targets}" for learner, _, targets in cases]


def solved(learner, K, y, *args, **kwargs):
    return for_columns(learner, y).solve(K, y, *args, **kwargs)


def for_columns(learner, y):
    return learner.for_columns() if y.ndim == 2 else learner


def optimum(K, y, oracle, targets):
    """Return the optimum of one kernel by a conic solver."""
    if oracle[0] in ("hinge", "squared", "nu", "distribution"):
        return conic_optimum([K], y, oracle, ("uniform",)).value
    return target_optimum([K], for_oracle(y, targets), oracle, ("uniform",)).value


def for_oracle(y, targets):
    """Return the targets as the oracle wants them: class numbers instead of one column of signs each."""
    return y.argmax(axis=1) if targets == "classes" else y
