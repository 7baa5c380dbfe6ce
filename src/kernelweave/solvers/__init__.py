"""Outer loops over the kernel weights; they see protocols only."""

from importlib import import_module
from typing import Any

from kernelweave.solvers.base import Solver
from kernelweave.solvers.block_descent import BlockDescent
from kernelweave.solvers.certificate import Certificate, certify
from kernelweave.solvers.choice import choose_solver, solver_with_defaults
from kernelweave.solvers.column_generation import ColumnGeneration
from kernelweave.solvers.cutting_plane import CuttingPlane
from kernelweave.solvers.feature_newton import FeatureNewton
from kernelweave.solvers.newton import Newton
from kernelweave.solvers.problem import Evaluation, OuterState, Problem, Progress, Record, Result, WarmStart
from kernelweave.solvers.projected_gradient import ProjectedGradient
from kernelweave.solvers.reduced_gradient import ReducedGradient
from kernelweave.solvers.streamed import StreamedDescent
from kernelweave.solvers.warm_start import subsample_warm_start

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
    "Certificate",
    "Checkpoint",
    "ColumnGeneration",
    "CuttingPlane",
    "DualAscent",
    "Evaluation",
    "FeatureNewton",
    "Newton",
    "OnlineBatch",
    "OuterState",
    "Pegasos",
    "Problem",
    "Progress",
    "ProjectedGradient",
    "Record",
    "ReducedGradient",
    "Result",
    "Solver",
    "StreamedDescent",
    "WarmStart",
    "certify",
    "choose_solver",
    "solver_with_defaults",
    "subsample_warm_start",
]

# Solvers of the multiclass p-norm problem live with their mathematics, and are found here too.
OF_MULTICLASS = ("Checkpoint", "DualAscent", "OnlineBatch", "Pegasos")


def __getattr__(name: str) -> Any:
    if name in OF_MULTICLASS:
        return getattr(import_module("kernelweave.multiclass"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
