"""The picture of the switches shows what was learnt."""

import numpy as np
import pytest
from matplotlib import pyplot

from kernelweave import KernelBank, SampleAdaptiveMKLClassifier
from kernelweave.datasets.view_entries import make_views, remove_entries
from kernelweave.geometry import LpBall
from kernelweave.kernels import Gaussian, Linear
from kernelweave.plots import SwitchesDisplay

PAPER = {"switching": "fewest", "fallback": False}


@pytest.fixture(scope="module")
def model():
    data = make_views(40, n_views=3, separation=1.5, random_state=0)
    bank = KernelBank.per_view([Gaussian(), Linear()])
    return SampleAdaptiveMKLClassifier(bank, max_flips=2, **PAPER).fit(data.X, data.y)


def test_every_cell_has_the_state_of_its_switch(model):
    display = SwitchesDisplay.from_estimator(model, order=False)
    expected = [
        [0 if on else (1 if w > 0 else 2) for on, w in zip(row, model.kernel_weights_, strict=True)]
        for row in model.switches_
    ]
    np.testing.assert_array_equal(display.states, expected)
    np.testing.assert_array_equal(display.ax_.images[0].get_array(), expected)
    assert [label.get_text() for label in display.ax_.get_xticklabels()] == list(model.kernel_names_)
    texts = [text.get_text() for text in display.ax_.get_legend().get_texts()]
    assert texts[0].startswith("on (")
    assert len(texts) == len(np.unique(expected))


def test_samples_with_the_same_switches_stand_together(model):
    states = SwitchesDisplay.from_estimator(model).states
    changes = (np.diff(states == 0, axis=0) != 0).any(axis=1).sum()
    assert changes == len(model.patterns_) - 1


def test_missing_views_have_a_state_of_their_own():
    data = remove_entries(make_views(40, n_views=3, random_state=0), 0.4, 0)
    model = SampleAdaptiveMKLClassifier(KernelBank.per_view(), geometry=LpBall(2.0), max_flips=1)
    display = SwitchesDisplay.from_estimator(model.fit(data.X, data.y), order=False)
    np.testing.assert_array_equal(display.states == 3, data.corrupted)


def test_one_class_of_several_is_drawn_on_given_axes(model):
    data = make_views(45, n_views=3, random_state=0)
    y = np.array(["a", "b", "c"])[np.arange(45) % 3]
    several = SampleAdaptiveMKLClassifier(KernelBank.per_view(), max_flips=1, **PAPER).fit(data.X, y)
    _, ax = pyplot.subplots()
    display = SwitchesDisplay.from_estimator(several, label="b", order=False, ax=ax)
    assert display.ax_ is ax
    np.testing.assert_array_equal(display.states == 0, several.switches_[1])
    shared = SampleAdaptiveMKLClassifier(KernelBank.per_view(), max_flips=1, fallback=False).fit(data.X, y)
    display = SwitchesDisplay.from_estimator(shared, label="b", order=False)
    np.testing.assert_array_equal(display.states == 0, shared.switches_)
    np.testing.assert_array_equal(display.weights, shared.kernel_weights_[1])
    for fitted in (several, model):
        with pytest.raises(ValueError, match="label must be one of the classes"):
            SwitchesDisplay.from_estimator(fitted, label="d")


def test_an_unfitted_model_is_refused():
    with pytest.raises(ValueError, match="call fit first"):
        SwitchesDisplay.from_estimator(SampleAdaptiveMKLClassifier())
