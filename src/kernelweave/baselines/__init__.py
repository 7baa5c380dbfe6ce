"""Baselines that weigh the kernels before the machine is trained: two-step methods and heuristics."""

from kernelweave.baselines.aligned import AlignedMKLClassifier
from kernelweave.baselines.easy_mkl import EasyMKLClassifier
from kernelweave.baselines.heuristics import FHeuristicClassifier, PWMKClassifier
from kernelweave.baselines.lp_beta import LPBetaClassifier
from kernelweave.baselines.target_alignment import alignf_weights, alignment, centered_alignment

__all__ = [
    "AlignedMKLClassifier",
    "EasyMKLClassifier",
    "FHeuristicClassifier",
    "LPBetaClassifier",
    "PWMKClassifier",
    "alignf_weights",
    "alignment",
    "centered_alignment",
]
