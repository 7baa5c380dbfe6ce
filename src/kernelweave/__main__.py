"""`python -m kernelweave` is the command line."""

from kernelweave.cli import app

app()
