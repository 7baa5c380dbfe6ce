"""kernelweave: multiple kernel learning with certificates.

Learn from many representations of the same things at once, know how much each one counts, and know how
close to the optimum the answer is.
"""

from importlib.metadata import version

from kernelweave import presets
from kernelweave.bank import Bags, Entry, KernelBank, Nystroem, RandomFourier, Views
from kernelweave.estimators.aligned import AlignedMKLClassifier
from kernelweave.estimators.bag_baselines import (
    InstanceLabelMKLClassifier,
    SetKernelMKLClassifier,
    SingleInstanceMKLClassifier,
    WitnessMKLClassifier,
)
from kernelweave.estimators.batches import batches
from kernelweave.estimators.classifier import MKLClassifier
from kernelweave.estimators.clusterer import MKLClusterer
from kernelweave.estimators.easy_mkl import EasyMKLClassifier
from kernelweave.estimators.fisher import FisherMKLClassifier
from kernelweave.estimators.heuristics import FHeuristicClassifier, PWMKClassifier
from kernelweave.estimators.localized import LocalizedMKLClassifier
from kernelweave.estimators.lp_beta import LPBetaClassifier
from kernelweave.estimators.metric import ITML, ITMLPlus, ITMLSelect, SupervisedMetric
from kernelweave.estimators.multi_instance import MultiInstanceMKLClassifier
from kernelweave.estimators.obscure import ObscureClassifier
from kernelweave.estimators.one_class import OneClassMKL
from kernelweave.estimators.path import path
from kernelweave.estimators.regressor import MKLRegressor
from kernelweave.estimators.regressor_search import MKLRegressorCV
from kernelweave.estimators.sample_adaptive import SampleAdaptiveMKLClassifier
from kernelweave.estimators.search import MKLClassifierCV
from kernelweave.estimators.semi_supervised import SemiSupervisedMKLClassifier
from kernelweave.estimators.svm_2k import SVM2K
from kernelweave.estimators.svm_plus import SVMPlusClassifier
from kernelweave.io import load, save
from kernelweave.methods import alignf_weights, alignment, centered_alignment
from kernelweave.report import write_report

__version__ = version("kernelweave")

__all__ = [
    "AlignedMKLClassifier",
    "EasyMKLClassifier",
    "Entry",
    "FisherMKLClassifier",
    "FHeuristicClassifier",
    "Bags",
    "InstanceLabelMKLClassifier",
    "ITML",
    "ITMLPlus",
    "ITMLSelect",
    "KernelBank",
    "LPBetaClassifier",
    "LocalizedMKLClassifier",
    "MKLClassifier",
    "MKLClassifierCV",
    "MKLClusterer",
    "MKLRegressor",
    "MKLRegressorCV",
    "MultiInstanceMKLClassifier",
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
