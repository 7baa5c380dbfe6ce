"""What was done, as tables for people."""

from __future__ import annotations

from typing import Any

from rich.console import Console
from rich.table import Table

from kernelweave.cli.commands import tells_columns

BAR = 24
SHOWN = 6


def plain_console(*, stderr: bool = False) -> Console:
    """Return a console that prints names as they are: neither [b] nor :a: means anything in them."""
    return Console(stderr=stderr, markup=False, emoji=False)


def say_fit(console: Console, told: dict[str, Any], *, hint: bool = False) -> None:
    """Say which columns were taken for what, what was learnt, and where it is."""
    say_columns(console, told)
    console.print(weight_table(told["weights"]))
    gap = f", relative duality gap {told['relative_gap']:.1e}" if "relative_gap" in told else ""
    kind = "accuracy" if told["task"] == "classification" else "R²"
    console.print(f"{told['model']}: {kind} on the training rows {told['score']:.3f}{gap}.")
    say_notes(console, told["notes"])
    console.print(f"Model written to {told['written']}.")
    if hint:
        console.print(
            "It will do worse on rows it has not seen; --report FILE.html or compare tell how well."
        )


def say_columns(console: Console, told: dict[str, Any]) -> None:
    """Say which columns were taken for what."""
    table = Table(title=f"{told['rows']} rows of {', '.join(told['files'])}")
    table.add_column("taken for")
    table.add_column("columns")
    table.add_row("target", f"{told['target']} ({told['task']}{_classes(told)})")
    if told["id"]:
        table.add_row("id", told["id"])
    for name, columns in told["views"].items():
        table.add_row(f"view {name}", _some(columns))
    reasons: dict[str, list[str]] = {}
    for name, reason in told["left_out"].items():
        reasons.setdefault(reason, []).append(name)
    for reason, names in reasons.items():
        table.add_row(f"left out: {reason}", _some(names))
    console.print(table)


def say_compare(console: Console, told: dict[str, Any]) -> None:
    """Say how the methods did, and how they differ from the baselines on the same splits."""
    kind = "accuracy" if told["task"] == "classification" else "R²"
    bases = list(next(iter(told["differences"].values()), {}))
    table = Table(title=f"{kind} on {told['splits']} splits, and differences with 95 % intervals")
    table.add_column("method")
    table.add_column("mean ± sd", justify="right")
    for base in bases:
        table.add_column(f"minus {base}", justify="right")
    for name, mean in told["means"].items():
        differences = told["differences"].get(name, {})
        cells = [_difference(differences[base]) if base in differences else "" for base in bases]
        table.add_row(name, f"{mean['mean']:.4f} ± {mean['deviation']:.4f}", *cells)
    console.print(table)
    say_notes(console, told["notes"])


def say_inspect(console: Console, label: dict[str, Any]) -> None:
    """Say what is in a model file."""
    versions = ", ".join(f"{name} {number}" for name, number in label["versions"].items())
    console.print(f"{label['model']}, format {label['format']}, written with {versions}.")
    if tells_columns(label["notes"]):
        say_columns(console, label["notes"])
    if label["weights"]:
        console.print(weight_table(label["weights"]))
    if "certificate" in label:
        c = label["certificate"]
        console.print(
            f"Objective in [{c['lower']:.6g}, {c['upper']:.6g}], relative gap {c['relative_gap']:.1e}."
        )


def say_notes(console: Console, notes: list[str]) -> None:
    """Say what the user should know."""
    for note in notes:
        console.print(f"Note: {note}")


def weight_table(weights: dict[str, float]) -> Table:
    """Return the weights with bars."""
    table = Table(title="Kernel weights")
    table.add_column("kernel")
    table.add_column("weight", justify="right")
    table.add_column("")
    top = max(weights.values(), default=0.0) or 1.0
    for name, weight in weights.items():
        table.add_row(name, f"{weight:.3f}", "█" * round(BAR * max(weight, 0.0) / top))
    return table


def _difference(found: dict[str, Any]) -> str:
    if found["interval"] is None:
        return f"{found['difference']:+.4f} –"
    low, high = found["interval"]
    return f"{found['difference']:+.4f} [{low:+.4f}, {high:+.4f}]"


def _classes(told: dict[str, Any]) -> str:
    counts = told.get("classes", {})
    return ": " + ", ".join(f"{label} × {count}" for label, count in counts.items()) if counts else ""


def _some(names: list[str]) -> str:
    if len(names) <= SHOWN:
        return ", ".join(names)
    return f"{', '.join(names[: SHOWN - 1])}, ... {names[-1]} ({len(names)})"
