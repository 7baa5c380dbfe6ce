"""The command line.

``app`` declares the commands; ``commands`` has fit, predict, inspect and report, ``compare`` the comparison.
Files are read by ``files``, joined by ``join_tables`` and their columns assigned by ``columns``; ``methods``
makes the models, ``output`` and ``progress`` show what is done.
"""

from kernelweave.cli.app import app

__all__ = ["app"]
