"""Where long training stands, on disk: killed at any moment, it goes on to the same result."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from zipfile import BadZipFile

import numpy as np

from kernelweave._typing import AnyArray


@dataclass
class Checkpoint:
    """A file that always holds one whole state: written beside its place, then moved there.

    Parameters
    ----------
    path : the file; it is removed when training ends.
    key : text that says what is being trained; a file with another one is refused.
    seconds : least time between two writes.

    Examples
    --------
    >>> import tempfile, pathlib, numpy as np
    >>> from kernelweave.solvers import Checkpoint
    >>> place = Checkpoint(pathlib.Path(tempfile.mkdtemp()) / "state.npz", key="demo", seconds=0.0)
    >>> place.save({"A": np.ones(2)})
    >>> place.load()["A"]
    array([1., 1.])

    """

    path: str | os.PathLike[str]
    key: str = ""
    seconds: float = 30.0
    _last: float = field(default_factory=time.monotonic, init=False, repr=False)

    def check(self) -> None:
        """Require a place that can be written to, before any work is done."""
        if not isinstance(self.path, str | os.PathLike):
            raise TypeError(f"checkpoint must be a path or a Checkpoint; got {self.path!r}.")
        place = Path(self.path)
        if place.is_dir() or not place.parent.is_dir():
            what = "is a folder" if place.is_dir() else f"lies in {str(place.parent)!r}, which is no folder"
            raise ValueError(f"checkpoint must be a file in a folder that exists; {str(place)!r} {what}.")

    def due(self) -> bool:
        """Tell whether enough time has passed to write again."""
        return time.monotonic() - self._last >= self.seconds

    def save(self, state: Mapping[str, Any]) -> None:
        """Write a state; whoever reads the file sees the old one or the new one, nothing between."""
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
            with Path(self.path).open("rb") as whole, np.load(whole, allow_pickle=False) as file:
                state = {name: file[name] for name in file.files}
            key = str(state.pop("key"))
        except (AttributeError, EOFError, KeyError, TypeError, ValueError, BadZipFile):  # text, .npy, others'
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
        """Remove the file: there is nothing left to go on with."""
        Path(self.path).unlink(missing_ok=True)


def generator_state(rng: np.random.Generator) -> str:
    """Return the state of a generator as text."""
    return json.dumps(rng.bit_generator.state)


def restored_generator(state: AnyArray) -> np.random.Generator:
    """Return a generator that goes on from a saved state."""
    saved = json.loads(str(state))
    bits = getattr(np.random, saved["bit_generator"])()
    bits.state = saved
    return np.random.Generator(bits)
