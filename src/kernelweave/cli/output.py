"""Prints summaries of what was done as tables."""

from __future__ import annotations

from typing import Any

from rich.console import Console
from rich.table import Table

from kernelweave.bank.column_table import ColumnUse
from kernelweave.cli.commands import has_columns
from kernelweave.report.columns import alike

# Of more kernels than these, those without weight are counted only.
MOST_KERNELS = 12


def plain_console(*, stderr: bool = False) -> Console:
    """Return a console that prints names as they are: [b] and :a: in them have no meaning."""
    return Console(stderr=stderr, markup=False, emoji=False)


def print_fit(console: Console, summary: dict[str, Any], *, hint: bool = False) -> None:
    """Print which columns were used as what, what was learnt, and where it was written."""
    print_columns(console, summary)
    console.print(weight_table(summary["weights"]))
    gap = f", relative duality gap {summary['relative_gap']:.1e}" if "relative_gap" in summary else ""
    kind = "accuracy" if summary["task"] == "classification" else "R²"
    console.print(f"{summary['model']}: {kind} on the training rows {summary['score']:.3f}{gap}.")
    _print_approximation(console, summary)
    print_notes(console, summary["notes"])
    console.print(f"Model written to {summary['written']}.")
    if hint:
        console.print(
            "It will do worse on rows it has not seen; --report FILE.html or compare tell how well."
        )


def print_columns(console: Console, summary: dict[str, Any]) -> None:
    """Print what was done with the columns and the rows."""
    table = Table(title=f"{summary['rows']} rows of {', '.join(summary['files'])}")
    table.add_column("taken for")
    table.add_column("columns")
    table.add_row("target", f"{summary['target']} ({summary['task']}{_classes(summary)})")
    if summary["id"]:
        table.add_row("id", summary["id"])
    for name, columns in summary["views"].items():
        table.add_row(f"view {name}", _name_list(columns))
    reasons: dict[str, list[str]] = {}
    for name, reason in summary["left_out"].items():
        reasons.setdefault(reason, []).append(name)
    for reason, names in reasons.items():
        table.add_row(f"left out: {reason}", _name_list(names))
    for view, lacking in summary["lacking"].items():
        table.add_row(
            f"lack {view}", f"{lacking['rows']} rows: {_name_list(lacking['who'], lacking['rows'])}"
        )
    console.print(table)
    if summary.get("columns"):
        console.print(encoding_table(summary["columns"]))


def encoding_table(columns: list[dict[str, Any]]) -> Table:
    """Return how columns were encoded and how often they were filled; those that are alike share a line."""
    table = Table(title="How columns were encoded")
    heads = {
        "columns": "left",
        "view": "left",
        "type": "left",
        "encoding": "left",
        "empty cells": "right",
        "note": "left",
    }
    for head, side in heads.items():
        table.add_column(head, justify=side)  # type: ignore[arg-type]
    for row in alike(ColumnUse(**one) for one in columns):
        cells = [
            _name_list(row["names"]),
            row["view"],
            row["type"],
            row["encoding"],
            row["filled"],
            row["note"],
        ]
        table.add_row(*cells)
    return table


def print_comparison(console: Console, summary: dict[str, Any]) -> None:
    """Print the scores of the methods, and their differences from the baselines on the same splits."""
    kind = "accuracy" if summary["task"] == "classification" else "R²"
    bases = list(next(iter(summary["differences"].values()), {}))
    table = Table(title=f"{kind} on {summary['splits']} splits, and differences with 95 % intervals")
    table.add_column("method")
    table.add_column("mean ± sd", justify="right")
    for base in bases:
        table.add_column(f"minus {base}", justify="right")
    for name, mean in summary["means"].items():
        differences = summary["differences"].get(name, {})
        cells = [_difference(differences[base]) if base in differences else "" for base in bases]
        table.add_row(name, f"{mean['mean']:.4f} ± {mean['deviation']:.4f}", *cells)
    console.print(table)
    print_notes(console, summary["notes"])


def print_model(console: Console, label: dict[str, Any]) -> None:
    """Print what is in a model file."""
    versions = ", ".join(f"{name} {number}" for name, number in label["versions"].items())
    console.print(f"{label['model']}, format {label['format']}, written with {versions}.")
    if has_columns(label["notes"]):
        print_columns(console, label["notes"] | {"columns": label["columns"]})
    elif label["columns"]:
        console.print(encoding_table(label["columns"]))
    if label["weights"]:
        console.print(weight_table(label["weights"]))
    _print_approximation(console, label)
    if "certificate" in label:
        c = label["certificate"]
        console.print(
            f"Objective in [{c['lower']:.6g}, {c['upper']:.6g}], relative gap {c['relative_gap']:.1e}."
        )


def _print_approximation(console: Console, found: dict[str, Any]) -> None:
    if "approximation" in found:
        console.print(f"Learnt on {found['approximation']}.")


def print_notes(console: Console, notes: list[str]) -> None:
    """Print notes to the user."""
    for note in notes:
        console.print(f"Note: {note}")


def weight_table(weights: dict[str, float]) -> Table:
    """Return the weights with bars."""
    table = Table(title="Kernel weights")
    table.add_column("kernel")
    table.add_column("weight", justify="right")
    table.add_column("")
    top = max(weights.values(), default=0.0) or 1.0
    without = [name for name, weight in weights.items() if f"{weight:.3f}" == "0.000"]
    if len(weights) <= MOST_KERNELS:
        without = []
    for name, weight in weights.items():
        if name not in without:
            table.add_row(name, f"{weight:.3f}", "█" * round(24 * max(weight, 0.0) / top))
    if without:
        table.add_row(f"{len(without)} others", "0.000", "")
    return table


def _difference(found: dict[str, Any]) -> str:
    if found["interval"] is None:
        return f"{found['difference']:+.4f} –"
    low, high = found["interval"]
    return f"{found['difference']:+.4f} [{low:+.4f}, {high:+.4f}]"


def _classes(summary: dict[str, Any]) -> str:
    counts = summary.get("classes", {})
    return ": " + ", ".join(f"{label} × {count}" for label, count in counts.items()) if counts else ""


def _name_list(names: list[str], count: int | None = None) -> str:
    """Return a few of the names; ``count`` says how many there are where these are some."""
    count = len(names) if count is None else count
    if count <= 6:
        return ", ".join(names)
    last = f"{names[-1]} " if count == len(names) else ""
    return f"{', '.join(names[:5])}, ... {last}({count})"
