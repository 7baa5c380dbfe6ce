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
