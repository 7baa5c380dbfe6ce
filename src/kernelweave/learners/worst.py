"""The largest primal value when decision values are known up to an error."""

from __future__ import annotations

import numpy as np

from kernelweave._typing import AnyArray, Vector
from kernelweave.learners.protocol import Learner

# Errors beyond this are not made good by larger coefficients.
LARGEST = 0.1


def worst_primal(
    learner: Learner, f: AnyArray, reach: AnyArray, coef: AnyArray, y: AnyArray, weight: Vector | None = None
) -> float:
    """Return a value the machine's optimum does not exceed if K v is within ``reach`` of f, entry by entry.

    Where the loss falls with the margin y f, the worst is that every margin is as small as it may be. Then
    coefficients a little larger are tried too: they cost that share of ½ v'Kv, twice, and samples on the
    margin need not pay for their error, however high the price.
    """
    if not getattr(learner, "falls_with_margin", False):
        machine = learner.measure(f, coef, y, weight)
        return machine.primal + machine.growth(reach)
    quadratic = float(np.vdot(coef, f) + np.vdot(np.abs(coef), reach))
    least, used = f - reach * y, reach[coef != 0.0]
    lacking = {0.0, float(np.median(used)), float(used.max())} if used.size else {0.0}
    values = []
    for scale in [1.0 / (1.0 - share) for share in lacking if share < LARGEST]:
        machine = learner.measure(scale * least, scale * coef, y, weight)
        values.append(0.5 * scale**2 * quadratic + machine.loss)
    return min(values)
