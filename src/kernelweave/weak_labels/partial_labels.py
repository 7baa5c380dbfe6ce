"""Labels of which some are missing, and how many of the missing ones are positive."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from numbers import Real
from typing import Any

import numpy as np
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import assert_all_finite, column_or_1d

from kernelweave._typing import AnyArray, Matrix, Vector

UNLABELLED = -1
# A share of positives in this range counts as balanced: then kernels are centred, which replaces a bias.
BALANCED = (0.35, 0.65)
# Shares of all classes may miss one by so much: 0.33 three times is meant to be a third each.
ROUNDED = 0.02


@dataclass(frozen=True)
class Counts:
    """Bounds on the number of positives among samples without label."""

    fewest: int
    most: int
    n: int

    @property
    def share(self) -> float:
        return 0.5 * (self.fewest + self.most) / max(self.n, 1)

    def with_more(self, extra: int) -> Counts:
        """Return the same shares of more samples."""
        n = self.n + extra
        low, high = self.fewest / max(self.n, 1), self.most / max(self.n, 1)
        return Counts(round(low * n), round(high * n), n)


def split_labels(y: Any, n_samples: int) -> tuple[AnyArray, AnyArray]:
    """Return the classes and, per sample, the index of its class, −1 where it has no label."""
    if y is None:
        raise ValueError("This classifier requires y to be passed, but the target y is None.")
    y = column_or_1d(y, warn=True)
    assert_all_finite(y, input_name="y")
    if y.shape[0] != n_samples:
        raise ValueError(f"X has {n_samples} samples but y has {y.shape[0]} labels; they must agree.")
    missing = unlabelled(y)
    if missing.all():
        raise ValueError(
            "All samples are unlabelled (-1), but the classifier needs some labels of at least 2 classes; "
            "MKLClusterer groups samples without any."
        )
    labels = y[~missing]
    if labels.dtype == object and all(isinstance(label, str) for label in labels):
        labels = labels.astype(str)
    check_classification_targets(labels)
    classes, told = np.unique(labels, return_inverse=True)
    if classes.size < 2:
        raise ValueError(
            f"The classifier needs labelled samples of at least 2 classes, but y has 1 class only: "
            f"{classes.tolist()}; -1 marks unlabelled samples and is not a class, use 0 and 1."
        )
    index = np.full(y.shape[0], UNLABELLED)
    index[~missing] = told
    return classes, index


def unlabelled(y: AnyArray) -> AnyArray:
    """Return where there is no label: the number −1, also among words, where numpy may have made it '-1'."""
    if y.dtype.kind in "OUS":
        return np.array([label == UNLABELLED or label == str(UNLABELLED) for label in y.tolist()], dtype=bool)
    return np.asarray(y == UNLABELLED)


def may_be_balanced(known: Matrix, counts: Sequence[Counts]) -> bool:
    """Return whether the classes may be of similar size, as far as the balance is known.

    A few labels do not tell: three of ten positive do not exclude even classes, two of ten do.
    """
    if counts[0].n == 0:
        return is_balanced(float((known > 0).mean()))
    low = sum(count.fewest for count in counts) / sum(count.n for count in counts)
    high = sum(count.most for count in counts) / sum(count.n for count in counts)
    return low <= BALANCED[1] and high >= BALANCED[0]


def is_balanced(share: float) -> bool:
    """Return whether about as many samples are positive as negative."""
    return BALANCED[0] <= share <= BALANCED[1]


def check_balance(balance: Any, classes: AnyArray) -> None:
    """Refuse shares of all classes that cannot sum to one."""
    if not isinstance(balance, Mapping) or not all(label in balance for label in classes.tolist()):
        return
    free = (0.0, 1.0)  # what is estimated may be anything
    given = [balance[label] for label in classes.tolist()]
    pairs = [free if isinstance(share, str) and share == "auto" else as_interval(share) for share in given]
    low, high = (sum(pair[side] for pair in pairs) for side in (0, 1))
    if low > 1.0 + ROUNDED or high < 1.0 - ROUNDED:
        total = f"{low:g}" if low == high else f"between {low:g} and {high:g}"
        raise ValueError(f"The shares of all classes in balance must sum to 1, but they sum to {total}.")


def balance_counts(balance: Any, classes: AnyArray, index: AnyArray, column: int, weight: Vector) -> Counts:
    """Return how many of the unlabelled samples may be positive in one binary problem."""
    binary = classes.size == 2
    positive = 1 if binary else column
    told = index >= 0
    n = int((~told).sum())
    given = balance
    if isinstance(balance, Mapping):
        label = classes[positive]
        if label not in balance:
            raise ValueError(f"balance has no share for class {label!r}; it has {list(balance)}.")
        given = balance[label]
    elif not binary and not (isinstance(balance, str) and balance == "auto"):
        raise ValueError(
            f"Beyond 2 classes balance is 'auto' or a mapping from class to share; got {balance!r}."
        )
    if isinstance(given, str) and given == "auto":
        return estimated_counts(index[told] == positive, weight[told], n)
    return share_counts("balance", given, n)


def estimated_counts(positive: AnyArray, weight: Vector, n: int) -> Counts:
    """Return the counts among n within one standard error of the share that the labelled samples show.

    Samples count by their weights; the standard error is that of a weighted mean.
    """
    share = float(weight[positive].sum() / weight.sum())
    error = math.sqrt(share * (1.0 - share) * float((weight**2).sum())) / float(weight.sum())
    low, high = max(0.0, share - error), min(1.0, share + error)
    return Counts(round(low * n), round(high * n), n)


def share_counts(name: str, share: Any, n: int) -> Counts:
    """Return the bounds that a share, or an interval of shares, puts on a count among n."""
    low, high = as_interval(share, name)
    return Counts(round(low * n), round(high * n), n)


def as_interval(share: Any, name: str = "balance") -> tuple[float, float]:
    """Return the two ends of a share or of an interval of shares, checked."""
    pair = tuple(share) if isinstance(share, tuple | list) else (share, share)
    numbers = len(pair) == 2 and all(isinstance(s, Real) and not isinstance(s, bool) for s in pair)
    if not numbers or not 0.0 < pair[0] <= pair[1] < 1.0:
        raise ValueError(
            f"{name} must be a share of positives above 0 and below 1, or an interval such as (0.4, 0.6); "
            f"got {share!r}."
        )
    return float(pair[0]), float(pair[1])
