"""Solvers of the multiclass p-norm problem: stochastic, online and batch, and certified dual ascent."""

from kernelweave.multiclass.base import PNormSolver
from kernelweave.multiclass.checkpoint import Checkpoint
from kernelweave.multiclass.dual_ascent import DualAscent
from kernelweave.multiclass.online_batch import OnlineBatch
from kernelweave.multiclass.pegasos import Pegasos
from kernelweave.multiclass.problem import PNormProblem
from kernelweave.multiclass.result import PNormResult

__all__ = ["Checkpoint", "DualAscent", "OnlineBatch", "PNormProblem", "PNormResult", "PNormSolver", "Pegasos"]
