"""From solved regressions to discriminant axes and cuts along them."""

from __future__ import annotations

import numpy as np

from kernelweave._typing import AnyArray, Matrix, Vector
from kernelweave.estimators.task import Solved, Task
from kernelweave.learners.discriminant import Axes, Discriminant, axes
from kernelweave.learners.ridge import RidgeMachine, product
from kernelweave.learners.threshold import fewest_errors


def axis_intercepts(solved: list[Solved]) -> Vector:
    """Return what centres the decision values of each machine, in terms of the kernels as they are."""
    return np.concatenate([s.intercept + np.atleast_1d(_ridge(s).bias - _ridge(s).intercept) for s in solved])


def leave_one_out_cuts(task: Task, solved: list[Solved]) -> Vector:
    """Return where to cut each axis so that samples left out are told apart best."""
    cuts = []
    for y, one in zip(task.targets.values(), solved, strict=True):
        machine, Y = _ridge(one), _columns(y)
        assert machine.ridge is not None
        told = machine.ridge.left_out(task.kernels.combine(one.result.eta), _columns(machine.coef))
        midpoints = np.atleast_1d(machine.bias - machine.intercept)
        cuts += [
            fewest_errors(told[:, c], Y[:, c] > 0.0, task.weight, float(midpoints[c]))
            for c in range(Y.shape[1])
        ]
    return np.array(cuts)


def joint_axes(task: Task, solved: Solved) -> Axes:
    """Return the axes of the joint discriminant and the class means along them."""
    machine = _ridge(solved)
    (Y,) = task.targets.values()
    F = product(task.kernels.combine(solved.result.eta), machine.coef)
    targets = Discriminant().targets(Y, task.weight)
    return axes((F + machine.bias) / machine.scale, targets, Y > 0.0, task.weight)


def _ridge(solved: Solved) -> RidgeMachine:
    machine = solved.result.machine
    assert isinstance(machine, RidgeMachine)
    return machine


def _columns(x: AnyArray) -> Matrix:
    return x.reshape(x.shape[0], -1)
