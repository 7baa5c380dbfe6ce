"""Targets whose rows are labelled must have the labels of the samples, in their order."""

from __future__ import annotations

import sys
from typing import Any

from kernelweave.views.joining import are_permuted, row_labels
from kernelweave.views.tables import is_pandas
from kernelweave.views.views import Views


def require_labels(X: Any, y: Any) -> None:
    """Raise ValueError where X and y label their rows and the labels differ, or differ in order.

    Rows that are only counted have the labels of others where these are the same numbers: then the order counts.
    Targets counted from 0 on belong to the samples by position.
    """
    of_y = getattr(y, "index", None) if hasattr(y, "iloc") else None
    own, call = _labels(X)
    if of_y is None or own is None or len(own) != len(of_y) or own.equals(of_y) or _counts_from_zero(of_y):
        return
    permuted = are_permuted(own, of_y)
    if not permuted and (row_labels(y) is None or not _are_names(X)):
        return
    pairs = zip(own.tolist(), of_y.tolist(), strict=True)
    differing = [(place, mine, theirs) for place, (mine, theirs) in enumerate(pairs) if mine != theirs]
    if not differing:  # the same labels, held in another way
        return
    place, mine, theirs = differing[0]
    raise ValueError(
        f"The rows of y are labelled {'in another order' if permuted else 'otherwise'} than those of X (row {place}: "
        f"{theirs!r} and {mine!r}); pass y.loc[{call}], or y.to_numpy() if the order is right."
    )


def _labels(X: Any) -> tuple[Any, str]:
    """Return what the rows of samples are called, or counted by, and how to write that; None where nothing is said."""
    if not isinstance(X, Views):
        return (X.index if hasattr(X, "iloc") else None), "X.index"
    if X.ids is not None:
        return (sys.modules["pandas"].Index(X.ids) if X.labels is None else X.labels), "X.ids"
    counted = [name for name, table in X.items() if is_pandas(table)]
    return (X[counted[0]].index, f"X[{counted[0]!r}].index") if counted else (None, "")


def _are_names(X: Any) -> bool:
    """Tell whether the rows have labels that do more than count them."""
    return (X.ids if isinstance(X, Views) else row_labels(X)) is not None


def _counts_from_zero(index: Any) -> bool:
    return type(index).__name__ == "RangeIndex" and (index.start, index.step) == (0, 1)
