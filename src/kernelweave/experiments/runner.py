"""Runs the cells of an experiment that are not done yet, side by side; each is kept as soon as it is done."""

from __future__ import annotations

import platform
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
from joblib import Parallel, delayed, parallel_config

from kernelweave._threads import blas_threads
from kernelweave.datasets import data_directory
from kernelweave.datasets.dataset import VARIABLE
from kernelweave.errors import DataError
from kernelweave.experiments.store import Cell, Store, key
from kernelweave.experiments.study import Experiment, Study


def run(
    experiment: Experiment,
    store: Store,
    *,
    quick: bool = False,
    data: str | Path | None = None,
    n_jobs: int = 1,
    cluster: str | None = None,
    done: Callable[[int, int], None] = lambda *_: None,
) -> list[dict[str, Any]]:
    """Run the cells that are left of an experiment and return the records of all its cells.

    ``done`` is called with the number of finished cells and of all. What is finished is kept at once, so a
    run that is killed goes on where it was; several runs may share a store.
    """
    if n_jobs == 0:
        raise DataError("The number of jobs is 1 or more, or -1 for all cores; got 0 (--jobs).")
    study = experiment.study
    _require_data(study, data)
    cells = study.cells(quick)
    finished = store.done(study.name, study.protocol)
    left = [cell for cell in cells if key(cell) not in finished]
    done(len(cells) - len(left), len(cells))
    context = environment()
    with _backend(cluster, n_jobs) as parallel:
        tasks = (delayed(_measure)(study, cell, data) for cell in left)
        for count, (cell, measures) in enumerate(parallel(tasks), start=len(cells) - len(left) + 1):
            store.put(study.name, study.protocol, cell, measures, context)
            done(count, len(cells))
    return stored_records(study, store, cells)


def stored_records(study: Study, store: Store, cells: Sequence[Cell]) -> list[dict[str, Any]]:
    """Return what a store holds of these cells; it may hold others, of an earlier or a quicker run."""
    wanted = {key(cell) for cell in cells}
    names = tuple(cells[0]) if cells else ()
    records = store.records(study.name, study.protocol)
    return [
        record
        for record in records
        if record.keys() >= set(names) and key({name: record[name] for name in names}) in wanted
    ]


def environment() -> dict[str, str]:
    """Return the versions that numbers depend on."""
    names = ("kernelweave", "numpy", "scipy", "scikit-learn")
    return {"python": platform.python_version(), **{name: version(name) for name in names}}


def _measure(study: Study, cell: Cell, data: str | Path | None) -> tuple[Cell, dict[str, Any]]:
    with blas_threads(1):
        measures = study.measure(cell, data)
    plain = {
        name: value.item() if isinstance(value, np.generic) else value for name, value in measures.items()
    }
    return cell, plain


@contextmanager
def _backend(cluster: str | None, n_jobs: int) -> Iterator[Parallel]:
    """Yield the pool that runs tasks and yields each result as soon as it is there."""
    options: dict[str, Any] = {"return_as": "generator_unordered", "batch_size": 1}
    if cluster is None:
        yield Parallel(n_jobs=n_jobs, **options)
        return
    try:
        from dask.distributed import Client
    except ImportError:
        raise DataError(
            "A cluster needs Dask, which is not installed: pip install 'kernelweave[distributed]'."
        ) from None
    try:
        client = Client(cluster, timeout=10)
    except (OSError, ValueError) as error:
        raise DataError(f"No Dask cluster at {cluster!r} ({error}); give its scheduler's address.") from None
    with client, parallel_config(backend="dask"):
        yield Parallel(**options)


def _require_data(study: Study, data: str | Path | None) -> None:
    if not study.datasets:
        return
    folder = data_directory(data)
    missing = [name for name in dict.fromkeys(study.datasets) if not (folder / f"{name}.npz").is_file()]
    if missing:
        raise DataError(
            f"{', '.join(f'{name}.npz' for name in missing)} not in {str(folder)!r}; put it there, or name "
            f"another folder (--data, {VARIABLE})."
        )
