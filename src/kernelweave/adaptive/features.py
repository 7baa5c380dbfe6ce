"""What a gating looks at: columns of a table or whole views, as numbers."""

from __future__ import annotations

from typing import Any

import numpy as np

from kernelweave._typing import Matrix
from kernelweave.bank import Views
from kernelweave.views.columns import resolve_columns
from kernelweave.views.tables import as_floats, as_table, is_sparse, stack, take_columns


def gating_features(X: Any, selection: Any) -> Matrix:
    """Return the chosen columns of a table, or the chosen views side by side, as one dense matrix."""
    if isinstance(X, Views):
        names = X.names if selection is None else _view_names(X, selection)
        values = stack([as_floats(X[name], f"view {name!r}") for name in names])
    else:
        table = as_table(X, "X")
        values = as_floats(take_columns(table, resolve_columns(selection, table)), "X")
    return np.asarray(values.toarray() if is_sparse(values) else values)


def _view_names(X: Views, selection: Any) -> list[str]:
    names = [selection] if isinstance(selection, str) else list(selection)
    for name in names:
        if name not in X:
            raise ValueError(
                f"The features of a gating on Views are names of views ({', '.join(X.names)}); got {name!r}."
            )
    return names
