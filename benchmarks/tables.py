"""Tables as they are: fits without preparation against scikit-learn's usual encoders with an SVC, by accuracy."""

from __future__ import annotations

import argparse
import os
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
from rich.console import Console
from rich.table import Table
from sklearn.base import clone
from sklearn.compose import ColumnTransformer
from sklearn.datasets import load_breast_cancer, load_digits, load_wine
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.impute import SimpleImputer
from sklearn.model_selection import GridSearchCV, StratifiedShuffleSplit
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, OneHotEncoder, StandardScaler
from sklearn.svm import SVC

from benchmarks.measure import seconds
from kernelweave import MKLClassifier, MKLClassifierCV, Views
from kernelweave.datasets.dataset import VARIABLE

SPLITS, N_TRAIN = 5, 200
SPLITS_OF_VIEWS, N_OF_VIEWS, LACKING = 10, 150, 1 / 3
# Sixteen candidates of the SVC, judged by three folds.
GRID = {"svc__C": [0.1, 1.0, 10.0, 100.0], "svc__gamma": ["scale", 0.01, 0.03, 0.1]}
DAY = pd.Timedelta(days=1)


def run(options: argparse.Namespace, console: Console) -> list[dict]:  # noqa: ARG001 - sizes are those of the sets
    rows = []
    for name, (X, y) in mixed_tables().items():
        console.log(f"tables: {name}")
        rows.append(compared(name, X, y))
    for name, (views, y, absent) in sets_of_views().items():
        console.log(f"tables: {name} without {absent}")
        rows.append(compared_with_complete_cases(name, views, y, absent))
    return rows


def mixed_tables() -> dict[str, tuple[pd.DataFrame, np.ndarray]]:
    """Two generated tables, bundled sets with cells emptied, and files of the data folder that are there."""
    wine, cancer = load_wine(as_frame=True), load_breast_cancer(as_frame=True)
    found = {
        "patients (generated)": patients(400, np.random.default_rng(0)),
        "orders (generated)": orders(400, np.random.default_rng(1)),
        "wine": (wine.data, wine.target.to_numpy()),
        "breast cancer, 10 % of cells empty": (emptied(cancer.data, 0.1), cancer.target.to_numpy()),
    }
    folder = Path(os.environ.get(VARIABLE, "."))
    for name in ("heart", "australian", "solar_flare_uci"):
        if (folder / f"{name}.npz").is_file():
            found[name] = of_file(folder / f"{name}.npz")
    return found


def patients(n: int, rng: np.random.Generator) -> tuple[pd.DataFrame, np.ndarray]:
    """Numbers, words, an order, dates and notes with gaps; the target depends on all of them."""
    sick = rng.integers(0, 2, n)
    words = np.array([["stable", "calm", "resting"], ["pain", "fever", "worse"]])
    days = rng.integers(0, 900, n)
    table = pd.DataFrame(
        {
            "age": rng.normal(60, 12, n).round(1),
            "dose": rng.lognormal(0, 1, n),
            "city": rng.choice(["Oslo", "Lund", "Turku", "Riga"], n),
            "stage": pd.Categorical(rng.choice(["I", "II", "III"], n), ["I", "II", "III"], ordered=True),
            "seen": pd.Timestamp("2021-01-01") + pd.to_timedelta(days, unit="D"),
            "note": [
                f"patient seen today and {' '.join(rng.choice(words[s], 2))} {k}" for k, s in enumerate(sick)
            ],
        }
    )
    score = (
        (table["age"] - 60) / 12 + table["stage"].cat.codes + 2 * sick + table["city"].isin(["Oslo", "Lund"])
    )
    score += np.sin(2 * np.pi * days / 365.25) + rng.normal(0, 0.7, n)
    for name in ("age", "city", "note"):
        table.loc[rng.random(n) < 0.1, name] = np.nan if name == "age" else None
    return table, (score > score.median()).to_numpy().astype(int)


