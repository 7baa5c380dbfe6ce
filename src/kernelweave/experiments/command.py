"""The commands ``reproduce`` and ``results``: run experiments, show their tables, write their pages."""

from __future__ import annotations

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
from kernelweave.experiments.render import results_page, write
from kernelweave.experiments.runner import run
from kernelweave.experiments.store import Store
from kernelweave.experiments.study import ResultTable, experiment, experiments


def list_experiments(console: Console) -> None:
    """Print every experiment with what it reruns."""
    table = Table("id", "what", "from", box=None)
    for one in experiments().values():
        table.add_row(one.id, one.title, one.source)
    console.print(table)


def reproduce_all(console: Console, **options: Any) -> None:
    """Run every experiment whose data files are there, and name those whose files are missing."""
    for name in experiments():
        try:
            reproduce(name, **options)
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
    if records is not None:
        _restore_folder(kept, records)
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
    for table in chosen.tables(found):
        console.print(_rich_table(table))
    contexts = kept.contexts(chosen.study.name, chosen.study.protocol)
    command = f"kernelweave reproduce {name}{' --quick' if quick else ''}"
    for file in write(chosen, found, out, command=command, contexts=contexts):
        console.print(f"wrote {file}", highlight=False, markup=False)


def write_results(store: Path | None, records: Path, out: Path) -> None:
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
        _restore_folder(kept, records)
        if store is not None:
            given = Store(store)
            for study in studies.values():
                kept.restore(given.export(study.name, study.protocol))
        for study in studies.values():
            lines = list(kept.export(study.name, study.protocol))
            if lines:
                (records / f"{study.name}.jsonl").write_text("\n".join(lines) + "\n", encoding="utf-8")
        out.write_text(results_page(kept, out.parent), encoding="utf-8")


def _restore_folder(store: Store, records: Path) -> None:
    """Take over the records of all files of a folder."""
    for file in sorted(records.glob("*.jsonl")):
        store.restore(file.read_text(encoding="utf-8").splitlines())


def _rich_table(result: ResultTable) -> Table:
    table = Table(*result.header, title=result.title, caption="\n".join(result.remarks), box=None)
    for row in result.rows:
        table.add_row(*row)
    return table
