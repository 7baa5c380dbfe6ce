"""Ten million rows through partial_fit with explicit features: time per row, memory that does not grow."""

from __future__ import annotations

import resource
import time
from collections.abc import Iterator
from typing import Any

import numpy as np
from rich.table import Table

from kernelweave import KernelBank, ObscureClassifier, RandomFourier
from kernelweave.kernels import Gaussian

ROWS, BATCH = 10_000_000, 20_000
VIEWS = {"first": slice(0, 2), "second": slice(2, 4)}


def run(options: Any, console: Any) -> list[dict[str, float]]:  # noqa: ARG001
    model = ObscureClassifier(
        KernelBank.per_view([Gaussian()], views=VIEWS), p=1.5, features=RandomFourier(20), random_state=0
    )
    X_test, y_test = next(batches(seed=1, rows=BATCH))
    rows, start, count = [], time.process_time(), 0
    for X, y in batches(seed=0, rows=ROWS):
        model.partial_fit(X, y, classes=range(3))
        count += len(y)
        if count in (ROWS // 100, ROWS // 10, ROWS):
            spent = time.process_time() - start
            peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
            rows.append(
                {
                    "rows": count,
                    "seconds": spent,
                    "microseconds": 1e6 * spent / count,
                    "peak": peak,
                    "error": 1.0 - model.score(X_test, y_test),
                }
            )
    return rows


def batches(seed: int, rows: int) -> Iterator[tuple[Any, Any]]:
    """Yield batches of three classes on rings in one view, shifted in the other."""
    rng = np.random.default_rng(seed)
    for _ in range(0, rows, BATCH):
        y = rng.integers(0, 3, BATCH)
        angle, radius = rng.uniform(0.0, 2.0 * np.pi, BATCH), 1.0 + y + 0.3 * rng.normal(size=BATCH)
        ring = radius[:, None] * np.column_stack([np.cos(angle), np.sin(angle)])
        yield np.hstack([ring, rng.normal(size=(BATCH, 2)) + 0.5 * y[:, None]]), y


def table(rows: list[dict[str, float]]) -> Table:
    out = Table(
        title="a stream with explicit features (2 kernels, 20 features each): processor time, peak memory"
    )
    for name in ("rows", "seconds", "µs per row", "peak MB", "test error"):
        out.add_column(name, justify="right")
    for row in rows:
        out.add_row(
            f"{row['rows']:,}",
            f"{row['seconds']:.1f}",
            f"{row['microseconds']:.2f}",
            f"{row['peak']:.0f}",
            f"{row['error']:.3f}",
        )
    return out