def orders(n: int, rng: np.random.Generator) -> tuple[pd.DataFrame, np.ndarray]:
    """Categories of many values and amounts; the target depends on pairs of categories."""
    table = pd.DataFrame(
        {
            "product": rng.choice([f"p{k}" for k in range(30)], n),
            "channel": rng.choice(["shop", "web", "phone"], n),
            "country": rng.choice(["NO", "SE", "FI", "LV", "DK"], n),
            "amount": rng.lognormal(3, 1, n),
            "weekday": rng.choice(["mon", "tue", "wed", "thu", "fri"], n),
        }
    )
    even = table["product"].str[1:].astype(int) % 2 == 0
    score = np.where(even == (table["channel"] == "web"), 1.0, -1.0) + 0.5 * np.log(table["amount"])
    return table, (score + rng.normal(0, 0.5, n) > np.median(score)).to_numpy().astype(int)


def emptied(table: pd.DataFrame, share: float) -> pd.DataFrame:
    return table.mask(np.random.default_rng(2).random(table.shape) < share)


def of_file(path: Path) -> tuple[pd.DataFrame, np.ndarray]:
    """A set of the data folder: columns of codes are words."""
    with np.load(path) as file:
        values = file["X_raw"] if "X_raw" in file else file["X"]
        table, y = pd.DataFrame(values).add_prefix("c"), file["y"]
        codes = file["categorical"].tolist() if "categorical" in file else None
    for j, name in enumerate(table):
        if values.dtype.kind != "U" and (table[name].nunique() <= 4 if codes is None else j in codes):
            table[name] = "level " + table[name].astype(int).astype(str)
    return table, y


def usual_encoders(X: pd.DataFrame) -> ColumnTransformer:
    """Medians and z-scores, indicators, ranks, days since the first, tf-idf: what one would write by hand."""
    scaled = make_pipeline(SimpleImputer(strategy="median"), StandardScaler())
    ranks = make_pipeline(FunctionTransformer(_codes), StandardScaler())
    days = make_pipeline(FunctionTransformer(_days), StandardScaler())
    indicators = OneHotEncoder(handle_unknown="ignore")  # an empty cell is a value of its own
    kinds: dict[str, list[str]] = {}
    for name in X:
        kinds.setdefault(_kind(X[name]), []).append(name)
    encoders = {"number": scaled, "order": ranks, "date": days, "word": indicators}
    parts = [(kind, encoders[kind], names) for kind, names in kinds.items() if kind != "text"]
    parts += [
        (name, make_pipeline(FunctionTransformer(_filled), TfidfVectorizer()), name)
        for name in kinds.get("text", [])
    ]
    return ColumnTransformer(parts)


def _kind(column: pd.Series) -> str:
    if pd.api.types.is_numeric_dtype(column):
        return "number"
    if pd.api.types.is_datetime64_any_dtype(column):
        return "date"
    if getattr(column.dtype, "ordered", False):
        return "order"
    return "text" if column.nunique() > len(column) / 2 else "word"


def _codes(X: pd.DataFrame) -> np.ndarray:
    return X.apply(lambda column: column.cat.codes).to_numpy(dtype=float)


def _days(X: pd.DataFrame) -> np.ndarray:
    return X.apply(lambda column: (column - pd.Timestamp("2021-01-01")) / DAY).to_numpy()


def _filled(column: pd.Series) -> pd.Series:
    return column.fillna("")


def compared(name: str, X: pd.DataFrame, y: np.ndarray) -> dict:
    """Mean accuracies on the same splits, of fits as they come and of searches over as many candidates."""
    plain = make_pipeline(usual_encoders(X), SVC())
    models = {
        "ours": MKLClassifier(),
        "svc": plain,
        "ours searched": MKLClassifierCV(),
        "svc searched": GridSearchCV(plain, GRID, cv=3),
    }
    found: dict[str, list[float]] = {model: [] for model in models}
    times: dict[str, float] = dict.fromkeys(models, 0.0)
    for train, test in splits(y, SPLITS, N_TRAIN):
        for model, one in models.items():
            fitted = clone(one)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                times[model] += seconds(lambda: fitted.fit(X.iloc[train], y[train])) / SPLITS  # noqa: B023
                found[model].append(float((fitted.predict(X.iloc[test]) == y[test]).mean()))
    scores = {model: float(np.mean(one)) for model, one in found.items()}
    return {"set": name, "columns": X.shape[1], "splits": SPLITS, "accuracy": scores, "seconds": times}


