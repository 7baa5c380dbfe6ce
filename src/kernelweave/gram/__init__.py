"""How Gram matrices are held: dense, packed or made again, float64 or float32, behind one protocol."""

from kernelweave.gram.choose import store
from kernelweave.gram.dense import DenseGrams
from kernelweave.gram.lazy import LazyGrams
from kernelweave.gram.packed import PackedGrams
from kernelweave.gram.protocol import GramStack
from kernelweave.gram.source import ArraySource, Source

__all__ = ["ArraySource", "DenseGrams", "GramStack", "LazyGrams", "PackedGrams", "Source", "store"]
