"""OBSCURE: multiclass p-norm multiple kernel learning, all classes at once [Orabona10].

One weight per kernel for all classes, a group norm ‖w̄‖_{2,p} with 1 ≤ p ≤ 2, the multiclass hinge loss, and
bounds of the optimum from both sides. Besides the paper's two-stage algorithm there is a certified dual
solver, which is the default; samples may come in batches, or lie on the workers of a cluster.

The mathematics: ``problem`` (primal, dual, bounds), ``rows`` (how rows of the kernels are stored or
computed). The solvers: ``stochastic`` (`OnlineBatch`, the paper's Algorithms 1 and 2, and `Pegasos`),
``dual_ascent`` (`DualAscent`), ``crammer_singer`` (p = 1), ``partitioned_ascent`` (the same dual, the samples in
pieces), ``checkpoint`` (continuing a killed fit). The estimator: ``obscure`` (`ObscureClassifier`), ``stream``
(``partial_fit``, and scores of new samples), ``partitions`` (`batches`, and the samples of ``fit_partitions``).
"""

from kernelweave.multiclass.checkpoint import Checkpoint
from kernelweave.multiclass.dual_ascent import DualAscent
from kernelweave.multiclass.obscure import ObscureClassifier
from kernelweave.multiclass.problem import PNormProblem, PNormResult, PNormSolver
from kernelweave.multiclass.stochastic import OnlineBatch, Pegasos
from kernelweave.views.batches import batches

__all__ = [
    "Checkpoint",
    "DualAscent",
    "ObscureClassifier",
    "OnlineBatch",
    "PNormProblem",
    "PNormResult",
    "PNormSolver",
    "Pegasos",
    "batches",
]
