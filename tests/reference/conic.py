import cvxpy as cp, numpy as np, time
from typing import NamedTuple
class ConicSolution(NamedTuple):
    value: float
    eta: np.ndarray

def factor(K):
    w, U = np.linalg.eigh((K + K.T) / 2)
    keep = w > 1e-12 * max(w[-1], 0.0)
    return U[:, keep] * np.sqrt(w[keep])

def conj(geometry, t, c):
    name, *par = geometry
    M = t.size
    tau = cp.Variable()
    if name == "uniform": return cp.sum(t) / M, []
    if name == "simplex": return cp.max(t), []
    if name == "box": return tau + par[0] * cp.sum(cp.pos(t - tau)), []
    if name == "ridge": return tau + par[0] * c / 2 * cp.sum_squares(cp.pos(t - tau)), []
    if name == "power":
        th, p = par; q = p/(p-1)
        return tau + th*c**(q-1)/2*cp.sum(cp.power(cp.pos(t-tau), q, approx=False)), []
    if name == "lp":
        p, = par
        if p == 1: return cp.max(t), []
        if p == np.inf: return cp.sum(t), []
        return cp.pnorm(t, p/(p-1), approx=False), []
    if name == "elastic":
        v, = par
        if v == 1: return cp.max(t), []
        return tau + cp.quad_over_lin(cp.pos(t - v*tau), tau)/(4*(1-v)), []
    if name == "group":
        groups, th = par
        c = cp.hstack([cp.norm(t[g]) for g in groups])
        return tau + th*cp.sum(cp.pos(c - tau)), [tau >= 0]

def solve(prob):
    t0=time.perf_counter()
    prob.solve(solver=cp.CLARABEL, tol_gap_abs=1e-10, tol_gap_rel=1e-10, tol_feas=1e-10, max_iter=200)
    return time.perf_counter()-t0

def conic_optimum(Ks, y, learner, geometry):
    n = len(y)
    name, par = learner
    C = 1/(par*n) if name == "nu" else par
    s = np.min(np.minimum(C, 1))
    a = cp.Variable(n); t = cp.Variable(len(Ks))
    Ls = [factor(K) for K in Ks]
    e = cp.hstack([cp.sum_squares((L * y[:, None]).T @ a)/2 for L in Ls])
    epi = e <= t
    om, cons = conj(geometry, t, s*s)
    cons += [epi, a >= 0, y @ a == 0]
    if name == "nu":
        obj = -om; cons += [cp.sum(a) == 1/s, a <= C/s]
    elif name == "hinge":
        obj = cp.sum(a) - s*om; cons += [a <= C/s]
    else:
        obj = cp.sum(a) - s*om - s/2*cp.sum_squares(a/np.sqrt(C))
    prob = cp.Problem(cp.Maximize(obj), cons)
    tm = solve(prob)
    k = s if name != "nu" else s*s
    print(learner[0], geometry, prob.status, f"{tm:.3f} compile {prob.compilation_time:.3f} solve {prob.solver_stats.solve_time:.3f} it {prob.solver_stats.num_iters}")
    return ConicSolution(prob.value*k, epi.dual_value/(s if name != "nu" else 1))
