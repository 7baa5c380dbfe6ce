"""Column selections: every way to say it, and every way to get it wrong."""

from __future__ import annotations

import numpy as np
import pandas as pd
import polars as pl
import polars.selectors as cs
import pytest
from scipy import sparse
from sklearn.compose import make_column_selector

from kernelweave.views.tables import resolve_columns

VALUES = np.arange(12.0).reshape(3, 4)
NAMES = ["age", "bmi", "bp", "sex"]
PANDAS = pd.DataFrame(VALUES, columns=NAMES).astype({"sex": "int64"})
POLARS = pl.DataFrame(VALUES, schema=NAMES)


@pytest.mark.parametrize(
    "table", [VALUES, PANDAS, POLARS, sparse.csr_matrix(VALUES)], ids=lambda t: type(t).__name__
)
@pytest.mark.parametrize(
    ("selection", "expected"),
    [
        (None, [0, 1, 2, 3]),
        (2, [2]),
        (-1, [3]),
        ([3, 0], [3, 0]),
        (np.array([1, 2]), [1, 2]),
        (slice(1, 3), [1, 2]),
        (slice(None, None, 2), [0, 2]),
        ([True, False, False, True], [0, 3]),
        (np.array([False, True, False, False]), [1]),
        (lambda _: [0, 2], [0, 2]),
    ],
)
def test_positions_mean_the_same_in_every_table(table, selection, expected):
    assert resolve_columns(selection, table).tolist() == expected


@pytest.mark.parametrize("table", [PANDAS, POLARS], ids=["pandas", "polars"])
@pytest.mark.parametrize(
    ("selection", "expected"),
    [
        ("bp", [2]),
        (["sex", "age"], [3, 0]),
        (np.array(["bmi"]), [1]),
        (pd.Index(["bmi", "bp"]), [1, 2]),
        (slice("bmi", "bp"), [1, 2]),
        (slice("bmi", None), [1, 2, 3]),
        (slice(None, "bmi"), [0, 1]),
        (lambda table: [name for name in table.columns if name.startswith("b")], [1, 2]),
    ],
)
def test_names_select_in_pandas_and_polars(table, selection, expected):
    assert resolve_columns(selection, table).tolist() == expected


def test_selectors_of_scikit_learn_and_polars_work():
    assert resolve_columns(make_column_selector(dtype_include=np.float64), PANDAS).tolist() == [0, 1, 2]
    assert resolve_columns(make_column_selector(pattern="^b"), PANDAS).tolist() == [1, 2]
    assert resolve_columns(cs.starts_with("b"), POLARS).tolist() == [1, 2]


@pytest.mark.parametrize(
    ("selection", "table", "error", "message"),
    [
        ("bmj", PANDAS, ValueError, "view 'v' has no column 'bmj'; did you mean 'bmi'"),
        (["age", "zzz"], POLARS, ValueError, "has no column 'zzz'; did you mean 'age', 'bmi', 'bp', 'sex'"),
        ("age", VALUES, ValueError, "'age' was asked for, but view 'v' is a ndarray without column names"),
        (4, VALUES, ValueError, "Column 4 is out of range: view 'v' has 4 columns, 0 to 3"),
        (-5, VALUES, ValueError, "Column -5 is out of range"),
        ([], VALUES, ValueError, r"The selection \[\] takes no column of view 'v'"),
        (slice(9, 12), VALUES, ValueError, "takes no column"),
        ([False] * 4, VALUES, ValueError, "takes no column"),
        (
            [True, False],
            VALUES,
            ValueError,
            "mask for view 'v' has 2 entries; it needs one for each of the 4",
        ),
        (make_column_selector(pattern="^z"), PANDAS, ValueError, "takes no column"),
        ([1.5], VALUES, TypeError, "neither names nor positions"),
        ([0, "age"], PANDAS, ValueError, "no column '0'"),
        ({"age": 1}, PANDAS, TypeError, "neither names nor positions"),
        ([[0, 1]], VALUES, ValueError, r"one-dimensional, received \(1, 2\)"),
        ("a", pd.DataFrame(np.ones((2, 2)), columns=["a", "a"]), ValueError, "2 columns named 'a'"),
        ("a", pd.DataFrame(np.ones((2, 2))), ValueError, "without column names"),
    ],
)
def test_a_selection_that_finds_nothing_says_what_would(selection, table, error, message):
    with pytest.raises(error, match=message):
        resolve_columns(selection, table, "view 'v'")


def test_many_columns_are_not_all_listed():
    table = pd.DataFrame(np.ones((1, 30)), columns=[f"gene{k}" for k in range(30)])
    with pytest.raises(ValueError, match=r"'gene0', .*'gene7', \.\.\.\?"):
        resolve_columns("zzzzzz", table)
