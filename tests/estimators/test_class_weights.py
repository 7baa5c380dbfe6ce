"""Class weights: checked in one place, and worth what the same sample weights are."""

import numpy as np
import pytest

from kernelweave import KernelBank, MKLClassifier, ObscureClassifier, RandomFourier
from kernelweave.kernels import Gaussian, Linear
from kernelweave.solvers import DualAscent

BANK = KernelBank([Linear(), Gaussian(gamma=0.2)])
FACTORS = {"a": 3.0, "c": 0.2}


def three_classes(n=60):
    rng = np.random.default_rng(5)
    y = rng.integers(0, 3, n)
    X = rng.normal(size=(n, 3)) + y[:, None]
    return X, np.array(["a", "b", "c"])[y]


def cut(values, k=2):
    return np.array_split(values, k)


def obscure(**params):
    return ObscureClassifier(BANK, solver=DualAscent(tol=1e-3), random_state=0, **params)


WAYS = {
    "fit": lambda weight: obscure(class_weight=weight).fit(*three_classes()),
    "the saddle point": lambda weight: MKLClassifier(BANK, class_weight=weight).fit(*three_classes()),
    "a stream": lambda weight: obscure(class_weight=weight).partial_fit(
        *three_classes(), classes=["a", "b", "c"]
    ),
    "partitions": lambda weight: obscure(class_weight=weight, features=RandomFourier(20)).fit_partitions(
        *map(cut, three_classes())
    ),
}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize(
    ("weight", "match"),
    [
        ({"a": float("nan")}, "finite and not negative; got nan for the class 'a'"),
        ({"a": float("inf")}, "got inf"),
        ({"b": -1.0}, "got -1.0"),
        ({"b": "heavy"}, "got 'heavy'"),
        ({"a": 1.0, "b": 1.0, "c": 1.0, "typo": 2.0}, r"names the classes \['typo'\]"),
        ({"typo": 2.0}, r"the classes of y are \['a', 'b', 'c'\]"),
        ("balance", "class_weight must be"),
        ([1.0, 2.0, 3.0], "class_weight must be"),
    ],
)
def test_a_factor_that_cannot_be_meant_is_refused(way, weight, match):
    with pytest.raises(ValueError, match=match):
        WAYS[way](weight)


def test_a_class_may_be_weighed_out_of_a_stream_but_not_out_of_a_fit():
    X, y = three_classes()
    assert obscure(class_weight={"a": 0.0}).partial_fit(X, y, classes=["a", "b", "c"]).n_support_ > 0
    with pytest.raises(ValueError, match=r"weights of classes \['a'\] sum to 0"):
        obscure(class_weight={"a": 0.0}).fit(X, y)


def test_a_streams_class_weights_are_the_same_sample_weights():
    X, y = three_classes()
    names = ["a", "b", "c"]
    weighed = obscure(class_weight=FACTORS).partial_fit(X, y, classes=names)
    weight = np.array([FACTORS.get(label, 1.0) for label in y])
    told = obscure().partial_fit(X, y, classes=names, sample_weight=weight)
    plain = obscure().partial_fit(X, y, classes=names)
    np.testing.assert_allclose(weighed.decision_function(X), told.decision_function(X), atol=1e-12)
    assert abs(weighed.decision_function(X) - plain.decision_function(X)).max() > 1e-2


@pytest.mark.parametrize("weight", [FACTORS, "balanced"])
def test_partitions_weigh_classes_as_a_fit_does(weight):
    X, y = three_classes()
    keep = (y != "c") | (np.arange(60) % 3 == 0)  # so that balancing has something to do
    X, y = X[keep], y[keep]
    model = obscure(class_weight=weight, features=RandomFourier(20))
    whole = model.fit(X, y).bounds_
    parts = model.fit_partitions([X], [y]).bounds_
    plain = obscure(features=RandomFourier(20)).fit(X, y).bounds_
    assert parts.upper == pytest.approx(whole.upper, rel=2e-3)
    assert abs(plain.upper - whole.upper) > 1e-2 * whole.upper
