"""Figures are drawn without a window and closed after every test."""

import pytest

plt = pytest.importorskip("matplotlib.pyplot")


@pytest.fixture(autouse=True)
def no_window():
    plt.switch_backend("agg")
    yield
    plt.close("all")
