"""kernelweave: multiple kernel learning with certificates.

Learn from many representations of the same things at once, know how much each one counts, and know how
close to the optimum the answer is.
"""

from importlib.metadata import version

from kernelweave import presets
from kernelweave.adaptive import LocalizedMKLClassifier, SampleAdaptiveMKLClassifier
from kernelweave.bank import Bags, Entry, KernelBank, Landmarks, Nystroem, RandomFourier, Views
from kernelweave.baselines import (
    AlignedMKLClassifier,
    EasyMKLClassifier,
    FHeuristicClassifier,
    LPBetaClassifier,
    PWMKClassifier,
    alignf_weights,
    alignment,
    centered_alignment,
)
from kernelweave.estimators.classifier import MKLClassifier
from kernelweave.estimators.fisher import FisherMKLClassifier
from kernelweave.estimators.one_class import OneClassMKL
from kernelweave.estimators.path import path
from kernelweave.estimators.regressor import MKLRegressor
from kernelweave.estimators.search import MKLClassifierCV, MKLRegressorCV
from kernelweave.evidence import EvidenceMKLRegressor
from kernelweave.io import load, save
from kernelweave.metric import ITML, ITMLPlus, ITMLSelect, SupervisedMetric
from kernelweave.multiclass import ObscureClassifier, batches
from kernelweave.privileged.svm_2k import SVM2K
from kernelweave.privileged.svm_plus import SVMPlusClassifier
from kernelweave.report import write_report
from kernelweave.weak_labels.bag_baselines import (
    InstanceLabelMKLClassifier,
    SetKernelMKLClassifier,
    SingleInstanceMKLClassifier,
    WitnessMKLClassifier,
)
from kernelweave.weak_labels.bag_search import MultiInstanceMKLClassifierCV
from kernelweave.weak_labels.clusterer import MKLClusterer
from kernelweave.weak_labels.multi_instance import MultiInstanceMKLClassifier
from kernelweave.weak_labels.semi_supervised import SemiSupervisedMKLClassifier

__version__ = version("kernelweave")

__all__ = [
    "AlignedMKLClassifier",
    "EasyMKLClassifier",
    "Entry",
    "EvidenceMKLRegressor",
    "FisherMKLClassifier",
    "FHeuristicClassifier",
    "Bags",
    "InstanceLabelMKLClassifier",
    "ITML",
    "ITMLPlus",
    "ITMLSelect",
    "KernelBank",
    "Landmarks",
    "LPBetaClassifier",
    "LocalizedMKLClassifier",
    "MKLClassifier",
    "MKLClassifierCV",
    "MKLClusterer",
    "MKLRegressor",
    "MKLRegressorCV",
    "MultiInstanceMKLClassifier",
    "MultiInstanceMKLClassifierCV",
    "OneClassMKL",
    "PWMKClassifier",
    "SampleAdaptiveMKLClassifier",
    "SVM2K",
    "SVMPlusClassifier",
    "Nystroem",
    "ObscureClassifier",
    "RandomFourier",
    "SupervisedMetric",
    "Views",
    "__version__",
    "alignf_weights",
    "alignment",
    "centered_alignment",
    "SemiSupervisedMKLClassifier",
    "SetKernelMKLClassifier",
    "SingleInstanceMKLClassifier",
    "WitnessMKLClassifier",
    "batches",
    "load",
    "path",
    "presets",
    "save",
    "write_report",
]
