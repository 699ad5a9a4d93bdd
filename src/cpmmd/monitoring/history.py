"""What was found in each batch, kept in one SQLite file that survives a kill."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from types import TracebackType
from typing import Annotated, Self

import msgspec

from cpmmd.core import validation
from cpmmd.core.plain import PlainDict, from_plain, plain_dict
from cpmmd.errors import InputError

APPLICATION = 0x63706D64  # "cpmd": how SQLite files say whose they are
VERSION = 4
PATIENCE = 30.0  # seconds to wait for another process that is appending

# Field of a record -> its SQL column. These are the documents of answers, too.
COLUMNS = {
    "key": "TEXT NOT NULL UNIQUE",  # of the batch's content and the detector: names come again, files are written anew
    "batch": "TEXT NOT NULL",
    "path": "TEXT",
    "time": "TEXT NOT NULL",
    "rows": "INTEGER NOT NULL",
    "pvalue": "REAL",  # SQLite keeps NaN, a test that was not made, as NULL
    "adjusted": "REAL",
    "statistic": "REAL",
    "auc": "REAL",
    "reject": "INTEGER NOT NULL",  # a truth value, as is "alarm"
    "method": "TEXT NOT NULL",
    "seed": "INTEGER",
}
# Fields that a monitor adds to its records.
MONITORED = {
    "number": "INTEGER",
    "episode": "INTEGER",
    "evalue": "REAL",
    "wealth": "REAL",
    "alarm": "INTEGER",
    "since": "TEXT",
    "since_number": "INTEGER",
    "level": "REAL",
    "alpha": "REAL",
    "looks": "JSON",
    "columns": "JSON",
}
ALL = {**COLUMNS, **MONITORED}
CREATE = f"CREATE TABLE batches (id INTEGER PRIMARY KEY, {', '.join(f'{name} {kind}' for name, kind in ALL.items())})"
INSERT = f"INSERT INTO batches ({', '.join(ALL)}) VALUES ({', '.join(f':{name}' for name in ALL)}) ON CONFLICT (key) DO NOTHING"
SELECT = f"SELECT {', '.join(ALL)} FROM batches"
WHOLE = Annotated[int, msgspec.Meta(ge=-(2**63), le=2**63 - 1)]  # what SQLite holds
TYPES = {"TEXT": str, "INTEGER": WHOLE, "REAL": float, "JSON": list[object]}
SETTLE = (
    "UPDATE batches SET pvalue = :pvalue, statistic = :statistic, adjusted = :adjusted, reject = :reject, auc = :auc "
    "WHERE key = :key AND adjusted IS NULL"
)


class History:
    """Batch records in a SQLite file, in the order in which they were appended.

    Parameters
    ----------
    path : str or Path
        The file; it is created if it does not exist.

    Notes
    -----
    A record has the fields of :meth:`cpmmd.BatchResult.to_dict`; ``key`` identifies it. Each append is one transaction, written
    through to the disk before it returns, so a record that was appended survives a kill and is stored once.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from cpmmd import History
    >>> record = {"key": "4f2a", "batch": "monday", "path": None, "time": "2025-01-06T00:00:00+00:00", "rows": 100, "pvalue": 0.4,
    ...           "adjusted": None, "statistic": 0.01, "auc": None, "reject": False, "method": "cp-full", "seed": 0}
    >>> with tempfile.TemporaryDirectory() as folder, History(pathlib.Path(folder) / "history.sqlite") as history:
    ...     history.append(record), history.append(record), len(history.records())
    (True, False, 1)
    """

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        if self.path.is_dir():
            raise InputError(f"A history must be a file. {self.path} is a directory; name a file in it.")
        if not self.path.parent.is_dir():
            raise InputError(f"There is no directory {self.path.parent} for the history {self.path.name}. Create it first.")
        with self._explaining():
            self._connection = sqlite3.connect(self.path, timeout=PATIENCE, isolation_level=None)
        try:
            with self._explaining():
                self._open()
        except BaseException:
            self.close()
            raise

    def append(self, record: Mapping[str, object]) -> bool:
        """Add one batch.

        Parameters
        ----------
        record : mapping
            What :meth:`cpmmd.BatchResult.to_dict` returned.

        Returns
        -------
        bool
            False if a batch with that key is stored already; nothing changes then.
        """
        values = _sql_values(record)
        with self._explaining(), self._transaction():
            return self._connection.execute(INSERT, values).rowcount == 1

    def settle(self, decided: Iterable[Mapping[str, object]]) -> None:
        """Write the decisions on batches that were appended without one (``adjusted`` None), either all of them or none.

        Parameters
        ----------
        decided : iterable of mapping
            Their records, with ``adjusted``, ``reject`` and ``auc`` as decided.
        """
        values = [_sql_values(record) for record in decided]
        with self._explaining(), self._transaction():
            self._connection.executemany(SETTLE, values)

    def records(self) -> list[PlainDict]:
        """Return all records, as :meth:`cpmmd.BatchResult.to_dict` has them, first appended first."""
        with self._explaining():
            return [_record(row) for row in self._connection.execute(f"{SELECT} ORDER BY id").fetchall()]

    def find(self, key: str) -> PlainDict | None:
        """Return the record of one batch.

        Parameters
        ----------
        key : str
            Its key.

        Returns
        -------
        dict or None
            With the fields of :meth:`cpmmd.BatchResult.to_dict`; None if no batch has that key.
        """
        with self._explaining():
            row = self._connection.execute(f"{SELECT} WHERE key = ?", (key,)).fetchone()
            return None if row is None else _record(row)

    def last_number(self, begins: str) -> int:
        """Return the largest number of a monitor's batches.

        Parameters
        ----------
        begins : str
            What their keys begin with.

        Returns
        -------
        int
            0 if there are no batches.
        """
        with self._explaining():
            found = self._connection.execute("SELECT max(number) FROM batches WHERE key >= ? AND key < ?", (begins, begins + "g"))
            return int(found.fetchone()[0] or 0)

    def close(self) -> None:
        """Close the file."""
        self._connection.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()

    def _open(self) -> None:
        run = self._connection.execute
        # EXTRA also writes through the directory entry of the rollback journal: FULL could lose the last append in a power cut.
        run("PRAGMA synchronous = EXTRA")
        if self._pragma("application_id") != APPLICATION:
            self._create()
        if self._pragma("user_version") == 1:
            self._know_by_content()
        if self._pragma("user_version") == 2:
            self._add_monitored()
        if self._pragma("user_version") == 3:
            self._rename_auc()
        version = self._pragma("user_version")
        if version != VERSION:
            raise InputError(f"{self.path} is a history of version {version}; this cpmmd reads version {VERSION}. Update cpmmd.")
        if self._pragma("quick_check(1)") != "ok":
            raise InputError(f"The history {self.path} is damaged. Restore it from a copy, or name a new file.")

    def _create(self) -> None:
        """Make the table in an empty file, unless another process just did; a file of something else is refused."""
        with self._transaction():
            if self._pragma("application_id") == APPLICATION:
                return
            if self._connection.execute("SELECT count(*) FROM sqlite_schema").fetchone()[0] or self._pragma("user_version"):
                raise InputError(f"{self.path} is an SQLite file of another program, not a cpmmd history. Name another file.")
            self._connection.execute(CREATE)
            self._connection.execute(f"PRAGMA application_id = {APPLICATION}")
            self._connection.execute(f"PRAGMA user_version = {VERSION}")

    def _know_by_content(self) -> None:
        """Turn a version 1 file, which knew batches by their names, into one of keys: those of old records are their names."""
        names = [name for name in COLUMNS if name not in ("key", "path")]
        old = ["effect" if name == "auc" else name for name in names]
        with self._transaction():
            if self._pragma("user_version") != 1:  # another process was faster
                return
            self._connection.execute("ALTER TABLE batches RENAME TO batches_1")
            self._connection.execute(CREATE)
            self._connection.execute(
                f"INSERT INTO batches (id, key, {', '.join(names)}) SELECT id, 'named ' || batch, {', '.join(old)} FROM batches_1"
            )
            self._connection.execute("DROP TABLE batches_1")
            self._connection.execute(f"PRAGMA user_version = {VERSION}")

    def _add_monitored(self) -> None:
        """Turn a version 2 file, of detectors only, into one that holds the records of monitors as well."""
        with self._transaction():
            if self._pragma("user_version") == 2:  # unless another process was faster
                for name, kind in MONITORED.items():
                    self._connection.execute(f"ALTER TABLE batches ADD COLUMN {name} {kind}")
                self._connection.execute("PRAGMA user_version = 3")

    def _rename_auc(self) -> None:
        """Turn a version 3 file, whose AUC was called effect, into one of the current version."""
        with self._transaction():
            if self._pragma("user_version") == 3:  # unless another process was faster
                self._connection.execute("ALTER TABLE batches RENAME COLUMN effect TO auc")
                self._connection.execute(f"PRAGMA user_version = {VERSION}")

    def _pragma(self, name: str) -> object:
        return self._connection.execute(f"PRAGMA {name}").fetchone()[0]

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        self._connection.execute("BEGIN IMMEDIATE")  # takes the write lock at once, so that two processes queue up
        try:
            yield
        except BaseException:
            self._connection.execute("ROLLBACK")
            raise
        self._connection.execute("COMMIT")

    @contextmanager
    def _explaining(self) -> Iterator[None]:
        try:
            yield
        except (sqlite3.Error, UnicodeDecodeError) as error:  # the latter where a damaged file quotes itself
            raise InputError(
                f"{self.path} cannot be used as a history ({error}). A history must be a file made by cpmmd, whole and writable. "
                "Restore it from a copy, or name a new file."
            ) from error


def _record(row: tuple[object, ...]) -> PlainDict:
    """Return a row of the table as the record that it was."""
    record = dict(zip(ALL, row, strict=True))
    if record["number"] is None:
        return {name: record[name] for name in COLUMNS} | {"reject": bool(record["reject"])}
    parts = {name: json.loads(str(record[name])) for name, kind in MONITORED.items() if kind == "JSON"}
    return {**record, **parts, "reject": bool(record["reject"]), "alarm": bool(record["alarm"])}


@cache
def _shape(*, monitored: bool) -> type[msgspec.Struct]:
    """Return the type that a record is checked against."""
    fields = []
    for name, sql in (ALL if monitored else COLUMNS).items():
        kind = bool if name in ("reject", "alarm") else TYPES[sql.split()[0]]
        fields.append((name, kind if "NOT NULL" in sql else kind | None))
    return msgspec.defstruct("Record", fields, forbid_unknown_fields=True)


def _sql_values(record: Mapping[str, object]) -> PlainDict:
    """Return a record's values in SQL types, refused when a field is absent, unknown or of another type."""
    monitored = "number" in record
    try:
        # Not strict: 120.0 is a number of rows. NaN is None by then.
        checked = from_plain(_shape(monitored=monitored), plain_dict(rename_auc(record)), strict=False)
        values = {name: getattr(checked, name, None) for name in ALL}
        json.dumps(values, ensure_ascii=False).encode()  # SQLite takes no half of a surrogate pair
    except ValueError as error:
        fields = ", ".join(ALL if monitored else COLUMNS)
        raise InputError(f"A batch record must have the fields {fields}, each in its type. This one differs: {error}.") from error
    return {name: json.dumps(value) if isinstance(value, list) else value for name, value in values.items()}


def rename_auc(record: Mapping[str, object]) -> PlainDict:
    """Return a record with its AUC under that name: version 0.2 called it effect."""
    return {"auc" if name == "effect" else name: value for name, value in record.items()}


@contextmanager
def keeping(history: object) -> Iterator[History | None]:
    """Open the history of a path until the end; an open history stays open, and None stays None."""
    if history is None or isinstance(history, History):
        yield history
    elif isinstance(history, str | Path):
        with History(history) as opened:
            yield opened
    else:
        raise validation.wrong("history", "must be a History, the path of one, or None", type(history).__name__)
