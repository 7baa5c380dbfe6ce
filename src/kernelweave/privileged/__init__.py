"""SVM+: the slacks of a support vector machine are a function of privileged features.

The machine for two fixed kernels (`SVMPlus`), the kernels of both spaces as one stack (`TwoSpaces`), and the
weights of both as one set (`BothGeometries`): with them the solvers of ordinary multiple kernel learning
learn the weights on both sides.
"""

from kernelweave.privileged.learner import SVMPlus
from kernelweave.privileged.machine import PlusMachine
from kernelweave.privileged.spaces import TwoSpaces
from kernelweave.privileged.svm_2k import SVM2K
from kernelweave.privileged.svm_plus import SVMPlusClassifier
from kernelweave.privileged.weights import BothGeometries

__all__ = ["BothGeometries", "PlusMachine", "SVM2K", "SVMPlus", "SVMPlusClassifier", "TwoSpaces"]
