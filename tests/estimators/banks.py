"""Banks and views of the breast cancer data."""

from kernelweave import KernelBank, Views
from kernelweave.kernels import Gaussian, Linear

VIEWS = {"mean": slice(0, 10), "error": slice(10, 20), "worst": slice(20, 30)}


def per_view():
    return KernelBank.per_view([Gaussian(), Linear()], views=VIEWS)


def as_views(X):
    return Views({name: X.iloc[:, columns] for name, columns in VIEWS.items()})
