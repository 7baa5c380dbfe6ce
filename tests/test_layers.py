"""Engine rooms never import method rooms or estimators; method rooms never import each other."""

import ast
from pathlib import Path

import pytest

import kernelweave

ROOT = Path(kernelweave.__file__).parent
TESTS = Path(__file__).parent
FOUNDATION = {"_part", "_typing", "_threads", "_core", "errors"}
ENGINE = {"kernels", "views", "bank", "gram", "geometry", "learners", "solvers"}
METHODS = {"multiclass", "weak_labels", "privileged", "metric", "adaptive", "baselines", "evidence"}
MODELS = ENGINE | METHODS | {"estimators", "presets"}
MAY_IMPORT = {
    "kernels": set(),
    "views": set(),
    "gram": {"kernels"},
    "bank": {"kernels", "views", "gram"},
    "geometry": set(),
    "learners": set(),
    "solvers": set(),
    "estimators": ENGINE,
    **{room: ENGINE | {"estimators"} for room in METHODS},
    "presets": ENGINE | METHODS | {"estimators"},
    "datasets": {"bank", "views"},
    "evaluation": set(),
    "plots": {"evaluation"},
    "explain": {"bank", "views", "estimators", "weak_labels", "evaluation"},
    "io": ENGINE | METHODS | {"estimators"},
    "experiments": MODELS | {"datasets", "evaluation", "explain", "plots"},
    "report": MODELS | {"evaluation", "explain", "plots", "io"},
    "demo": MODELS | {"report"},
    "cli": MODELS | {"demo", "experiments", "io", "evaluation", "report"},
    "__main__": {"cli"},
}
# What solvers may know of other rooms: protocols, the base of geometries, what learners return, and the kernels
# that are never stored. No single learner, geometry or storage of matrices is among them.
PROTOCOLS = {
    "kernelweave.geometry.base",
    "kernelweave.gram.memory",
    "kernelweave.gram.protocol",
    "kernelweave.gram.streamed",
    "kernelweave.learners.base",
    "kernelweave.learners.program",
    "kernelweave.learners.ridge",
    "kernelweave.learners.solution",
}


def modules():
    return sorted(path for path in ROOT.rglob("*.py") if path != ROOT / "__init__.py")


def imported(path):
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path} imports relatively"
            yield node.module
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def layer(name):
    parts = name.split(".")
    return parts[1] if len(parts) > 1 else ""


@pytest.mark.parametrize("path", modules(), ids=lambda p: str(p.relative_to(ROOT)))
def test_a_module_imports_only_from_the_layers_below_it(path):
    own = path.relative_to(ROOT).parts[0].removesuffix(".py")
    if own in FOUNDATION:
        return
    for name in imported(path):
        if not name.startswith("kernelweave."):
            continue
        used = layer(name)
        if used in FOUNDATION | {own, "__version__"}:
            continue
        if own == "solvers":
            assert any(name.startswith(p) for p in PROTOCOLS), f"{path.name} imports {name}: not a protocol"
        else:
            assert used in MAY_IMPORT[own], f"{own} may not import {name}"


def test_every_layer_is_in_the_table():
    found = {path.relative_to(ROOT).parts[0].removesuffix(".py") for path in modules()}
    assert found - FOUNDATION == set(MAY_IMPORT)


SOURCES = sorted([*ROOT.rglob("*.py"), *TESTS.rglob("*.py")])


@pytest.mark.parametrize("path", SOURCES, ids=lambda p: "/".join(p.parts[-3:]))
def test_files_stay_small(path):
    assert len(path.read_text().splitlines()) <= 700
