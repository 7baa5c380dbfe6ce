"""Learners: solve the problem of one kernel, warm-started, and return two bounds."""

from kernelweave.learners.base import Learner
from kernelweave.learners.epsilon import EpsilonInsensitive
from kernelweave.learners.fisher import Discriminant, Fisher
from kernelweave.learners.hinge import Hinge
from kernelweave.learners.margin_distribution import MarginDistribution
from kernelweave.learners.nu_hinge import NuHinge
from kernelweave.learners.one_class import OneClass
from kernelweave.learners.one_vs_rest import OneVsRest
from kernelweave.learners.solution import InnerSolution
from kernelweave.learners.square import Square
from kernelweave.learners.squared_hinge import SquaredHinge
from kernelweave.learners.unbiased import UnbiasedSquaredHinge

__all__ = [
    "Discriminant",
    "EpsilonInsensitive",
    "Fisher",
    "Hinge",
    "Learner",
    "InnerSolution",
    "MarginDistribution",
    "NuHinge",
    "OneClass",
    "OneVsRest",
    "Square",
    "SquaredHinge",
    "UnbiasedSquaredHinge",
]
