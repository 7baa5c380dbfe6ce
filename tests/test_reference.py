"""The reference has an entry for every public name, and the flow chart leads to every estimator."""

import importlib
import re
import runpy
import subprocess
import sys
from pathlib import Path

import pytest
from sklearn.base import BaseEstimator

import kernelweave

ROOT = Path(__file__).parents[1]
MODULES = runpy.run_path(str(ROOT / "docs" / "api.py"))["MODULES"]


@pytest.fixture(scope="module")
def pages(tmp_path_factory):
    pytest.importorskip("pdoc")
    folder = tmp_path_factory.mktemp("api")
    words = [sys.executable, str(ROOT / "docs" / "api.py"), str(folder)]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "API reference:" in done.stdout
    return {name: Path(folder, *name.split(".")).with_suffix(".html").read_text() for name in MODULES}


def test_every_public_name_has_an_entry(pages):
    missing = [
        f"{name}.{entry}"
        for name in MODULES
        for entry in getattr(importlib.import_module(name), "__all__", ())
        if not entry.startswith("__") and entry != "presets" and f'id="{entry}"' not in pages[name]
    ]
    assert missing == []


def test_every_public_layer_has_a_page():
    private = {"cli", "demo", "estimators", "experiments", "gram", "presets"}
    layers = {p.stem for p in (ROOT / "src" / "kernelweave").iterdir() if not p.name.startswith("_")}
    layers -= {"py", "py.typed"}
    assert {name.partition(".")[2] for name in MODULES} - {""} == layers - private


def test_the_flow_chart_leads_to_every_estimator():
    page = (ROOT / "docs" / "which.md").read_text()
    chart = re.search(r"```mermaid\n(.*?)```", page, flags=re.DOTALL).group(1)
    public = {name: getattr(kernelweave, name) for name in kernelweave.__all__}
    estimators = {n for n, v in public.items() if isinstance(v, type) and issubclass(v, BaseEstimator)}
    ends = set(re.findall(r"\b[A-Z]\w+\b", " ".join(re.findall(r"\[([^\]]+)\]", chart))))
    assert len(estimators) > 20
    assert estimators <= ends
    assert {end for end in ends if end.isidentifier()} <= set(public)


def test_the_guide_goes_by_what_there_is_in_hand():
    guide = (ROOT / "docs" / "guide.md").read_text()
    contents = guide[guide.index("What you have in hand") : guide.index("What you want to do")]
    for have in (
        "One table",
        "Several arrays",
        "Precomputed",
        "Few labels",
        "Bags",
        "Features that exist only",
    ):
        assert have in contents


def test_the_picture_of_the_report_is_small():
    picture = ROOT / "docs" / "images" / "report.png"
    assert "docs/images/report.png" in (ROOT / "README.md").read_text()
    assert picture.stat().st_size < 300_000
