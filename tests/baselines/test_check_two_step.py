"""scikit-learn's own checks of the classifiers that weigh the kernels first."""

import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

from kernelweave import (
    AlignedMKLClassifier,
    EasyMKLClassifier,
    FHeuristicClassifier,
    KernelBank,
    LPBetaClassifier,
    PWMKClassifier,
)
from kernelweave.kernels import Gaussian, Linear

WEIGHTS = (
    "it compares decision values to 1e-7, machines stop at a relative gap of 1e-4; and widths of distance "
    "kernels and folds are made of the samples, each counted once. That a weight means repetition is "
    "tested in tests/baselines/test_moments.py"
)
EXEMPT = {
    "check_sample_weight_equivalence_on_dense_data": WEIGHTS,
    "check_sample_weight_equivalence_on_sparse_data": WEIGHTS,
}

EVEN = "its distributions over the two classes sum to one each: weights count within a class only"
FEW = KernelBank([Linear(), Gaussian()])
MODELS = [
    AlignedMKLClassifier(),
    AlignedMKLClassifier(FEW, criterion="align", multiclass="per_class"),
    AlignedMKLClassifier(FEW, criterion="kta"),
    EasyMKLClassifier(FEW),
    EasyMKLClassifier(FEW, multiclass="per_class"),
    FHeuristicClassifier(FEW),
    PWMKClassifier(FEW, cv=2),
    LPBetaClassifier(FEW, cv=2),
    LPBetaClassifier(FEW, cv=2, multiclass="per_class"),
]


def exemptions(estimator):
    even = {"check_class_weight_classifiers": EVEN} if isinstance(estimator, EasyMKLClassifier) else {}
    return EXEMPT | even


@pytest.mark.filterwarnings("ignore:Stopped at a relative duality gap")
@parametrize_with_checks(MODELS, expected_failed_checks=exemptions)
def test_scikit_learn_accepts_the_estimator(estimator, check):
    check(estimator)
