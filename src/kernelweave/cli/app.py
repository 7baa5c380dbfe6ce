"""The commands and their options."""

from __future__ import annotations

import json
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

# The names of `kernelweave.cli.methods`, repeated so that help is shown without loading the library.
METHODS = (
    "default, searched, simple_mkl, sm1_mkl, sm2_mkl, silp, lp_mkl, l2_mkl, elastic_net_mkl, average_kernel, "
    "sum_kernel, "
    "mk_fda, sample_adaptive, localized_mkl, obscure, align, alignf, kta, f_heuristic, pwmk, lp_beta, "
    "easy_mkl"
)
# Options that fit and compare share.
Data = Annotated[list[str], typer.Argument(help="One file, or several, whose rows are matched by an id.")]
Target = Annotated[str, typer.Option(help="The column to predict.")]
View = Annotated[
    list[str] | None, typer.Option(help="NAME=COLUMNS: names, patterns such as mean*, ranges first:last.")
]
Task = Annotated[str, typer.Option(help="auto, classification or regression.")]
BankName = Annotated[str, typer.Option(help="Kernels: default, by_type, gaussians, linear or distances.")]
Order = Annotated[
    list[str] | None, typer.Option(help="NAME=LOW,...,HIGH: words of a column that have an order.")
]
Identity = Annotated[
    str | None,
    typer.Option(
        "--id", help="Column that tells rows apart; several files are matched by it, and it is guessed."
    ),
]
Cost = Annotated[float | None, typer.Option(help="Price C of an error; none is the method's own.")]
# What the library raises for bad input: the commands on the user's own files report these as one sentence.
USER_ERRORS = (ValueError, OSError, ImportError, MemoryError)


@app.command()
def demo(
    splits: Annotated[int, typer.Option(min=2, help="Number of random 70/30 splits.")] = 5,
    report: Annotated[Path, typer.Option(help="The page to write.")] = Path("kernelweave-report.html"),
) -> None:
    """Train on breast cancer's three views, compare with the usual baselines, write a report."""
    from kernelweave import demo

    with _error_sentences(f"stopped; {report} was not written.", USER_ERRORS):
        demo.run(splits, report=report)


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
    records: Annotated[Path | None, typer.Option(help="Folder of records to go on from.")] = None,
) -> None:
    """Rerun a table or figure of a paper; what was finished before is not run again."""
    from rich.console import Console

    from kernelweave.experiments import command

    options: dict[str, Any] = {
        "quick": quick,
        "data": data,
        "jobs": jobs,
        "store": store,
        "out": out,
        "cluster": cluster,
        "records": records,
    }
    with _error_sentences():
        if experiment is None:
            command.list_experiments(Console())
        elif experiment == "all":
            command.reproduce_all(Console(), **options)
        else:
            command.reproduce(experiment, **options)


@app.command()
def results(
    store: Annotated[Path | None, typer.Option(help="File of finished work to take over.")] = None,
    records: Annotated[Path, typer.Option(help="Folder of all records.")] = Path("docs/records"),
    out: Annotated[Path, typer.Option(help="The page to write.")] = Path("docs/results.md"),
) -> None:
    """Write one page with the tables of all finished work."""
    from kernelweave.experiments import command

    with _error_sentences():
        command.write_results(store, records, out)


@app.command()
def fit(
    data: Data,
    target: Target,
    model: Annotated[Path, typer.Option(help="The model file to write.")] = Path("model.kw"),
    view: View = None,
    order: Order = None,
    identity: Identity = None,
    task: Task = "auto",
    method: Annotated[str, typer.Option(help=f"A published method: {METHODS}.")] = "default",
    bank: BankName = "default",
    cost: Cost = None,
    probability: Annotated[
        bool, typer.Option("--probability", help="Learn probabilities too, by five more fits.")
    ] = False,
    landmarks: Annotated[
        int | None, typer.Option(help="Approximate kernels by so many rows, such as 300: for very many rows.")
    ] = None,
    report: Annotated[Path | None, typer.Option(help="An HTML page about the model to write.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Say what was done as JSON.")] = False,
) -> None:
    """Learn a model from CSV, Parquet or NPZ files and write it to a file."""
    from kernelweave.cli import commands, output
    from kernelweave.cli.prepare import Request
    from kernelweave.cli.progress import fits_bar

    console = output.plain_console()
    verbose = int(console.is_terminal and not as_json)
    with _error_sentences(f"stopped; {model} was not written.", USER_ERRORS):
        request = Request(
            data,
            target,
            view or (),
            identity,
            task,
            method,
            bank,
            cost,
            verbose,
            probability,
            landmarks,
            orders=order or (),
        )
        summary, fitted = commands.fit(request, model, report)
        if not as_json:
            output.print_fit(console, summary, hint=report is None)
    if summary["stopped"]:
        if as_json:
            _print_json(summary)
        unwritten = "" if report is None else f" {report} is not written."
        typer.echo(f"kernelweave: stopped; {model} holds the best weights so far.{unwritten}", err=True)
        raise typer.Exit(130)
    if report is not None and fitted is not None:
        with _error_sentences(f"stopped; {model} is written, {report} is not.", USER_ERRORS):
            with fits_bar(console.is_terminal and not as_json) as begin:
                commands.report(fitted, summary, report, begin)
            summary["report"] = str(report)
            if not as_json:
                console.print(f"Report written to {report}; it opens in any browser.")
    if as_json:
        _print_json(summary)


