"""Solvers of the multiclass p-norm problem: stochastic, online and batch, and certified dual ascent."""

from kernelweave.solvers.pnorm.base import PNormSolver
from kernelweave.solvers.pnorm.dual_ascent import DualAscent
from kernelweave.solvers.pnorm.online_batch import OnlineBatch
from kernelweave.solvers.pnorm.pegasos import Pegasos
from kernelweave.solvers.pnorm.problem import PNormProblem
from kernelweave.solvers.pnorm.result import PNormResult

__all__ = ["DualAscent", "OnlineBatch", "PNormProblem", "PNormResult", "PNormSolver", "Pegasos"]
