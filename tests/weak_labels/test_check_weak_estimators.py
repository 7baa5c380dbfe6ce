"""scikit-learn's own checks of the estimators for weak labels; a table is bags of one instance."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.utils.estimator_checks import parametrize_with_checks
from tests.weak_labels.data import BAG_CLASSIFIERS, FIXED, blobs, witness_bags

from kernelweave import (
    KernelBank,
    MKLClusterer,
    MultiInstanceMKLClassifier,
    MultiInstanceMKLClassifierCV,
    SemiSupervisedMKLClassifier,
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
MODELS = [
    SemiSupervisedMKLClassifier(BANK, max_rounds=3, tol=1e-12),
    MKLClusterer(BANK, max_rounds=3),
    MultiInstanceMKLClassifier(BANK, ambiguity="output", tol=1e-12),
    MultiInstanceMKLClassifierCV(BANK, C=(1.0, 10.0), centering=False, max_rounds=1, cv=2, tol=1e-12),
    *(Model(BANK, tol=1e-12) for Model in BAG_CLASSIFIERS),
]


def exemptions(estimator):
    return SEMI if isinstance(estimator, SemiSupervisedMKLClassifier) else {}


@pytest.mark.filterwarnings("ignore:Stopped at a relative duality gap")
@parametrize_with_checks(MODELS, expected_failed_checks=exemptions)
def test_scikit_learn_accepts_the_estimator(estimator, check):
    check(estimator)


BAD_FITS = {
    "semi-supervised": (
        SemiSupervisedMKLClassifier(BANK, balance=0.4),
        lambda: blobs(30, n_labelled=6)[:2],
        lambda: blobs(30, n_labelled=6, centers=3)[:2],  # beyond two classes a mapping is needed
    ),
    "clusterer": (MKLClusterer(BANK), lambda: blobs(20)[:1], lambda: (np.zeros((1, 2)),)),
    **{
        Model.__name__: (
            Model(FIXED),
            lambda: witness_bags(8),
            lambda: (witness_bags(8)[0], np.arange(8) % 3),
        )
        for Model in BAG_CLASSIFIERS
    },
}


@pytest.mark.parametrize("name", BAD_FITS)
def test_a_failed_fit_leaves_nothing_of_an_earlier_one(name):
    model, good, bad = BAD_FITS[name]
    model = clone(model).fit(*good())
    with pytest.raises(ValueError):
        model.fit(*bad())
    with pytest.raises(NotFittedError):
        model.predict(good()[0])
