"""How Gram matrices are held: by reference, packed, or not at all; one protocol."""

from kernelweave.gram.dense import DenseGrams
from kernelweave.gram.memory import SolverSize
from kernelweave.gram.packed import PackedGrams
from kernelweave.gram.policy import StoragePolicy, build_gram_stack, exact_gram_stack
from kernelweave.gram.protocol import GramStack
from kernelweave.gram.source import KernelSource
from kernelweave.gram.storage import Storage
from kernelweave.gram.streamed import StreamedGrams

__all__ = [
    "DenseGrams",
    "GramStack",
    "KernelSource",
    "PackedGrams",
    "SolverSize",
    "Storage",
    "StoragePolicy",
    "StreamedGrams",
    "build_gram_stack",
    "exact_gram_stack",
]
