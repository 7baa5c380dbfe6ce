"""How Gram matrices are held: by reference, packed, by a small basis or computed again; one protocol."""

from kernelweave.gram.blockwise import BlockGrams
from kernelweave.gram.dense import DenseGrams
from kernelweave.gram.joined import JoinedGrams
from kernelweave.gram.lowrank.low_rank import LowRankGrams
from kernelweave.gram.packed import PackedGrams
from kernelweave.gram.policy import StoragePolicy, build_gram_stack, exact_gram_stack
from kernelweave.gram.protocol import GramStack
from kernelweave.gram.source import BlockSource
from kernelweave.gram.storage import Storage

__all__ = [
    "BlockGrams",
    "BlockSource",
    "DenseGrams",
    "GramStack",
    "JoinedGrams",
    "LowRankGrams",
    "PackedGrams",
    "Storage",
    "StoragePolicy",
    "build_gram_stack",
    "exact_gram_stack",
]
