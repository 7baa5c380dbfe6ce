"""scikit-learn's own checks."""

import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

from kernelweave import SVM2K, KernelBank, MKLClassifier, MKLClassifierCV, SVMPlusClassifier
from kernelweave.geometry import LpBall
from kernelweave.kernels import Linear
from kernelweave.learners import SquaredHinge

WEIGHTS = (
    "it compares decision values to 1e-7, the fit stops at a relative gap of 1e-4; and widths of distance "
    "kernels are learnt from the samples, each counted once. The equivalence of the problem itself is tested "
    "in tests/contracts/test_learners.py"
)
EXEMPT = {
    "check_sample_weight_equivalence_on_dense_data": WEIGHTS,
    "check_sample_weight_equivalence_on_sparse_data": WEIGHTS,
}
MODELS = [
    MKLClassifier(),
    MKLClassifier(multiclass="shared"),
    MKLClassifier(KernelBank([Linear()]), learner=SquaredHinge(), geometry=LpBall(2.0)),
    MKLClassifierCV(learner_values=[1.0, 10.0], geometry_values=[0.1, 1.0], cv=2),
    SVMPlusClassifier(),
    SVM2K(),
]


@pytest.mark.filterwarnings("ignore:Stopped at a relative duality gap")
@parametrize_with_checks(MODELS, expected_failed_checks=lambda _: EXEMPT)
def test_scikit_learn_accepts_the_estimator(estimator, check):
    check(estimator)
