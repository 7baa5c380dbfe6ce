"""Means, ranks and tests for methods compared on the same splits and data sets."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import stats

from kernelweave._typing import Matrix, Vector


@dataclass(frozen=True)
class Summary:
    """The mean, the standard deviation (of the sample) and how many values they are of."""

    mean: float
    deviation: float
    count: int


def summary(values: Any) -> Summary:
    """Return mean and standard deviation of some values; one value alone deviates by 0.

    >>> from kernelweave.evaluation import summary
    >>> summary([1.0, 3.0])
    Summary(mean=2.0, deviation=1.4142135623730951, count=2)
    """
    x = np.asarray(values, dtype=float)
    if x.size == 0:
        raise ValueError("A summary needs at least one value, received none.")
    return Summary(float(x.mean()), float(x.std(ddof=1)) if x.size > 1 else 0.0, int(x.size))


def ranks(scores: Any, *, larger_is_better: bool = True) -> Matrix:
    """Return the rank of each column within its row, 1 the best; ties share the mean of their ranks.

    >>> from kernelweave.evaluation import ranks
    >>> ranks([[0.9, 0.8, 0.9]]).tolist()
    [[1.5, 3.0, 1.5]]
    """
    table = _table(scores)
    return np.asarray(stats.rankdata(-table if larger_is_better else table, axis=1))


def average_ranks(scores: Any, *, larger_is_better: bool = True) -> Vector:
    """Return the mean rank of each method (columns) over the data sets (rows).

    >>> from kernelweave.evaluation import average_ranks
    >>> average_ranks([[0.9, 0.8], [0.7, 0.6]]).tolist()
    [1.0, 2.0]
    """
    return np.asarray(ranks(scores, larger_is_better=larger_is_better).mean(axis=0))


@dataclass(frozen=True)
class Friedman:
    """Friedman's test over data sets, and Nemenyi's critical difference of average ranks."""

    average_ranks: tuple[float, ...]
    statistic: float
    p_value: float
    critical_difference: float
    n_datasets: int

    def differ(self, one: int, other: int) -> bool:
        """Return whether two methods' ranks differ by more than chance explains at the level of the test."""
        return abs(self.average_ranks[one] - self.average_ranks[other]) > self.critical_difference


def friedman_nemenyi(scores: Any, *, alpha: float = 0.05, larger_is_better: bool = True) -> Friedman:
    r"""Test whether methods (columns) differ over data sets (rows) [Demsar06].

    Friedman's χ² with the correction for ties, and CD = q_α √(k(k+1)/(6N)) with q_α from the studentised
    range for k methods, divided by √2.

    >>> from kernelweave.evaluation import friedman_nemenyi
    >>> friedman_nemenyi([[3, 2, 1], [3, 1, 2], [3, 2, 1], [3, 2, 1]]).average_ranks
    (1.0, 2.25, 2.75)
    """
    table = _table(scores)
    n, k = table.shape
    if n < 2 or k < 3:
        raise ValueError(
            f"Friedman's test needs at least 2 data sets and 3 methods, received {n} and {k}; "
            "compare two methods with paired()."
        )
    rank = ranks(table, larger_is_better=larger_is_better)
    same = np.ptp(rank) == 0.0
    statistic, p_value = (0.0, 1.0) if same else (float(x) for x in stats.friedmanchisquare(*rank.T))
    q = float(stats.studentized_range.isf(alpha, k, np.inf)) / np.sqrt(2.0)
    return Friedman(
        tuple(float(r) for r in rank.mean(axis=0)),
        statistic,
        p_value,
        float(q * np.sqrt(k * (k + 1) / (6.0 * n))),
        n,
    )


@dataclass(frozen=True)
class Paired:
    """Differences of two methods on the same splits: their mean, its interval, a test, and two effect sizes.

    ``effect`` is the mean difference in its standard deviations (Cohen's d of paired values), ``wins`` the
    share of splits on which the first is better, ties counted half. Where all differences are the same they
    carry no estimate of their error: interval, ``p_value`` and ``effect`` are NaN, and ``is_known`` is False.
    """

    difference: float
    interval: tuple[float, float]
    p_value: float
    wilcoxon: float
    effect: float
    wins: float
    count: int

    @property
    def is_known(self) -> bool:
        """Whether the differences have a spread, and so an interval."""
        return bool(np.isfinite(self.interval).all())


def paired(first: Any, second: Any, *, test_share: float | None = None, level: float = 0.95) -> Paired:
    r"""Compare two methods split by split.

    With ``test_share`` the splits are random cuts of one data set whose training sets overlap, and the
    variance of the mean is that of Nadeau and Bengio: s²(1/n + share/(1 − share)) in place of s²/n. Without
    it the pairs count as independent. ``wilcoxon`` is the signed-rank test, which ignores the overlap.
    Two methods that differ by the same on every split, as both may do on few rows, have no known interval.

    >>> from kernelweave.evaluation import paired
    >>> round(paired([0.8, 0.9, 0.7], [0.7, 0.8, 0.7]).difference, 3)
    0.067
    """
    a, b = (np.asarray(values, dtype=float) for values in (first, second))
    if a.shape != b.shape or a.ndim != 1 or a.size < 2:
        raise ValueError(
            f"Pairs need two sequences of one length of at least 2, received {a.shape} and {b.shape}."
        )
    if test_share is not None and not 0.0 <= test_share < 1.0:
        raise ValueError(f"test_share must be a number from 0 to below 1; got {test_share!r}.")
    d = a - b
    spread, n = float(d.std(ddof=1)), d.size
    overlap = 0.0 if test_share is None else test_share / (1.0 - test_share)
    error = float(spread * np.sqrt(1.0 / n + overlap))
    mean = float(d.mean())
    signed = float(stats.wilcoxon(d, zero_method="zsplit", method="approx").pvalue) if d.any() else 1.0
    if spread <= 1e-13 * max(np.abs(a).max(), np.abs(b).max()):  # the rounding of the scores' last digits
        unknown = float("nan")
        return Paired(mean, (unknown, unknown), unknown, signed, unknown, _wins(d), n)
    half = float(stats.t.ppf(0.5 + 0.5 * level, n - 1)) * error
    p_value = float(2.0 * stats.t.sf(abs(mean) / error, n - 1))
    return Paired(mean, (mean - half, mean + half), p_value, signed, mean / spread, _wins(d), n)


def interval_of_mean(values: Sequence[float] | Vector, level: float = 0.95) -> tuple[float, float]:
    """Return Student's interval of the mean of independent values."""
    s = summary(values)
    if s.count < 2:
        return s.mean, s.mean
    half = float(stats.t.ppf(0.5 + 0.5 * level, s.count - 1)) * s.deviation / s.count**0.5
    return s.mean - half, s.mean + half


def _wins(d: Vector) -> float:
    return float((d > 0).mean() + 0.5 * (d == 0).mean())


def _table(scores: Any) -> Matrix:
    table = np.asarray(scores, dtype=float)
    if table.ndim != 2 or not np.isfinite(table).all():
        raise ValueError(
            "Scores are one row per data set and one column per method, all finite, "
            f"received shape {table.shape}."
        )
    return table
