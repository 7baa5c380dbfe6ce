"""Privileged information and two views: SVM+ and SVM-2K [Xu14, Ch. 2; Vapnik09; Farquhar06].

In SVM+ the slacks of a support vector machine are a function of features that exist at training time only;
with several kernels in either space their weights are learnt too. SVM-2K trains one support vector machine
per view and charges for their disagreement.

==================  ==========================================================================================
svm_plus            the estimator `SVMPlusClassifier`
svm_plus_problem    the mathematics of SVM+: variables, and two bounds of the optimum from any of them
svm_plus_solver     `SVMPlus`, the learner for fixed kernels: interior point and SMO
two_spaces          both spaces' kernels as one stack `TwoSpaces`, their weights as one set `BothGeometries`
svm_2k              the estimator `SVM2K`
svm_2k_problem      the mathematics of SVM-2K: variables, best intercepts, and two bounds of the optimum
svm_2k_solver       SVM-2K by SMO and by interior point
interior            what both interior points share
storage             how the kernels of both methods are held
==================  ==========================================================================================
"""

from kernelweave.privileged.svm_2k import SVM2K
from kernelweave.privileged.svm_plus import SVMPlusClassifier
from kernelweave.privileged.svm_plus_problem import SVMPlusSolution
from kernelweave.privileged.svm_plus_solver import SVMPlus
from kernelweave.privileged.two_spaces import BothGeometries, TwoSpaces

__all__ = ["SVM2K", "BothGeometries", "SVMPlus", "SVMPlusClassifier", "SVMPlusSolution", "TwoSpaces"]
