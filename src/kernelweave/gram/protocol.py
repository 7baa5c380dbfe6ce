"""What a stack of Gram matrices offers, however it is held."""

from __future__ import annotations

from typing import Protocol

from kernelweave._typing import AnyArray, Indices, Matrix, Vector
from kernelweave.gram.storage import Storage


class GramStack(Protocol):
    """M symmetric positive semidefinite n × n matrices K_m; coefficients V are (n,) or (n, k).

    Where the learner has a bias, so that the coefficients sum to zero, the matrices are held centred:
    K_ij − shifts_i − shifts_j. The learner does not see the difference, and float32 keeps more digits.
    """

    @property
    def n_kernels(self) -> int: ...

    @property
    def n_samples(self) -> int: ...

    @property
    def n_threads(self) -> int:
        """How many threads its passes use, and may be used beside them."""
        ...

    @property
    def sizes(self) -> Vector:
        """Largest diagonal entry of each matrix, or term that it is a difference of: what rounding is a share of."""
        ...

    @property
    def errors(self) -> Vector:
        """How far an entry of each matrix may seem off, by the rounding of double arithmetic."""
        ...

    @property
    def shifts(self) -> Matrix:
        """What centring took from the entries of each matrix, of shape (M, n)."""
        ...

    @property
    def is_rounded(self) -> bool:
        """Whether storing or adding up rounded to float32: bounds then are not those of the originals."""
        ...

    @property
    def storage(self) -> Storage:
        """How the matrices are held, in words."""
        ...

    def combine(self, eta: Vector, out: AnyArray | None = None) -> AnyArray:
        """Return K(eta) = Σ eta_m K_m; ``out``, an earlier result, may be overwritten with it."""
        ...

    def energies(self, coef: AnyArray, which: Indices | None = None) -> Vector:
        """Return h_m = ½ tr(V'K_mV) for every m, or for those of ``which``."""
        ...

    def matvecs(self, coef: AnyArray, needed: AnyArray | None = None) -> AnyArray:
        """Return K_m V for every m, of shape (M, n) or (M, n, k).

        Entries where ``needed``, of the shape of V, is False may be left at zero; V is zero there.
        """
        ...

    def matvec_with_error(self, eta: Vector, coef: AnyArray) -> tuple[AnyArray, AnyArray]:
        """Return K(eta) V in double precision, and for every entry how far that of the originals may be.

        Infinity where no bound is known: whoever needs one reads the kernels again as they were given.
        """
        ...

    def energy_errors(self, coef: AnyArray) -> Vector:
        """Bound for every m how far the energy of the stored matrix may be below that of the original."""
        ...

    def offset(self, eta: Vector, coef: AnyArray) -> AnyArray:
        """Return the constant that centring removed from K(eta) V, one per column of V."""
        ...

    def sample(self, rows: Indices) -> GramStack:
        """Return all kernels between these samples alone, in memory; rows ascend."""
        ...

    def subset(self, which: Indices) -> GramStack:
        """Return these kernels alone, in this order, ready for many passes."""
        ...
