"""Several binary problems on one kernel, seen as one."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from kernelweave._typing import AnyArray, Vector
from kernelweave.learners.base import Learner
from kernelweave.learners.program import DualProgram
from kernelweave.learners.solution import InnerSolution


@dataclass
class OneVsRest(Learner):
    r"""One binary problem per column of Y, all on the same kernel: values, bounds and curvatures add up.

    .. math:: \sum_c \max_{\alpha_c} g(\alpha_c) - \tfrac12 v_c'K v_c, \qquad v_c = \alpha_c∘Y_{:c}

    Parameters
    ----------
    learner : Learner
        The binary learner.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelweave.learners import Hinge, OneVsRest
    >>> Y = np.array([[1.0, -1.0], [-1.0, 1.0]])
    >>> OneVsRest(Hinge(C=10.0)).solve(np.eye(2), Y).coef
    array([[ 1., -1.],
           [-1.,  1.]])

    """

    learner: Learner

    @property
    def has_bias(self) -> bool:
        return self.learner.has_bias

    def check(self, y: AnyArray, weight: Vector) -> None:
        for column in y.reshape(y.shape[0], -1).T:
            self.learner.check(column, weight)

    def for_columns(self) -> Learner:
        return self

    @property
    def streams_from(self) -> int | None:
        return self.learner.streams_from

    @property
    def decreases_with_margin(self) -> bool:
        return self.learner.decreases_with_margin

    def programs(self, y: AnyArray, weight: Vector) -> list[DualProgram]:
        return [program for column in y.T for program in self.learner.programs(column, weight)]

    def measure(
        self, f: AnyArray, coef: AnyArray, y: AnyArray, weight: Vector | None = None
    ) -> InnerSolution:
        return join([self.learner.measure(f[:, c], coef[:, c], y[:, c], weight) for c in range(y.shape[1])])

    def solve(
        self,
        K: AnyArray,
        y: AnyArray,
        weight: Vector | None = None,
        warm: AnyArray | None = None,
        tol: float = 1e-3,
    ) -> InnerSolution:
        solutions = [
            self.learner.solve(K, y[:, c], weight, None if warm is None else warm[:, c], tol)
            for c in range(y.shape[1])
        ]
        return join(solutions)


def join(solutions: list[InnerSolution]) -> InnerSolution:
    """Return the solutions as one: coefficients side by side, values summed."""
    return InnerSolution(
        coef=np.column_stack([m.coef for m in solutions]),
        intercept=np.array([m.intercept for m in solutions]),
        margin=np.array([m.margin for m in solutions]),
        g=sum(m.g for m in solutions),
        quadratic=sum(m.quadratic for m in solutions),
        loss=sum(m.loss for m in solutions),
        # Each problem moves by at most its own share of the error; the sum is bounded by the norm of all.
        gradient_bound=float(np.linalg.norm([m.gradient_bound for m in solutions])),
        curvature_bound=max(m.curvature_bound for m in solutions),
        programs=tuple(program for m in solutions for program in m.programs),
        scale=np.array([m.scale for m in solutions]),
    )
