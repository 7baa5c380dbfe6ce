"""kernelweave: multiple kernel learning with certificates.

Learn from many representations of the same things at once, know how much each one counts, and know how
close to the optimum the answer is.
"""

from importlib.metadata import version

from kernelweave import presets
from kernelweave.bank import Entry, KernelBank, Views
from kernelweave.estimators.classifier import MKLClassifier
from kernelweave.estimators.path import path
from kernelweave.estimators.search import MKLClassifierCV
from kernelweave.estimators.svm_2k import SVM2K
from kernelweave.estimators.svm_plus import SVMPlusClassifier

__version__ = version("kernelweave")

__all__ = [
    "Entry",
    "KernelBank",
    "MKLClassifier",
    "MKLClassifierCV",
    "SVM2K",
    "SVMPlusClassifier",
    "Views",
    "__version__",
    "path",
    "presets",
]
