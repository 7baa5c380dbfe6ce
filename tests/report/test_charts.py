"""Any text can stand in a chart."""

from types import SimpleNamespace
from xml.etree import ElementTree

import numpy as np
import pytest

pytest.importorskip("matplotlib")
pytest.importorskip("markupsafe")

from kernelweave.report.charts import weights_chart
from kernelweave.report.svg import LONGEST, SVG, distinct_labels, short_label, svg_chart

CONTROL = "z\x00\x02\x1bw\ufffe\ud800"


def texts(drawn):
    root = ElementTree.fromstring(str(drawn.svg))
    return [element.text for element in root.iter() if element.tag in (f"{{{SVG}}}text", f"{{{SVG}}}title")]


def test_characters_no_svg_can_hold_are_left_out():
    assert short_label(CONTROL) == "zw"
    assert short_label("\x02") == "·"
    assert short_label("\U0001f600é\tx") == "\U0001f600é x"
    drawn = svg_chart(lambda ax: ax.set_xlabel("axis z\x02w"), "c", f"title {CONTROL}", 100.0)
    assert {"axis zw", "title zw"} <= set(texts(drawn))


def test_long_names_stay_short_and_differ_where_they_did():
    days = [f"proteomics_plasma_day{k}·gaussian(scale={s})" for k in (1, 2, 13) for s in (1, 4, 0.25)]
    far = [f"{'x' * 40}{k}{'y' * 40}" for k in range(3)]
    names = [*days, *far, "short", "_hidden", "proteomics of the plasma, day one, all columns"]
    labels = distinct_labels(names)
    assert len(set(labels)) == len(names)
    assert max(len(label) for label in labels) <= LONGEST
    assert labels[0] == "proteomic…day1·gaus…(scale=1)"
    assert labels[-3:] == ["short", "\u200b_hidden", "proteomics of …ne, all columns"]


def test_names_that_agree_in_every_window_are_numbered():
    twice = [f"{'x' * 20}{a}{'y' * 20}{b}{'z' * 20}" for a in "pq" for b in "uv"]
    labels = distinct_labels([*twice, twice[0]])
    assert len(set(labels)) == 4
    assert labels[0] == labels[4]


def test_kernels_of_views_with_long_names_have_labels_of_their_own():
    names = [f"proteomics_plasma_day{k}·gaussian(scale=1)" for k in (1, 2)]
    kernel_model = SimpleNamespace(kernel_names_=names)
    found = SimpleNamespace(kernel_model=kernel_model, weights=np.array([0.4, 0.6]), stability=None)
    assert set(distinct_labels(names)) <= set(texts(weights_chart(found)))
