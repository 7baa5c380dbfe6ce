"""kernelweave: multiple kernel learning with certificates.

Learn from many representations of the same things at once, know how much each one counts, and know how
close to the optimum the answer is.
"""

from importlib.metadata import version

from kernelweave import presets
from kernelweave.bank import Bags, Entry, KernelBank, Views
from kernelweave.estimators.bag_baselines import (
    InstanceLabelMKLClassifier,
    SetKernelMKLClassifier,
    SingleInstanceMKLClassifier,
    WitnessMKLClassifier,
)
from kernelweave.estimators.classifier import MKLClassifier
from kernelweave.estimators.clusterer import MKLClusterer
from kernelweave.estimators.fisher import FisherMKLClassifier
from kernelweave.estimators.multi_instance import MultiInstanceMKLClassifier
from kernelweave.estimators.one_class import OneClassMKL
from kernelweave.estimators.path import path
from kernelweave.estimators.regressor import MKLRegressor
from kernelweave.estimators.regressor_search import MKLRegressorCV
from kernelweave.estimators.search import MKLClassifierCV
from kernelweave.estimators.semi_supervised import SemiSupervisedMKLClassifier

__version__ = version("kernelweave")

__all__ = [
    "Bags",
    "Entry",
    "FisherMKLClassifier",
    "InstanceLabelMKLClassifier",
    "KernelBank",
    "MKLClassifier",
    "MKLClassifierCV",
    "MKLClusterer",
    "MKLRegressor",
    "MKLRegressorCV",
    "MultiInstanceMKLClassifier",
    "OneClassMKL",
    "SemiSupervisedMKLClassifier",
    "SetKernelMKLClassifier",
    "SingleInstanceMKLClassifier",
    "Views",
    "WitnessMKLClassifier",
    "path",
    "presets",
    "__version__",
]
