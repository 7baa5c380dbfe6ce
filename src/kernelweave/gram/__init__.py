"""How Gram matrices are held: by reference, packed, by a small basis or made again; behind one protocol."""

from kernelweave.gram.choose import store
from kernelweave.gram.dense import DenseGrams
from kernelweave.gram.given import MatrixSource
from kernelweave.gram.joined import JoinedGrams
from kernelweave.gram.lazy import LazyGrams
from kernelweave.gram.low_rank import LowRankGrams
from kernelweave.gram.packed import PackedGrams
from kernelweave.gram.protocol import (
    DefersChecks,
    GramStack,
    KnowsRounding,
    Samples,
    StoredStack,
    Subsets,
)
from kernelweave.gram.source import Source
from kernelweave.gram.storage import Storage, storage

__all__ = [
    "DefersChecks",
    "DenseGrams",
    "GramStack",
    "JoinedGrams",
    "KnowsRounding",
    "LazyGrams",
    "LowRankGrams",
    "MatrixSource",
    "PackedGrams",
    "Samples",
    "Source",
    "Storage",
    "StoredStack",
    "Subsets",
    "storage",
    "store",
]
