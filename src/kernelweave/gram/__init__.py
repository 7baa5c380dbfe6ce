"""How Gram matrices are held: dense, packed or streamed, float64 or float32, behind one protocol."""

from kernelweave.gram.choose import store
from kernelweave.gram.dense import DenseGrams
from kernelweave.gram.packed import PackedGrams
from kernelweave.gram.protocol import GramStack
from kernelweave.gram.streamed import StreamedGrams

__all__ = ["DenseGrams", "GramStack", "PackedGrams", "StreamedGrams", "store"]
