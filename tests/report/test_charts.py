"""Any text can stand in a chart."""

from xml.etree import ElementTree

import pytest

pytest.importorskip("matplotlib")
pytest.importorskip("markupsafe")

from kernelweave.report.charts import SVG, chart, shortened

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
