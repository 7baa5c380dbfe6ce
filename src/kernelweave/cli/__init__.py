"""The command line."""

from kernelweave.cli.app import app

__all__ = ["app"]
