"""The state of a long fit on disk: killed at any moment, it continues to the same result."""

from __future__ import annotations

import hashlib
import json
import os
import time
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Self
from zipfile import BadZipFile

import numpy as np

from kernelweave._typing import AnyArray


@dataclass
class Checkpoint:
    """A file that always holds one complete state: written beside its place, then moved there.

    Parameters
    ----------
    path : the file; it is removed when training ends.
    key : text that identifies what is being trained; a file with another key is refused.
    seconds : least time between two writes.

    Examples
    --------
    >>> import tempfile, pathlib, numpy as np
    >>> from kernelweave.solvers import Checkpoint
    >>> checkpoint = Checkpoint(pathlib.Path(tempfile.mkdtemp()) / "state.npz", key="demo", seconds=0.0)
    >>> checkpoint.save({"A": np.ones(2)})
    >>> checkpoint.load()["A"]
    array([1., 1.])

    """

    path: str | os.PathLike[str]
    key: str = ""
    seconds: float = 30.0
    _last: float = field(default_factory=time.monotonic, init=False, repr=False)

    def check(self) -> None:
        """Require a path that can be written to, before any work is done."""
        if not isinstance(self.path, str | os.PathLike):
            raise TypeError(f"checkpoint must be a path or a Checkpoint; got {self.path!r}.")
        path = Path(self.path)
        if path.is_dir() or not path.parent.is_dir():
            what = "is a folder" if path.is_dir() else f"lies in {str(path.parent)!r}, which is no folder"
            raise ValueError(f"checkpoint must be a file in a folder that exists; {str(path)!r} {what}.")

    def with_key(self, *parts: Any) -> Self:
        """Return the checkpoint under a key of all these: arrays by their entries, the rest by its text."""
        # The names of the saved state belong to the key: a file with others cannot be continued from.
        key = hashlib.sha256(b"state 2")
        for part in parts:
            key.update(part.tobytes() if isinstance(part, np.ndarray) else repr(part).encode())
        return replace(self, key=key.hexdigest())

    def is_due(self) -> bool:
        """Return whether enough time has passed to write again."""
        return time.monotonic() - self._last >= self.seconds

    def save(self, state: Mapping[str, Any]) -> None:
        """Write a state; a reader of the file finds the old one or the new one, nothing in between."""
        beside = Path(f"{os.fspath(self.path)}.part")
        with beside.open("wb") as file:
            arrays: dict[str, Any] = {name: np.asarray(value) for name, value in state.items()}
            np.savez(file, key=np.array(self.key), **arrays)
            file.flush()
            os.fsync(file.fileno())
        os.replace(beside, self.path)
        self._last = time.monotonic()

    def load(self) -> dict[str, AnyArray] | None:
        """Return the state on disk, or None where there is none."""
        if not Path(self.path).exists():
            return None
        try:
            with Path(self.path).open("rb") as opened, np.load(opened, allow_pickle=False) as file:
                state = {name: file[name] for name in file.files}
            key = str(state.pop("key"))
        except (AttributeError, EOFError, KeyError, TypeError, ValueError, BadZipFile):  # of another program
            raise ValueError(
                f"The file {os.fspath(self.path)!r} is no checkpoint; remove it, or give another path."
            ) from None
        if key != self.key:
            raise ValueError(
                f"The checkpoint {os.fspath(self.path)!r} belongs to other data or parameters; "
                "remove it, or give another path."
            )
        return state

    def clear(self) -> None:
        """Remove the file: training has ended."""
        Path(self.path).unlink(missing_ok=True)


def as_checkpoint(value: Any) -> Checkpoint | None:
    """Return the checkpoint that a parameter stands for, checked to be writable; None for None."""
    if value is None:
        return None
    checkpoint = value if isinstance(value, Checkpoint) else Checkpoint(value)
    checkpoint.check()
    return checkpoint


def generator_state(rng: np.random.Generator) -> str:
    """Return the state of a generator as text."""
    return json.dumps(rng.bit_generator.state)


def restored_generator(state: AnyArray) -> np.random.Generator:
    """Return a generator that continues from a saved state."""
    saved = json.loads(str(state))
    bits = getattr(np.random, saved["bit_generator"])()
    bits.state = saved
    return np.random.Generator(bits)
