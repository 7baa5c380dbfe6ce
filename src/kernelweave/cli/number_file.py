"""A table of numbers on disk, for tables that are read more than once and need not fit into memory."""

from __future__ import annotations

import shutil
import tempfile
import weakref
from collections.abc import Iterator

import numpy as np

from kernelweave._typing import AnyArray, Matrix
from kernelweave.errors import DataError
from kernelweave.gram.memory import human

# Bytes that are read back at a time.
BYTES_AT_A_TIME = 16 << 20
REMEDY = "set TMPDIR to a folder with more"


class NumberFile:
    """Rows of float64 in the temporary folder, in a file without a name: it goes with the process."""

    def __init__(self, n_columns: int) -> None:
        self.n_columns = n_columns
        self.n_rows = 0
        self._file = tempfile.TemporaryFile(buffering=0)  # noqa: SIM115 - it lives as long as this object
        weakref.finalize(self, self._file.close)

    def append(self, rows: AnyArray) -> None:
        """Write rows below those that are there."""
        left = np.ascontiguousarray(rows, dtype=np.float64).data.cast("B")
        try:
            while left:
                left = left[self._file.write(left) :]
        except OSError as error:
            raise DataError(
                f"The numbers of the table cannot be written to the temporary folder {tempfile.gettempdir()} "
                f"({error.strerror or error}); {REMEDY}."
            ) from None
        self.n_rows += len(rows)

    def __iter__(self) -> Iterator[Matrix]:
        """Yield the rows in order, a few at a time."""
        size = max(1, BYTES_AT_A_TIME // (8 * self.n_columns))
        for start in range(0, self.n_rows, size):
            rows = np.empty((min(size, self.n_rows - start), self.n_columns))
            left = rows.data.cast("B")
            self._file.seek(start * 8 * self.n_columns)
            while left:
                left = left[self._file.readinto(left) :]
            yield rows


def require_disk(n_rows: int, n_columns: int) -> None:
    """Raise DataError where the temporary folder has no room for so many numbers."""
    folder = tempfile.gettempdir()
    needed, free = 8 * n_rows * n_columns, shutil.disk_usage(folder).free
    if needed > free:
        raise DataError(
            f"About {n_rows} rows of {n_columns} columns need {human(needed)} in the temporary folder {folder}, "
            f"which has {human(free)} left; {REMEDY}."
        )
