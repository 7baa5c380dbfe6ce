"""Calls take turns, and memory is measured from the present level."""

import numpy as np
from benchmarks.measure import peak_megabytes, round_order
from benchmarks.resident import raised_megabytes


def test_no_call_always_follows_the_same():
    calls = dict.fromkeys("abc", lambda: None)
    assert [round_order(calls, number) for number in range(3)] == [list("abc"), list("cba"), list("abc")]


def test_memory_that_was_freed_before_counts_again():
    """Small blocks stay with the allocator: a call that takes as many again must not seem to take none."""
    blocks = [np.ones(8_000) for _ in range(1_000)]  # 64 MB in pieces that are not given back at once
    del blocks
    assert 55.0 <= raised_megabytes(lambda: [np.ones(8_000) for _ in range(1_000)]) <= 80.0


def test_a_child_process_measures_the_same():
    assert 55.0 <= peak_megabytes(lambda: np.ones(8_000_000)) <= 80.0
