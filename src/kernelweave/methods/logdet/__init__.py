"""Metrics close to a prior in the LogDet divergence: their problem, its projections, its certificate."""

from kernelweave.errors import InfeasibleError
from kernelweave.methods.logdet.goals import distance_percentiles
from kernelweave.methods.logdet.problem import MetricProblem, Multipliers, Solution
from kernelweave.methods.logdet.projections import MetricResult, solve
from kernelweave.methods.logdet.space import Space

__all__ = [
    "InfeasibleError",
    "MetricProblem",
    "MetricResult",
    "Multipliers",
    "Solution",
    "Space",
    "distance_percentiles",
    "solve",
]
