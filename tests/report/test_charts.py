"""Any text can stand in a chart."""

from types import SimpleNamespace
from xml.etree import ElementTree

import numpy as np
import pytest

pytest.importorskip("matplotlib")
pytest.importorskip("markupsafe")

from kernelweave.report.charts import LONGEST, SVG, chart, shortened, told_apart
from kernelweave.report.drawing import weights_chart

CONTROL = "z\x00\x02\x1bw\ufffe\ud800"


def texts(drawn):
    root = ElementTree.fromstring(str(drawn.svg))
    return [element.text for element in root.iter() if element.tag in (f"{{{SVG}}}text", f"{{{SVG}}}title")]


def test_characters_no_svg_can_hold_are_left_out():
    assert shortened(CONTROL) == "zw"
    assert shortened("\x02") == "·"
    assert shortened("\U0001f600é\tx") == "\U0001f600é x"
    drawn = chart(lambda ax: ax.set_xlabel("axis z\x02w"), "c", f"title {CONTROL}", 100.0)
    assert {"axis zw", "title zw"} <= set(texts(drawn))


def test_long_names_stay_short_and_differ_where_they_did():
    days = [f"proteomics_plasma_day{k}·gaussian(scale={s})" for k in (1, 2, 13) for s in (1, 4, 0.25)]
    far = [f"{'x' * 40}{k}{'y' * 40}" for k in range(3)]
    names = [*days, *far, "short", "_hidden", "proteomics of the plasma, day one, all columns"]
    labels = told_apart(names)
    assert len(set(labels)) == len(names)
    assert max(len(label) for label in labels) <= LONGEST
    assert labels[0] == "proteomic…day1·gaus…(scale=1)"
    assert labels[-3:] == ["short", "\u200b_hidden", "proteomics of …ne, all columns"]


def test_names_that_no_window_tells_apart_are_numbered():
    twice = [f"{'x' * 20}{a}{'y' * 20}{b}{'z' * 20}" for a in "pq" for b in "uv"]
    labels = told_apart([*twice, twice[0]])
    assert len(set(labels)) == 4
    assert labels[0] == labels[4]


def test_kernels_of_views_with_long_names_have_labels_of_their_own():
    names = [f"proteomics_plasma_day{k}·gaussian(scale=1)" for k in (1, 2)]
    machine = SimpleNamespace(kernel_names_=names)
    found = SimpleNamespace(machine=machine, weights=np.array([0.4, 0.6]), stability=None)
    assert set(told_apart(names)) <= set(texts(weights_chart(found)))
