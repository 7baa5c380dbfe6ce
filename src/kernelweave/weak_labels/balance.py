"""The balance: how many of the samples without label may be positive."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from numbers import Real
from typing import Any

import numpy as np

from kernelweave._typing import AnyArray, Vector


@dataclass(frozen=True)
class PositiveCounts:
    """Bounds on the number of positives among n samples without label."""

    min_positives: int
    max_positives: int
    n: int

    @classmethod
    def from_shares(cls, low: float, high: float, n: int) -> PositiveCounts:
        """Return the counts among n of which the share of positives lies between low and high."""
        return cls(round(low * n), round(high * n), n)

    @property
    def share(self) -> float:
        """The share of positives in the middle of the bounds."""
        return 0.5 * (self.min_positives + self.max_positives) / max(self.n, 1)

    def with_more(self, extra: int) -> PositiveCounts:
        """Return the same shares of more samples."""
        n = max(self.n, 1)
        return self.from_shares(self.min_positives / n, self.max_positives / n, self.n + extra)

    def clip(self, n_positives: int) -> int:
        """Return the number within the bounds that is nearest to this one."""
        return int(np.clip(n_positives, self.min_positives, self.max_positives))


def positive_counts(balance: Any, classes: AnyArray, index: AnyArray, weight: Vector) -> list[PositiveCounts]:
    """Return the bounds of every binary problem, one for two classes and else one per class.

    ``balance`` is the parameter of the classifier, ``index`` the class of each sample, −1 without label.
    """
    _check_sum(balance, classes)
    positive_classes = [1] if classes.size == 2 else list(range(classes.size))
    return [_counts_of_class(balance, classes, index, weight, c) for c in positive_classes]


def as_interval(share: Any) -> tuple[float, float]:
    """Return the two ends of a share of positives or of an interval of shares, checked."""
    pair = tuple(share) if isinstance(share, tuple | list) else (share, share)
    numbers = len(pair) == 2 and all(isinstance(s, Real) and not isinstance(s, bool) for s in pair)
    if not numbers or not 0.0 < pair[0] <= pair[1] < 1.0:
        raise ValueError(
            "balance must be a share of positives above 0 and below 1, or an interval such as (0.4, 0.6); "
            f"got {share!r}."
        )
    return float(pair[0]), float(pair[1])


def may_be_balanced(low: float, high: float) -> bool:
    """Return whether a share of positives between low and high may be close to one half.

    Then kernels are centred, which replaces a bias; with classes of very different size the mean of all
    samples lies among those of the larger class, and no hyperplane through it separates them.
    """
    return low <= 0.65 and high >= 0.35


def _counts_of_class(
    balance: Any, classes: AnyArray, index: AnyArray, weight: Vector, c: int
) -> PositiveCounts:
    """Return the bounds on the number of samples of class c among those without label."""
    if isinstance(balance, Mapping):
        if classes[c] not in balance:
            raise ValueError(f"balance has no share for class {classes[c]!r}; it has {list(balance)}.")
        balance = balance[classes[c]]
    elif classes.size > 2 and not _is_auto(balance):
        raise ValueError(
            f"Beyond 2 classes balance is 'auto' or a mapping from class to share; got {balance!r}."
        )
    labelled = index >= 0
    if _is_auto(balance):
        low, high = _estimated_shares(index[labelled] == c, weight[labelled])
    else:
        low, high = as_interval(balance)
    return PositiveCounts.from_shares(low, high, int((~labelled).sum()))


def _estimated_shares(positive: AnyArray, weight: Vector) -> tuple[float, float]:
    """Return the weighted share of positives minus and plus its standard error."""
    share = float(weight[positive].sum() / weight.sum())
    error = math.sqrt(share * (1.0 - share) * float((weight**2).sum())) / float(weight.sum())
    return max(0.0, share - error), min(1.0, share + error)


def _check_sum(balance: Any, classes: AnyArray) -> None:
    """Refuse shares of all classes that cannot sum to one."""
    if not isinstance(balance, Mapping) or not all(label in balance for label in classes.tolist()):
        return
    shares = [balance[label] for label in classes.tolist()]
    ends = [(0.0, 1.0) if _is_auto(share) else as_interval(share) for share in shares]
    low, high = (sum(pair[side] for pair in ends) for side in (0, 1))
    rounding = 0.02  # 0.33 three times is meant to be a third each
    if low > 1.0 + rounding or high < 1.0 - rounding:
        total = f"{low:g}" if low == high else f"between {low:g} and {high:g}"
        raise ValueError(f"The shares of all classes in balance must sum to 1, but they sum to {total}.")


def _is_auto(balance: Any) -> bool:
    return isinstance(balance, str) and balance == "auto"
