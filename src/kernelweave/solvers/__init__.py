"""Outer loops over the kernel weights; they see protocols only."""

from importlib import import_module
from typing import Any

from kernelweave.solvers.base import Solver
from kernelweave.solvers.block import BlockDescent
from kernelweave.solvers.certificate import Certificate
from kernelweave.solvers.column_generation import ColumnGeneration
from kernelweave.solvers.cutting_plane import CuttingPlane
from kernelweave.solvers.newton import Newton
from kernelweave.solvers.problem import Problem, Progress
from kernelweave.solvers.projected import ProjectedGradient
from kernelweave.solvers.reduced import ReducedGradient
from kernelweave.solvers.result import Record, Result, Visited
from kernelweave.solvers.sampling import Sample, guess
from kernelweave.solvers.verification import Bounds, verify, widened

SOLVERS: tuple[type[Solver], ...] = (
    Newton,
    BlockDescent,
    ProjectedGradient,
    ReducedGradient,
    CuttingPlane,
    ColumnGeneration,
)

__all__ = [
    "SOLVERS",
    "BlockDescent",
    "Bounds",
    "Certificate",
    "Checkpoint",
    "ColumnGeneration",
    "CuttingPlane",
    "DualAscent",
    "Newton",
    "OnlineBatch",
    "Pegasos",
    "Problem",
    "Progress",
    "ProjectedGradient",
    "Record",
    "ReducedGradient",
    "Result",
    "Sample",
    "Solver",
    "Visited",
    "guess",
    "verify",
    "widened",
]

# Solvers of the multiclass p-norm problem live with their mathematics, and are found here too.
OF_MULTICLASS = ("Checkpoint", "DualAscent", "OnlineBatch", "Pegasos")


def __getattr__(name: str) -> Any:
    if name in OF_MULTICLASS:
        return getattr(import_module("kernelweave.multiclass"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
