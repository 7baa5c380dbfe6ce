"""scikit-learn's own checks of the estimators for weak labels; a table is bags of one instance."""

import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

from kernelweave import (
    InstanceLabelMKLClassifier,
    KernelBank,
    MKLClusterer,
    MultiInstanceMKLClassifier,
    SemiSupervisedMKLClassifier,
    SetKernelMKLClassifier,
    SingleInstanceMKLClassifier,
    WitnessMKLClassifier,
)
from kernelweave.kernels import Gaussian

# A width of its own and a small gap: the check of weights compares decision values of two fits to 1e-7, and
# widths that are learnt count every sample once, whatever it weighs.
BANK = KernelBank([Gaussian(width=1.0)])
SEMI = {
    "check_classifiers_classes": "it has a class -1, which means 'no label' here, as in scikit-learn's own "
    "semi-supervised classifiers",
    "check_class_weight_classifiers": "it expects the heavier class to win; without an intercept weights "
    "move the margin, not the cut",
}
BAGS = [
    MultiInstanceMKLClassifier,
    SetKernelMKLClassifier,
    SingleInstanceMKLClassifier,
    InstanceLabelMKLClassifier,
    WitnessMKLClassifier,
]
MODELS = [
    SemiSupervisedMKLClassifier(BANK, max_rounds=3, tol=1e-12),
    MKLClusterer(BANK, max_rounds=3),
    MultiInstanceMKLClassifier(BANK, ambiguity="output", tol=1e-12),
    *(Model(BANK, tol=1e-12) for Model in BAGS),
]


def exemptions(estimator):
    return SEMI if isinstance(estimator, SemiSupervisedMKLClassifier) else {}


@pytest.mark.filterwarnings("ignore:Stopped at a relative duality gap")
@parametrize_with_checks(MODELS, expected_failed_checks=exemptions)
def test_scikit_learn_accepts_the_estimator(estimator, check):
    check(estimator)
