"""What is free is the least that the system, the control groups and the process's own limits leave."""

import subprocess
import sys
from pathlib import Path

import pytest

from kernelweave.gram import memory
from kernelweave.gram.memory import budget, free_bytes, human, require_room


def tree(root, files):
    """Write small files below a folder."""
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"{text}\n")


def left(tmp_path, membership, files):
    tree(tmp_path / "root", files)
    (tmp_path / "membership").write_text(membership)
    return memory._free_in_control_groups(tmp_path / "membership", tmp_path / "root")


def test_a_group_of_version_two_leaves_its_limit_less_what_it_uses(tmp_path):
    files = {"jobs/mine/memory.max": 1000, "jobs/mine/memory.current": 300}
    assert left(tmp_path, "0::/jobs/mine\n", files) == 700


def test_a_group_of_version_one_leaves_its_limit_less_what_it_uses(tmp_path):
    membership = "9:cpu,cpuacct:/elsewhere\n5:memory:/jobs/mine\n1:name=systemd:/jobs/mine\n"
    files = {
        "memory/jobs/mine/memory.limit_in_bytes": 1000,
        "memory/jobs/mine/memory.usage_in_bytes": 300,
        "memory/elsewhere/memory.limit_in_bytes": 10,  # not a group of this process's memory
        "memory/elsewhere/memory.usage_in_bytes": 9,
    }
    assert left(tmp_path, membership, files) == 700


def test_a_controller_of_version_one_may_share_its_line(tmp_path):
    files = {"memory/a/memory.limit_in_bytes": 50, "memory/a/memory.usage_in_bytes": 20}
    assert left(tmp_path, "3:cpuset,memory:/a\n", files) == 30


@pytest.mark.parametrize(
    ("limits", "free"),
    [
        ({"": (900, 800), "jobs": (1000, 100), "jobs/mine": (500, 100)}, 100),
        ({"jobs": (1000, 990), "jobs/mine": (500, 100)}, 10),
        ({"jobs": ("max", 990), "jobs/mine": (500, 100)}, 400),
        ({"jobs": (1000, 990), "jobs/mine": ("max", 100)}, 10),
        ({"jobs": (1000, 1100)}, -100),
    ],
    ids=["the top", "the parent", "its own", "unlimited below a limit", "over the limit"],
)
@pytest.mark.parametrize("version", [1, 2])
def test_the_groups_above_have_a_say(tmp_path, limits, free, version):
    names = (
        ("memory.max", "memory.current")
        if version == 2
        else ("memory.limit_in_bytes", "memory.usage_in_bytes")
    )
    files = {}
    for folder, numbers in limits.items():
        for name, number in zip(names, numbers, strict=True):
            files[str(Path("memory" if version == 1 else "", folder, name))] = number
    assert left(tmp_path, "0::/jobs/mine\n" if version == 2 else "4:memory:/jobs/mine\n", files) == free


@pytest.mark.parametrize("membership", ["0::/../outside\n", "0::/\n"])
def test_in_a_container_the_group_may_be_what_is_mounted(tmp_path, membership):
    tree(tmp_path, {"memory.max": 5, "memory.current": 4})  # above what is mounted: not ours to read
    assert left(tmp_path, membership, {"memory.max": 1000, "memory.current": 1}) == 999


@pytest.mark.parametrize(
    ("membership", "files"),
    [
        ("", {"memory.max": 10, "memory.current": 1}),
        ("0::/a\n", {}),
        ("0::/a\n", {"a/memory.max": "max", "a/memory.current": 1}),
        ("0::/a\n", {"a/memory.max": 10}),
        ("1:cpu:/a\n", {"memory/a/memory.limit_in_bytes": 10, "memory/a/memory.usage_in_bytes": 1}),
    ],
    ids=["no groups", "no files", "no limit", "no usage", "other controllers"],
)
def test_where_no_group_has_a_limit_nothing_is_said(tmp_path, membership, files):
    assert left(tmp_path, membership, files) is None


def test_files_that_are_not_there_are_no_groups(tmp_path):
    assert memory._free_in_control_groups(tmp_path / "none", tmp_path) is None


FOUND = ("_free_on_system", "_free_in_control_groups", "_free_address_space")


@pytest.mark.parametrize(
    ("found", "free"),
    [
        ((500, 300, 400), 300),
        ((500, None, None), 500),
        ((None, None, 70), 70),
        ((500, -3, None), 0),
        ((None, None, None), memory.UNKNOWN),
    ],
)
def test_the_least_of_what_is_known_is_free(monkeypatch, found, free):
    for name, value in zip(FOUND, found, strict=True):
        monkeypatch.setattr(memory, name, lambda value=value: value)
    assert free_bytes() == free


@pytest.mark.parametrize(("free", "most"), [(1e9, 0.25e9), (8e9, 2e9), (16e9, 4e9), (1e12, 4e9)])
def test_without_a_limit_the_budget_is_a_quarter_of_what_is_free_and_four_gigabytes_at_most(
    monkeypatch, free, most
):
    monkeypatch.setattr(memory, "free_bytes", lambda: int(free))
    assert budget(None) == most
    assert budget(123.0) == 123
    assert budget(1e15) == 10**15  # the user knows


def test_something_is_free_on_this_machine():
    assert 0 < budget(None) <= min(0.25 * free_bytes() * 1.5, 4e9)  # others take and give back meanwhile


# The file alone: the package takes seconds to import.
LIMITED = """
import resource
import runpy
import sys
from types import SimpleNamespace

memory = SimpleNamespace(**runpy.run_path(sys.argv[1]))
before = memory._free_address_space()
used = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (used + 200_000_000, resource.RLIM_INFINITY))
print(before, memory._free_address_space(), memory.free_bytes(), memory.budget(None))
"""


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="/proc is Linux's")
def test_ulimit_v_counts():
    command = [sys.executable, "-c", LIMITED, memory.__file__]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    before, after, free, may_use = done.stdout.split()
    assert before == "None"
    assert 150_000_000 < int(after) <= 200_000_000
    assert 0 < int(free) <= 200_000_000
    assert 0 < int(may_use) <= 50_000_000


def test_what_does_not_fit_is_refused_with_the_numbers():
    require_room(1000, 1000, "Things", "have fewer")
    with pytest.raises(MemoryError, match=r"^Things need 1.5 MB, but 1 KB may be used: have fewer\.$"):
        require_room(1_500_000, 1000, "Things", "have fewer")


@pytest.mark.parametrize(
    ("n", "text"), [(12, "12 B"), (3_400, "3.4 KB"), (5e6, "5 MB"), (1.25e10, "12.5 GB")]
)
def test_bytes_are_written_as_people_read_them(n, text):
    assert human(int(n)) == text
