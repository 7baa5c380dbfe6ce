"""Displays of pairs by their distances, and of ranks."""

import sys

import numpy as np
import pytest
from matplotlib import pyplot

from kernelweave import ITML
from kernelweave.plots import CMCDisplay, PairDistancesDisplay, PairScoresDisplay

RNG = np.random.default_rng(0)
PAIRS = RNG.normal(size=(40, 2, 3))
Y = np.where(RNG.random(40) < 0.5, 1, -1)
MODEL = ITML(tol=1e-3, random_state=0).fit(PAIRS, Y)


def test_pair_scores_are_two_curves_with_their_areas():
    display = PairScoresDisplay.from_estimator(MODEL, PAIRS, Y)
    left, right = display.ax_
    assert np.trapezoid(display.tpr, display.fpr) == pytest.approx(display.roc_auc)
    assert display.roc_auc == pytest.approx(MODEL.score(PAIRS, Y))
    assert f"ITML: AP {display.average_precision:.3f}" in left.get_legend().get_texts()[0].get_text()
    np.testing.assert_allclose(right.lines[0].get_xdata(), display.fpr)
    assert PairScoresDisplay.from_distances(Y, MODEL.pair_distance(PAIRS), ax=display.ax_).ax_ == (
        left,
        right,
    )


def test_distances_are_marked_by_kind_with_the_bounds():
    display = PairDistancesDisplay.from_estimator(MODEL, PAIRS, Y, name="learnt")
    similar, dissimilar = display.ax_.collections
    squared = MODEL.pair_distance(PAIRS) ** 2
    np.testing.assert_allclose(similar.get_offsets()[:, 1], squared[Y == 1])
    np.testing.assert_allclose(dissimilar.get_offsets()[:, 1], squared[Y == -1])
    assert [line.get_ydata()[0] for line in display.ax_.lines] == list(MODEL.bounds_)
    assert display.ax_.get_yscale() == "log"


def test_bounds_may_be_an_array_or_none():
    squares = PairDistancesDisplay([1, -1], [0.5, 2.0], bounds=np.array([1.0, 3.0])).plot().ax_
    assert [line.get_ydata()[0] for line in squares.lines] == [1.0, 3.0]
    assert not PairDistancesDisplay([1, -1], [0.5, 2.0]).plot().ax_.lines


def test_two_curves_need_two_axes():
    display = PairScoresDisplay(Y, MODEL.pair_distance(PAIRS))
    with pytest.raises(ValueError, match=r"two axes, as plt\.subplots\(1, 2\)\[1\] makes them; got Axes"):
        display.plot(pyplot.subplots()[1])
    below = pyplot.subplots(2, 1)[1]
    assert display.plot(below).ax_ == tuple(below)


def test_the_cmc_display_draws_its_curve():
    display = CMCDisplay.from_distances([[0.1, 0.5], [0.1, 0.3]], ["a", "b"], ["a", "b"], name="ITML")
    np.testing.assert_allclose(display.ax_.lines[0].get_ydata(), [0.5, 1.0])
    assert "rank-1 0.500" in display.ax_.get_legend().get_texts()[0].get_text()


def test_without_matplotlib_the_message_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(ImportError, match=r"kernelweave\[plot\]"):
        CMCDisplay([1.0]).plot()
