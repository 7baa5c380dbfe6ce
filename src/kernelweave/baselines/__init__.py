"""Baselines: kernel weights by a rule instead of by MKL, then one classifier on the combined kernel.

`two_step`
    What they share: `TwoStepClassifier` computes weights, then solves and certifies the second step.
`target_alignment`
    Alignment of kernels with labels [Cristianini01], centred and maximised [Cortes12]: functions of matrices,
    and `AlignedMKLClassifier`.
`easy_mkl`
    `EasyMKLClassifier` [Aiolli15], weights from the distance between the classes.
`heuristics`
    `FHeuristicClassifier` [Qiu09] and `PWMKClassifier` [Tanabe08], weights by how good every kernel is alone.
`lp_beta`
    `LPBetaClassifier` [Gehler09], which mixes the outputs of classifiers on single kernels, and its linear
    program.
"""

from kernelweave.baselines.easy_mkl import EasyMKLClassifier
from kernelweave.baselines.heuristics import FHeuristicClassifier, PWMKClassifier
from kernelweave.baselines.lp_beta import LPBetaClassifier
from kernelweave.baselines.target_alignment import (
    AlignedMKLClassifier,
    alignf_weights,
    alignment,
    centered_alignment,
)

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
