"""Which core is under test."""

import os
from pathlib import Path

import pytest

from kernelweave import _core


def test_the_instrumented_core_is_the_one_under_test():
    wanted = os.environ.get("KERNELWEAVE_CORE_DIR")
    if wanted is None:
        pytest.skip("the core is instrumented by `make sanitize` only")
    assert Path(_core.__file__).parent == Path(wanted)
