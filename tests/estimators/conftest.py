"""Storage as large problems have it, for small ones."""

import pytest

from kernelweave.gram import StoragePolicy


@pytest.fixture
def in_float32(monkeypatch):
    """Hold kernels in float32 unless another type is asked for, however few they are."""

    def preferred(self, n_samples, n_kernels):
        return "float32" if self.dtype == "auto" else self.dtype

    monkeypatch.setattr(StoragePolicy, "stored_dtype", preferred)
