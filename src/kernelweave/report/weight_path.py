"""The path of the weights along the parameter of the model's geometry."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from sklearn.base import clone

from kernelweave._typing import AnyArray, Matrix, Vector
from kernelweave.estimators.model import MKLModel
from kernelweave.estimators.path import path
from kernelweave.explain.contributions import unwrap
from kernelweave.explain.refits import train_test_data
from kernelweave.geometry import BoxSimplex, Simplex, Uniform
from kernelweave.report.baselines import best_estimator
from kernelweave.report.held_out import HeldOut, Tick, score

SYMBOLS = {"theta": "θ", "p": "p", "v": "v"}
MEANINGS = {
    "cap": "No kernel may have more weight than θ: at the left end all count alike, at the right end one may "
    "take all.",
    "theta": "The larger θ is, the freer the weights: at the left end they are nearly even.",
    "p": "The weights have norm p at most 1: for large p all kernels count alike, near 1 few do.",
    "v": "At v = 0 all kernels count, at v = 1 few do.",
}


@dataclass(frozen=True)
class PathParameter:
    """The parameter of a path: the model that has it, its values along the path, meaning and value now."""

    model: Any = field(repr=False)
    name: str
    symbol: str
    values: Vector
    meaning: str
    current: float


@dataclass(frozen=True)
class WeightPath:
    """Weights, scores on held-out rows and gaps along a parameter."""

    parameter: PathParameter
    names: tuple[str, ...]
    weights: Matrix = field(repr=False)
    held_out: Vector
    gaps: Vector

    @property
    def current(self) -> int:
        """The position of the value nearest to the model's own."""
        values = self.parameter.values
        return int(np.argmin(np.abs(np.log1p(values) - np.log1p(self.parameter.current))))

    @property
    def best(self) -> int:
        """The position of the first value with the best mean held-out score."""
        return int(np.argmax(self.held_out >= self.held_out.max() - 1e-12))


def path_parameter(model: Any) -> PathParameter | None:
    """Return the parameter of a fitted model's weights, or None where they have none."""
    if not isinstance(model, MKLModel) or len(model.kernel_names_) < 2:
        return None
    params, M = model.get_params(deep=False), len(model.kernel_names_)
    if "geometry" not in params:  # the Fisher discriminant has a norm, the baselines have nothing
        p = params.get("p")
        return None if p is None else PathParameter(model, "p", "p", _values("p"), MEANINGS["p"], float(p))
    geometry = model._geometry
    if isinstance(geometry, Simplex | Uniform | BoxSimplex):
        # The simplex and even weights are the two ends of the box simplex, which joins them by its cap.
        if isinstance(geometry, BoxSimplex):
            current = geometry.cap(M)
        else:
            current = 1.0 if isinstance(geometry, Simplex) else float(geometry.start(M)[0])
        boxed = clone(model).set_params(geometry=BoxSimplex(theta=1.0))
        values = _values("theta", BoxSimplex(theta=1.0).grid(M))
        return PathParameter(boxed, "geometry__theta", "θ", values, MEANINGS["cap"], current)
    name = geometry.tunable
    if name is None:
        return None
    values, current = _values(name, geometry.grid(M)), float(getattr(geometry, name))
    return PathParameter(model, f"geometry__{name}", SYMBOLS[name], values, MEANINGS[name], current)


def weight_path(model: Any, X: Any, y: AnyArray, held: HeldOut, tick: Tick) -> WeightPath | None:
    """Follow the path on all rows for the weights, and on every fold for the held-out scores."""
    parameter = path_parameter(best_estimator(unwrap(model)[0]))
    if parameter is None:
        return None
    options: dict[str, Any] = {"param": parameter.name, "values": parameter.values.tolist()}
    tick("path")
    all_rows = path(parameter.model, unwrap(model, X)[1], y, **options)
    scores = []
    for split, fitted in zip(held.splits, held.models, strict=True):
        tick("path")
        X_train, y_train, X_test, y_test = train_test_data(model, X, y, split)
        train, test = (unwrap(fitted, rows)[1] for rows in (X_train, X_test))
        fold = path(parameter.model, train, y_train, **options)
        scores.append([score(one, test, y_test) for one in fold.models])
    return WeightPath(
        parameter,
        tuple(str(name) for name in all_rows.kernel_names),
        all_rows.kernel_weights.reshape(len(parameter.values), -1, len(all_rows.kernel_names)).mean(axis=1),
        np.mean(scores, axis=0),
        np.array([c.relative_gap for c in all_rows.certificates]),
    )


def _values(name: str, grid: tuple[float, ...] = ()) -> Vector:
    """Return 21 values from even weights to few kernels: a smooth slider, finer than the grid of a search."""
    if name == "p":
        return np.geomspace(16.0, 1.0, 21)
    if name == "v":
        return np.linspace(0.0, 1.0, 21)
    return np.geomspace(min(grid), max(grid), 21)
