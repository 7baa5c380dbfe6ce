"""Kernels from outside that are not positive semidefinite: their negative eigenvalues clipped, flipped or shifted."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np

from kernelweave._typing import Matrix, Vector
from kernelweave.kernels.base import Kernel, Rows
from kernelweave.kernels.checks import TOLERANCE, check_symmetric, symmetrised
from kernelweave.kernels.composite import Composite
from kernelweave.kernels.groups import GivenGroup, KernelGroup
from kernelweave.kernels.pairs import Pairs

CHOICES = ("clip", "flip", "shift")


@dataclass(frozen=True)
class Repair:
    """What makes a symmetric training matrix positive semidefinite, and the rows of new samples fit to it.

    With K = U diag(l) U' and V the eigenvectors of l < 0,

        clip:  K P, P = I - VV'      (l < 0 become 0)
        flip:  K P, P = I - 2VV'     (l < 0 become |l|)
        shift: K + |min l| I,

    and rows k of new samples become k P, or stay as they are for "shift", which concerns k(x, x) only.
    """

    how: str
    vectors: Matrix = field(repr=False)
    lowest: float = 0.0

    @classmethod
    def of(cls, K: Matrix, how: str, tolerance: float = TOLERANCE) -> Repair | None:
        """Learn the repair of a symmetric training matrix; None where it needs none."""
        values, vectors = np.linalg.eigh(K)
        if not values.size or values[0] >= -tolerance * float(np.abs(values).max()):
            return None
        negative = values < 0.0
        return cls(how, vectors[:, negative] if how != "shift" else vectors[:, :0], float(values[0]))

    def training(self, K: Matrix) -> Matrix:
        """Return the training matrix without negative eigenvalues, exactly symmetric."""
        repaired = self.rows(K)
        if self.how == "shift":
            repaired = repaired.copy()
            repaired[np.diag_indices_from(repaired)] -= self.lowest
        return symmetrised(repaired)

    def rows(self, K: Matrix) -> Matrix:
        """Return the rows of new samples against the training samples, as they fit to the repaired matrix."""
        times = {"clip": 1.0, "flip": 2.0, "shift": 0.0}[self.how]
        return np.asarray(K - times * (K @ self.vectors) @ self.vectors.T) if times else K


def check_repair(how: Any, what: str) -> None:
    """Raise ValueError unless the choice is one there is."""
    if not isinstance(how, str) or how not in CHOICES:
        raise ValueError(f"{what} cannot use {how!r} as repair; it has to be one of {', '.join(CHOICES)}.")


@dataclass
class Repaired(Composite):
    r"""A kernel without negative eigenvalues on the training samples; also written ``kernel.repaired(how)``.

    With the eigenvalues l of its training matrix: "clip" sets l < 0 to 0, "flip" to |l|, "shift" adds |min l| to all.

    Parameters
    ----------
    kernel : a symmetric function that is not a kernel, such as the sigmoid in ``FromFunction``, a given matrix in
        ``Precomputed`` or a function of distances in ``ExpDistance``.
    how : "clip", "flip" or "shift". Clipping is the nearest positive semidefinite matrix; flipping keeps what the
        negative part says of samples; shifting leaves the values between different samples as they are.

    Notes
    -----
    [Chen09]. The training matrix is held as a whole and decomposed once, at n^3 cost. Rows of new samples
    are multiplied by what took K to the repaired one, P = U diag(l > 0) U' or U diag(sign l) U'; shifted ones stay.
    A training matrix without negative eigenvalues is left as it is. A new row does not show its k(x, x).
    Differs from the paper: eigenvalues that are rounding are not touched.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelweave.kernels import Precomputed
    >>> S = np.array([[0.0, 1.0], [1.0, 0.0]])  # eigenvalues 1 and -1
    >>> Precomputed().repaired("clip")(S).round(2)
    array([[0.5, 0.5],
           [0.5, 0.5]])
    >>> Precomputed().repaired("shift")(S).round(2)
    array([[1., 1.],
           [1., 1.]])

    """

    of_training: ClassVar[bool] = True

    kernel: Kernel
    how: str = "clip"

    @property
    def label(self) -> str:
        return f"{self.how}({self.kernel.label})"

    @property
    def knows_diagonal(self) -> bool:  # type: ignore[override]
        return False

    def check(self) -> None:
        super().check()
        check_repair(self.how, "Repaired")

    def combined(self, values: Sequence[Any]) -> Any:
        return values[0]

    def matrix(self, pairs: Pairs) -> Matrix:
        group = RepairedGroup(self, pairs.X if pairs.Z is None else pairs.Z)
        return group.matrix.copy() if pairs.Z is None else group.rows(pairs.X)

    def diagonal_of(self, X: Rows) -> Vector:
        return np.diagonal(self.matrix(Pairs(X))).copy()

    def own_group(self, X: Rows) -> KernelGroup | None:
        return RepairedGroup(self, X)


class RepairedGroup(GivenGroup):
    """A kernel held as its repaired training matrix; new samples are repaired rows against the training samples."""

    def __init__(self, kernel: Repaired, X: Rows) -> None:
        inner, own = kernel.kernel, kernel.rows_of(kernel.kernel, X)
        K = inner.matrix(Pairs(own, own))  # as for new rows, which are not checked to be a kernel
        check_symmetric(K, f"Kernel {inner.label!r}")
        K = symmetrised(K)
        self.kernel, self.X, self.repair = kernel, X, Repair.of(K, kernel.how)
        super().__init__(kernel, K if self.repair is None else self.repair.training(K))

    def rows(self, X: Rows) -> Matrix:
        inner = self.kernel.kernel
        K = inner.matrix(Pairs(self.kernel.rows_of(inner, X), self.kernel.rows_of(inner, self.X)))
        return K if self.repair is None else self.repair.rows(K)

    def values(self, left: Any, right: Any) -> Iterator[Matrix]:
        if isinstance(right, np.ndarray) and right.ndim == 2:
            raise ValueError(
                f"{self.kernel.label} is known against the training samples only, so it has no values between two "
                "sets of new samples; leave Z out."
            )
        return super().values(left, right)