@app.command()
def predict(
    model: Annotated[Path, typer.Argument(help="A model file that fit has written.")],
    data: Annotated[
        list[str], typer.Argument(help="Files as those of fit; of several some may be left out.")
    ],
    out: Annotated[Path | None, typer.Option(help="CSV file to write; none prints it.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Say what was done as JSON.")] = False,
) -> None:
    """Predict the rows of files with a model file."""
    from kernelweave.cli import commands, output

    with _error_sentences("stopped; nothing was written.", USER_ERRORS):
        shown = not as_json and output.plain_console(stderr=True).is_terminal
        rows, summary = commands.predict(model, data, out, verbose=shown)
        if as_json:
            _print_json(summary | ({"csv": rows} if out is None else {}))
            return
        output.print_notes(output.plain_console(stderr=True), summary["notes"])
        if out is None:
            typer.echo(rows, nl=False)
        else:
            typer.echo(f"{summary['rows']} predictions written to {out}.")


@app.command()
def compare(
    data: Data,
    target: Target,
    method: Annotated[
        list[str] | None, typer.Option(help=f"A method, repeatable, or 'all': {METHODS}.")
    ] = None,
    view: View = None,
    order: Order = None,
    identity: Identity = None,
    task: Task = "auto",
    bank: BankName = "default",
    cost: Cost = None,
    folds: Annotated[int, typer.Option(help="Folds of the cross-validation.")] = 5,
    repeats: Annotated[int, typer.Option(help="How often to cut folds anew.")] = 1,
    rows: Annotated[int, typer.Option(help="Of more rows than these, so many are drawn at random.")] = 20_000,
    as_json: Annotated[bool, typer.Option("--json", help="Say the scores as JSON.")] = False,
) -> None:
    """Score methods and baselines on the same splits, with paired differences."""
    from kernelweave.cli import compare, output
    from kernelweave.cli.prepare import Request
    from kernelweave.cli.progress import fits_bar

    console = output.plain_console()
    with _error_sentences("stopped before the first method was finished.", USER_ERRORS):
        shown = int(console.is_terminal and not as_json)
        request = Request(
            data,
            target,
            view or (),
            identity,
            task,
            bank=bank,
            cost=cost,
            verbose=shown,
            most_rows=rows,
            orders=order or (),
        )
        with fits_bar(bool(shown)) as begin:
            done, summary = compare.compare(request, method or (), folds, repeats, begin)
        if not done.scores:
            raise KeyboardInterrupt
        summary |= done.summary()
        if as_json:
            _print_json(summary)
        else:
            output.print_columns(console, summary)
            output.print_comparison(console, summary)
    if done.stopped:
        typer.echo(f"kernelweave: stopped; finished: {', '.join(done.scores)}.", err=True)
        raise typer.Exit(130)


@app.command()
def inspect(
    model: Annotated[Path, typer.Argument(help="A model file.")],
    as_json: Annotated[bool, typer.Option("--json", help="As JSON.")] = False,
) -> None:
    """Show what a model file holds: columns, kernels, weights, certificate, versions."""
    from kernelweave.cli import commands, output

    with _error_sentences("stopped.", USER_ERRORS):
        label = commands.inspect(model)
        if as_json:
            _print_json(label)
        else:
            output.print_model(output.plain_console(), label)


def _print_json(content: dict[str, Any]) -> None:
    typer.echo(json.dumps(content, ensure_ascii=False))


@contextmanager
def _error_sentences(
    stopped: str = "stopped; finished work is kept, and the same command goes on.",
    errors: tuple[type[Exception], ...] = (DataError, OSError),
) -> Iterator[None]:
    """Turn a user error into one sentence and exit code 2, and Ctrl-C into a sentence on what was kept."""
    try:
        yield
    except errors as error:
        typer.echo(f"kernelweave: {' '.join(str(error).split()) or type(error).__name__}", err=True)
        raise typer.Exit(2) from None
    except KeyboardInterrupt:
        typer.echo(f"kernelweave: {stopped}", err=True)
        raise typer.Exit(130) from None


@app.command()
def version() -> None:
    """Print the version."""
    typer.echo(__version__)
