"""Inner machines: solve one kernel, warm-started, and return two bounds."""

from kernelweave.learners.hinge import Hinge
from kernelweave.learners.machine import Machine
from kernelweave.learners.nu_hinge import NuHinge
from kernelweave.learners.one_vs_rest import OneVsRest
from kernelweave.learners.protocol import Learner
from kernelweave.learners.squared_hinge import SquaredHinge

__all__ = ["Hinge", "Learner", "Machine", "NuHinge", "OneVsRest", "SquaredHinge"]
