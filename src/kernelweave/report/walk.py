"""The path of the weights along the parameter of the model's geometry."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from sklearn.base import clone

from kernelweave._typing import AnyArray, Matrix, Vector
from kernelweave.estimators.model import MKLModel
from kernelweave.estimators.path import path
from kernelweave.explain.contributions import unwrapped
from kernelweave.explain.refits import rows_of
from kernelweave.geometry import BoxSimplex, Simplex, Uniform
from kernelweave.report.baselines import best
from kernelweave.report.held_out import HeldOut, Tick, score

STEPS = 21
SYMBOLS = {"theta": "θ", "p": "p", "v": "v"}
MEANINGS = {
    "cap": "No kernel may have more weight than θ: at the left end all count alike, at the right end one may "
    "take all.",
    "theta": "The larger θ is, the freer the weights: at the left end they are nearly even.",
    "p": "The weights have norm p at most 1: for large p all kernels count alike, near 1 few do.",
    "v": "At v = 0 all kernels count, at v = 1 few do.",
}


@dataclass(frozen=True)
class Course:
    """Which parameter is walked, along which values, and what its ends mean."""

    model: Any = field(repr=False)
    param: str
    symbol: str
    values: Vector
    meaning: str
    now: float


@dataclass(frozen=True)
class Walk:
    """Weights, scores on held-out rows and gaps along a parameter."""

    course: Course
    names: tuple[str, ...]
    weights: Matrix = field(repr=False)
    held_out: Vector
    gaps: Vector

    @property
    def here(self) -> int:
        """The place of the value nearest to the model's own."""
        return int(np.argmin(np.abs(np.log1p(self.course.values) - np.log1p(self.course.now))))

    @property
    def best(self) -> int:
        """The place of the first value with the best mean held-out score."""
        return int(np.argmax(self.held_out >= self.held_out.max() - 1e-12))


def course_of(model: Any) -> Course | None:
    """Return what to walk along for a fitted machine, or None where its weights have no such parameter."""
    if not isinstance(model, MKLModel) or len(model.kernel_names_) < 2:
        return None
    params, M = model.get_params(deep=False), len(model.kernel_names_)
    if "geometry" not in params:  # the Fisher machine has a norm, the baselines have nothing
        now = params.get("p")
        return None if now is None else Course(model, "p", "p", _values("p", ()), MEANINGS["p"], float(now))
    geometry = model._geometry
    if isinstance(geometry, Simplex | Uniform | BoxSimplex):
        now = geometry.cap(M) if isinstance(geometry, BoxSimplex) else float(geometry.start(M)[0])
        now = 1.0 if isinstance(geometry, Simplex) else now
        boxed = clone(model).set_params(geometry=BoxSimplex(theta=1.0))
        grid = BoxSimplex(theta=1.0).grid(M)
        return Course(boxed, "geometry__theta", "θ", _values("theta", grid), MEANINGS["cap"], now)
    name = geometry.tunable
    if name is None:
        return None
    values = _values(name, geometry.grid(M))
    now = float(getattr(geometry, name))
    return Course(model, f"geometry__{name}", SYMBOLS[name], values, MEANINGS[name], now)


def walk(model: Any, fitted: Any, X: Any, y: AnyArray, held: HeldOut, tick: Tick) -> Walk | None:
    """Walk on all rows for the weights and on every fold for the held-out scores."""
    course = course_of(best(unwrapped(fitted)[0]))
    if course is None:
        return None
    how: dict[str, Any] = {"param": course.param, "values": course.values.tolist()}
    tick("path")
    whole = path(course.model, unwrapped(fitted, X)[1], y, **how)
    scores = []
    for split, one in zip(held.splits, held.models, strict=True):
        tick("path")
        X_train, y_train, X_test, y_test = rows_of(model, X, y, split)
        train, test = (unwrapped(one, rows)[1] for rows in (X_train, X_test))
        found = path(course.model, train, y_train, **how)
        scores.append([score(m, test, y_test) for m in found.models])
    return Walk(
        course,
        tuple(str(name) for name in whole.kernel_names),
        whole.kernel_weights.reshape(len(course.values), -1, len(whole.kernel_names)).mean(axis=1),
        np.mean(scores, axis=0),
        np.array([c.relative_gap for c in whole.certificates]),
    )


def _values(name: str, grid: tuple[float, ...]) -> Vector:
    """Return values from even weights to few kernels, closer together than a search would take them."""
    if name == "p":
        return np.geomspace(16.0, 1.0, STEPS)
    if name == "v":
        return np.linspace(0.0, 1.0, STEPS)
    return np.geomspace(min(grid), max(grid), STEPS)
