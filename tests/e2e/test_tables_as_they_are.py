"""Tables as they are, by the command line alone: words, orders, dates, notes, gaps, and patients who lack a table."""

import json
from io import StringIO
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from tests.cli.typed import run

from kernelweave import MKLClassifier, Views

pytest.importorskip("skops")
pytest.importorskip("jinja2")
ROOT = Path(__file__).parents[2]
NOTES = ("no pain at all today", "some pain at night only", "much pain and sleeps badly", "walks well again")


def mixed(n, seed):
    """Return numbers, words, an ordered category, a date and a note, with gaps, and an outcome they tell."""
    rng = np.random.default_rng(seed)
    table = pd.DataFrame(
        {
            "patient": [f"{seed}-{k:04}" for k in range(n)],
            "age": rng.normal(60, 10, n).round(),
            "ward": rng.choice(["north", "south", "east"], n),
            "stage": rng.choice(["low", "medium", "high"], n),
            "seen": (
                pd.Timestamp("2024-01-01") + pd.to_timedelta(rng.integers(0, 700, n), unit="D")
            ).strftime("%Y-%m-%d"),
            "note": [
                f"{text}, {first}, day {day}"
                for text, first, day in zip(
                    rng.choice(NOTES, n),
                    rng.choice(["calm", "upset"], n),
                    rng.integers(0, 300, n),
                    strict=True,
                )
            ],
        }
    )
    score = table["stage"].map({"low": -1.0, "medium": 0.0, "high": 1.5}) + (table["age"] - 60) / 10
    score += 0.8 * table["note"].str.contains("pain") + 0.4 * rng.normal(size=n)
    table["outcome"] = np.where(score > 0.3, "relapse", "well")
    for name in ("age", "ward", "stage", "seen", "note"):
        table.loc[rng.random(n) < 0.08, name] = None
    return table


def test_a_mixed_table_goes_from_csv_to_predictions_and_a_report(tmp_path):
    train, new = mixed(700, 1), mixed(200, 2)
    train.to_csv(tmp_path / "train.csv", index=False)
    shown = new.drop(columns="outcome").assign(ward=new["ward"].mask(np.arange(200) % 3 == 0, "west"))
    shown[shown.columns[::-1]].to_csv(tmp_path / "new.csv", index=False)  # another order, an unseen category
    order = ["--order", "stage=low,medium,high"]
    words = ["--target", "outcome", "--id", "patient", *order, "--model", tmp_path / "m.kw"]
    done = run("fit", tmp_path / "train.csv", *words, "--report", tmp_path / "r.html", "--json")
    assert done.exit_code == 0, done.output
    summary = json.loads(done.stdout)
    assert summary["rows"] == 700
    made = {row["column"]: (row["type"], row["filled"]) for row in summary["columns"]}
    types = {"age": "number", "ward": "category", "stage": "ordered", "seen": "date", "note": "text"}
    assert made == {name: (kind, int(train[name].isna().sum())) for name, kind in types.items()}

    done = run("predict", tmp_path / "m.kw", tmp_path / "new.csv")
    assert done.exit_code == 0, done.output
    rows = pd.read_csv(StringIO(done.stdout))
    assert rows["patient"].tolist() == new["patient"].tolist()
    assert (rows["prediction"] == new["outcome"]).mean() > 0.75  # the majority is 58 %

    columns = [*types]
    levels = {"stage": pd.CategoricalDtype(["low", "medium", "high"], ordered=True)}
    X = train[columns].astype(levels)
    model = MKLClassifier().fit(X, train["outcome"])
    expected = model.decision_function(shown[columns].astype(levels))
    np.testing.assert_allclose(rows["decision"], expected, rtol=0, atol=1e-9)

    page = (tmp_path / "r.html").read_text(encoding="utf-8")
    seen = " ".join(run("inspect", tmp_path / "m.kw").output.replace("│", " ").split())
    for encoding in (
        "z-scores, gaps marked",
        "indicators",
        "ranks, z-scores",
        "tf-idf of words and characters",
    ):
        assert encoding in page
        assert encoding.split()[0] in seen


@pytest.fixture(scope="module")
def patients(tmp_path_factory):
    """Return three tables of patients, a third of whom lack one, and who lacks which."""
    folder, rng, n = tmp_path_factory.mktemp("patients"), np.random.default_rng(0), 240
    ids, z = np.array([f"P{k:03}" for k in range(n)]), rng.normal(size=(n, 2))
    lacks = np.array(["", "", "", "", "blood", "scan"])[np.arange(n) % 6]
    tables = {
        "clinic": pd.DataFrame({"patient": ids, "sex": rng.choice(["f", "m"], n)}),
        "blood": pd.DataFrame(z[:, [0]] + 0.3 * rng.normal(size=(n, 4))).add_prefix("b").assign(patient=ids),
        "scan": pd.DataFrame(z[:, [1]] + 0.3 * rng.normal(size=(n, 3))).add_prefix("s").assign(patient=ids),
    }
    tables["clinic"]["outcome"] = np.where(z.sum(axis=1) > 0, "ill", "well")
    for name, table in tables.items():
        table[lacks != name].sample(frac=1, random_state=1).to_csv(folder / f"{name}.csv", index=False)
    files = [folder / f"{name}.csv" for name in tables]
    model = folder / "m.kw"
    done = run(
        "fit", *files, "--target", "outcome", "--model", model, "--report", folder / "r.html", "--json"
    )
    assert done.exit_code == 0, done.output
    return folder, files, ids, lacks, json.loads(done.stdout)


