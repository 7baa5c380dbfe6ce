"""Displays as SVG inside a page: scalable, in the page's colours, with a title for screen readers."""

from __future__ import annotations

import re
import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from io import StringIO
from itertools import count
from typing import TYPE_CHECKING, Any
from xml.etree import ElementTree

from markupsafe import Markup

from kernelweave._typing import Vector
from kernelweave.plots._base import COLOURS

if TYPE_CHECKING:
    from matplotlib.axes import Axes

SVG = "http://www.w3.org/2000/svg"
LINK = "{http://www.w3.org/1999/xlink}href"
# In points: as wide as a phone, so that the letters are not scaled down on one.
WIDTH = 380.0
DPI = 72.0
LONGEST = 30  # characters of a label
MARKER = "here"
# Characters that XML 1.0 cannot hold, however they are written.
ILLEGAL = re.compile("[^\\t\\n\\r\\x20-\\ud7ff\\ue000-\\ufffd\\U00010000-\\U0010ffff]")
# Drawn black or grey means the page's own ink; the other colours are brightened on a dark page.
INK = {"#000000": "currentColor", "#cccccc": "var(--soft)"}
PAINT = {colour.lower(): f"var(--c{k})" for k, colour in enumerate(COLOURS) if colour != "#000000"} | INK
STYLE: Any = {
    "font.size": 10.0,
    "svg.fonttype": "none",  # letters stay letters: small, selectable, searchable
    "text.parse_math": False,  # a column may be called $x$
    "axes.spines.top": False,
    "axes.spines.right": False,
    "path.simplify": True,
}


@dataclass(frozen=True)
class Chart:
    """A drawing for the page; ``marks`` are the x coordinates of marked values in its units."""

    svg: Markup
    marks: tuple[float, ...] = ()


def svg_chart(
    draw: Callable[[Axes], Any], name: str, title: str, height: float, marks: Vector | Sequence[float] = ()
) -> Chart:
    """Draw on axes of a phone's width and return the SVG; with ``marks`` a line that can be moved to them."""
    import matplotlib
    from matplotlib.figure import Figure

    with matplotlib.rc_context({**STYLE, "svg.hashsalt": name}), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # letters no font has are drawn by the browser's
        figure = Figure(figsize=(WIDTH / DPI, height / DPI), dpi=DPI, layout="constrained")
        ax = figure.subplots()
        draw(ax)
        if ax.get_xscale() == "linear":
            ax.locator_params(axis="x", nbins=5)  # more numbers do not fit on a phone
        if len(marks):
            ax.axvline(float(marks[0]), color="black", lw=1.2, ls="--").set_gid(MARKER)
        content = StringIO()
        figure.savefig(content, format="svg", transparent=True, metadata={"Date": None, "Creator": None})
        coordinates = tuple(float(ax.transData.transform((x, 0.0))[0]) for x in marks)
    return Chart(Markup(_embeddable(legal(content.getvalue()), name, legal(title))), coordinates)


def short_label(text: Any) -> str:
    """Return a name short enough to stand beside an axis; tables have it in full."""
    return _visible(_abbreviated(_one_line(text)))


def distinct_labels(names: Iterable[Any]) -> list[str]:
    """Return the short labels of one chart; names that differ have labels that differ.

    Names whose labels would be the same are cut where they agree, with a window on where they begin to
    differ; if even these agree, they are numbered.
    """
    lines = [_one_line(name) for name in names]
    same_label: dict[str, list[str]] = {}
    for line in dict.fromkeys(lines):
        same_label.setdefault(_abbreviated(line), []).append(line)
    labels: dict[str, str] = {}
    for label, group in same_label.items():
        pairs = zip(min(group), max(group), strict=False)  # these two differ first
        position = next((k for k, (one, other) in enumerate(pairs) if one != other), None)
        labels |= {line: label if len(group) == 1 else _abbreviated(line, position) for line in group}
    uses = Counter(labels.values())
    number = count(1)
    labels = {line: one if uses[one] == 1 else f"{one} ({next(number)})" for line, one in labels.items()}
    return [_visible(labels[line]) for line in lines]


def _one_line(text: Any) -> str:
    return " ".join(legal(str(text)).split()) or "·"


def _abbreviated(line: str, position: int | None = None) -> str:
    """Leave the middle out of a long line, except what is around a position in it."""
    if len(line) <= LONGEST:
        return line
    if position is None:
        return f"{line[: LONGEST // 2 - 1]}…{line[-LONGEST // 2 :]}"
    part = LONGEST // 3 - 1
    start = position - part // 3
    return f"{line[:part]}…{line[start : start + part]}…{line[-part:]}"


def _visible(label: str) -> str:
    return label if not label.startswith("_") else f"\u200b{label}"  # matplotlib hides such names


def legal(text: str) -> str:
    """Return a text without the characters no SVG can hold, such as a bell in a label."""
    return ILLEGAL.sub("", text)


def _embeddable(svg: str, name: str, title: str) -> str:
    """Return the drawing as part of a page: ids of its own, the page's colours, a title, no metadata."""
    ElementTree.register_namespace("", SVG)
    ElementTree.register_namespace("xlink", LINK[1:].partition("}")[0])
    root = ElementTree.fromstring(svg)
    for parent in list(root.iter()):  # a style inside a drawing would apply to the entire page
        for tag in ("metadata", "style"):
            for element in parent.findall(f"{{{SVG}}}{tag}"):
                parent.remove(element)
    for element in root.iter():
        _recolour(element)
        if "id" in element.attrib:
            element.set("id", f"{name}-{element.get('id')}")
        if LINK in element.attrib:
            element.set(LINK, re.sub(r"^#", f"#{name}-", element.get(LINK, "")))
        for key, value in element.attrib.items():
            element.set(key, re.sub(r"url\(#", f"url(#{name}-", value))
    for unwanted in ("width", "height", "version"):
        root.attrib.pop(unwanted, None)
    label = ElementTree.Element(f"{{{SVG}}}title", {"id": f"{name}-title"})
    label.text = title
    root.insert(0, label)
    root.set("role", "img")
    root.set("aria-labelledby", f"{name}-title")
    return ElementTree.tostring(root, encoding="unicode")


def _recolour(element: ElementTree.Element) -> None:
    style = element.get("style")
    if style is not None:
        for colour, paint in PAINT.items():
            style = style.replace(colour, paint)
        element.set("style", style)
    tag = element.tag.rpartition("}")[2]
    drawn = tag in ("text", "path", "use") and "fill" not in (style or "") and element.get("fill") is None
    if tag == "text" and drawn:
        element.set("fill", "currentColor")
