"""Further ways to prepare columns of numbers, on top of their z-scores: by rank, or all in one unit."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from scipy.special import ndtri

from kernelweave._typing import Matrix, Vector
from kernelweave.views.encoders import Encoder, NumberEncoder
from kernelweave.views.tables import Table

# So many order statistics describe the distribution of a column.
MOST_QUANTILES = 1000


@dataclass(frozen=True)
class Prepared(Encoder):
    """Numbers as an encoder made them, and then prepared in another way."""

    encoder: NumberEncoder

    @property
    def filled(self) -> tuple[int, ...]:  # type: ignore[override]
        return self.encoder.filled

    @abstractmethod
    def apply(self, Z: Matrix) -> Matrix:
        """Return encoded columns prepared."""

    def transform(self, table: Table, what: str) -> Matrix:
        return self.once(table, what, {})  # type: ignore[no-any-return]

    def once(self, table: Table, what: str, known: dict[int, Any]) -> Any:
        if id(self) not in known:
            known[id(self)] = self.apply(self.encoder.once(table, what, known))
        return known[id(self)]


@dataclass(frozen=True)
class RankEncoder(Prepared):
    r"""Normal scores: every number by its rank among the training rows, as z-scores.

    A number above a share r of the training rows becomes Φ⁻¹(r), so that neither outliers nor skewness count.
    Ties share their mean rank.
    """

    quantiles: Matrix = field(repr=False)  # per column, sorted
    shift: Vector = field(repr=False)
    factor: Vector = field(repr=False)

    @classmethod
    def learn(cls, encoder: NumberEncoder, Z: Matrix) -> RankEncoder:
        """Return what is learnt from encoded training rows."""
        n = Z.shape[0]
        quantiles = np.sort(Z, axis=0)
        if n > MOST_QUANTILES:
            quantiles = quantiles[np.linspace(0, n - 1, MOST_QUANTILES).round().astype(np.intp)]
        quantiles = np.ascontiguousarray(quantiles.T)
        scores = _normal_scores(quantiles.T, quantiles)
        deviation = scores.std(axis=0)
        factor = 1.0 / np.where(deviation > 0.0, deviation, 1.0)
        return cls(encoder, quantiles, scores.mean(axis=0), factor)

    def apply(self, Z: Matrix) -> Matrix:
        return np.ascontiguousarray((_normal_scores(Z, self.quantiles) - self.shift) * self.factor)

    @property
    def words(self) -> str:
        return "normal scores of ranks"


@dataclass(frozen=True)
class CommonUnitEncoder(Prepared):
    """Numbers centred and in the unit they came in, for columns that share one, such as spectra or pixels."""

    unit: Vector = field(repr=False)

    @classmethod
    def learn(cls, encoder: NumberEncoder) -> CommonUnitEncoder:
        """Return what undoes the factors of z-scores; marks of gaps get a usual one."""
        deviation = 1.0 / encoder.standardiser.factor
        usual = float(np.median(deviation)) if deviation.size else 1.0
        unit = np.concatenate([deviation, np.full(len(encoder.standardiser.gaps), usual)])
        return cls(encoder, unit / usual)

    def apply(self, Z: Matrix) -> Matrix:
        return np.ascontiguousarray(Z * self.unit)

    @property
    def words(self) -> str:
        return "centred, in one unit"


def _normal_scores(Z: Matrix, quantiles: Matrix) -> Matrix:
    """Return Φ⁻¹ of the mean rank of every entry among the quantiles of its column, as a share of them."""
    n, scores = quantiles.shape[1], np.empty(Z.shape)
    for j, known in enumerate(quantiles):
        rank = 0.5 * (np.searchsorted(known, Z[:, j], "left") + np.searchsorted(known, Z[:, j], "right"))
        scores[:, j] = ndtri(np.clip(rank / n, 0.5 / n, 1.0 - 0.5 / n))
    return scores
