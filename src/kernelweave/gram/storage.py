"""How kernels were held, in words and as a number."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Storage:
    """How the kernels were held while the weights were learnt, and the most any of them lost by it.

    ``error`` is the most that an entry lost by rounding to float32, as a share of the largest, before they are added
    up. Certificates speak of the kernels that were given.
    """

    how: str
    error: float

    def __str__(self) -> str:
        return f"{self.how} (error at most {self.error:.0e})" if self.error else f"{self.how} (exact)"


def kernels_in_words(n_kernels: int) -> str:
    """Return a number of kernels in words: 1 kernel, 5 kernels."""
    return f"{n_kernels} kernel{'s' * (n_kernels != 1)}"
