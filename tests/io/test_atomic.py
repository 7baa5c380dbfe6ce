"""A file is written whole, with the permissions of the one it replaces, wherever its name leads."""

import os

import pytest

from kernelweave.io import written_whole

pytestmark = pytest.mark.skipif(os.name == "nt", reason="permissions and links of POSIX")


def mode(file):
    return file.stat().st_mode & 0o777


@pytest.mark.parametrize("before", [0o600, 0o640, 0o755])
def test_a_file_that_is_replaced_keeps_its_permissions(tmp_path, before):
    file = tmp_path / "model.kw"
    file.write_bytes(b"old")
    file.chmod(before)
    written_whole(file, b"new")
    assert (file.read_bytes(), mode(file)) == (b"new", before)


@pytest.mark.parametrize("mask", [0o022, 0o077])
def test_a_new_file_has_the_permissions_of_any_new_file(tmp_path, mask):
    was = os.umask(mask)
    try:
        written_whole(tmp_path / "model.kw", b"new")
        (tmp_path / "usual").write_bytes(b"")
    finally:
        os.umask(was)
    assert mode(tmp_path / "model.kw") == mode(tmp_path / "usual") == 0o666 & ~mask


def test_a_link_is_followed(tmp_path):
    (tmp_path / "store").mkdir()
    target, link = tmp_path / "store" / "1.kw", tmp_path / "latest.kw"
    target.write_bytes(b"old")
    link.symlink_to(target)
    written_whole(link, b"new")
    assert link.is_symlink()
    assert target.read_bytes() == b"new"
    assert [file.name for file in (tmp_path / "store").iterdir()] == ["1.kw"]
    (tmp_path / "astray.kw").symlink_to(tmp_path / "none" / "1.kw")
    with pytest.raises(OSError, match=r"astray\.kw cannot be written"):
        written_whole(tmp_path / "astray.kw", b"new")
