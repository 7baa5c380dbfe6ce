"""Re-identification: the rank of the right identity when a gallery is sorted by distance."""

from __future__ import annotations

from typing import Any

import numpy as np

from kernelweave._typing import AnyArray, Matrix, Vector


def cmc_curve(distances: Any, probes: Any, gallery: Any, *, max_rank: int | None = None) -> Vector:
    """Return the cumulative matching characteristic: entry r−1 is the share of probes found by rank r.

    The rank of a probe is that of its identity among all identities of the gallery, each as near as its
    nearest sample. Identities at the same distance share the worst of their ranks, so ties earn nothing.

    Parameters
    ----------
    distances : array of shape (n_probes, n_gallery)
        Distances from every probe to every gallery sample.
    probes, gallery : arrays of identities
        One identity per probe and per gallery sample; each probe's has to be in the gallery.
    max_rank : int or None, default=None
        How many ranks to return; None is the number of identities in the gallery.

    Examples
    --------
    >>> cmc_curve([[0.1, 0.5, 0.9], [0.4, 0.3, 0.8]], ["ann", "bob"], ["ann", "cid", "bob"])
    array([0.5, 0.5, 1. ])

    """
    D: Matrix = np.asarray(distances, dtype=np.float64)
    probes, gallery = np.asarray(probes), np.asarray(gallery)
    if D.ndim != 2 or D.shape != (len(probes), len(gallery)) or not D.size:
        raise ValueError(
            f"distances must have shape (probes, gallery) = ({len(probes)}, {len(gallery)}), not empty; "
            f"got {D.shape}."
        )
    if not np.isfinite(D).all():
        raise ValueError("distances must be finite numbers.")
    identities, places = np.unique(gallery, return_inverse=True)
    unknown = np.setdiff1d(probes, identities)
    if len(unknown):
        raise ValueError(f"Every probe's identity must be in the gallery; {unknown[:5].tolist()} are not.")
    nearest = np.full((len(probes), len(identities)), np.inf)
    for sample, identity in enumerate(places):
        np.minimum(nearest[:, identity], D[:, sample], out=nearest[:, identity])
    own = nearest[np.arange(len(probes)), np.searchsorted(identities, probes)]
    ranks: AnyArray = (nearest <= own[:, None]).sum(axis=1)
    if max_rank is not None and max_rank < 1:
        raise ValueError(f"max_rank must be None or at least 1; got {max_rank!r}.")
    n_ranks = len(identities) if max_rank is None else min(max_rank, len(identities))
    found = np.bincount(ranks, minlength=len(identities) + 1)[1:]
    return np.asarray(np.cumsum(found)[:n_ranks] / len(probes))


def rank_accuracy(distances: Any, probes: Any, gallery: Any, *, rank: int = 1) -> float:
    """Return the share of probes whose identity is among the ``rank`` nearest; 1 is the recognition rate.

    >>> rank_accuracy([[0.1, 0.5], [0.4, 0.3]], ["ann", "bob"], ["ann", "bob"])
    1.0
    """
    return float(cmc_curve(distances, probes, gallery, max_rank=rank)[-1])
