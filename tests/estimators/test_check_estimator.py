"""scikit-learn's own checks."""

import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

from kernelweave import (
    SVM2K,
    EvidenceMKLRegressor,
    FisherMKLClassifier,
    KernelBank,
    Landmarks,
    LocalizedMKLClassifier,
    MKLClassifier,
    MKLClassifierCV,
    MKLRegressor,
    MKLRegressorCV,
    Nystroem,
    ObscureClassifier,
    OneClassMKL,
    SampleAdaptiveMKLClassifier,
    SVMPlusClassifier,
)
from kernelweave.geometry import LpBall
from kernelweave.kernels import Linear
from kernelweave.learners import EpsilonInsensitive, SquaredHinge
from kernelweave.solvers import OnlineBatch

WEIGHTS = (
    "it compares decision values to 1e-7, the fit stops at a relative gap of 1e-4; and widths of distance "
    "kernels are learnt from the samples, each counted once. The equivalence of the problem itself is tested "
    "in tests/contracts/test_learners.py"
)

# That all kernels do no worse is an answer, not a fault.
pytestmark = pytest.mark.filterwarnings("ignore:The switches were left out")
EXEMPT = {
    "check_sample_weight_equivalence_on_dense_data": WEIGHTS,
    "check_sample_weight_equivalence_on_sparse_data": WEIGHTS,
}
PRECISION = "a weight says how precise a sample is (noise variance σ²/w), not how often it was seen"
MIDPOINT = {
    "check_class_weight_classifiers": "it expects the heavier class to win; the cut midway between the "
    "projected class means, and the nearest class mean, do not know weights (threshold='zero' does)"
}
MODELS = [
    MKLClassifier(),
    MKLClassifier(multiclass="per_class"),
    MKLClassifier(multiclass="one_vs_one"),
    MKLClassifier(KernelBank([Linear()]), learner=SquaredHinge(), geometry=LpBall(2.0)),
    MKLRegressor(),
    MKLRegressor(KernelBank([Linear()]), learner=EpsilonInsensitive(), geometry=LpBall(2.0)),
    MKLRegressorCV(learner_values=[1.0, 10.0], geometry_values=[0.1, 1.0], cv=2),
    EvidenceMKLRegressor(),
    EvidenceMKLRegressor(KernelBank([Linear()]), features=Landmarks(20), pooled=True),
    OneClassMKL(),
    FisherMKLClassifier(),
    FisherMKLClassifier(p=1.0, threshold="leave_one_out"),
    FisherMKLClassifier(p=1.0, multiclass="joint"),
    ObscureClassifier(random_state=0),
    ObscureClassifier(solver=OnlineBatch(2, 3), random_state=0),
    ObscureClassifier(features=Nystroem(30), random_state=0),
    MKLClassifierCV(),
    MKLClassifierCV(learner_values=[1.0, 10.0], geometry_values=[0.5, 1.0], cv=2),
    SampleAdaptiveMKLClassifier(),
    LocalizedMKLClassifier(n_init=1, tol=1e-3, random_state=0),
    SVMPlusClassifier(),
    SVM2K(),
]


def exemptions(estimator):
    if isinstance(estimator, EvidenceMKLRegressor):
        return dict.fromkeys(EXEMPT, PRECISION)
    return EXEMPT | MIDPOINT if getattr(estimator, "threshold", None) == "midpoint" else EXEMPT


@pytest.mark.filterwarnings("ignore:Stopped at a relative duality gap")
@parametrize_with_checks(MODELS, expected_failed_checks=exemptions)
def test_scikit_learn_accepts_the_estimator(estimator, check):
    check(estimator)
