"""SVM+: the slacks of a support vector machine are a function of privileged features.

The machine for two fixed kernels (`SVMPlus`), the kernels of both spaces as one stack (`TwoSpaces`), and the
weights of both as one set (`BothGeometries`): with them the solvers of ordinary multiple kernel learning
learn the weights on both sides.
"""

from kernelweave.methods.svm_plus.learner import SVMPlus
from kernelweave.methods.svm_plus.machine import PlusMachine
from kernelweave.methods.svm_plus.spaces import TwoSpaces
from kernelweave.methods.svm_plus.weights import BothGeometries

__all__ = ["BothGeometries", "PlusMachine", "SVMPlus", "TwoSpaces"]
