"""The problems that the tests of this room pose."""

import numpy as np

from kernelweave.multiclass import PNormProblem
from kernelweave.multiclass.rows import StoredRows


def stored_problem(Ks, y, C, p, weight=None, rows=StoredRows):
    weight = np.ones(len(y)) if weight is None else weight
    return PNormProblem(rows(Ks), y, int(y.max()) + 1, 1.0 / (C * len(y)), p, weight)


def solve(solver, Ks, y, C, p, weight=None, seed=0):
    return solver.solve(stored_problem(Ks, y, C, p, weight), np.random.default_rng(seed))


def encloses(certificate, optimum):
    return certificate.lower <= optimum * (1 + 1e-8) and optimum * (1 - 1e-8) <= certificate.upper


def quarters():
    """Return the columns of the four quarters of an 8 × 8 image."""
    grid = np.arange(64).reshape(8, 8)
    return {f"{a}{b}": grid[a : a + 4, b : b + 4].ravel() for a in (0, 4) for b in (0, 4)}


def halves():
    return {"up": slice(0, 32), "down": slice(32, 64)}
