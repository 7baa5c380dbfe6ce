"""Reference optima by a conic solver, from the definitions of the sets."""

import warnings

import cvxpy as cp
import numpy as np
from tests.geometry.sets import M


def optimum(case, objective, *, with_penalty=True):
    """Return the minimum of objective(x) + penalty over the set of a case."""
    x = cp.Variable(M)
    goal = objective(x) + (case.conic_penalty(x) if with_penalty else 0.0)
    problem = cp.Problem(cp.Minimize(goal), case.constraints(x))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # CVXPY takes powers of weights that are zero but for rounding
        problem.solve(cp.CLARABEL)
    assert problem.status in {"optimal", "optimal_inaccurate"}
    return float(problem.solution.opt_val)


def best_value(case, h):
    return -optimum(case, lambda x: -(h @ x))


def nearest_distance(case, z):
    return optimum(case, lambda x: cp.sum_squares(x - z) / 2, with_penalty=False)


def prox_value(case, z, step):
    return step * optimum(case, lambda x: cp.sum_squares(x - z) / (2 * step))


def block_value(case, norms):
    def objective(x):
        return sum(cp.quad_over_lin(norms[m], x[m]) / 2 for m in np.flatnonzero(norms))

    return optimum(case, objective)


def model_value(case, eta, h, root):
    """The model with curvature H = root' root."""
    return optimum(case, lambda x: -(h @ (x - eta)) + cp.sum_squares(root @ (x - eta)) / 2)
