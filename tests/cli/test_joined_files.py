"""Rows of several files are matched by their ids, and every array of numbers is learnt from."""

import json
from io import StringIO

import numpy as np
import pandas as pd
import pytest
from tests.cli.test_broken_input import is_one_sentence
from tests.cli.typed import frame, run

pytest.importorskip("skops")


@pytest.mark.parametrize("write", [lambda k: f"{k}.0", float, np.float32, str], ids=["7.0", "f8", "f4", "7"])
def test_whole_numbers_are_one_id_however_they_are_written(write, tmp_path):
    table = frame()
    ids = [write(k) for k in range(60)]
    table[["a1", "a2"]].assign(id=ids).to_csv(tmp_path / "one.csv", index=False)
    table[["a1", "a2"]].assign(id=ids).to_parquet(tmp_path / "one.parquet")
    table[["b1", "label"]].assign(id=range(60)).to_csv(tmp_path / "two.csv", index=False)
    for one in ("one.csv", "one.parquet"):
        words = ["--target", "label", "--model", tmp_path / "m.kw", "--json"]
        done = run("fit", tmp_path / one, tmp_path / "two.csv", *words)
        assert done.exit_code == 0, done.output
        assert json.loads(done.stdout)["rows"] == 60
        rows = pd.read_csv(
            StringIO(run("predict", tmp_path / "m.kw", tmp_path / one, tmp_path / "two.csv").stdout)
        )
        assert rows["id"].tolist() == list(range(60))


def test_ids_that_one_file_pads_are_matched_or_refused(tmp_path):
    table = frame()
    table[["a1", "a2", "label"]].assign(id=range(1, 61)).to_csv(tmp_path / "one.csv", index=False)
    words = [
        "fit",
        tmp_path / "one.csv",
        tmp_path / "two.csv",
        "--target",
        "label",
        "--model",
        tmp_path / "m.kw",
    ]
    table[["b1"]].assign(id=[f"{k:<4d}" for k in range(1, 61)]).to_csv(tmp_path / "two.csv", index=False)
    done = run(*words, "--json")
    assert done.exit_code == 0, done.output
    assert json.loads(done.stdout)["lacking"] == {}
    table[["b1"]].assign(id=[f"{k:02d}" for k in range(1, 61)]).to_csv(tmp_path / "two.csv", index=False)
    is_one_sentence(run(*words), "'01' (str) and view 'one' '1' (str): they look like one")


def test_an_id_of_one_file_is_kept_as_it_is(tmp_path):
    ids = ["1", "1.0", "01", *frame()["key"][3:]]
    frame().assign(key=ids).to_csv(tmp_path / "t.csv", index=False)
    run("fit", tmp_path / "t.csv", "--target", "label", "--id", "key", "--model", tmp_path / "m.kw")
    lines = run("predict", tmp_path / "m.kw", tmp_path / "t.csv").stdout.splitlines()[1:]
    assert [line.split(",")[0] for line in lines] == ids


def test_an_id_called_like_a_column_of_predictions_is_written_beside_it(tmp_path):
    frame().rename(columns={"key": "prediction"}).to_csv(tmp_path / "t.csv", index=False)
    words = ["--target", "label", "--id", "prediction", "--model", tmp_path / "m.kw"]
    assert run("fit", tmp_path / "t.csv", *words).exit_code == 0
    done = run("predict", tmp_path / "m.kw", tmp_path / "t.csv")
    assert done.exit_code == 0, done.output
    assert "'prediction' is written as 'id'" in done.stderr
    rows = pd.read_csv(StringIO(done.stdout), dtype={"id": str})
    assert rows.columns.tolist() == ["id", "prediction", "decision"]
    assert rows["id"].tolist() == frame()["key"].tolist()


def test_an_array_beside_the_tables_of_a_file_is_a_view_of_one_column(tmp_path):
    rng = np.random.default_rng(0)
    X, Z, age = rng.normal(size=(50, 3)), rng.normal(size=(50, 2)), rng.normal(size=50)
    y = np.where(age + X[:, 0] > 0, "ill", "well")
    np.savez(tmp_path / "mri.npz", id=np.arange(50), X=X, age=age, site=np.array(["n", "s"] * 25))
    np.savez(tmp_path / "rna.npz", id=np.arange(50), Z=Z, label=y)
    files = [tmp_path / "mri.npz", tmp_path / "rna.npz"]
    done = run("fit", *files, "--target", "label", "--model", tmp_path / "m.kw", "--json")
    summary = json.loads(done.stdout)
    assert {name: len(columns) for name, columns in summary["views"].items()} == {
        "mri": 3,
        "mri.age": 1,
        "mri.site": 1,
        "rna": 2,
    }
    assert summary["views"]["mri.age"] == ["age"]
    assert summary["left_out"] == {}
    assert {row["column"]: row["type"] for row in summary["columns"]}["site"] == "category"
    assert run("predict", tmp_path / "m.kw", *files).exit_code == 0


