"""The data sets by name: how each file becomes samples and labels, and the shape they must have."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

from kernelweave._typing import AnyArray
from kernelweave.bank import Views
from kernelweave.datasets.dataset import Dataset, read_arrays
from kernelweave.errors import DataError

Arrays = dict[str, AnyArray]
Parts = tuple[Any, AnyArray, dict[str, Any]]


@dataclass(frozen=True)
class CatalogueEntry:
    """One data set: its number of samples and of each class, its reader, and where it is on OpenML.

    ``openml`` is (name, version) of the same samples there.
    """

    n_samples: int
    n_features: int
    counts: tuple[int, ...]
    read: Callable[[Arrays], Parts]
    openml: tuple[str, int] | None = None
    notes: str = ""


def _read_table(arrays: Arrays) -> Parts:
    X = np.asarray(arrays["X"], dtype=float)
    return X, arrays["y"], {key: arrays[key] for key in arrays.keys() - {"X", "y"}}


def _read_varying(arrays: Arrays) -> Parts:
    X, y, extra = _read_table(arrays)
    return X[:, np.ptp(X, axis=0) > 0.0], y, extra


def _read_views(arrays: Arrays) -> Parts:
    views = {
        key.removeprefix("view_"): np.asarray(arrays[key], float) for key in arrays if key[:5] == "view_"
    }
    return Views(views), arrays["y"], {k: arrays[k] for k in arrays if k[:5] != "view_" and k != "y"}


def _read_nominal(arrays: Arrays) -> Parts:
    """Number the letters and digits of each column in their order, which is that of their meaning."""
    raw = arrays["X_raw"]
    X = np.column_stack([np.unique(column, return_inverse=True)[1] for column in raw.T]).astype(float)
    return X[:, np.ptp(X, axis=0) > 0.0], arrays["y"], {"flares": arrays["flares"]}


def _read_sparse_text(arrays: Arrays) -> Parts:
    shape = (int(arrays["shape"][0]), int(arrays["shape"][1]))
    X = sparse.csr_matrix((arrays["data"].astype(float), arrays["indices"], arrays["indptr"]), shape=shape)
    return X, arrays["y"], {key: arrays[key] for key in ("labeled_10", "labeled_100")}


def _semi_supervised(counts: tuple[int, int], n_samples: int = 1500, n_features: int = 241) -> CatalogueEntry:
    return CatalogueEntry(
        n_samples, n_features, counts, _read_table, notes="with 12 published splits of 10 and 100 labels"
    )


def _bags(n_bags: int, n_features: int, counts: tuple[int, int]) -> CatalogueEntry:
    return CatalogueEntry(
        n_bags, n_features, counts, _read_table, notes="instances in X, their bag in extra['bag']"
    )


CATALOGUE: Mapping[str, CatalogueEntry] = {
    "heart": CatalogueEntry(270, 13, (150, 120), _read_table, ("heart-statlog", 1)),
    "diabetes": CatalogueEntry(768, 8, (500, 268), _read_table, ("diabetes", 1)),
    "australian": CatalogueEntry(690, 14, (383, 307), _read_table, ("Australian", 4)),
    "ionosphere": CatalogueEntry(351, 33, (126, 225), _read_varying, ("ionosphere", 1)),
    "ringnorm": CatalogueEntry(7400, 20, (3736, 3664), _read_table, ("ringnorm", 1)),
    "banana": CatalogueEntry(5300, 2, (2924, 2376), _read_table, ("banana", 1)),
    "solar_flare_uci": CatalogueEntry(
        1066,
        9,
        (865, 201),
        _read_nominal,
        notes="the UCI parent of IDA's FlareSolar, nominal columns numbered",
    ),
    "mfeat": CatalogueEntry(2000, 649, (200,) * 10, _read_views),
    "protein_fold": CatalogueEntry(694, 925, (), _read_views, notes="published split in extra"),
    "tcga_breast_mixomics": CatalogueEntry(
        150, 526, (), _read_views, notes="70 test samples without proteins in extra"
    ),
    "musk1": _bags(92, 166, (45, 47)),
    "musk2": _bags(102, 166, (63, 39)),
    "elephant": _bags(200, 230, (100, 100)),
    "fox": _bags(200, 230, (100, 100)),
    "tiger": _bags(200, 230, (100, 100)),
    "ssl_digit1": _semi_supervised((766, 734)),
    "ssl_usps": _semi_supervised((1200, 300)),
    "ssl_bci": _semi_supervised((200, 200), n_samples=400, n_features=117),
    "ssl_g241c": _semi_supervised((750, 750)),
    "ssl_g241d": _semi_supervised((752, 748)),
    "ssl_text": CatalogueEntry(
        1500, 11960, (750, 750), _read_sparse_text, notes="sparse; 12 splits of 10 and 100 labels"
    ),
    "mnist_plus": CatalogueEntry(
        100, 100, (50, 50), _read_table, notes="non-commercial use; privileged views in extra"
    ),
    "orl_32x32": CatalogueEntry(400, 1024, (10,) * 40, _read_table),
    "usps": CatalogueEntry(9298, 256, (), _read_table),
}


def names() -> list[str]:
    """Return the names that `load` takes."""
    return sorted(CATALOGUE)


def entry(name: str) -> CatalogueEntry:
    """Return the entry of a data set; DataError names what there is."""
    if name not in CATALOGUE:
        raise DataError(f"There is no data set {name!r}; there are {', '.join(names())}.")
    return CATALOGUE[name]


def load(name: str, directory: str | Path | None = None) -> Dataset:
    """Return a data set from its file in ``directory``, or in the folder that KERNELWEAVE_DATA names.

    >>> from kernelweave.datasets import load, names
    >>> "heart" in names()
    True
    """
    known = entry(name)
    arrays = read_arrays(name, directory)
    try:
        X, y, extra = known.read(arrays)
    except KeyError as error:
        raise DataError(f"{name}.npz has no array {error}; it is not the file that {name!r} means.") from None
    check(name, known, X, y)
    return Dataset(name, X, y, extra, known.notes)


def check(name: str, known: CatalogueEntry, X: Any, y: AnyArray) -> None:
    """Raise DataError unless the samples have the shape and the classes the counts of the entry."""
    width = X.shape[1]
    if width != known.n_features or len(y) != known.n_samples:
        raise DataError(
            f"{name!r} should have {known.n_samples} labels and {known.n_features} columns, "
            f"received {len(y)} and {width}."
        )
    counts = tuple(int(count) for count in np.unique(y, return_counts=True)[1])
    if known.counts and counts != known.counts:
        raise DataError(f"{name!r} should have classes of {known.counts} samples, received {counts}.")
