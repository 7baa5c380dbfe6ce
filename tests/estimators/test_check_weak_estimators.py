"""scikit-learn's own checks of the estimators for weak labels; a table is bags of one instance."""

import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

from kernelweave import (
    KernelBank,
    MKLClusterer,
    MultiInstanceMKLClassifier,
    SemiSupervisedMKLClassifier,
    SetKernelMKLClassifier,
)
from kernelweave.kernels import Gaussian

WEIGHTS = (
    "it compares decision values to 1e-7; the fit stops at a relative gap of 1e-3, widths are learnt from "
    "the samples, each counted once, and folds for the threshold are drawn from the bags as they are"
)
EXEMPT = {
    "check_sample_weight_equivalence_on_dense_data": WEIGHTS,
    "check_sample_weight_equivalence_on_sparse_data": WEIGHTS,
}
SEMI = {
    "check_classifiers_classes": "it has a class -1, which means 'no label' here, as in scikit-learn's own "
    "semi-supervised classifiers",
    "check_class_weight_classifiers": "it expects the heavier class to win; without an intercept weights "
    "move the margin, not the cut",
}
MODELS = [
    SemiSupervisedMKLClassifier(KernelBank([Gaussian()]), max_rounds=3),
    MultiInstanceMKLClassifier(KernelBank([Gaussian()])),
    SetKernelMKLClassifier(KernelBank([Gaussian()])),
    MKLClusterer(KernelBank([Gaussian()]), max_rounds=3),
]


def exemptions(estimator):
    return EXEMPT | SEMI if isinstance(estimator, SemiSupervisedMKLClassifier) else EXEMPT


@pytest.mark.filterwarnings("ignore:Stopped at a relative duality gap")
@parametrize_with_checks(MODELS, expected_failed_checks=exemptions)
def test_scikit_learn_accepts_the_estimator(estimator, check):
    check(estimator)
