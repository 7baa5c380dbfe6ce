"""Files that are there whole or not at all."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path


def written_whole(path: str | Path, content: bytes | memoryview) -> None:
    """Write a file that is there whole or not at all; see `whole_file`."""
    with whole_file(path) as write:
        write(content)


@contextmanager
def whole_file(path: str | Path) -> Iterator[Callable[[bytes | memoryview], None]]:
    """Yield a function that writes a part of a file, which moves to its place when all of it is there.

    Whatever happens on the way (a full disk, Ctrl-C, a power cut), a file that was there before stays as it
    was, and no half of the new one is left. A link stays one: the file it points to is written.
    """
    place = Path(os.path.realpath(path))
    if place.is_dir():
        raise IsADirectoryError(f"{path} is a folder, not a file to write; give it a file name.")
    with _saying_what_is_not_written(path):
        number, name = tempfile.mkstemp(prefix=f".{place.name}.", dir=place.parent)
    try:
        # Without a buffer, whose rest would be written once more, in vain, when the file is closed.
        with os.fdopen(number, "wb", buffering=0) as file:

            def write(content: bytes | memoryview) -> None:
                with _saying_what_is_not_written(path):
                    left = memoryview(content)
                    while left:
                        left = left[file.write(left) :]

            yield write
            with _saying_what_is_not_written(path):
                os.fsync(file.fileno())
        with _saying_what_is_not_written(path):
            os.chmod(name, _usual_mode(place))
            os.replace(name, place)
    except BaseException:
        with suppress(OSError):
            os.unlink(name)
        raise


def require_writable(path: str | Path) -> None:
    """Raise OSError where a file cannot be written: no permission, or no room for a small one."""
    place = Path(os.path.realpath(path))
    with (
        _saying_what_is_not_written(path),
        tempfile.NamedTemporaryFile(prefix=f".{place.name}.", dir=place.parent, buffering=0) as file,
    ):
        left = memoryview(bytes(1 << 16))
        while left:
            left = left[file.write(left) :]


@contextmanager
def _saying_what_is_not_written(path: str | Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise type(error)(f"{path} cannot be written: {error.strerror or error}.") from None


def _usual_mode(place: Path) -> int:
    """Return the permissions of the file that is replaced, or those any new file would get."""
    with suppress(OSError):
        return place.stat().st_mode & 0o777
    mask = os.umask(0)
    os.umask(mask)
    return 0o666 & ~mask
