"""Banks: named kernels over views, written down without data and resolved at fit."""

from kernelweave.bank.builders import KernelBank
from kernelweave.bank.features import Landmarks, Nystroem, RandomFourier
from kernelweave.bank.precomputed import PrecomputedBank
from kernelweave.bank.spec import Entry
from kernelweave.views.bags import Bags
from kernelweave.views.views import Views

__all__ = [
    "Bags",
    "Entry",
    "KernelBank",
    "Landmarks",
    "Nystroem",
    "PrecomputedBank",
    "RandomFourier",
    "Views",
]
