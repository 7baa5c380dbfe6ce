"""The documents say what is true: examples run, names exist, links lead somewhere, nothing is left out."""

import importlib
import os
import re
import subprocess
import sys
import tomllib
from dataclasses import fields, is_dataclass
from inspect import isfunction
from pathlib import Path

import pytest

import kernelweave
from kernelweave import presets

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src" / "kernelweave"
EXAMPLES = sorted((ROOT / "examples").glob("*.py"))
PAGES = [ROOT / name for name in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md")] + sorted(
    ROOT.glob("docs/*.md")
)
RUNNABLE = [page for page in PAGES if "```python" in page.read_text()]
LAYERS = ("kernels", "geometry", "learners", "solvers")


def text(name):
    return (ROOT / name).read_text()


def run(script):
    """Run a script as a user would, warnings being errors, and return what it prints."""
    done = subprocess.run(
        [sys.executable, "-W", "error", str(script)],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
        env=os.environ | {"OPENBLAS_NUM_THREADS": "1", "PYTHONIOENCODING": "utf-8"},
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def exported(layer):
    module = importlib.import_module(f"kernelweave.{layer}")
    return {name: getattr(module, name) for name in module.__all__}


def relative(page):
    return str(page.relative_to(ROOT))


def prose(page):
    """The page without its code blocks, which have brackets of their own."""
    return re.sub(r"^```.*?^```", "", page.read_text(), flags=re.DOTALL | re.MULTILINE)


@pytest.mark.parametrize("script", EXAMPLES, ids=lambda p: p.name)
def test_an_example_runs_and_prints_something_short(script):
    printed = run(script).splitlines()
    assert 2 <= len(printed) <= 30


@pytest.mark.parametrize("script", EXAMPLES, ids=lambda p: p.name)
def test_an_example_is_under_eighty_lines(script):
    assert len(script.read_text().splitlines()) < 80


def test_there_are_examples():
    assert {"quick_start.py", "views.py", "precomputed_cv.py", "geometries.py"} <= {p.name for p in EXAMPLES}


@pytest.mark.parametrize("page", RUNNABLE, ids=relative)
def test_the_python_blocks_of_a_page_run_in_order(page, tmp_path):
    blocks = re.findall(r"^```python\n(.*?)^```", page.read_text(), flags=re.DOTALL | re.MULTILINE)
    script = tmp_path / "blocks.py"
    script.write_text("\n".join(blocks))
    assert "gap" in run(script)


def test_readme_guide_and_contributing_have_python_to_run():
    assert {relative(page) for page in RUNNABLE} >= {"README.md", "CONTRIBUTING.md", "docs/guide.md"}


@pytest.mark.parametrize("layer", LAYERS)
def test_every_exported_class_and_function_is_documented(layer):
    pages = [ROOT / "docs" / f"{name}.md" for name in ("equations", "guide", "theory")]
    code = "\n".join(span for page in pages for span in re.findall(r"`([^`\n]+)`", prose(page)))
    names = [name for name, value in exported(layer).items() if isinstance(value, type) or isfunction(value)]
    assert len(names) > 3
    assert [name for name in names if not re.search(rf"\b{name}\b", code)] == []


def test_every_preset_is_in_the_readme():
    assert [name for name in presets.__all__ if f"| `{name}` |" not in text("README.md")] == []


def test_every_dependency_has_its_reason():
    project = tomllib.loads(text("pyproject.toml"))
    wanted = list(project["build-system"]["requires"]) + list(project["project"]["dependencies"])
    wanted += [item for extra in project["project"]["optional-dependencies"].values() for item in extra]
    names = {re.split(r"[<>=!~; ]", item)[0] for item in wanted}
    rows = {cell.strip() for line in text("docs/dependencies.md").splitlines() for cell in line.split("|")}
    assert "numpy" in names
    assert names - rows == set()


@pytest.mark.parametrize("page", PAGES, ids=relative)
def test_links_lead_somewhere(page):
    for target in re.findall(r"\]\(([^)\s]+)\)", prose(page)):
        if "://" in target:
            continue
        path, _, anchor = target.partition("#")
        file = (page.parent / path).resolve() if path else page
        assert file.is_file(), f"{relative(page)} links to {target}"
        if anchor:
            assert anchor in anchors(file), f"{relative(page)} links to {target}"


def anchors(page):
    headings = re.findall(r"^#+ (.+)$", prose(page), flags=re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def test_every_numbered_equation_of_soft_margin_mkl_has_a_row():
    section = text("docs/equations.md").split("## Soft margin MKL")[1].split("\n## ")[0]
    firsts = " ".join(line.split("|")[1] for line in section.splitlines() if line.startswith("|"))
    assert [k for k in range(1, 28) if f"({k})" not in firsts] == []
    assert [name for name in ("Lemma 7", "Lemma 8", "Algorithm 1", "Algorithm 2") if name not in firsts] == []


def test_files_named_beside_equations_exist():
    named = re.findall(r"`((?:\.\./)?[a-z_]+/[a-z_]*(?:\.\w+)?)`", text("docs/equations.md"))
    assert len(named) > 30
    assert [name for name in named if not (SOURCE / name).exists()] == []


@pytest.mark.parametrize("page", PAGES, ids=relative)
def test_methods_named_in_the_documents_exist(page):
    known = {name: value for layer in (*LAYERS, "gram") for name, value in exported(layer).items()}
    known |= {name: getattr(kernelweave, name) for name in kernelweave.__all__}
    for owner, attribute in re.findall(r"\b([A-Z]\w+)(?:\([^`()]*\))?\.([a-z_]+)\b", prose(page)):
        if owner in known:
            assert has(known[owner], attribute), f"{relative(page)} names {owner}.{attribute}"


def has(owner, attribute):
    return hasattr(owner, attribute) or (is_dataclass(owner) and attribute in {f.name for f in fields(owner)})


def test_every_key_that_is_cited_is_in_the_bibliography():
    entries = set(re.findall(r"^@\w+\{(\w+),", text("docs/papers.bib"), flags=re.MULTILINE))
    sources = PAGES + sorted(SOURCE.rglob("*.py"))
    cited = {key for path in sources for key in re.findall(r"[\[;] ?([A-Z][a-z]+\d\d)\b", path.read_text())}
    assert len(cited) > 5
    assert cited - entries == set()
