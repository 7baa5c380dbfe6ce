"""Landmark features, as n grows: ours beside scikit-learn's Nystroem and LinearSVC with as many landmarks."""

from __future__ import annotations

import argparse
import tempfile
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
from rich.console import Console
from rich.table import Table
from sklearn.kernel_approximation import Nystroem
from sklearn.pipeline import make_pipeline
from sklearn.svm import LinearSVC

from benchmarks.large import split_table
from benchmarks.measure import timed
from kernelweave import Landmarks, MKLClassifier, batches

SIZES, N_LANDMARKS = (100_000, 300_000, 1_000_000), 300
FILE_ROWS, FILE_LANDMARKS, PIECE = 10_000_000, 100, 500_000
TOL = 1e-3


def run(options: argparse.Namespace, console: Console) -> list[dict]:
    most = options.most or FILE_ROWS
    rows = [in_memory(n, options, console) for n in SIZES if n <= most]
    if len(rows) > 1:
        n, spent = np.log([[row["n"], row["seconds"]] for row in rows]).T
        rows[0]["exponent"] = float(np.polyfit(n, spent, 1)[0])
    return rows if most < FILE_ROWS else [*rows, from_file(options, console)]


def in_memory(n: int, options: argparse.Namespace, console: Console) -> dict:
    """Return what both took and reached on a table of n rows."""
    X, y, X_test, y_test = split_table(n)
    ours = MKLClassifier(features=Landmarks(N_LANDMARKS), tol=TOL, n_jobs=options.jobs, random_state=0)
    nystroem = Nystroem(n_components=N_LANDMARKS, gamma=1 / X.shape[1], random_state=0)
    row: dict[str, Any] = {"n": n, "from": "memory", "landmarks": N_LANDMARKS}
    for prefix, model in (("", ours), ("peer_", make_pipeline(nystroem, LinearSVC()))):
        console.log(f"landmarks n={n} {prefix or 'ours'}")
        found = timed(partial(model.fit, X, y), partial(judged, X_test=X_test, y_test=y_test))
        row |= {prefix + key: value for key, value in found.items()}
    return row | {"ratio": row["seconds"] / row["peer_seconds"]}


def from_file(options: argparse.Namespace, console: Console) -> dict:
    """Fit on the rows of a Parquet file that is never held whole."""
    _, _, X_test, y_test = split_table(100_000)
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "rows.parquet"
        write_rows(file, FILE_ROWS)
        console.log(f"landmarks: {FILE_ROWS:,} rows of Parquet, {file.stat().st_size / 1e9:.1f} GB")
        model = MKLClassifier(
            features=Landmarks(FILE_LANDMARKS), tol=TOL, n_jobs=options.jobs, random_state=0
        )
        frame = pd.DataFrame(X_test.astype(np.float32)).rename(columns="x{}".format)
        rows = batches(file, "y", size=100_000)
        found = timed(partial(model.fit, rows), partial(judged, X_test=frame, y_test=y_test))
    return {"n": FILE_ROWS, "from": "Parquet", "landmarks": FILE_LANDMARKS} | found


def write_rows(file: Path, n: int) -> None:
    """Write rows of the same distribution, in pieces: those of 100,000 drawn again with a little noise."""
    X, y, _, _ = split_table(100_000)
    rng, writer = np.random.default_rng(0), None
    for start in range(0, n, PIECE):
        drawn = rng.integers(0, len(X), min(PIECE, n - start))
        rows = (X[drawn] + 0.05 * rng.normal(size=(drawn.size, X.shape[1]))).astype(np.float32)
        piece = pa.table({f"x{j}": rows[:, j] for j in range(rows.shape[1])} | {"y": y[drawn]})
        writer = writer or pq.ParquetWriter(file, piece.schema)
        writer.write_table(piece)
    assert writer is not None
    writer.close()


def judged(model: Any, X_test: Any, y_test: np.ndarray) -> dict:
    return {
        "accuracy": float(model.score(X_test, y_test)),
        "gap": getattr(model, "duality_gap_", None),
        "passes": getattr(model, "n_iter_", None),
        "error": model.storage_.error if hasattr(model, "storage_") else None,
    }


def table(rows: list[dict]) -> Table:
    grows = f"; time grows like n^{rows[0]['exponent']:.2f}" if "exponent" in rows[0] else ""
    out = Table(
        title=f"Landmark features, 20 columns, 20 kernels, gap {TOL:g}: ours and Nystroem + LinearSVC{grows}"
    )
    columns = ("n", "from", "landmarks", "ours", "peer", "ratio", "memory", "peer memory")
    for column in (*columns, "accuracy", "peer accuracy", "gap", "passes", "kernel off by"):
        out.add_column(column, justify="right")
    for row in rows:
        peer = "peer_seconds" in row
        out.add_row(
            f"{row['n']:,}",
            row["from"],
            str(row["landmarks"]),
            f"{row['seconds']:.1f} s",
            f"{row['peer_seconds']:.1f} s" if peer else "–",
            f"{row['ratio']:.2f}" if peer else "–",
            f"{row['megabytes']:.0f} MB",
            f"{row['peer_megabytes']:.0f} MB" if peer else "–",
            f"{row['accuracy']:.4f}",
            f"{row['peer_accuracy']:.4f}" if peer else "–",
            f"{row['gap']:.1e}",
            str(row["passes"]),
            f"{row['error']:.1%}",
        )
    return out
