"""Metrics close to a prior in the LogDet divergence: their problem, its projections, its certificate."""

from kernelweave.errors import InfeasibleError
from kernelweave.metric.goals import distance_percentiles
from kernelweave.metric.problem import MetricProblem, Multipliers, Solution
from kernelweave.metric.projections import MetricResult, solve
from kernelweave.metric.space import Space

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
