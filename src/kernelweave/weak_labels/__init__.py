"""Weak labels: labels or instances that are ambiguous become base kernels (input-output kernel learning).

Every way to resolve the ambiguity is a candidate: a labeling of the samples without label, or a choice of key
instances from bags. A candidate makes one kernel of each base kernel, and the weights that multiple kernel
learning gives them say which candidates to believe [Xu14, Ch. 4]. Candidates are far too many to list: a
cutting plane adds the most violated one of each kernel, round by round.

Mathematics: `ambiguity` (sets of candidates), `oracle` (the most violated candidate), `cutting_plane` (the
rounds, and the stack of input-output kernels they solve over), `balance` (how many labels are positive).
Estimators: `semi_supervised`, `clusterer`, `multi_instance` (and what all classifiers of bags share),
`bag_search` (its settings by cross-validation), `bag_baselines` (SIL, mi-SVM, MI-SVM, set kernel
[Andrews03, Gartner02], with their training); `base` is what they have in common.
"""

from kernelweave.weak_labels.ambiguity import Ambiguity, KeyInstances, Labelings
from kernelweave.weak_labels.bag_baselines import (
    InstanceLabelMKLClassifier,
    SetKernelMKLClassifier,
    SingleInstanceMKLClassifier,
    WitnessMKLClassifier,
)
from kernelweave.weak_labels.bag_search import MultiInstanceMKLClassifierCV
from kernelweave.weak_labels.clusterer import MKLClusterer
from kernelweave.weak_labels.cutting_plane import (
    CuttingPlaneResult,
    CuttingPlaneRound,
    InputOutputCuttingPlane,
    InputOutputGrams,
)
from kernelweave.weak_labels.multi_instance import BagClassifier, MultiInstanceMKLClassifier
from kernelweave.weak_labels.oracle import (
    CandidateObjective,
    Exhaustive,
    MultiStart,
    Oracle,
    ScoredCandidate,
)
from kernelweave.weak_labels.semi_supervised import SemiSupervisedMKLClassifier

__all__ = [
    "Ambiguity",
    "BagClassifier",
    "CandidateObjective",
    "InputOutputCuttingPlane",
    "CuttingPlaneResult",
    "CuttingPlaneRound",
    "Exhaustive",
    "InputOutputGrams",
    "InstanceLabelMKLClassifier",
    "KeyInstances",
    "Labelings",
    "MKLClusterer",
    "MultiInstanceMKLClassifier",
    "MultiInstanceMKLClassifierCV",
    "MultiStart",
    "Oracle",
    "ScoredCandidate",
    "SemiSupervisedMKLClassifier",
    "SetKernelMKLClassifier",
    "SingleInstanceMKLClassifier",
    "WitnessMKLClassifier",
]