def sets_of_views() -> dict[str, tuple[dict[str, np.ndarray], np.ndarray, str]]:
    """Bundled sets cut into views, and which of them a third of the samples lack."""
    cancer, y = load_breast_cancer(return_X_y=True)
    digits, labels = load_digits(return_X_y=True)
    pixels = digits.reshape(-1, 8, 8)
    quarters = {
        f"quarter {2 * i + j}": pixels[:, 4 * i : 4 * i + 4, 4 * j : 4 * j + 4]
        for i in (0, 1)
        for j in (0, 1)
    }
    return {
        "breast cancer": (
            {"mean": cancer[:, :10], "error": cancer[:, 10:20], "worst": cancer[:, 20:]},
            y,
            "worst",
        ),
        "digits": ({name: part.reshape(-1, 16) for name, part in quarters.items()}, labels, "quarter 3"),
    }


def compared_with_complete_cases(name: str, views: dict[str, np.ndarray], y: np.ndarray, absent: str) -> dict:
    """Mean accuracies of fits to all samples and to those that have all views, tested on samples of both kinds."""
    found: dict[str, list[float]] = {"all": [], "complete": []}
    for number, (train, test) in enumerate(splits(y, SPLITS_OF_VIEWS, N_OF_VIEWS)):
        lacks = np.random.default_rng(number).random(y.size) < LACKING
        X = Views(
            {view: np.where((lacks & (view == absent))[:, None], np.nan, V) for view, V in views.items()}
        )
        for who, rows in (("all", train), ("complete", train[~lacks[train]])):
            model = MKLClassifier().fit(X[rows], y[rows])
            found[who].append(float((model.predict(X[test]) == y[test]).mean()))
    scores = {who: float(np.mean(one)) for who, one in found.items()}
    return {"set": f"{name}, a third without {absent}", "splits": SPLITS_OF_VIEWS, "accuracy": scores}


def splits(y: np.ndarray, count: int, n_train: int) -> list[tuple[np.ndarray, np.ndarray]]:
    size = min(n_train, int(0.7 * y.size))
    return list(StratifiedShuffleSplit(count, train_size=size, random_state=0).split(y, y))


def table(rows: list[dict]) -> Table:
    out = Table(
        title=f"Accuracy in %, mean of splits with {N_TRAIN} samples to fit (fewer of small sets; {N_OF_VIEWS} where "
        "a view is missing): a fit of the table as it is, against scikit-learn's encoders and SVC; both as they come, "
        "and both searched: MKLClassifierCV(), and 16 candidates of the SVC by three folds. Seconds per fit in the "
        "same order, means of one run "
        "without repetition, one thread. Last two columns: fits to all samples, and to those that have all views"
    )
    heads = (
        "set",
        "splits",
        "ours",
        "SVC",
        "ours searched",
        "SVC searched",
        "seconds",
        "all samples",
        "complete only",
    )
    for head in heads:
        out.add_column(head, justify="left" if head == "set" else "right")
    for row in rows:
        scores = {name: f"{100 * value:.1f}" for name, value in row["accuracy"].items()}
        times = " / ".join(f"{value:.2f}" for value in row.get("seconds", {}).values()) or "–"
        keys = ("ours", "svc", "ours searched", "svc searched")
        out.add_row(
            row["set"],
            str(row["splits"]),
            *(scores.get(key, "–") for key in keys),
            times,
            *(scores.get(key, "–") for key in ("all", "complete")),
        )
    return out
