"""Parameters are checked before any work: one sentence says what was received and what would work."""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any

from kernelweave import learners
from kernelweave.errors import IncompatiblePartsError
from kernelweave.learners import Learner

# Targets of a learner, in words.
TARGETS = {"classes": "labels of classes", "real": "real targets", "none": "samples without targets"}


def check_number(
    name: str, value: Any, *, above: float, below: float = float("inf"), optional: bool = False
) -> None:
    """Require a real number strictly between two others, or None where that is allowed."""
    if optional and value is None:
        return
    if not _is_real(value) or not above < float(value) < below:
        legal = (
            f"a number above {above:g}"
            if below == float("inf")
            else f"a number between {above:g} and {below:g}"
        )
        raise ValueError(f"{name} must be {legal}{' or None' if optional else ''}; got {value!r}.")


def check_from_zero(name: str, value: Any, *, below: float = float("inf")) -> None:
    """Require a real number that is zero or more, and below another."""
    if not _is_real(value) or not 0.0 <= float(value) < below:
        legal = "of at least 0" if below == float("inf") else f"from 0 to below {below:g}"
        raise ValueError(f"{name} must be a number {legal}; got {value!r}.")


def check_share(name: str, value: Any, *, positive: bool = False, optional: bool = False) -> None:
    """Require a number from 0 to 1, above 0 where asked, or None where that is allowed."""
    if optional and value is None:
        return
    if not _is_real(value) or not 0.0 <= float(value) <= 1.0 or (positive and float(value) == 0.0):
        legal = "above 0 and at most 1" if positive else "from 0 to 1"
        raise ValueError(f"{name} must be a number {legal}{' or None' if optional else ''}; got {value!r}.")


def check_count(name: str, value: Any, *, least: int = 1, optional: bool = False) -> None:
    """Require a whole number from ``least`` on, or None where that is allowed."""
    if optional and value is None:
        return
    if isinstance(value, bool) or not isinstance(value, Integral) or value < least:
        either = "None or " if optional else ""
        raise ValueError(f"{name} must be {either}a whole number of at least {least}; got {value!r}.")


def check_choice(name: str, value: Any, choices: tuple[str, ...]) -> None:
    """Require one of a few words."""
    if value not in choices:
        raise ValueError(f"{name} must be {' or '.join(map(repr, choices))}; got {value!r}.")


def check_part(name: str, value: Any, kind: type, example: str) -> None:
    """Require an object of the right kind, not its class nor a word for it."""
    if isinstance(value, type) or not isinstance(value, kind):
        what = f"the class {value.__name__}" if isinstance(value, type) else repr(value)
        raise TypeError(f"{name} must be a {kind.__name__} such as {example}; got {what}.")


def check_learner(value: Any, targets: str, example: str) -> None:
    """Require a learner for such targets: "classes", "real" numbers or "none"."""
    check_part("learner", value, Learner, example)
    if targets not in getattr(value, "learns_from", (targets,)):  # a learner of somebody else may not say
        known = (getattr(learners, name) for name in learners.__all__)
        fitting = [one.__name__ for one in known if targets in getattr(one, "learns_from", ())]
        raise IncompatiblePartsError(
            f"{value!r} cannot learn from {TARGETS[targets]}: it is for {TARGETS[value.learns_from[0]]}. "
            f"Learners that can: {', '.join(fitting)}."
        )


def _is_real(value: Any) -> bool:
    return isinstance(value, Real) and not isinstance(value, bool)
