"""Types of the compiled loops (see src/core)."""

from typing import Any

from numpy.typing import NDArray

def check_matrices(
    K: list[NDArray[Any]], roots: NDArray[Any], probes: NDArray[Any], n_threads: int = 1
) -> list[tuple[bool, float]]: ...
def diagonals(K: list[NDArray[Any]], out: NDArray[Any], n_threads: int = 1) -> None: ...
def reference_means(
    K: list[NDArray[Any]], chosen: NDArray[Any], out: NDArray[Any], n_threads: int = 1
) -> None: ...
def pack_matrices(
    K: list[NDArray[Any]], shifts: NDArray[Any], packed: NDArray[Any], n_threads: int = 1
) -> None: ...
def combine_matrices(
    K: list[NDArray[Any]], eta: NDArray[Any], shift: NDArray[Any], out: NDArray[Any], n_threads: int = 1
) -> None: ...
def gather_matrices(
    K: list[NDArray[Any]],
    chosen: NDArray[Any],
    shifts: NDArray[Any],
    packed: NDArray[Any],
    n_threads: int = 1,
) -> None: ...
def energies_of_matrices(
    K: list[NDArray[Any]], V: NDArray[Any], out: NDArray[Any], n_threads: int = 1
) -> None: ...
def matvec_of_matrices(
    K: list[NDArray[Any]], eta: NDArray[Any], V: NDArray[Any], out: NDArray[Any], n_threads: int = 1
) -> None: ...
def matvecs_of_matrices(
    K: list[NDArray[Any]],
    V: NDArray[Any],
    out: NDArray[Any],
    n_threads: int = 1,
    needed: NDArray[Any] | None = None,
) -> None: ...
def pack(K: NDArray[Any], start: int, shift: NDArray[Any], out: NDArray[Any]) -> None: ...
def gather(packed: NDArray[Any], chosen: NDArray[Any], out: NDArray[Any], n_threads: int = 1) -> None: ...
def mirror(K: NDArray[Any], n_threads: int = 1) -> None: ...
def combine(packed: NDArray[Any], eta: NDArray[Any], out: NDArray[Any], n_threads: int = 1) -> None: ...
def matvec_and_size(
    packed: NDArray[Any],
    eta: NDArray[Any],
    V: NDArray[Any],
    out: NDArray[Any],
    sizes: NDArray[Any],
    n_threads: int = 1,
) -> None: ...
def matvecs(
    packed: NDArray[Any],
    V: NDArray[Any],
    out: NDArray[Any],
    n_threads: int = 1,
    needed: NDArray[Any] | None = None,
) -> None: ...
def energies(packed: NDArray[Any], V: NDArray[Any], out: NDArray[Any], n_threads: int = 1) -> None: ...
def combine_local(
    packed: NDArray[Any], eta: NDArray[Any], local: NDArray[Any], out: NDArray[Any], n_threads: int = 1
) -> None: ...
def column_weighted_matvecs(
    packed: NDArray[Any], V: NDArray[Any], local: NDArray[Any], out: NDArray[Any], n_threads: int = 1
) -> None: ...
def smo(
    K: NDArray[Any],
    s: NDArray[Any],
    d: NDArray[Any],
    kink: NDArray[Any],
    lo: NDArray[Any],
    hi: NDArray[Any],
    group: NDArray[Any],
    v: NDArray[Any],
    gradient: NDArray[Any],
    tolerance: float,
    max_iterations: int,
    gradient_is_known: bool = False,
) -> tuple[int, float]: ...
def smo_plus(
    K: NDArray[Any],
    G: NDArray[Any],
    y: NDArray[Any],
    alpha: NDArray[Any],
    beta: NDArray[Any],
    f: NDArray[Any],
    g: NDArray[Any],
    tolerance: float,
    max_iterations: int,
) -> tuple[int, float]: ...
def smo_views(
    A: NDArray[Any],
    B: NDArray[Any],
    y: NDArray[Any],
    lo: NDArray[Any],
    hi: NDArray[Any],
    epsilon: float,
    values: NDArray[Any],
    images: NDArray[Any],
    tolerance: float,
    max_iterations: int,
) -> tuple[int, float]: ...
def ascend(
    K: NDArray[Any],
    G: NDArray[Any],
    share: NDArray[Any],
    least_curvature: NDArray[Any],
    y: NDArray[Any],
    weight: NDArray[Any],
    scale: float,
    q: float,
    order: NDArray[Any],
    A: NDArray[Any],
    H: NDArray[Any],
    s: NDArray[Any],
) -> int: ...
def online_steps(
    phi: NDArray[Any],
    y: NDArray[Any],
    weight: NDArray[Any],
    offset: NDArray[Any],
    q: float,
    eta: float,
    theta: NDArray[Any],
    s: NDArray[Any],
) -> int: ...
def project_pairs(
    X: NDArray[Any],
    M: NDArray[Any],
    Z: NDArray[Any],
    P: NDArray[Any],
    ends: NDArray[Any],
    privileged_ends: NDArray[Any],
    sign: NDArray[Any],
    goal: NDArray[Any],
    gamma: NDArray[Any],
    cap: NDArray[Any],
    has_privileged: NDArray[Any],
    reach: NDArray[Any],
    order: NDArray[Any],
    lam: float,
    corrected: bool,
    a: NDArray[Any],
    b: NDArray[Any],
) -> int: ...
def kernel_values(
    left: NDArray[Any],
    right: NDArray[Any],
    argument: int,
    shape: NDArray[Any],
    degree: NDArray[Any],
    gamma: NDArray[Any],
    offset: NDArray[Any],
    out: NDArray[Any],
    n_threads: int = 1,
) -> None: ...
def add_weighted_values(
    left: NDArray[Any],
    right: NDArray[Any],
    argument: int,
    shape: NDArray[Any],
    degree: NDArray[Any],
    gamma: NDArray[Any],
    offset: NDArray[Any],
    weights: NDArray[Any],
    out: NDArray[Any],
    n_threads: int = 1,
) -> None: ...
def add_weighted_gram(
    rows: NDArray[Any],
    argument: int,
    shape: NDArray[Any],
    degree: NDArray[Any],
    gamma: NDArray[Any],
    offset: NDArray[Any],
    weights: NDArray[Any],
    out: NDArray[Any],
    n_threads: int = 1,
) -> None: ...
def add_products(
    left: NDArray[Any],
    right: NDArray[Any],
    coef: NDArray[Any],
    argument: int,
    shape: NDArray[Any],
    degree: NDArray[Any],
    gamma: NDArray[Any],
    offset: NDArray[Any],
    out: NDArray[Any],
    n_threads: int = 1,
) -> None: ...
def add_weighted_products(
    left: NDArray[Any],
    right: NDArray[Any],
    coef: NDArray[Any],
    argument: int,
    shape: NDArray[Any],
    degree: NDArray[Any],
    gamma: NDArray[Any],
    offset: NDArray[Any],
    weights: NDArray[Any],
    out: NDArray[Any],
    n_threads: int = 1,
) -> None: ...
def pair_energies(
    rows: NDArray[Any],
    coef: NDArray[Any],
    argument: int,
    shape: NDArray[Any],
    degree: NDArray[Any],
    gamma: NDArray[Any],
    offset: NDArray[Any],
    out: NDArray[Any],
    n_threads: int = 1,
) -> None: ...
def subsequence_values(
    left: NDArray[Any],
    left_start: NDArray[Any],
    right: NDArray[Any],
    right_start: NDArray[Any],
    length: int,
    decay: float,
    symmetric: bool,
    out: NDArray[Any],
) -> None: ...
def subsequence_diagonal(
    letters: NDArray[Any], start: NDArray[Any], length: int, decay: float, out: NDArray[Any]
) -> None: ...
