"""Ambiguous labels or inputs as base kernels: input-output kernel learning."""

from kernelweave.weak_labels.bags import BagLabels, KeyInstances
from kernelweave.weak_labels.labelings import Balanced, Labelings
from kernelweave.weak_labels.oracle import Exhaustive, Found, MultiStart, Oracle, ascend
from kernelweave.weak_labels.protocol import Ambiguity
from kernelweave.weak_labels.rounds import Outcome, Round, learn
from kernelweave.weak_labels.stack import InputOutputGrams
from kernelweave.weak_labels.supervised import supervised_scores

__all__ = [
    "Ambiguity",
    "BagLabels",
    "Balanced",
    "Exhaustive",
    "Found",
    "InputOutputGrams",
    "KeyInstances",
    "Labelings",
    "MultiStart",
    "Oracle",
    "Outcome",
    "Round",
    "ascend",
    "learn",
    "supervised_scores",
]
