"""Types of the compiled loops (see src/core)."""

from typing import Any

from numpy.typing import NDArray

def inspect(K: NDArray[Any], roots: NDArray[Any]) -> tuple[bool, float]: ...
def pack(K: NDArray[Any], centre: bool, out: NDArray[Any], means: NDArray[Any]) -> float: ...
def combine(packed: NDArray[Any], eta: NDArray[Any], out: NDArray[Any], n_threads: int = 1) -> None: ...
def images(packed: NDArray[Any], V: NDArray[Any], out: NDArray[Any], n_threads: int = 1) -> None: ...
def energies(packed: NDArray[Any], V: NDArray[Any], out: NDArray[Any], n_threads: int = 1) -> None: ...
def smo(
    K: NDArray[Any],
    s: NDArray[Any],
    d: NDArray[Any],
    lo: NDArray[Any],
    hi: NDArray[Any],
    group: NDArray[Any],
    v: NDArray[Any],
    gradient: NDArray[Any],
    tolerance: float,
    max_iterations: int,
) -> tuple[int, float]: ...
