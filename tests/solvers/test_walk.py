"""What a walk remembers of the matrices it has asked for."""

import numpy as np

from kernelweave.geometry import LpBall
from kernelweave.gram import PackedGrams
from kernelweave.gram.source import MatrixSource
from kernelweave.learners import Hinge
from kernelweave.solvers import BlockDescent, Problem


def test_a_matrix_that_was_being_overwritten_is_not_handed_on(rng, monkeypatch):
    matrices = [A @ A.T for A in rng.normal(size=(4, 30, 6))]
    stack = PackedGrams.pack([MatrixSource(matrices)], 4, 30)
    y = np.where(np.arange(30) % 2, 1.0, -1.0)
    combine, calls = PackedGrams.combine, []

    def interrupted(self, eta, out=None):
        calls.append(eta)
        if len(calls) == 2:
            out.fill(7.0)
            raise KeyboardInterrupt
        return combine(self, eta, out)

    monkeypatch.setattr(PackedGrams, "combine", interrupted)
    result = BlockDescent(tol=1e-9).run(Problem(stack, y, Hinge(), LpBall(2.0)))
    assert result.stopped == "interrupted"
    assert result.eta is calls[0]
    assert result.visited is None
