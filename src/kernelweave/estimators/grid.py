"""The grid of a search: a parameter of the learner by one of the geometry, walked between neighbours."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from numbers import Real
from typing import Any

import numpy as np
from sklearn.base import clone

from kernelweave.estimators.task import Start
from kernelweave.geometry import Geometry

Place = tuple[int, int]


@dataclass(frozen=True)
class Axis:
    """One parameter of a part and its values as given; ``order`` has their positions, from simple to complex.

    ``name`` is as in ``set_params``; None where there is nothing to vary, with one value that stands for the
    part as it is.
    """

    part: Any
    name: str | None
    values: tuple[Any, ...]
    order: tuple[int, ...]

    def params(self, position: int) -> dict[str, Any]:
        """Return the parameter with its value at this position."""
        return {} if self.name is None else {self.name: self.values[position]}

    def at(self, position: int) -> Any:
        """Return a copy of the part with the value at this position."""
        inner = {name.partition("__")[2]: value for name, value in self.params(position).items()}
        return clone(self.part).set_params(**inner)


def axis(role: str, part: Any, param: str | None, values: Any, default: Sequence[Any]) -> Axis:
    """Return the axis of a part: the parameter asked for, or its own, with the values given, or its own.

    The part's own values run from simple to complex, which tells the direction of given ones; values of a
    parameter of which nothing is known count from first to last.
    """
    own = getattr(part, "tunable", None)
    name = own if param is None else param
    if name is None:
        if values is not None:
            raise ValueError(
                f"{role}_values were given, but {type(part).__name__} has no parameter that is varied unless "
                f"named: leave them out, name one as {role}_param, or take another {role}."
            )
        return Axis(part, None, (None,), (0,))
    if values is None and name != own:
        raise ValueError(f"{role}_param={name!r} needs {role}_values: there are none to try unless given.")
    chosen = tuple(default) if values is None else _as_values(role, values)
    positions = list(range(len(chosen)))
    if name == own and len(default) > 1 and all(isinstance(value, Real) for value in chosen):
        positions.sort(key=chosen.__getitem__, reverse=default[0] > default[-1])
    return Axis(part, f"{role}__{name}", chosen, tuple(positions))


def _as_values(role: str, values: Any) -> tuple[Any, ...]:
    if isinstance(values, str) or not hasattr(values, "__iter__"):
        raise TypeError(f"{role}_values must be a sequence of values such as [0.1, 1.0]; got {values!r}.")
    chosen = tuple(value.item() if isinstance(value, np.generic) else value for value in values)
    if not chosen:
        raise ValueError(f"{role}_values must have at least one value; got none.")
    return chosen


@dataclass(frozen=True)
class Grid:
    """All pairs of values of the two axes, at places (learner, geometry) as they were given."""

    learner: Axis
    geometry: Axis

    @property
    def shape(self) -> Place:
        return len(self.learner.values), len(self.geometry.values)

    def places(self) -> Iterator[Place]:
        """Yield every place in the order of the walk: simple to complex, the geometry running fastest."""
        for i in self.learner.order:
            for j in self.geometry.order:
                yield i, j

    def params(self, place: Place) -> dict[str, Any]:
        """Return the parameters at a place, as ``set_params`` takes them."""
        return self.learner.params(place[0]) | self.geometry.params(place[1])

    def parts(self, place: Place) -> dict[str, Any]:
        """Return learner and geometry at a place."""
        return {"learner": self.learner.at(place[0]), "geometry": self.geometry.at(place[1])}

    def all_parts(self) -> dict[Place, dict[str, Any]]:
        """Return learner and geometry at every place, as the walk takes them; rows and columns share them."""
        learners = [self.learner.at(i) for i in range(self.shape[0])]
        geometries = [self.geometry.at(j) for j in range(self.shape[1])]
        return {(i, j): {"learner": learners[i], "geometry": geometries[j]} for i, j in self.places()}

    def is_edge(self, place: Place) -> bool:
        """Tell whether a place is among those that have every learner and every geometry once."""
        return 0 in place

    def start(
        self, place: Place, geometry: Geometry, solutions: Mapping[Place, list[Start]]
    ) -> list[Start] | None:
        """Return where to start at a place with its geometry, given the solutions of all places before it.

        The one on the left, if its weights are legal here: its machine need not be solved again. Otherwise,
        of a cell of four, three are solved: what one parameter changes hardly depends on the other, so left +
        below - diagonal is nearer than any of the three. On the edges it is the one neighbour.
        """
        a, b = self.learner.order.index(place[0]), self.geometry.order.index(place[1])
        left = solutions[place[0], self.geometry.order[b - 1]] if b else None
        below = solutions[self.learner.order[a - 1], place[1]] if a else None
        if left is None or below is None:
            return left or below
        if _are_known(left, geometry):
            return left
        diagonal = solutions[self.learner.order[a - 1], self.geometry.order[b - 1]]
        return [_corner(*three) for three in zip(left, below, diagonal, strict=True)]


def _are_known(starts: list[Start], geometry: Geometry) -> bool:
    """Tell whether all weights lie in the set, and what their machines say is at hand."""
    return all(start.solution is not None and np.isfinite(geometry.value(start.eta)) for start in starts)


def _corner(left: Start, below: Start, diagonal: Start) -> Start:
    """Extrapolate, but let no weight vanish that both neighbours have: some solvers never bring it back."""
    least = 0.5 * np.minimum(left.eta, below.eta)
    eta = np.maximum(left.eta + below.eta - diagonal.eta, least)
    return Start(eta, left.coef + below.coef - diagonal.coef)