def test_nobody_who_lacks_a_table_is_dropped_and_the_report_says_who_they_are(patients):
    folder, files, ids, lacks, summary = patients
    assert summary["rows"] == 240
    assert summary["id"] == "patient"
    assert any("matched by 'patient'" in note for note in summary["notes"])
    shown = run("inspect", folder / "m.kw").output
    page = (folder / "r.html").read_text(encoding="utf-8")
    order = pd.read_csv(files[0])["patient"]  # rows come in the order of the first file
    for view in ("blood", "scan"):
        who = [one for one in order if one in set(ids[lacks == view])]
        assert summary["lacking"][view] == {"rows": 40, "who": who[:20]}
        assert f"40 rows: {', '.join(who[:5])}" in shown
        assert f'<th scope="row">{view}</th><td class="count">200</td><td class="count">40</td>' in page
        assert ", ".join(who[:20]) in page

    tables = {file.stem: pd.read_csv(file) for file in files}
    outcome = tables["clinic"].set_index("patient")["outcome"]
    tables["clinic"] = tables["clinic"].drop(columns="outcome")
    views = Views.join(tables, on="patient")
    model = MKLClassifier().fit(views, outcome.loc[views.ids].to_numpy())
    done = run("predict", folder / "m.kw", *files)
    rows = pd.read_csv(StringIO(done.stdout))
    assert rows["patient"].tolist() == views.ids.tolist()
    np.testing.assert_allclose(rows["decision"], model.decision_function(views), rtol=0, atol=1e-9)


@pytest.mark.parametrize("given", [("clinic",), ("blood",), ("blood", "scan"), ("clinic", "scan")])
def test_predictions_come_for_patients_who_lack_any_tables(patients, given, tmp_path):
    folder, files, *_ = patients
    new = [tmp_path / f"{name}.csv" for name in given]
    for k, file in enumerate(new):  # few patients, and with two files nobody is in both
        pd.read_csv(folder / file.name).iloc[20 * k : 20 * k + 9].assign(
            patient=[f"N{k}{j}" for j in range(9)]
        ).to_csv(file, index=False)
    done = run("predict", folder / "m.kw", *new)
    assert done.exit_code == 0, done.output
    rows = pd.read_csv(StringIO(done.stdout))
    assert rows["patient"].tolist() == [f"N{k}{j}" for k in range(len(new)) for j in range(9)]
    assert set(rows["prediction"]) <= {"ill", "well"}
    for name in {"clinic", "blood", "scan"}.difference(given):
        assert f"Note: {9 * len(given)} of {9 * len(given)} rows lack {name}" in done.stderr
    if given == ("blood", "scan"):
        truth = pd.concat(
            [pd.read_csv(folder / file.name).iloc[20 * k : 20 * k + 9] for k, file in enumerate(new)]
        )
        outcome = pd.read_csv(files[0]).set_index("patient")["outcome"].loc[truth["patient"]]
        assert (rows["prediction"].to_numpy() == outcome.to_numpy()).mean() > 0.5


def documented(page):
    """Return the commands on tables that a page shows, without their comments."""
    lines = (ROOT / page).read_text(encoding="utf-8").splitlines()
    return [
        line.partition("#")[0].split()[1:]
        for line in lines
        if line.startswith("    kernelweave ") and line.split()[1] in ("fit", "predict", "inspect")
    ]


@pytest.mark.parametrize("page", ["README.md", "docs/guide.md"])
def test_the_commands_of_a_page_run_in_order(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    mixed(60, 1).to_csv("patients.csv", index=False)
    mixed(9, 2).drop(columns="outcome").to_csv("new.csv", index=False)
    rng = np.random.default_rng(0)
    clinic = mixed(50, 3)[["patient", "age", "outcome"]]
    clinic.to_csv("clinic.csv", index=False)
    for name in ("blood", "scan"):
        measured = pd.DataFrame(rng.normal(size=(50, 2))).add_prefix(name)
        measured.assign(patient=clinic["patient"]).iloc[: 40 + len(name)].to_csv(f"{name}.csv", index=False)
    commands = documented(page)
    assert {words[0] for words in commands} >= {"fit", "predict", "inspect"}
    for words in commands:
        done = run(*words)
        assert done.exit_code == 0, (words, done.output)


def test_three_files_and_a_target_are_enough(patients, tmp_path, monkeypatch):
    _, files, *_ = patients
    monkeypatch.chdir(tmp_path)
    done = run("fit", *files, "--target", "outcome")
    assert done.exit_code == 0, done.output
    assert "Model written to model.kw" in done.output
    done = run("predict", "model.kw", *files, "--out", "p.csv")
    assert done.exit_code == 0, done.output
    assert len(pd.read_csv("p.csv")) == 240
