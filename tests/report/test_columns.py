"""The tables of what was done with columns and rows."""

import numpy as np
import pandas as pd
import pytest

import kernelweave as kw
from kernelweave import KernelBank, MKLClassifier, Views
from kernelweave.bank.column_table import ColumnTable, ColumnUse
from kernelweave.report.columns import alike, columns_of, lacking_rows, rows_without_a_view

rng = np.random.default_rng(0)
N = 40
A = pd.DataFrame(rng.normal(size=(N, 3)), columns=["u", "v", "w"]).assign(kind=["x", "y"] * 20)
B = pd.DataFrame(rng.normal(size=(N, 2)), columns=["p", "q"])
Y = np.where(A["u"] + B["p"] > 0, "yes", "no")


def test_columns_that_are_treated_alike_share_a_line():
    columns = ColumnTable(
        [
            ColumnUse("a", None, "number", "z-scores", filled=2),
            ColumnUse("b", None, "category", "indicators"),
            ColumnUse("c", None, "number", "z-scores", filled=7),
            ColumnUse("d", "v", "number", "z-scores", filled=7),
        ]
    )
    rows = alike(columns)
    assert [row["names"] for row in rows] == [["a", "c"], ["b"], ["d"]]
    assert [row["filled"] for row in rows] == ["2 to 7", "0", "7"]
    assert [row["view"] for row in rows] == ["", "", "v"]


def test_models_without_columns_have_none():
    K = rng.normal(size=(N, 4))
    given = MKLClassifier("precomputed").fit([K @ K.T], Y)
    assert not columns_of(given)
    assert lacking_rows("precomputed", [K @ K.T]) == {}
    assert not columns_of(MKLClassifier())


def test_rows_lack_a_view_where_all_of_its_cells_are_empty():
    a, b = A.astype(object), B.copy()
    a.iloc[[3, 5], :] = None
    a.iloc[8, 0] = None
    b.iloc[[5, 9]] = np.nan
    found = lacking_rows(None, Views({"a": a, "b": b}))
    assert {view: rows.tolist() for view, rows in found.items()} == {"a": [3, 5], "b": [5, 9]}
    assert rows_without_a_view(None, {"a": a, "b": b}).tolist() == [5]
    whole = pd.concat([a, b], axis=1)
    groups = KernelBank.by_type(views={"a": list(A), "b": list(B)})
    assert {view: rows.tolist() for view, rows in lacking_rows(groups, whole).items()} == {
        "a": [3, 5],
        "b": [5, 9],
    }
    assert lacking_rows(None, whole) == {}  # cells of one table are filled
    assert rows_without_a_view(None, whole).size == 0


def test_the_page_says_how_columns_were_encoded_and_who_lacks_what(tmp_path):
    pytest.importorskip("jinja2")
    names = [f"P{k}" for k in range(N)]
    views = Views.join({"a": A.set_axis(names), "b": B.set_axis(names).iloc[4:]})
    model = MKLClassifier(KernelBank.by_type(scales=[1.0])).fit(views, Y)
    page = kw.write_report(model, views, Y, tmp_path / "r.html", cv=2, n_resamples=2).read_text(
        encoding="utf-8"
    )
    for row in ("u, v, w", "z-scores", "indicators", "P0, P1, P2, P3"):
        assert row in page
    assert '<th scope="row">b</th><td class="count">36</td><td class="count">4</td>' in page
    plain = MKLClassifier(KernelBank.per_view(views={"a": [0, 1], "b": [2]})).fit(A[["u", "v", "w"]], Y)
    file = kw.write_report(plain, A[["u", "v", "w"]], Y, tmp_path / "p.html", cv=2, n_resamples=2)
    assert "Who lacks what" not in file.read_text(encoding="utf-8")
