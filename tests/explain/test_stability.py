"""Intervals and selection frequency of the weights."""

import numpy as np
import pytest

from kernelweave import (
    KernelBank,
    LocalizedMKLClassifier,
    LPBetaClassifier,
    MKLClassifier,
    MKLClassifierCV,
    MKLRegressor,
    OneClassMKL,
)
from kernelweave.bank.features import Landmarks
from kernelweave.explain import weight_stability
from kernelweave.geometry import BoxSimplex
from kernelweave.kernels import Gaussian, Linear
from kernelweave.learners import Hinge

KERNELS = KernelBank.per_view([Linear()], views={f"v{k}": [k] for k in range(6)})


def simulated(n, seed):
    """Two columns that tell the class and four that do not."""
    rng = np.random.default_rng(seed)
    y = rng.choice([-1, 1], n)
    X = rng.normal(size=(n, 6))
    X[:, 0] += y
    X[:, 1] += y
    return X, y


@pytest.fixture(scope="module")
def found():
    X, y = simulated(150, 0)
    return weight_stability(MKLClassifier(KERNELS), X, y, n_resamples=40, random_state=0)


def test_selection_frequency_separates_signal_from_noise(found):
    assert found.frequency[:2].min() == 1.0
    assert found.frequency[2:].max() < 1.0
    assert found.lower[:2].min() > 0.1  # the intervals of noise reach down to nothing
    assert found.lower[2:].max() < 1e-3


def test_intervals_are_percentiles_around_weights_on_the_simplex(found):
    assert found.resampled.shape == (40, 6)
    np.testing.assert_allclose(found.resampled.sum(axis=1), 1.0, atol=1e-6)
    assert (found.lower <= found.upper).all()
    assert ((found.resampled < found.lower).mean(axis=0) <= 0.05).all()
    views = found.view_weights()
    assert views["v0"] == pytest.approx((found.weights[0], found.lower[0], found.upper[0]))


def test_a_resample_is_a_fit_on_copies_of_the_samples():
    X, y = simulated(40, 1)
    bank = KernelBank([Linear(), Gaussian(gamma=0.3)], scaling=None)  # nothing learnt of the samples
    model = MKLClassifier(bank, learner=Hinge(C=1.0), tol=1e-7)
    found = weight_stability(model, X, y, n_resamples=3, random_state=5)
    rng = np.random.RandomState(5)
    for k in range(3):
        counts = rng.multinomial(40, np.full(40, 1 / 40))
        rows = np.repeat(np.arange(40), counts)
        again = MKLClassifier(bank, learner=Hinge(C=1.0), tol=1e-7).fit(X[rows], y[rows])
        np.testing.assert_allclose(found.resampled[k], again.kernel_weights_, atol=1e-3)


def test_other_models_and_classes():
    X, _ = simulated(60, 2)
    three = np.digitize(X[:, 0], [-0.5, 0.5])
    found = weight_stability(MKLClassifier(KERNELS, multiclass="per_class"), X, three, n_resamples=2)
    assert found.resampled.shape == (2, 3, 6)
    weight, lower, upper = found.view_weights()["v0"]
    assert weight == pytest.approx(found.weights[:, 0].mean())
    means = np.sort(found.resampled[:, :, 0].mean(axis=1))  # 95 % of the way between two resamples
    assert (lower, upper) == pytest.approx(tuple(means[0] + np.array([0.025, 0.975]) * np.ptp(means)))
    assert weight_stability(MKLRegressor(KERNELS), X, X[:, 0], n_resamples=2).resampled.shape == (2, 6)
    assert (
        weight_stability(OneClassMKL(KernelBank.per_feature(degrees=())), X, n_resamples=2).weights.ndim == 1
    )


def test_mistakes_are_one_sentence():
    X, y = simulated(20, 3)
    with pytest.raises(TypeError, match="learn kernel weights"):
        weight_stability(object(), X, y)
    for other in (LPBetaClassifier(KERNELS), LocalizedMKLClassifier(KERNELS)):
        with pytest.raises(TypeError, match="cannot be refitted on resamples"):
            weight_stability(other, X, y)
    with pytest.raises(ValueError, match="n_resamples"):
        weight_stability(MKLClassifier(KERNELS), X, y, n_resamples=1)
    with pytest.raises(TypeError, match=r"MKLRegressor learns on Landmarks.*set features=None"):
        weight_stability(MKLRegressor(KERNELS, features=Landmarks(5)), X, y)
    with pytest.raises(TypeError, match=r"MKLClassifierCV.*cannot be refitted on resamples"):
        weight_stability(MKLClassifierCV(KERNELS), X, y)


def test_a_fitted_search_is_resampled_with_the_parameters_that_it_chose():
    X, y = simulated(60, 3)
    search = MKLClassifierCV(KERNELS, learner_values=[0.02], geometry_values=[0.5], cv=2).fit(X, y)
    chosen = MKLClassifier(KERNELS, learner=Hinge(C=0.02), geometry=BoxSimplex(theta=0.5))
    found, expected = (
        weight_stability(model, X, y, n_resamples=3, random_state=0) for model in (search, chosen)
    )
    np.testing.assert_array_equal(found.resampled, expected.resampled)
    assert found.resampled.max() <= 0.5 + 1e-9
