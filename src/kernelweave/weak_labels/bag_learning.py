"""From bags to candidates: what the points are, where the search starts, and back to instances."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy import sparse

from kernelweave._typing import Indices, Matrix, Vector
from kernelweave.learners import UnbiasedSquaredHinge
from kernelweave.weak_labels.bag_machines import means
from kernelweave.weak_labels.bags import BagLabels, KeyInstances, key_counts
from kernelweave.weak_labels.rounds import Outcome, learn

Members = Sequence[Indices]


def learn_keys(
    grams: Sequence[Matrix],
    members: Members,
    signs: Vector,
    prices: Vector,
    share: float | None = None,
    **how: Any,
) -> tuple[Outcome, Matrix]:
    """Learn key instances; return the outcome and the coefficients of the instances, per kernel.

    Points are the instances of positive bags and the means of negative ones, which nothing else is asked of.
    """
    R, places = _points(members, signs, len(grams[0]))
    kernels = [np.asarray(R @ np.asarray(R @ K).T) for K in grams]
    counts = np.where(signs > 0, key_counts(np.array([p.size for p in places]), share), 1)
    scores = _set_kernel_scores(kernels, means(places, kernels), signs, prices)
    outcome = _learn(kernels, KeyInstances(signs, tuple(places), counts), prices, scores, how)
    return outcome, np.asarray((R.T @ outcome.coef.T).T)


def learn_labels(
    grams: Sequence[Matrix],
    members: Members,
    signs: Vector,
    prices: Vector,
    share: float | None = None,
    **how: Any,
) -> tuple[Outcome, Matrix]:
    """Learn the labels of the instances; return the outcome and their coefficients, per kernel."""
    rows = np.concatenate(members)
    sizes = np.array([len(m) for m in members])
    owner = np.repeat(np.arange(sizes.size), sizes)
    places = np.split(np.arange(rows.size), np.cumsum(sizes)[:-1])
    everything = np.array_equal(rows, np.arange(len(grams[0])))
    kernels = list(grams) if everything else [K[np.ix_(rows, rows)] for K in grams]
    positive = np.flatnonzero(signs > 0)
    labels = BagLabels(
        np.where(signs[owner] > 0, 0.0, -1.0),
        tuple(places[bag] for bag in positive),
        key_counts(sizes[positive], share),
    )
    scores = _set_kernel_scores(kernels, means(places, kernels), signs, prices)
    outcome = _learn(kernels, labels, prices[owner], scores, how)
    coef = np.zeros((len(grams), len(grams[0])))
    coef[:, rows] = outcome.coef
    return outcome, coef


def _learn(
    kernels: Sequence[Matrix], ambiguity: Any, prices: Vector, scores: Vector, how: dict[str, Any]
) -> Outcome:
    if not ambiguity.n_ambiguous:
        how = how | {"max_rounds": 1}
    first = [ambiguity.nearest(scores)] * len(kernels)
    return learn(kernels, ambiguity, prices, first, suggestions=[scores], **how)


def _points(members: Members, signs: Vector, n: int) -> tuple[sparse.csr_array, list[Indices]]:
    """Return the points as mixtures of instances, and for each bag the places of its points."""
    places, row, column, data, count = [], [], [], [], 0
    for bag, sign in zip(members, signs, strict=True):
        size = bag.size if sign > 0 else 1
        places.append(np.arange(count, count + size))
        row.append(np.arange(count, count + size) if sign > 0 else np.full(bag.size, count))
        column.append(bag)
        data.append(np.ones(bag.size) if sign > 0 else np.full(bag.size, 1.0 / bag.size))
        count += size
    entries = np.concatenate(data), (np.concatenate(row), np.concatenate(column))
    return sparse.csr_array(entries, shape=(count, n)), places


def _set_kernel_scores(
    kernels: Sequence[Matrix], bags: sparse.csr_array, signs: Vector, prices: Vector
) -> Vector:
    """Return the points' scores by the machine that takes every bag for the mean of its points."""
    average = np.mean(kernels, axis=0)
    B = np.asarray(bags @ np.asarray(bags @ average).T)
    machine = UnbiasedSquaredHinge().solve(B, signs, prices, tol=1e-6)
    return np.asarray(average @ (bags.T @ machine.coef))
