"""Kernel functions and the scalings of their Gram matrices."""

from kernelweave.kernels.base import DistanceKernel, Kernel
from kernelweave.kernels.chi_squared import ChiSquared
from kernelweave.kernels.given import ExpDistance, FromFunction, Precomputed
from kernelweave.kernels.inner import Linear, Polynomial
from kernelweave.kernels.radial import Gaussian, InverseDistance, InverseSquareDistance, Laplacian
from kernelweave.kernels.scaling import (
    Centering,
    Chain,
    Scaling,
    UnitDiagonal,
    UnitMean,
    UnitTrace,
    UnitVariance,
)

__all__ = [
    "Centering",
    "Chain",
    "ChiSquared",
    "DistanceKernel",
    "ExpDistance",
    "FromFunction",
    "Gaussian",
    "InverseDistance",
    "InverseSquareDistance",
    "Kernel",
    "Laplacian",
    "Linear",
    "Polynomial",
    "Precomputed",
    "Scaling",
    "UnitDiagonal",
    "UnitMean",
    "UnitTrace",
    "UnitVariance",
]
