"""CONTRIBUTING.md's walk of a fit names the functions that a fit goes through, in their order."""

import re
import sys
from pathlib import Path

import numpy as np

import kernelweave
from kernelweave import MKLClassifier

ROOT = Path(kernelweave.__file__).parent
PAGE = Path(__file__).parents[1] / "CONTRIBUTING.md"


def stations():
    section = PAGE.read_text().split("## The walk of a fit")[1].split("\n## ")[0]
    return re.findall(r"^\d+\. `([\w/]+\.py)`, `(\w+)`:", section, flags=re.MULTILINE)


def walked():
    """Return the functions of the package in the order in which a fit of a raw table enters them first."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(1100, 5))
    y = np.where(X[:, 0] + X[:, 1] ** 2 + 0.5 * rng.normal(size=1100) > 1.0, "ill", "well")
    seen = {}

    def look(frame, event, _):
        path = Path(frame.f_code.co_filename)
        if event == "call" and ROOT in path.parents:
            seen.setdefault((path.relative_to(ROOT).as_posix(), frame.f_code.co_name), len(seen))

    sys.setprofile(look)
    try:
        MKLClassifier().fit(X, y)
    finally:
        sys.setprofile(None)
    return seen


def test_a_fit_goes_through_the_stations_in_their_order():
    order, named = walked(), stations()
    assert 10 <= len(named) <= 15
    places = [order[station] for station in named]
    assert places == sorted(places)
