"""The command line."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import typer

from kernelweave import __version__
from kernelweave.errors import DataError

app = typer.Typer(
    name="kernelweave",
    help="Multiple kernel learning with certificates.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)


@app.command()
def demo(
    splits: Annotated[int, typer.Option(min=2, help="Number of random 70/30 splits.")] = 5,
) -> None:
    """Train on breast cancer's three views and compare with the usual baselines on the same splits."""
    from kernelweave.demo import run

    run(splits)


@app.command()
def reproduce(
    experiment: Annotated[
        str | None, typer.Argument(metavar="ID", help="Which one; none lists them all.")
    ] = None,
    quick: Annotated[bool, typer.Option("--quick", help="A few cells only, in minutes.")] = False,
    data: Annotated[str | None, typer.Option(help="Folder of the data files; KERNELWEAVE_DATA else.")] = None,
    jobs: Annotated[int, typer.Option(help="Cells to run side by side; -1 for all cores.")] = 1,
    store: Annotated[Path, typer.Option(help="File of finished work.")] = Path("kernelweave-results.sqlite"),
    out: Annotated[Path, typer.Option(help="Folder for tables and figures.")] = Path("results"),
    cluster: Annotated[str | None, typer.Option(help="Address of a Dask scheduler to run on.")] = None,
) -> None:
    """Rerun a table or figure of a paper; what was finished before is not run again."""
    from rich.console import Console

    from kernelweave.experiments import command

    how: dict[str, Any] = {
        "quick": quick,
        "data": data,
        "jobs": jobs,
        "store": store,
        "out": out,
        "cluster": cluster,
    }
    with _one_sentence():
        if experiment is None:
            command.list_all(Console())
        elif experiment == "all":
            command.reproduce_all(Console(), **how)
        else:
            command.reproduce(experiment, **how)


@app.command()
def results(
    store: Annotated[Path | None, typer.Option(help="File of finished work to take over.")] = None,
    records: Annotated[Path, typer.Option(help="Folder of all records.")] = Path("docs/records"),
    out: Annotated[Path, typer.Option(help="The page to write.")] = Path("docs/results.md"),
) -> None:
    """Write one page with the tables of all finished work."""
    from kernelweave.experiments import command

    with _one_sentence():
        command.report(store, records, out)


@contextmanager
def _one_sentence() -> Iterator[None]:
    """Turn a mistake of the user's into one sentence and exit code 2."""
    try:
        yield
    except (DataError, OSError) as error:
        typer.echo(f"kernelweave: {error}", err=True)
        raise typer.Exit(2) from None
    except KeyboardInterrupt:
        typer.echo("kernelweave: stopped; finished work is kept, and the same command goes on.", err=True)
        raise typer.Exit(130) from None


@app.command()
def version() -> None:
    """Print the version."""
    typer.echo(__version__)
