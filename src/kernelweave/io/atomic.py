"""Files that are there whole or not at all."""

from __future__ import annotations

import os
import tempfile
from contextlib import suppress
from pathlib import Path


def written_whole(path: str | Path, content: bytes | memoryview) -> None:
    """Write a file under another name beside its place, then move it there in one step.

    Whatever happens on the way (a full disk, Ctrl-C, a power cut), a file that was there before stays as it
    was, and no half of the new one is left. A link stays one: the file it points to is written.
    """
    place = Path(os.path.realpath(path))
    if place.is_dir():
        raise IsADirectoryError(f"{path} is a folder, not a file to write; give it a file name.")
    try:
        number, name = tempfile.mkstemp(prefix=f".{place.name}.", dir=place.parent)
    except OSError as error:
        raise type(error)(f"{path} cannot be written: {error.strerror or error}.") from None
    try:
        with os.fdopen(number, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.chmod(name, _usual_mode(place))
        os.replace(name, place)
    except BaseException as error:
        with suppress(OSError):
            os.unlink(name)
        if isinstance(error, OSError):
            raise type(error)(f"{path} cannot be written: {error.strerror or error}.") from None
        raise


def _usual_mode(place: Path) -> int:
    """Return the permissions of the file that is replaced, or those any new file would get."""
    with suppress(OSError):
        return place.stat().st_mode & 0o777
    mask = os.umask(0)
    os.umask(mask)
    return 0o666 & ~mask
