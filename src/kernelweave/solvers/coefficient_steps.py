"""How coefficients move while kernels are streamed: a block of samples at a time, or along conjugate gradients."""

from __future__ import annotations

import numpy as np

from kernelweave._typing import AnyArray, Indices, Matrix, Vector
from kernelweave.gram.memory import block_samples
from kernelweave.learners.program import DualProgram
from kernelweave.learners.ridge import LandmarkInverse, Ridge, RidgeSolution
from kernelweave.learners.solution import approximate_hessian, free_system
from kernelweave.solvers.streamed_state import StreamedState


def coefficient_steps(state: StreamedState, block_size: int | None) -> BlockSteps | GradientSteps:
    """Return the steps that fit the learner: without inequalities all coefficients move at once."""
    if isinstance(state.inner, RidgeSolution):
        return GradientSteps()
    return BlockSteps(min(state.n_samples, block_size or block_samples(state.n_samples)))


class BlockSteps:
    """Moves the coefficients of a block of samples to their optimum while the others stay.

    A block holds the steepest ways up and down, a quarter each, and free support vectors drawn at random: of
    the steepest alone many more blocks would be needed, since moving them moves the free ones.
    """

    n_gradient_steps = 6
    # Weights move once the coefficients' part of the gap is below this many times that of the weights ...
    inner_share = 2.0
    # ... and it gives up where this many blocks leave 90 % of the gap.
    patience = 25

    def __init__(self, size: int) -> None:
        self.size = size
        self._rng = np.random.default_rng(0)
        self._block: Indices | None = None
        self._K: AnyArray | None = None
        self._tolerance_factor = 1.0

    def move(self, state: StreamedState) -> None:
        """Move the coefficients of a block to their optimum."""
        f, coef = state.f.reshape(state.n_samples, -1), state.coef.reshape(state.n_samples, -1)
        programs = [program for program, _ in state.inner.programs]
        violations = [program.violations(v, fc) for program, v, fc in zip(programs, coef.T, f.T, strict=True)]
        block = self._choose(programs, violations, coef)
        K = self._buffer(block.size, state.grams.dtype)
        K = state.grams.combined_block(state.eta, block, block, K)
        values = np.empty((block.size, coef.shape[1]))
        for c, (program, (up, down)) in enumerate(zip(programs, violations, strict=True)):
            smo_tol = _smo_tolerance(state.inner.gap / coef.shape[1], coef[:, c], up[block], down[block])
            part = program.on_block(block, K, coef[:, c], f[:, c])
            values[:, c], _, _ = part.descend(K, coef[block, c], self._tolerance_factor * smo_tol)
        self._block, self._K = block, K
        # Where nothing moved the tolerance was too wide.
        self._tolerance_factor = 0.1 * self._tolerance_factor if np.array_equal(values, coef[block]) else 1.0
        state.set_coefficients(block, values.reshape(block.size, *state.coef.shape[1:]))

    def hessian(self, state: StreamedState) -> Matrix | None:
        """Return the curvature of the optimal value in the weights, as the last block shows it."""
        if self._block is None or self._K is None:
            return None
        coef = state.coef.reshape(state.n_samples, -1)
        G = state.G.reshape(*state.G.shape[:2], -1)
        H = np.zeros((state.eta.size, state.eta.size))
        for c, (program, _) in enumerate(state.inner.programs):
            free, E = free_system(program.at(self._block), coef[self._block, c])
            if free.size:
                K = self._K if free.size == self._block.size else self._K[np.ix_(free, free)]
                free = self._block[free]
                H += approximate_hessian(K, program.d[free], G[:, free, c].T, E, self.n_gradient_steps)
        return H if H.any() else None

    def _choose(
        self, programs: list[DualProgram], violations: list[tuple[Vector, Vector]], coef: Matrix
    ) -> Indices:
        n = coef.shape[0]
        if self.size >= n:
            return np.arange(n)
        chosen, free = np.zeros(n, dtype=bool), np.zeros(n, dtype=bool)
        n_groups = sum(program.sums.size for program in programs)
        each = max(1, self.size // (4 * n_groups))
        for program, v, sides in zip(programs, coef.T, violations, strict=True):
            free[program.free(v)] = True
            for g in range(program.sums.size):
                for side in sides:
                    able = np.flatnonzero((program.group == g) & np.isfinite(side))
                    if able.size > each:
                        able = able[np.argpartition(-side[able], each)[:each]]
                    chosen[able] = True
        others = np.flatnonzero(free & ~chosen)
        room = self.size - int(np.count_nonzero(chosen))
        chosen[self._rng.permutation(others)[: max(room, 0)]] = True
        return np.flatnonzero(chosen)

    def _buffer(self, size: int, dtype: np.dtype[np.generic]) -> AnyArray:
        """Return memory for the kernel of a block; that of the last one is used again."""
        if self._K is not None and self._K.shape[0] == size:
            return self._K
        self._K = None
        return np.empty((size, size), dtype=dtype)


def _smo_tolerance(gap: float, v: Vector, up: Vector, down: Vector) -> float:
    """Return the violation that SMO may leave in a block, whose slopes up and down are given.

    Violations of that size in all coefficients make 15 % of the gap at most, and it is a tenth of the worst there
    is now: a block that is solved more exactly costs time, and the next blocks undo its last digits.
    """
    total = float(np.abs(v).sum())
    worst = max(float(up.max() + down.max()), 0.0)
    return min(0.15 * gap / total if total else np.inf, 0.1 * worst)


class GradientSteps:
    """Moves all coefficients of a linear system along conjugate gradients.

    They are preconditioned by the kernel's columns at a few landmarks, which leaves ten or twenty steps where
    hundreds would be needed. The directions belong to one kernel: they start afresh when the weights move.
    """

    n_landmarks = 1000
    # As in BlockSteps; new weights cost the directions, and the gap does not fall with every step.
    inner_share = 0.2
    patience = 200

    def __init__(self) -> None:
        self._eta = np.zeros(0)
        self._inverse: LandmarkInverse | None = None
        self._direction: Matrix | None = None
        self._slopes = np.zeros(0)

    def move(self, state: StreamedState) -> None:
        """Take one step."""
        ridge, inverse = self._at(state)
        n = state.n_samples
        residual = ridge.residual(state.coef.reshape(n, -1), state.f.reshape(n, -1))
        descent = inverse.apply(residual)
        slopes = np.sum(residual * descent, axis=0)
        if self._direction is not None:
            descent += self._direction * np.divide(
                slopes, self._slopes, out=np.zeros_like(slopes), where=self._slopes > 0.0
            )
        self._direction, self._slopes = descent, slopes
        shaped = descent.reshape(state.coef.shape)
        products = state.grams.matvecs(shaped)
        used = ridge.used
        Kp = np.tensordot(state.eta, products, 1).reshape(n, -1)
        curvature = np.sum(descent * Kp, axis=0) + ridge.d[used] @ descent[used] ** 2
        lengths = np.divide(
            np.sum(residual * descent, axis=0), curvature, out=np.zeros_like(slopes), where=curvature > 0.0
        )
        state.move_along(shaped, products, lengths)

    def hessian(self, state: StreamedState) -> Matrix:
        """Return the curvature of the optimal value in the weights, as the landmarks show it."""
        _, inverse = self._at(state)
        n, M = state.n_samples, state.eta.size
        U = np.moveaxis(state.G.reshape(M, n, -1), 0, 1)  # (n, M, columns)
        H = np.tensordot(U, inverse.apply(U.reshape(n, -1)).reshape(U.shape), axes=([0, 2], [0, 2]))
        return np.asarray(0.5 * (H + H.T))

    def _at(self, state: StreamedState) -> tuple[Ridge, LandmarkInverse]:
        """Return the system, and its approximate inverse at the present weights."""
        inner = state.inner
        assert isinstance(inner, RidgeSolution)
        ridge = inner.ridge
        assert ridge is not None
        if self._inverse is None or not np.array_equal(self._eta, state.eta):
            used = ridge.used
            landmarks = used[np.linspace(0, used.size - 1, min(used.size, self.n_landmarks)).astype(np.intp)]
            K = state.grams.combined_block(state.eta, np.arange(state.n_samples), landmarks)
            self._inverse = LandmarkInverse(K, landmarks, ridge.d, ridge.has_bias)
            self._eta, self._direction = state.eta, None
        return ridge, self._inverse
