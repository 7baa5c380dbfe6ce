"""Kernel functions and the scalings of their Gram matrices."""

from kernelweave.kernels.algebra import Multiple, Normalized, OnColumns, Power, Product, Sum
from kernelweave.kernels.base import DistanceKernel, Kernel
from kernelweave.kernels.boolean import MonotoneConjunctive, MonotoneDisjunctive
from kernelweave.kernels.chi_squared import ChiSquared
from kernelweave.kernels.given import ExpDistance, FromFunction, Precomputed
from kernelweave.kernels.inner import Linear, Polynomial
from kernelweave.kernels.radial import Gaussian, InverseDistance, InverseSquareDistance, Laplacian
from kernelweave.kernels.repair import Repaired
from kernelweave.kernels.scaling import (
    Centering,
    Chain,
    Scaling,
    UnitDiagonal,
    UnitMean,
    UnitTrace,
    UnitVariance,
)
from kernelweave.kernels.sets import Intersection, Jaccard, MinMax
from kernelweave.kernels.strings import Spectrum, Subsequence

__all__ = [
    "Centering",
    "Chain",
    "ChiSquared",
    "DistanceKernel",
    "ExpDistance",
    "FromFunction",
    "Gaussian",
    "Intersection",
    "InverseDistance",
    "InverseSquareDistance",
    "Jaccard",
    "Kernel",
    "Laplacian",
    "Linear",
    "MinMax",
    "MonotoneConjunctive",
    "MonotoneDisjunctive",
    "Multiple",
    "Normalized",
    "OnColumns",
    "Polynomial",
    "Power",
    "Precomputed",
    "Product",
    "Repaired",
    "Scaling",
    "Spectrum",
    "Subsequence",
    "Sum",
    "UnitDiagonal",
    "UnitMean",
    "UnitTrace",
    "UnitVariance",
]
