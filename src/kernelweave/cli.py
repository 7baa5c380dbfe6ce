"""The command line."""

from __future__ import annotations

from typing import Annotated

import typer

from kernelweave import __version__

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
def version() -> None:
    """Print the version."""
    typer.echo(__version__)
