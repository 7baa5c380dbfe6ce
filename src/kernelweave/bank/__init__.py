"""Banks: named kernels over views, written down without data and resolved at fit."""

from kernelweave.bank.entry import Entry
from kernelweave.bank.features import Nystroem, RandomFourier
from kernelweave.bank.kernel_bank import KernelBank
from kernelweave.bank.precomputed import PrecomputedBank
from kernelweave.views.bags import Bags
from kernelweave.views.views import Views

__all__ = ["Bags", "Entry", "KernelBank", "Nystroem", "PrecomputedBank", "RandomFourier", "Views"]
