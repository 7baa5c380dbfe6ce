"""What a stack of Gram matrices offers, however it is held."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Protocol, runtime_checkable

from kernelweave._typing import AnyArray, Indices, Matrix, Vector

if TYPE_CHECKING:
    from kernelweave.gram.sums import Sum


class GramStack(Protocol):
    """M symmetric n × n matrices behind three hot verbs; coefficients are (n,) or (n, k)."""

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
        """Largest diagonal entry of each matrix: what its rounding is measured by."""
        ...

    @property
    def errors(self) -> Vector:
        """How far an entry of each stored matrix may seem off, by the rounding of double arithmetic."""
        ...

    @property
    def shifts(self) -> Matrix:
        """What centring took from the entries of each matrix: K_ij - shifts_i - shifts_j is left."""
        ...

    @property
    def is_rounded(self) -> bool:
        """Whether storing rounded the matrices: bounds drawn from them are not those of the originals."""
        ...

    def combine(self, eta: Vector, out: AnyArray | None = None) -> AnyArray:
        """Return K(eta) = Σ eta_m K_m; ``out``, an earlier answer, may be overwritten with it."""
        ...

    def images(self, coef: AnyArray) -> AnyArray:
        """Return K_m V for every m, of shape (M, n) or (M, n, k)."""
        ...

    def energies(self, coef: AnyArray) -> Vector:
        """Return h_m = ½ tr(V'K_mV) for every m."""
        ...

    def offset(self, eta: Vector, coef: AnyArray) -> AnyArray:
        """Return the constant that centring removed from K(eta) V, one per column of V."""
        ...


def images_at(stack: GramStack, coef: AnyArray, where: AnyArray) -> AnyArray:
    """Return K_m V, right at least where ``where`` is true; V is zero elsewhere.

    Stacks that read less for that have a verb of this name, which is asked for at every machine.
    """
    look: Callable[[AnyArray, AnyArray], AnyArray] | None = getattr(stack, "images_at", None)
    return stack.images(coef) if look is None else look(coef, where)


@runtime_checkable
class Moves(Protocol):
    """A stack whose sums may follow their weights."""

    @property
    def moves(self) -> bool:
        """Whether that is less work than `combine`."""
        ...

    def move(self, K: AnyArray, keep: float, change: Vector) -> None:
        """Set K, an answer of `combine`, to keep K + Σ change_m K_m, and read no kernel without change."""
        ...


@runtime_checkable
class Subsets(Protocol):
    """A stack that can bring some of its kernels into memory."""

    def subset(self, which: Indices) -> GramStack:
        """Return these kernels alone, in this order, ready for many passes."""
        ...


@runtime_checkable
class Samples(Protocol):
    """A stack that can be asked for some of its samples."""

    def sample(self, rows: Indices) -> StoredStack:
        """Return all kernels between these samples alone, in memory; rows ascend."""
        ...


@runtime_checkable
class DefersChecks(Protocol):
    """A stack of matrices from outside, whose checks can go on beside the work."""

    def settle(self) -> bool:
        """Finish the checks; return whether entries had to be changed, so that earlier answers are void."""
        ...


class StoredStack(GramStack, Samples, Protocol):
    """How the training kernels of a fit are held, whichever way."""


@runtime_checkable
class KnowsRounding(Protocol):
    """A stack that can tell what rounding in storage did to its products."""

    def image_near(self, total: Sum, coef: AnyArray) -> tuple[AnyArray, AnyArray] | None:
        """Return the same as `image_within` from the sum alone, where it takes less than that; or None.

        The originals' may be further away than a pass over the kernels would tell.
        """
        ...

    def image_within(
        self, eta: Vector, coef: AnyArray, total: Sum | None = None
    ) -> tuple[AnyArray, AnyArray]:
        """Return K(eta) V, summed in double precision, and for every entry how far the originals' may be.

        ``total`` is the sum at these weights, if it is at hand.
        """
        ...

    def energy_errors(self, coef: AnyArray) -> Vector:
        """Bound for every m how far the energy of the stored matrix may be below that of the original."""
        ...
