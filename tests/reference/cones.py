"""Drive Clarabel through CVXPY to high accuracy, and factor kernels for it."""

import cvxpy as cp
import numpy as np

RANK_TOLERANCE = 1e-12  # eigenvalues below this share of the largest are rounding noise
# Where full steps stall shorter ones get further. Clarabel's own scaling seldom helps scaled problems.
ATTEMPTS = (
    {"tolerance": 1e-10, "equilibrate_enable": False},
    {"tolerance": 1e-9, "equilibrate_enable": False, "max_step_fraction": 0.7},
    {"tolerance": 1e-9, "equilibrate_enable": True, "max_step_fraction": 0.8},
    {"tolerance": 1e-8, "equilibrate_enable": False, "max_step_fraction": 0.5},
)
GOOD_ENOUGH = 1e-9  # relative error at which no further attempt is made
REQUIRED = 1e-7  # ... and the largest an oracle may have


class OracleError(RuntimeError):
    """The reference solver did not reach the accuracy an oracle must have."""


def factor(K):
    """Return L with K = L L', without the columns that are zero to rounding."""
    eigenvalues, vectors = np.linalg.eigh((K + K.T) / 2.0)
    keep = eigenvalues > RANK_TOLERANCE * max(eigenvalues[-1], 0.0)
    return vectors[:, keep] * np.sqrt(eigenvalues[keep])


def attempts(problem):
    """Solve by each setting in turn; yield Clarabel's answer once the values are in the variables.

    The problem is compiled once. Answers without values (infeasible, numerical failure) are passed over.
    """
    data, chain, inverse = problem.get_problem_data(cp.CLARABEL, solver_opts={})
    for settings in ATTEMPTS:
        settings = dict(settings)
        tolerance = settings.pop("tolerance")
        names = ("tol_gap_abs", "tol_gap_rel", "tol_feas")
        settings |= dict.fromkeys(names, tolerance) | {"max_iter": 200}
        answer = chain.solve_via_data(problem, data, solver_opts=settings)
        solution = chain.invert(answer, inverse)
        if solution.status in (cp.OPTIMAL, cp.OPTIMAL_INACCURATE):
            problem.unpack(solution)
            yield answer


def solve(problem):
    """Leave the best attempt in the variables and return the optimum.

    Raises unless its gap and residuals are below REQUIRED.
    """
    error, best = np.inf, None
    for answer in attempts(problem):
        gap = abs(answer.obj_val - answer.obj_val_dual) / max(1.0, abs(answer.obj_val))
        if max(gap, answer.r_prim, answer.r_dual) < error:
            error, best = max(gap, answer.r_prim, answer.r_dual), problem.solution
        if error <= GOOD_ENOUGH:
            break
    if error > REQUIRED:
        raise OracleError(f"Clarabel's best residual is {error:.1e}, {REQUIRED} is needed.")
    problem.unpack(best)
    return float(best.opt_val)
