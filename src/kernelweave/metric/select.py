"""ITML-S: drop the pairs that the privileged features call outliers, then learn the metric."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from sklearn.utils.validation import _check_sample_weight

from kernelweave._typing import AnyArray, Vector
from kernelweave.estimators.base import forget
from kernelweave.estimators.parameters import check_from_zero
from kernelweave.metric.inputs import Pairs, read_pairs, read_privileged, read_signs
from kernelweave.metric.itml import ITML


@dataclass(eq=False, repr=False, kw_only=True)
class ITMLSelect(ITML):
    r"""ITML on the pairs that privileged features do not contradict.

    First ITML on the privileged features; then the share ``drop`` of the similar pairs that are farthest
    apart there, and of the dissimilar pairs that are nearest, is left out; then ITML on the rest.

    Parameters
    ----------
    gamma, prior, bounds, max_iter, tol, preprocessor, random_state, verbose
        As in `ITML`; gamma, max_iter and tol hold for both stages.
    drop : float, default=0.1
        Share of each kind of pairs with privileged features to leave out; 0 is `ITML`.

    Attributes
    ----------
    kept_ : bool array of shape (n_pairs,), the pairs learnt from, those without privileged features among
        them; not those of weight 0
    selector_ : the ITML fitted on privileged features, or None where there were none
    components_, bounds_, threshold_, multipliers_, certificate_, duality_gap_, objective_, history_, n_iter_,
    n_features_in_ : as in `ITML`

    Notes
    -----
    The baseline ITML-S of [Xu14, Sec. 5.5.2].
    Differs from the paper: how many pairs to remove is not stated there; here it is a parameter.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelweave import ITMLSelect
    >>> rng = np.random.default_rng(0)
    >>> pairs, privileged = rng.normal(size=(40, 2, 3)), rng.normal(size=(40, 2, 2))
    >>> y = np.where(abs(pairs[:, 0, 0] - pairs[:, 1, 0]) < 1, 1, -1)
    >>> model = ITMLSelect(drop=0.2, random_state=0).fit(pairs, y, privileged=privileged)
    >>> int(model.kept_.sum())
    32

    """

    drop: float = 0.1

    def fit(self, pairs: Any, y: Any, privileged: Any = None, sample_weight: Any = None) -> Self:
        """Learn from pairs (n, 2, d), y = ±1 and privileged features as in `ITMLPlus.fit`.

        ``sample_weight`` multiplies gamma in both stages; pairs of weight 0 are not among those to drop from.
        """
        self._check_parameters()
        forget(self)
        checked = read_pairs(pairs, self.preprocessor)
        sign = read_signs(y, len(checked))
        weight = _check_sample_weight(sample_weight, sign, dtype=np.float64, ensure_non_negative=True)
        kept, selector = self._select(checked, sign, weight, privileged, np.ndim(pairs) == 2)
        if not kept.any():
            raise ValueError(
                f"drop={self.drop!r} leaves none of the {len(sign)} pairs to learn from; lower drop, or give "
                "more pairs."
            )
        self._fit(pairs, y, None, weight * kept)
        self.kept_, self.selector_ = kept, selector
        return self

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_from_zero("drop", self.drop, below=1.0)

    def _select(
        self, pairs: Pairs, sign: Vector, weight: Vector, privileged: Any, indexed: bool
    ) -> tuple[AnyArray, ITML | None]:
        kept = weight > 0.0
        known = read_privileged(privileged, pairs, indexed)
        if known is None or not (known[1] & kept).any():
            return kept, None
        hidden, told = known[0], known[1] & kept
        selector = ITML(
            gamma=self.gamma,
            max_iter=self.max_iter,
            tol=self.tol,
            preprocessor=hidden.points,
            random_state=self.random_state,
            verbose=self.verbose,
        ).fit(hidden.ends[told], sign[told], sample_weight=weight[told])
        # Similar pairs count as odd when far apart, dissimilar ones when near.
        oddness = np.full(len(sign), -np.inf)
        oddness[told] = sign[told] * selector.pair_distance(hidden.ends[told])
        for kind in (1.0, -1.0):
            members = np.flatnonzero(told & (sign == kind))
            odd = members[np.argsort(-oddness[members], kind="stable")[: round(self.drop * len(members))]]
            kept[odd] = False
        return kept, selector.set_params(preprocessor=None)
