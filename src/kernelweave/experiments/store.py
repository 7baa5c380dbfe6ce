"""Results that outlive the run: one row per finished piece of work, in an SQLite file."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable, Iterator, Mapping
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

from kernelweave.errors import DataError

Cell = Mapping[str, Any]
FORMAT = 1
SCHEMA = """
CREATE TABLE IF NOT EXISTS records (
    study TEXT NOT NULL,
    protocol TEXT NOT NULL,
    cell TEXT NOT NULL,
    measures TEXT NOT NULL,
    context TEXT NOT NULL,
    PRIMARY KEY (study, protocol, cell)
) WITHOUT ROWID
"""


def key(cell: Cell) -> str:
    """Return the text that names a cell, whatever the order of its entries."""
    return json.dumps(dict(cell), sort_keys=True, ensure_ascii=False)


class Store:
    """A file of finished cells that many runs may share.

    Every record is a transaction of its own: what was put is there after a crash, what was not put is not
    there at all. Of two records of the same cell the first stays.
    """

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        if not self.path.parent.is_dir():
            raise DataError(f"The store {str(self.path)!r} cannot be made: its folder does not exist.")
        with self._open() as connection:
            version = connection.execute("PRAGMA user_version").fetchone()[0]
            if version not in (0, FORMAT):
                raise DataError(
                    f"The store {str(self.path)!r} has format {version}, this version writes {FORMAT}; "
                    "give another --store, or use a newer kernelweave."
                )
            connection.execute(SCHEMA)
            connection.execute(f"PRAGMA user_version = {FORMAT}")

    def put(self, study: str, protocol: str, cell: Cell, measures: Cell, context: Cell) -> None:
        """Keep the measures of one cell."""
        self._insert([_row(study, protocol, cell, measures, context)])

    def done(self, study: str, protocol: str) -> set[str]:
        """Return the keys of the finished cells."""
        with self._open() as connection:
            rows = connection.execute(
                "SELECT cell FROM records WHERE study = ? AND protocol = ?", (study, protocol)
            )
            return {row[0] for row in rows}

    def records(self, study: str, protocol: str) -> list[dict[str, Any]]:
        """Return cell and measures of all finished cells as one dict each, in the order of their keys."""
        return [{**cell, **measures} for cell, measures, _ in self._rows(study, protocol)]

    def contexts(self, study: str, protocol: str) -> list[dict[str, Any]]:
        """Return where and with which versions the cells were measured, each once."""
        found = {json.dumps(context, sort_keys=True) for _, _, context in self._rows(study, protocol)}
        return [json.loads(text) for text in sorted(found)]

    def export(self, study: str, protocol: str) -> Iterator[str]:
        """Yield the records as lines of JSON that `restore` takes."""
        for cell, measures, context in self._rows(study, protocol):
            yield json.dumps(
                {
                    "study": study,
                    "protocol": protocol,
                    "cell": cell,
                    "measures": measures,
                    "context": context,
                },
                sort_keys=True,
                ensure_ascii=False,
            )

    def restore(self, lines: Iterable[str]) -> None:
        """Take over exported records, all or none."""
        rows = []
        for line in lines:
            try:
                record = json.loads(line)
                parts = [record[name] for name in ("study", "protocol", "cell", "measures", "context")]
            except (ValueError, KeyError, TypeError):
                raise DataError(f"{line.strip()[:60]!r} is no exported record; export it again.") from None
            rows.append(_row(*parts))
        self._insert(rows)

    def _insert(self, rows: list[tuple[str, ...]]) -> None:
        with self._open() as connection:
            connection.executemany("INSERT OR IGNORE INTO records VALUES (?, ?, ?, ?, ?)", rows)

    def _rows(self, study: str, protocol: str) -> list[tuple[dict[str, Any], dict[str, Any], dict[str, Any]]]:
        with self._open() as connection:
            rows = connection.execute(
                "SELECT cell, measures, context FROM records WHERE study = ? AND protocol = ? ORDER BY cell",
                (study, protocol),
            )
            return [(json.loads(a), json.loads(b), json.loads(c)) for a, b, c in rows]

    @contextmanager
    def _open(self) -> Iterator[sqlite3.Connection]:
        """Yield a connection for one transaction; waits while another run writes."""
        try:
            with closing(sqlite3.connect(self.path, timeout=60.0)) as connection:
                connection.execute("PRAGMA synchronous = FULL")
                with connection:
                    yield connection
        except (sqlite3.Error, ValueError) as error:
            if isinstance(error, DataError):
                raise
            raise DataError(
                f"The store {str(self.path)!r} cannot be used ({error}); give another --store, or delete it."
            ) from None


def _row(study: str, protocol: str, cell: Cell, measures: Cell, context: Cell) -> tuple[str, ...]:
    return study, protocol, key(cell), json.dumps(dict(measures)), json.dumps(dict(context))
