"""Ambiguous labels or inputs as base kernels: input-output kernel learning."""

from kernelweave.methods.ambiguity.bags import BagLabels, KeyInstances
from kernelweave.methods.ambiguity.labelings import Balanced, Labelings
from kernelweave.methods.ambiguity.oracle import Exhaustive, Found, MultiStart, Oracle, ascend
from kernelweave.methods.ambiguity.protocol import Ambiguity
from kernelweave.methods.ambiguity.rounds import Outcome, Round, learn
from kernelweave.methods.ambiguity.stack import InputOutputGrams
from kernelweave.methods.ambiguity.supervised import supervised_scores

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
