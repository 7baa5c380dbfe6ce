"""Landmarks on the command line: very many rows, and models that say that they are approximate."""

import json

import numpy as np
import pandas as pd
import pytest
from tests.cli.typed import frame, run

from kernelweave.cli import files
from kernelweave.gram import policy

pytest.importorskip("skops")


def words(folder, *more):
    return ["fit", folder / "t.csv", "--target", "label", "--id", "key", "--model", folder / "m.kw", *more]


def test_a_model_on_landmarks_predicts_and_says_how_far_it_is_from_the_kernels(tmp_path):
    frame(200).to_csv(tmp_path / "t.csv", index=False)
    done = run(*words(tmp_path, "--landmarks", "20"))
    assert done.exit_code == 0, done.output
    assert "Landmarks(n_landmarks=20)" in done.output
    label = json.loads(run("inspect", tmp_path / "m.kw", "--json").stdout)
    assert "combined kernel differs by" in label["approximation"]
    assert "combined kernel differs by" in " ".join(run("inspect", tmp_path / "m.kw").output.split())
    done = run("predict", tmp_path / "m.kw", tmp_path / "t.csv", "--out", tmp_path / "p.csv")
    assert done.exit_code == 0, done.output
    found = pd.read_csv(tmp_path / "p.csv")
    assert (found["prediction"] == frame(200)["label"]).mean() > 0.8


def test_too_many_rows_for_exact_kernels_name_the_option_that_works(tmp_path, monkeypatch):
    frame(200).to_csv(tmp_path / "t.csv", index=False)
    monkeypatch.setattr(policy, "budget", lambda _: 1000)
    done = run(*words(tmp_path))
    assert done.exit_code == 2
    (line,) = done.stderr.strip().splitlines()
    assert "200 rows are too many for exact kernels" in line
    assert "--landmarks 300" in line
    assert not (tmp_path / "m.kw").exists()


@pytest.mark.parametrize(("more", "sentence"), [(["0"], "at least 1"), (["9", "--method", "silp"], "exact")])
def test_landmarks_that_cannot_be_are_one_sentence(tmp_path, more, sentence):
    frame().to_csv(tmp_path / "t.csv", index=False)
    done = run(*words(tmp_path, "--landmarks", *more))
    assert done.exit_code == 2
    assert sentence in done.stderr


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
@pytest.mark.parametrize("size", [1, 7, 1000])
def test_a_table_is_the_same_however_many_rows_are_read_at_a_time(tmp_path, monkeypatch, suffix, size):
    monkeypatch.setattr(files, "ROWS_AT_A_TIME", size)
    table = frame(20).assign(text=['a\n"b', "c,d"] * 10, code="007")
    file = tmp_path / f"t.{suffix}"
    table.to_csv(file, index=False) if suffix == "csv" else table.to_parquet(file)
    found = files.read_table(str(file), ["key", "code"]).frame
    assert found.columns.tolist() == table.columns.tolist()
    assert found["code"].tolist() == ["007"] * 20
    assert found["key"].tolist() == table["key"].tolist()
    assert found["text"].tolist() == table["text"].tolist()
    np.testing.assert_array_equal(found[["a1", "b3"]], table[["a1", "b3"]])


def test_a_ragged_row_is_named_by_its_line_in_the_file(tmp_path, monkeypatch):
    monkeypatch.setattr(files, "ROWS_AT_A_TIME", 7)
    (tmp_path / "t.csv").write_text(frame(30).to_csv(index=False) + "1,2\n")
    done = run(*words(tmp_path))
    assert done.exit_code == 2
    assert "Line 32 of" in done.stderr
