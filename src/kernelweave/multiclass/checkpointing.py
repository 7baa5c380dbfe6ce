"""Checkpoints of a fit: where they lie, and which fit they belong to."""

from __future__ import annotations

import hashlib
from dataclasses import replace
from typing import Any

import joblib
import numpy as np

from kernelweave.multiclass import PNormProblem
from kernelweave.multiclass.checkpoint import Checkpoint

# Samples whose kernels tell one bank from another.
PROBES = 16


def as_checkpoint(place: Any) -> Checkpoint | None:
    """Return the checkpoint a parameter stands for, checked to lie where a file can be written."""
    if place is None:
        return None
    found = place if isinstance(place, Checkpoint) else Checkpoint(place)
    found.check()
    return found


def keyed(place: Any, problem: PNormProblem, X: Any, *parts: Any) -> Checkpoint | None:
    """Return the checkpoint under a key of the samples, all of them, the problem and its parts.

    Samples are hashed as they were given, which is one pass over them; kernels between a few of them tell
    what the bank makes of them.
    """
    found = as_checkpoint(place)
    if found is None:
        return None
    probes = np.unique(np.linspace(0, problem.n_samples - 1, PROBES).astype(np.intp))
    arrays = (problem.rows.block(probes), problem.y, problem.weight)
    words = (joblib.hash(X, hash_name="sha1", coerce_mmap=True), problem.lam, problem.p, *parts)
    key = hashlib.sha256(repr(words).encode())
    for array in arrays:
        key.update(array.tobytes())
    return replace(found, key=key.hexdigest())
