"""Displays draw what they are given, on a figure of their own or on one given."""

import numpy as np
import pytest
from matplotlib import pyplot as plt

from kernelweave.plots import BandsDisplay, CriticalDifferenceDisplay, GroupedBarsDisplay

BANDS = {"one": np.array([[1.0, 0.5, 1.5], [2.0, 1.5, 2.5]]), "two": np.ones((2, 3))}
DISPLAYS = [
    BandsDisplay(np.array([0.0, 1.0]), BANDS, "noise", "accuracy"),
    GroupedBarsDisplay(["heart", "banana"], ["one", "two"], np.array([[1.0, 2.0], [3.0, 4.0]]), "kernels"),
    CriticalDifferenceDisplay(["b", "a", "c"], [2.0, 1.1, 2.9], 0.95),
]


@pytest.mark.parametrize("display", DISPLAYS, ids=lambda d: type(d).__name__)
def test_it_draws_on_axes_given_and_saves_the_same_file_twice(display, tmp_path):
    figure, ax = plt.subplots()
    assert display.plot(ax) is display
    assert display.ax_ is ax
    assert display.figure_ is figure
    for kind in ("png", "svg"):
        files = [tmp_path / f"one.{kind}", tmp_path / f"two.{kind}"]
        for file in files:
            display.save(file)
        assert files[0].read_bytes() == files[1].read_bytes()
    assert len(plt.get_fignums()) == 1  # the figure given; its own are closed


def test_lines_and_bands_are_the_values():
    ax = BandsDisplay(np.array([0.0, 1.0]), BANDS, "noise", "accuracy").plot().ax_
    assert [line.get_label() for line in ax.get_lines()] == ["one", "two"]
    np.testing.assert_allclose(ax.get_lines()[0].get_ydata(), [1.0, 2.0])
    assert ax.get_xlabel() == "noise"
    assert len(ax.collections) == 2


def test_bars_are_the_heights():
    ax = DISPLAYS[1].plot().ax_
    assert [bar.get_height() for bar in ax.patches] == [1.0, 3.0, 2.0, 4.0]


def test_methods_within_the_critical_difference_are_joined():
    display = CriticalDifferenceDisplay(["d", "b", "a", "c"], [3.9, 1.5, 1.0, 2.4], 1.0)
    assert display.methods == ["a", "b", "c", "d"]
    assert display.groups() == [(0, 1), (1, 2)]
    assert CriticalDifferenceDisplay(["a", "b"], [1.0, 2.0], 0.5).groups() == []
    assert CriticalDifferenceDisplay(["a", "b"], [1.4, 1.6], 0.5).groups() == [(0, 1)]
    words = [text.get_text() for text in display.plot().ax_.texts]
    assert any(word.startswith("a 1.00") for word in words)
