"""The command line.

``app`` declares the commands; ``commands`` has fit, predict, inspect and report, ``compare`` the comparison.
Files are read by ``files``, joined by ``tables`` and their columns assigned by ``columns``; ``prepare`` has what a
fit learns from, ``methods`` makes the models, ``output`` and ``progress`` show what is done.
"""

from kernelweave.cli.app import app

__all__ = ["app"]
