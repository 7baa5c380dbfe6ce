"""The largest primal value when decision values are known up to an error."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from kernelweave._typing import AnyArray, Vector
from kernelweave.learners.machine import Machine
from kernelweave.learners.protocol import Learner

# Errors beyond this are not made good by larger coefficients.
LARGEST = 0.1


class Worst(NamedTuple):
    """A primal value, the multiple of the coefficients that has it, and the machine with its intercept."""

    value: float
    scale: float
    machine: Machine


def worst_primal(
    learner: Learner,
    f: AnyArray,
    reach: AnyArray,
    coef: AnyArray,
    y: AnyArray,
    weight: Vector | None = None,
    enough: float = -np.inf,
) -> Worst:
    """Return a value that some multiple of the coefficients does not exceed, and which, if K v is near f.

    It may be within ``reach`` of it, entry by entry. Where the loss falls with the margin y f, the worst is
    that every margin is as small as it may be. Then coefficients a little larger are tried too: they cost
    that share of ½ v'Kv, twice, and samples on the margin need not pay for their error, however high the
    price; unless the value without is small ``enough``.
    """
    if not getattr(learner, "falls_with_margin", False):
        machine = learner.measure(f, coef, y, weight)
        return Worst(machine.primal + machine.growth(reach), 1.0, machine)
    quadratic = float(np.vdot(coef, f) + np.vdot(np.abs(coef), reach))
    least, used = f - reach * y, reach[coef != 0.0]
    plain = learner.measure(least, coef, y, weight)
    values = [Worst(0.5 * quadratic + plain.loss, 1.0, plain)]
    if values[0].value <= enough:
        return values[0]
    off, inside = float(used.max(initial=0.0)), _inside(plain, least, y)
    for share in {float(np.median(used)) if used.size else 0.0, off, off + 0.5 * inside, off + inside}:
        if 0.0 < share < LARGEST:
            scale = 1.0 / (1.0 - share)
            machine = learner.measure(scale * least, scale * coef, y, weight)
            values.append(Worst(0.5 * scale**2 * quadratic + machine.loss, scale, machine))
    return min(values, key=lambda one: one.value)


def _inside(machine: Machine, f: AnyArray, y: AnyArray) -> float:
    """Return how far inside the margin samples lie that should be on it: as far as the machine is rough."""
    lacking = np.atleast_2d((machine.margin - y * (f + machine.intercept)).T)
    free = [lack[program.free(v)] for lack, (program, v) in zip(lacking, machine.parts, strict=True)]
    return max(float(lack.max(initial=0.0)) for lack in free)
