"""Matrices from outside as a source of entries: checked while they are read for the first time."""

from __future__ import annotations

from collections.abc import Container, Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from kernelweave import _core
from kernelweave._typing import AnyArray, Indices, Matrix, Span, Vector
from kernelweave.gram import MatrixSource
from kernelweave.kernels.checks import Inspection, probes


class Judge(Protocol):
    """Who has the matrices, and says of each whether it is a kernel."""

    @property
    def given(self) -> list[Matrix]:
        """The matrices, whether checked or not."""
        ...

    @property
    def tolerances(self) -> Vector:
        """The rounding each matrix may carry."""
        ...

    def matrix(self, m: int) -> Matrix:
        """Return a matrix, checked when it is read for the first time."""
        ...

    def judge(self, m: int, plain: bool) -> bool:
        """Accept a matrix that plainly is a Gram, or check it closely; return whether it stayed as it was."""
        ...


class UncheckedSource(MatrixSource):
    """Matrices from outside that are checked in the first pass over all their entries.

    Packing and combining check on the way; other passes check before they begin. Only samples may be taken
    of matrices that nobody has looked at. All passes read the lower triangles; whether the upper ones are the
    same is told at once, or by `settle`, if that was promised by `defer`.
    """

    def __init__(self, bank: Judge) -> None:
        super().__init__(bank.given)
        self._bank, self._pending = bank, True
        self._upper: _core.UpperSums | None = None  # from `defer` to `settle`
        self._suspended: Suspended | None = None
        self._changed: list[int] = []  # since the last `settle`

    def check(self) -> None:
        if self._pending:
            self._upper = None
            self._accept([self._bank.matrix(m) for m in self.kernels])

    def defer(self, n_threads: int) -> None:
        if self._pending and n_threads > 1:  # alone there is nobody to do it meanwhile
            self._upper = _core.UpperSums(self._matrices, probes(self.n_samples), n_threads)

    def settle(self) -> list[int]:
        self._finish()
        changed, self._changed = self._changed, []
        return changed

    def block(
        self, rows: Span, columns: Span, which: Container[int] | None = None
    ) -> Iterator[tuple[int, Matrix]]:
        self.check()
        self._finish()  # blocks may lie in the upper triangle
        return super().block(rows, columns, which)

    def centre_all(self, chosen: Indices, shifts: Matrix, n_threads: int) -> None:
        super().centre_all(chosen, shifts, n_threads)
        if not np.isfinite(shifts).all():  # whole rows are read for them
            self.check()

    def pack_all(self, shifts: Matrix, packed: AnyArray, n_threads: int, even: Matrix | None = None) -> None:
        seen = self._inspection(n_threads)
        reports = _core.admit_all(self._matrices, seen.roots, seen.probes, shifts, packed, n_threads, even)
        mended = self._admitted(seen, reports, n_threads)
        for m in mended:
            _core.pack(self._matrices[m], 0, shifts[m], packed[m])
        if mended and even is not None:
            super().combine_all(np.ones(len(self.kernels)), shifts.sum(axis=0), even, n_threads)

    def combine_all(self, eta: Vector, shift: Vector, K: AnyArray, n_threads: int) -> None:
        if not self._pending:
            self._finish_if_read()
            super().combine_all(eta, shift, K, n_threads)
            return
        seen, weights = self._inspection(n_threads), np.ascontiguousarray(eta)
        reports = _core.admit_and_combine(
            self._matrices, seen.roots, seen.probes, weights, shift, K, n_threads
        )
        if self._admitted(seen, reports, n_threads):
            super().combine_all(eta, shift, K, n_threads)

    def take_all(self, rows: Indices, shifts: Matrix, packed: AnyArray, n_threads: int) -> bool:
        finite = super().take_all(rows, shifts, packed, n_threads)
        if not finite or not np.isfinite(self.all_diagonals(n_threads)).all():
            self.check()
        return finite

    def energies_all(self, V: Matrix, out: Vector, n_threads: int) -> None:
        self.check()
        self._finish_if_read()
        if self._upper is None or len(V) > 1:
            super().energies_all(V, out, n_threads)
            return
        # Of triangles that have to be read anyway, and of them until `settle` even if they have been: digits
        # shall not depend on how soon that was.
        self._upper.energies(V[0], out)
        if not np.isfinite(out).all():
            self._finish()

    def image_all(self, eta: Vector, V: Matrix, out: AnyArray, n_threads: int) -> None:
        self.check()
        super().image_all(eta, V, out, n_threads)

    def images_all(self, V: Matrix, out: AnyArray, n_threads: int, where: AnyArray | None = None) -> None:
        self.check()
        super().images_all(V, out, n_threads, where)

    def _inspection(self, n_threads: int) -> Inspection:
        return Inspection(self.all_diagonals(n_threads), self._bank.tolerances)

    def _admitted(self, seen: Inspection, reports: Sequence[tuple[bool, float]], n_threads: int) -> list[int]:
        """Judge every matrix by its lower triangle and, now or later, the upper one; return those mended."""
        minors, lower = zip(*reports, strict=True)
        plain = seen.definite(minors)
        mended = [] if all(plain) else self._judged(plain)
        self._pending = False
        if self._upper is not None and not mended:
            self._suspended = Suspended(seen, lower, self._upper)
            return mended
        self._upper = None  # of matrices that are no more
        upper = _core.UpperSums(self._matrices, seen.probes, n_threads)
        symmetric = Suspended(seen, lower, upper).verdicts()
        # What was mended is symmetric, and its lower sums are those of before.
        return sorted({*mended, *self._judged([m in mended or plain for m, plain in enumerate(symmetric)])})

    @property
    def is_deferred(self) -> bool:
        return self._suspended is not None

    def _finish_if_read(self) -> None:
        """Judge as soon as it costs nothing, so that few machines are solved for what is no kernel."""
        if self._suspended is not None and not self._suspended.upper.goes_on and self._conclude():
            self._upper = None

    def _finish(self) -> None:
        """Judge the matrices by their upper triangles, if that is left to be done; be through with them."""
        self._conclude()
        self._upper = None

    def _conclude(self) -> bool:
        """Judge the matrices by their upper triangles; return whether some had to be mended."""
        suspended, self._suspended = self._suspended, None
        mended = [] if suspended is None else self._judged(suspended.verdicts())
        self._changed += mended
        return bool(mended)

    def _judged(self, plain: Sequence[bool]) -> list[int]:
        """Have the bank judge matrices by what a pass found; return those that had to be mended."""
        mended = [m for m, found in enumerate(plain) if not self._bank.judge(m, found)]
        self._accept([self._bank.matrix(m) for m in self.kernels])
        return mended

    def _accept(self, matrices: list[Matrix]) -> None:
        self._matrices, self._diagonals, self._pending = matrices, None, False


@dataclass(frozen=True)
class Suspended:
    """A judgement that waits for the upper triangles: the sums of the lower ones are known."""

    seen: Inspection
    lower: Sequence[float]
    upper: _core.UpperSums

    def verdicts(self) -> list[bool]:
        """Read what is left of the upper triangles, and tell which matrices are symmetric."""
        sums = [a + b for a, b in zip(self.lower, self.upper.finish(), strict=True)]
        return self.seen.symmetric(sums)
