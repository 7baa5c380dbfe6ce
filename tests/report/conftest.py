"""The findings of one model, gathered once."""

import pytest
from tests.report.samples import TWO, X, made

from kernelweave.report import gather_findings


@pytest.fixture(scope="session")
def found():
    return gather_findings(made().fit(X, TWO), X, TWO, cv=3, n_resamples=5)
