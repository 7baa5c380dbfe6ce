"""The certificate of the kernels themselves, for a result on kernels that storing has rounded."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import cache
from typing import NamedTuple, Protocol

import numpy as np

from kernelweave._typing import AnyArray, Vector
from kernelweave.gram.protocol import GramStack, KnowsRounding
from kernelweave.learners.machine import Machine
from kernelweave.learners.worst import worst_primal
from kernelweave.solvers.certificate import Certificate
from kernelweave.solvers.problem import Problem, energies
from kernelweave.solvers.result import Result


class ExactGrams(GramStack, Protocol):
    """Kernels as they are, which can be summed up without being held."""

    def image(self, eta: Vector, coef: AnyArray) -> AnyArray:
        """Return K(eta) V."""
        ...


class Bounds(NamedTuple):
    """A machine with its values for the matrices that were read, and what they prove of the others."""

    machine: Machine
    certificate: Certificate


def widened(p: Problem, result: Result, tol: float = 0.0) -> Bounds | None:
    """Return the bounds of the stored matrices, less what rounding can have done to them, if that is known.

    They are as close as it takes for a relative gap of ``tol``.
    """
    lower = _lowered(p, result)
    raised = _raised(p, result, lower, tol)
    if raised is None:
        return None
    machine, upper = raised
    return Bounds(machine, Certificate(upper, min(lower, upper)))


def verify(
    p: Problem,
    exact: Callable[[], ExactGrams],
    result: Result,
    tol: float = 0.0,
    known: Bounds | None = None,
) -> Bounds:
    """Draw the certificate of a result from other, more exact Gram matrices; no machine is solved.

    Both bounds are the `widened` ones at first, which may be ``known``. Where these leave the relative gap
    above ``tol``, the upper one takes a product with the exact kernels that have weight; and where that is
    not enough, the energies of all of them are measured anew.
    """
    bounds = widened(p, result, tol) if known is None else known
    if bounds is not None and bounds.certificate.relative_gap <= tol:
        return bounds
    lower = _lowered(p, result)
    exact = cache(exact)
    machine, upper = _read_again(p, exact(), result)
    if not _closed(upper, lower, tol):
        lower = max(_measured(p, exact(), result), lower)
    return Bounds(machine, Certificate(upper, min(lower, upper)))


def _raised(p: Problem, result: Result, lower: float, tol: float) -> tuple[Machine, float] | None:
    """Return the upper bound that holds whatever rounding did to the stored kernels."""
    bank, eta, coef = p.bank, result.eta, result.machine.coef
    if not isinstance(bank, KnowsRounding) or not np.isfinite(lower):
        return None
    return _at_worst(p, result, bank.image_within(eta, coef), lower, tol)


def _at_worst(
    p: Problem, result: Result, told: tuple[AnyArray, AnyArray] | None, lower: float, tol: float
) -> tuple[Machine, float] | None:
    """Return the upper bound if products with the coefficients are ``told`` up to a known reach."""
    if told is None or not np.isfinite(told).all():
        return None
    eta, errors, value = result.eta, p.bank.errors, p.geometry.value(result.eta)
    others = value + result.machine.rounding(eta, errors)
    machine, upper = _worst(p, *told, result.machine.coef, enough=_closing(lower, tol) - others)
    return machine, upper + value + machine.rounding(eta, errors)


def _worst(
    p: Problem, f: AnyArray, reach: AnyArray, coef: AnyArray, enough: float = -np.inf
) -> tuple[Machine, float]:
    """Return the machine of the multiple of the coefficients that is best at worst, and its value then.

    Its intercept is the one of the worst: the best one for f may do worse for the kernels themselves.
    Multiples are tried as long as the value is above ``enough``.
    """
    worst, scale, then = worst_primal(p.learner, f, reach, coef, p.y, p.weight, enough)
    machine = p.learner.measure(scale * f, scale * coef, p.y, p.weight)
    return replace(machine, intercept=then.intercept, margin=then.margin, scale=then.scale), worst


def _read_again(p: Problem, exact: ExactGrams, result: Result) -> tuple[Machine, float]:
    """Return the upper bound of the exact kernels."""
    eta, coef = result.eta, result.machine.coef
    f = exact.image(eta, coef)
    machine, worst = _worst(p, f, np.zeros_like(f), coef)
    return machine, p.geometry.value(eta) + worst + machine.rounding(eta, exact.errors)


def _closing(lower: float, tol: float) -> float:
    """Return an upper bound that closes the gap, if both are positive; no value does where they are not."""
    return lower / (1.0 - tol) if lower > 0.0 and tol < 1.0 else -np.inf


def _closed(upper: float, lower: float, tol: float) -> bool:
    return bool(Certificate(upper, min(lower, upper)).relative_gap <= tol)


def _lowered(p: Problem, result: Result) -> float:
    """Return the lower bound with energies as large as the originals' may be."""
    bank, proof = p.bank, result.proof
    if not isinstance(bank, KnowsRounding):
        return -np.inf
    errors = bank.energy_errors(proof.coef)
    if not np.isfinite(errors).all():
        return -np.inf
    if not errors.any() or np.array_equal(proof.coef, result.machine.coef):
        return float(proof.g - p.geometry.conjugate(proof.h + errors))
    # A mixture: as rounding may have given the stored kernels negative eigenvalues, it is measured.
    return _bound(p, p.bank, proof.coef, p.bank.energies(proof.coef) + errors)


def _measured(p: Problem, exact: ExactGrams, result: Result) -> float:
    """Return the better lower bound of the machine's coefficients and of the proof's, in one pass."""
    coefs = [result.machine.coef]
    if not np.array_equal(result.proof.coef, coefs[0]):
        coefs.append(result.proof.coef)
    columns = np.hstack([v.reshape(v.shape[0], -1) for v in coefs])
    sides = np.split(exact.images(np.ascontiguousarray(columns)), len(coefs), axis=2)
    return max(_bound(p, exact, v, energies(v, side)) for v, side in zip(coefs, sides, strict=True))


def _bound(p: Problem, grams: GramStack, coef: AnyArray, h: Vector) -> float:
    """Return the dual value of coefficients with these energies, less what arithmetic rounds."""
    machine = p.learner.measure(np.zeros_like(coef), coef, p.y, p.weight)
    return float(machine.linear - p.geometry.conjugate(h + machine.energy_slack(grams.errors)))
