"""What the command line does with experiments: run, show, write."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)
from rich.table import Table

from kernelweave.errors import DataError
from kernelweave.experiments.experiment import Grid, Records
from kernelweave.experiments.registry import experiment, experiments
from kernelweave.experiments.render import draw, markdown, write
from kernelweave.experiments.runner import records_of, run
from kernelweave.experiments.store import Cell, Store


def list_all(console: Console) -> None:
    """Print every experiment with what it reruns."""
    table = Table("id", "what", "from", box=None)
    for one in experiments().values():
        table.add_row(one.id, one.title, one.source)
    console.print(table)


def reproduce_all(console: Console, **how: Any) -> None:
    """Run every experiment whose data files are there, and say which are not."""
    for name in experiments():
        try:
            reproduce(name, **how)
        except DataError as error:
            if not experiment(name).study.datasets:
                raise
            console.print(f"{name} is left out: {error}", highlight=False, markup=False)


def reproduce(
    name: str,
    *,
    quick: bool,
    data: str | None,
    jobs: int,
    store: Path,
    out: Path,
    cluster: str | None,
    records: Path | None = None,
) -> None:
    """Run what is left of an experiment, print its tables and write its files."""
    if records is not None and not records.is_dir():
        raise DataError(f"{str(records)!r} is no folder of records; give one that exists (--records).")
    chosen, kept, console = experiment(name), Store(store), Console()
    for file in sorted(records.glob("*.jsonl")) if records else ():
        kept.restore(file.read_text(encoding="utf-8").splitlines())
    columns = (
        TextColumn(chosen.id),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TextColumn("left"),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=console) as bar:
        task = bar.add_task(chosen.id)

        def done(count: int, total: int) -> None:
            bar.update(task, completed=count, total=total)

        found = run(chosen, kept, quick=quick, data=data, n_jobs=jobs, cluster=cluster, done=done)
    for view in chosen.views:
        for grid in view.tables(found):
            console.print(_rich(grid))
    contexts = kept.contexts(chosen.study.name, chosen.study.protocol)
    command = f"kernelweave reproduce {name}{' --quick' if quick else ''}"
    for file in write(chosen, found, out, command=command, contexts=contexts):
        console.print(f"wrote {file}", highlight=False, markup=False)


def report(store: Path | None, records: Path, out: Path) -> None:
    """Take the store's finished work over into ``records``, and write the page of all that is there.

    ``records`` is a folder with one file of JSON lines per study, which can be kept under version control;
    the page is made from it alone.
    """
    if store is not None and not store.is_file():
        raise DataError(f"There is no store {str(store)!r} to take records from (--store).")
    records.mkdir(parents=True, exist_ok=True)
    studies = {one.study.name: one.study for one in experiments().values()}
    with TemporaryDirectory() as scratch:
        kept = Store(Path(scratch) / "all.sqlite")
        for file in sorted(records.glob("*.jsonl")):
            kept.restore(file.read_text(encoding="utf-8").splitlines())
        if store is not None:
            given = Store(store)
            for study in studies.values():
                kept.restore(given.export(study.name, study.protocol))
        for study in studies.values():
            lines = list(kept.export(study.name, study.protocol))
            if lines:
                (records / f"{study.name}.jsonl").write_text("\n".join(lines) + "\n", encoding="utf-8")
        out.write_text(page(kept, out.parent), encoding="utf-8")


def page(kept: Store, folder: Path) -> str:
    """Return the page of all finished work, and draw its figures below the folder."""
    parts, unfinished = ["# Results", PREFACE], []
    images = folder / "images" / "results"
    for name, one in experiments().items():
        cells = one.study.cells(quick=False)
        found = records_of(one.study, kept, cells)
        records, left = whole(found, cells)
        if not records:
            unfinished += [f"{name} ({len(found)} of {len(cells)} cells)"] if found else []
            continue
        images.mkdir(parents=True, exist_ok=True)
        figures = [str(file.relative_to(folder)) for file in draw(one, records, images)]
        contexts = kept.contexts(one.study.name, one.study.protocol)
        parts.append(markdown(one, records, figures, f"kernelweave reproduce {name}", contexts).rstrip())
        if left:
            parts.append(f"Not finished, and not shown: {', '.join(left)}.")
    if unfinished:
        parts.append(f"Begun, and shown here when all of it is done: {', '.join(unfinished)}.")
    return "\n\n".join(parts) + "\n"


def whole(records: Records, cells: Sequence[Cell]) -> tuple[Records, list[str]]:
    """Return the records of the data sets of which every cell is done, and the others with what they have.

    Cells that name no data set count as one.
    """
    wanted = Counter(cell.get("dataset") for cell in cells)
    found = Counter(record.get("dataset") for record in records)
    done = {name for name, count in wanted.items() if found[name] == count}
    left = [f"{name} ({found[name]} of {count} cells)" for name, count in wanted.items() if name not in done]
    return [record for record in records if record.get("dataset") in done], left


PREFACE = (
    "Every table on this page is generated by `kernelweave results` from the records of finished runs; none "
    "is typed. Printed figures of the papers stand beside ours, and the differences of protocol below each "
    "table. [experiments.md](experiments.md) says how to rerun and how to add one."
)


def _rich(grid: Grid) -> Table:
    table = Table(*grid.header, title=grid.title, caption="\n".join(grid.remarks), box=None)
    for row in grid.rows:
        table.add_row(*row)
    return table