def test_files_for_predictions_are_known_by_their_names(tmp_path):
    frame()[["key", "a1", "label"]].to_csv(tmp_path / "one.csv", index=False)
    frame()[["key", "b1"]].to_csv(tmp_path / "two.csv", index=False)
    frame()[["key", "b1"]].to_csv(tmp_path / "new.csv", index=False)
    one, new, model = tmp_path / "one.csv", tmp_path / "new.csv", tmp_path / "m.kw"
    run("fit", one, tmp_path / "two.csv", "--target", "label", "--id", "key", "--model", model)
    is_one_sentence(run("predict", model, one, new), "needs a file called 'two'; name yours as two=FILE")
    assert run("predict", model, f"two={new}", one).exit_code == 0


def test_a_target_in_a_file_of_its_own_is_found_and_who_has_none_is_named(tmp_path):
    table = frame(50)
    table[["key", "a1", "a2"]].iloc[5:].to_csv(tmp_path / "a.csv", index=False)
    table[["key", "b1"]].iloc[::-1].to_csv(tmp_path / "b.csv", index=False)
    table[["key", "label"]].iloc[:40].assign(label=table["label"]).to_csv(
        tmp_path / "outcomes.csv", index=False
    )
    files = [tmp_path / name for name in ("a.csv", "b.csv", "outcomes.csv")]
    done = run("fit", *files, "--target", "label", "--model", tmp_path / "m.kw", "--json")
    assert done.exit_code == 0, done.output
    summary = json.loads(done.stdout)
    assert summary["target"] == "outcomes:label"
    assert summary["rows"] == 40
    assert summary["views"] == {"a": ["a1", "a2"], "b": ["b1"]}
    assert summary["lacking"] == {"a": {"rows": 5, "who": ["004", "003", "002", "001", "000"]}}
    assert any(note.startswith("10 of 50 rows are not in outcomes") for note in summary["notes"])
    done = run("predict", tmp_path / "m.kw", *files[:2])
    assert done.exit_code == 0, done.output
    found = pd.read_csv(StringIO(done.stdout), dtype={"key": str}).set_index("key").loc[table["key"][:40]]
    assert (found["prediction"].to_numpy() == table["label"][:40].to_numpy()).mean() > 0.6


@pytest.mark.parametrize("several", [True, False])
def test_a_row_without_any_value_is_left_out_and_has_no_prediction(tmp_path, several):
    table = frame(50)
    table.loc[7, ["a1", "a2", "b1", "b2"]] = None
    if several:
        table[["key", "a1", "a2", "label"]].to_csv(tmp_path / "one.csv", index=False)
        table[["key", "b1", "b2"]].to_csv(tmp_path / "two.csv", index=False)
        words = [tmp_path / "one.csv", tmp_path / "two.csv"]
        done = run("fit", *words, "--target", "label", "--model", tmp_path / "m.kw", "--json")
    else:
        table.to_csv(tmp_path / "one.csv", index=False)
        words = [tmp_path / "one.csv"]
        views = ["--view", "a=a1,a2", "--view", "b=b1,b2", "--id", "key"]
        done = run("fit", *words, *views, "--target", "label", "--model", tmp_path / "m.kw", "--json")
    assert done.exit_code == 0, done.output
    summary = json.loads(done.stdout)
    assert summary["rows"] == 49
    assert "1 of 50 rows have no value in any view and are not learnt from: 007" in summary["notes"]
    done = run("predict", tmp_path / "m.kw", *words)
    assert done.exit_code == 0, done.output
    assert "1 rows have no value in any view, and no prediction" in done.stderr
    found = pd.read_csv(StringIO(done.stdout), dtype={"key": str})
    assert found["key"][found["prediction"].isna()].tolist() == ["007"]


def test_columns_that_several_files_share_are_told_apart(tmp_path):
    table = frame()
    table[["key", "a1", "b1", "label"]].to_csv(tmp_path / "one.csv", index=False)
    table[["key", "a2", "b1"]].assign(b1="x").to_csv(tmp_path / "two.csv", index=False)
    words = [
        tmp_path / "one.csv",
        tmp_path / "two.csv",
        "--target",
        "one:label",
        "--model",
        tmp_path / "m.kw",
    ]
    summary = json.loads(run("fit", *words, "--json").stdout)
    assert summary["id"] == "key"
    assert {(row["view"], row["column"], row["type"]) for row in summary["columns"]} == {
        ("one", "a1", "number"),
        ("one", "b1", "number"),
        ("two", "a2", "number"),
        ("two", "b1", "category"),
    }
