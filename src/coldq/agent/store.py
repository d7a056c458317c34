"""An agent on disk: one SQLite file, in which every transaction is whole or absent.

It is in WAL mode with synchronous=FULL. What is acknowledged is on disk; a file that was cut off in
the middle of a write, by a kill or by the power, opens as of the last transaction. One whose log is
damaged, so that something acknowledged is missing, does not open. All of it is data: arrays in
NumPy's format without pickle, descriptions (:func:`coldq.describe`) as JSON, feedback as
:mod:`coldq.agent.packing` has it.

The state is written as a snapshot now and then. Feedback that was applied since is applied again
when the file is opened, which gives the same bits. Feedback that holds functions of the user's own
is no data: its state is written at once instead.
"""

from __future__ import annotations

import ctypes
import hashlib
import io
import json
import os
import sqlite3
import weakref
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from errno import ENAMETOOLONG
from math import inf
from pathlib import Path
from time import perf_counter
from typing import Any, ClassVar, NamedTuple

import numpy as np

from coldq import __version__
from coldq._system import in_every_fork, which_and_size, which_file
from coldq._values import LARGEST, Array, batch_shape, one_of, whole_number
from coldq.agent.acknowledged import Acknowledged, Notes
from coldq.agent.lock import Lock, in_use
from coldq.agent.outcome import outcome, recalled
from coldq.agent.packing import FLOATS, unpacked
from coldq.agent.wal import Log
from coldq.description import build, describe
from coldq.errors import Error, InUse, InvalidInput, NotReadable, NotSaveable, NotWritten
from coldq.feedback import Feedback
from coldq.files import named_file
from coldq.learners.maker import KEY

OURS = 0x434F4C44  # "COLD", the application that SQLite says a file belongs to
FORMAT = 2
LATE = ("played", "held")
ORDERS = ("round", "arrival")
STATUSES = OPEN, HELD, APPLIED, SKIPPED = range(4)
EVERY = 100  # applied feedbacks between snapshots: as many are applied again when a file is opened
TABLES = """
CREATE TABLE meta (name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE state (name TEXT PRIMARY KEY, array BLOB NOT NULL) WITHOUT ROWID;
CREATE TABLE rounds (
    round INTEGER PRIMARY KEY, status INTEGER NOT NULL, turn INTEGER, x BLOB NOT NULL,
    feedback BLOB, outcome BLOB
);
"""


INSERT = "INSERT INTO rounds (round, status, turn, x, feedback, outcome) VALUES (?, ?, ?, ?, ?, ?)"
UPDATE = "UPDATE rounds SET status=?, turn=?, feedback=?, outcome=? WHERE round=?"


Committed = Callable[[float, bool], None]  # what a transaction took, and whether it is on disk


class Row(NamedTuple):
    """A round as it is on disk; `turn` counts the feedbacks that were applied.

    `outcome` is the state after it, or a digest of that (:mod:`coldq.agent.outcome`); rounds
    written by older versions have none.
    """

    round: int
    status: int
    turn: int | None
    x: bytes
    feedback: bytes | None
    outcome: bytes | None = None


def after(rows: Sequence[Row], saved: int) -> tuple[list[Row], list[Row]]:
    """Rounds applied after the snapshot, in their turn as long as none is missing, and the rest."""
    later = [row for row in rows if row.status == APPLIED and row.turn not in range(saved + 1)]
    later.sort(key=lambda row: row.turn if isinstance(row.turn, int) else inf)
    whole = 0
    while whole < len(later) and later[whole].turn == saved + whole + 1:
        whole += 1
    return later[:whole], later[whole:]


class Connection(sqlite3.Connection):
    """One that a fork of the process leaves to it.

    If the fork closed it, even as it ends, SQLite would take itself for the last to use the file,
    and remove the log that the parent goes on to write.
    """

    ours: ClassVar = weakref.WeakSet[sqlite3.Connection]()

    def __init__(self, *given: Any, **named: Any) -> None:
        super().__init__(*given, **named)
        self.ours.add(self)

    def __del__(self) -> None:
        """Close: an agent that nobody has any more is no leak to be warned of."""
        with suppress(sqlite3.Error):
            self.close()

    @classmethod
    def leave_open(cls) -> None:
        """See to it that none is ever closed in this process."""
        for connection in cls.ours:
            ctypes.pythonapi.Py_IncRef(ctypes.py_object(connection))


in_every_fork(Connection.leave_open)


class Options(NamedTuple):
    """What an agent was made with."""

    description: dict[str, Any] | None
    fingerprint: str
    n_constraints: int
    batch: tuple[int, ...]
    keywords: dict[str, Any]
    start: str | None  # that of its first decision, see start_of; older files do not say
    version: str  # of coldq, which wrote the last snapshot, in words

    @classmethod
    def of(cls, found: dict[str, Any]) -> Options:
        """From what a file says; what is odd or missing raises one error or another."""
        if found["fingerprint"]:
            json.loads(found["fingerprint"])["learner"]
        limit = found["limit"]
        keywords = {
            "late": one_of("late", found["late"], LATE),
            "order": one_of("order", found["order"], ORDERS),
            "limit": None if limit is None else whole_number("limit", limit, 0),
            "remember": whole_number("remember", found["remember"], 1),
        }
        return cls(
            found["learner"],
            found["fingerprint"],
            whole_number("n_constraints", found["n_constraints"], 0),
            batch_shape(found["batch"]),
            keywords,
            found.get("start"),
            f"{found.get('version') or 'an older version'!s:.40}",
        )

    @property
    def arguments(self) -> dict[str, Any]:
        """What an agent is made with, beside its learner and its file."""
        return {"n_constraints": self.n_constraints, "batch": self.batch, **self.keywords}

    def learner(self) -> Any:
        """The learner, from its description."""
        if self.description is None:
            raise NotSaveable(
                "the learner of this agent holds functions of your own, which no file can: pass "
                "the same learner again, coldq.Agent.open(path, learner)"
            )
        return build(self.description)


class Store:
    """The file of one agent, locked as long as it is open."""

    def __init__(self, path: str | os.PathLike[str], new: bool = True) -> None:
        self.path = path_of(path)
        self.turn = self._saved = 0  # feedbacks applied, and those in the snapshot
        self._skipped = 0  # rounds since then
        self._unwritten: dict[int, bytes] = {}  # the latest decision, if it was only opened
        self._errors = InOurWords(self.path)
        self._files: list[tuple[bytes, tuple[int, ...]]] = []  # as they were opened
        self._logged = 0  # bytes of the log
        self._cut = False  # whether it was found shorter than that
        self._unclean = False  # whether a write failed, which may have left its beginning there
        self._notes: Notes | None = None
        self.committed: Committed | None = None
        self._held = Lock(self.path)
        self._process = os.getpid()
        try:
            with self._errors:
                told = self._require_log()
                self._db = Connection(
                    self.path, timeout=0.0, isolation_level=None, check_same_thread=False
                )
                self._take(new, told)
                self._files = [(name, which_file(name)) for name in file_and_log(self.path)]
                self._notes = Notes(self.path)
            self._errors.opened = True
        except BaseException:
            self.close()
            raise

    def _require_log(self) -> Acknowledged | None:
        """That nothing acknowledged is missing because the log is damaged; the round last noted.

        This comes before SQLite opens the file, as it drops from the log what it does not apply.
        """
        file, log = (Path(os.fsdecode(name)) for name in file_and_log(self.path))
        if not file.is_file():
            return None
        with file.open("rb") as opened:
            told = Acknowledged.found(opened.read(100))
        data = log.read_bytes() if log.is_file() else b""
        if not data:  # nothing is to be applied or dropped
            return told
        found = Log.read(data)
        if found.damage:
            raise self._errors.damaged(f"in its log {log.name} {found.damage}")
        if found.pages and not file.stat().st_size:
            raise self._errors.damaged(f"it is empty, but its log {log.name} is not")
        if told is not None:
            with closing(sqlite3.connect(":memory:")) as db:
                db.deserialize(found.over(file.read_bytes()))
                self._require_told(told, db.execute)
        if found.torn:  # it would stay behind what is written next
            os.truncate(log, found.end)
        return told

    def _require_told(self, told: Acknowledged, run: Callable[..., Any]) -> None:
        """That what was acknowledged is there."""
        if not told.is_in(run):
            raise self._errors.damaged(
                f"round {told.round} was acknowledged and is not in it: its log is damaged, cut "
                "off or gone"
            )

    def _take(self, new: bool, told: Acknowledged | None) -> None:
        """Take the file, and look whose it is before anything is written to it."""
        run = self._db.execute
        run("PRAGMA locking_mode=EXCLUSIVE")
        run("PRAGMA trusted_schema=OFF")
        if told is not None:
            self._require_told(told, run)
        tables = run("SELECT count(*) FROM sqlite_master").fetchone()[0]
        owner, version = (
            run(f"PRAGMA {n}").fetchone()[0] for n in ("application_id", "user_version")
        )
        self.is_new = not tables and owner in (0, OURS)
        if self.is_new and not new:
            raise NotReadable(f"{self.path} is empty: no agent was ever in it")
        if not self.is_new and owner != OURS:
            raise NotReadable(f"{self.path} is an SQLite file, but not that of an agent")
        if not self.is_new and version != FORMAT:
            raise NotReadable(
                f"{self.path} has the format {version}, but this version of coldq has {FORMAT}"
            )
        if not self.is_new:
            found = run("PRAGMA quick_check(1)").fetchone()[0]
            if found != "ok":
                raise self._errors.damaged(found)
        run("PRAGMA journal_mode=WAL")
        run("PRAGMA synchronous=FULL")
        run("BEGIN EXCLUSIVE")
        run("COMMIT")
        if not self.is_new:
            with_outcomes(run)

    @classmethod
    def read(cls, path: str | os.PathLike[str]) -> Options:
        """What the agent in a file was made with."""
        if not path_of(path).is_file():
            raise InvalidInput(f"there is no agent in {path}: coldq.Agent(..., path=) makes one")
        store = cls(path, new=False)
        try:
            return store.options()
        finally:
            store.close()

    def create(self, learner: Any, state: Any, options: dict[str, Any]) -> None:
        """Tables for a new agent, and its first state."""
        try:
            description = describe(learner)
        except NotSaveable:
            description = None
        meta = {"learner": description, "fingerprint": fingerprint(state)}
        meta |= {"start": start_of(state), **options}
        with self._transaction() as run:
            make_tables(run)
            self._note(meta)
            self._write(state, 0)
        with self._errors:  # what recovery needs is in the file itself
            self._db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        self._acknowledge(0, OPEN)

    def options(self) -> Options:
        """What the agent was made with."""
        with self._errors:
            meta = dict(self._db.execute("SELECT name, value FROM meta"))
        try:
            found = {name: json.loads(value) for name, value in meta.items()}
            self.turn = self._saved = whole_number("turn", found["turn"], 0)
            return Options.of(found)
        except (KeyError, TypeError, ValueError, RecursionError) as error:
            raise self._errors.damaged(f"its description is not whole: {error!r}") from None

    def note(self, **options: Any) -> None:
        """Other options than before."""
        with self._transaction():
            self._note(options)

    def state(self, learner: Any, text: str) -> Any:
        """The state of the snapshot; `text` is the fingerprint, which was compared."""
        with self._errors:
            found = dict(self._db.execute("SELECT name, array FROM state"))
        try:
            arrays = {name: _array(data) for name, data in found.items()}
        except Exception as error:  # whatever odd bytes lead to
            raise self._errors.damaged(f"its state is not whole: {error}") from None
        try:
            return learner.from_arrays(arrays | {KEY: np.array(text)})
        except InvalidInput as error:
            raise self._errors.damaged(f"its state is not sound: {error}") from None

    def rounds(self) -> list[Row]:
        """All rounds, in order."""
        columns = ", ".join(Row._fields)
        with self._errors:
            found = self._db.execute(f"SELECT {columns} FROM rounds ORDER BY round")
            rows = [Row(*row) for row in found]
        for row in rows:
            if row.status not in STATUSES or not 1 <= row.round <= LARGEST:
                raise self._errors.damaged(f"round {row.round} has the status {row.status!r:.20}")
        return rows

    def again(self, rows: list[Row]) -> list[Row]:
        """The rounds to be applied again, in their turn; raise if one is missing."""
        whole, rest = after(rows, self._saved)
        if rest:
            raise self._errors.damaged(
                f"a feedback before that of round {rest[0].round} is missing"
            )
        return whole

    def decision(self, row: Row, like: Array) -> Array:
        """The decision of a round, as the state's own decisions are."""
        if not isinstance(row.x, bytes) or len(row.x) != like.nbytes:
            raise self._errors.damaged(f"the decision of round {row.round} is not whole")
        return np.frombuffer(row.x, "<f8").reshape(like.shape).astype(np.float64, copy=False)

    def feedback(self, row: Row) -> Feedback:
        """The feedback of a round, built from its data."""
        try:
            return unpacked(row.feedback)
        except Exception as error:  # whatever odd bytes lead to
            raise self._errors.damaged(
                f"the feedback of round {row.round} is not whole: {error}"
            ) from None

    def recalled(self, row: Row, state: Any, learner: Any) -> Any:
        """The state after a round as it was then, or None."""
        try:
            return recalled(row.outcome or b"", state, learner)
        except (InvalidInput, ValueError) as error:
            raise self._errors.damaged(
                f"the outcome of round {row.round} is not whole: {error}"
            ) from None

    def opened(self, round: int, x: Array) -> None:
        """A new round, which is written with what comes next.

        A kill may forget one, but never what it plays: that is the decision of the state on disk,
        so that the agent which opens the file next knows it too. Of several in a row no more than
        one is put off.
        """
        data = x.astype(FLOATS, copy=False).tobytes()
        if self._unwritten:
            self._put([(round, OPEN, None, data, None, None)])
        else:
            self._unwritten[round] = data

    def unopened(self, round: int) -> None:
        """A round that was opened for nothing."""
        self._unwritten.pop(round, None)

    def hold(self, round: int, known: bytes | None) -> None:
        """Feedback that waits."""
        self._put([(round, HELD, None, self._unwritten.get(round), known, None)])

    def settle(self, settled: Sequence[Any], oldest: int) -> None:
        """Rounds that are over, in the order in which they were applied; perhaps a snapshot."""
        turn, rows, as_data, new = self.turn, [], True, self._unwritten
        skipped = self._skipped
        for each in settled:
            round, known = each.round, each.known
            if each.feedback is None:
                skipped += 1
                rows.append((round, SKIPPED, None, new.get(round), None, None))
            else:
                turn += 1
                as_data = as_data and known is not None
                rows.append((round, APPLIED, turn, new.get(round), known, outcome(each.state)))
        if as_data and turn - self._saved + skipped < EVERY:
            self._put(rows)
            self._skipped = skipped
        else:
            self._put(rows, (settled[-1].state, turn, oldest))
        self.turn = turn

    def snapshot(self, state: Any, oldest: int) -> None:
        """The state as it is, so that opening the file applies nothing again."""
        if self._saved != self.turn or self._unwritten or self._skipped:
            self._put([], (state, self.turn, oldest))

    def require_ours(self) -> None:
        """That this is not a fork of the process that opened the file, which writes to it too."""
        if os.getpid() != self._process:
            raise InUse(
                f"{self.path} is in use by the process that this one was forked from: an agent "
                "with a file belongs to the process that opened it"
            )

    def require_there(self) -> None:
        """That what is written now, to the log beside the file, is found again by their names."""
        size = 0
        for name, opened in self._files:
            try:
                found, size = which_and_size(name)
            except OSError:
                found = ()
            if found != opened:
                raise NotWritten(
                    f"{os.fsdecode(name)} is gone, or another file than the one that was opened: "
                    "nothing was written, and nothing has changed"
                )
        if size < self._logged:
            self._cut = True
            raise NotWritten(
                f"the log of {self.path}, beside it, was cut off while this agent had it open, and "
                "with it rounds that were acknowledged: nothing was written, and nothing has "
                "changed. `coldq agent recover` saves what is readable"
            )

    def read_both(self) -> tuple[bytes, bytes]:
        """The file and its log, as they are: nothing is written meanwhile."""
        self.require_there()
        assert self._notes is not None
        with self._errors:
            return self._notes.read(), Path(os.fsdecode(self._files[1][0])).read_bytes()

    def close(self) -> None:
        """Let go of the file; in a fork of the process that opened it nothing happens."""
        if os.getpid() != self._process:
            return
        with suppress(sqlite3.Error, AttributeError):  # it may never have been opened
            if self._cut:  # half of the log would be applied
                ctypes.pythonapi.Py_IncRef(ctypes.py_object(self._db))
            else:
                self._db.close()
        if self._notes is not None:
            with suppress(OSError):  # of a disk that is gone
                self._notes.close()
        self._set_log_aside()
        self._held.close()

    def _set_log_aside(self) -> None:
        """Take our log away from a file that was put in the place of ours.

        SQLite leaves it there then, and would apply it to that file when it is opened.
        """
        if not self._files:
            return
        (file, ours), (log, its) = self._files
        there, beside = (Path(os.fsdecode(name)) for name in (file, log))
        if there.exists() and not _is_still(file, ours) and _is_still(log, its):
            with suppress(OSError):
                beside.rename(f"{beside}-left")

    def _put(
        self, rows: list[tuple[Any, ...]], snapshot: tuple[Any, int, int] | None = None
    ) -> None:
        """Rounds, with a decision if they are new, and perhaps the state, in one transaction.

        Most often that is one row at the end of its table.
        """
        begun, whole = perf_counter(), False
        try:
            self._put_all(rows, snapshot)
            whole = True
        finally:
            if self.committed is not None:
                self.committed(perf_counter() - begun, whole)

    def _put_all(self, rows: list[tuple[Any, ...]], snapshot: tuple[Any, int, int] | None) -> None:
        self.require_ours()
        self.require_there()
        if self._unclean:
            self._tidy()
        self._unclean = True
        if self._unwritten and not any(row[0] in self._unwritten for row in rows):
            opened = [(round, OPEN, None, x, None, None) for round, x in self._unwritten.items()]
            rows = opened + rows
        if len(rows) == 1 and snapshot is None:
            with self._errors:
                self._write_row(*rows[0])  # a transaction by itself
        else:
            with self._transaction():
                for row in rows:
                    self._write_row(*row)
                if snapshot is not None:
                    state, turn, oldest = snapshot
                    self._write(state, turn)
                    settled = "DELETE FROM rounds WHERE round<=? AND status IN (?, ?)"
                    self._db.execute(settled, (oldest, APPLIED, SKIPPED))
        self._unclean = False
        self._unwritten.clear()
        if snapshot is not None:
            self._saved, self._skipped = snapshot[1], 0
        if rows and rows[-1][1] != OPEN:
            self._acknowledge(*rows[-1][:2])

    def _acknowledge(self, round: int, status: int) -> None:
        """Note what is on disk, and how long the log is that has it."""
        assert self._notes is not None
        self._notes.write(round, status)
        with suppress(OSError):  # the next write says it
            self._logged = which_and_size(self._files[1][0])[1]

    def _tidy(self) -> None:
        """Cut off the log what a failed write has left there, which looks like damage."""
        with self._errors:
            log = Path(os.fsdecode(self._files[1][0]))
            found = Log.read(log.read_bytes())
            if found.torn:
                os.truncate(log, found.end)
                self._logged = found.end
        self._unclean = False

    def _write_row(
        self, round: int, status: int, turn: Any, x: Any, feedback: Any, outcome: Any
    ) -> None:
        if x is None:  # it is there already
            self._db.execute(UPDATE, (status, turn, feedback, outcome, round))
        else:
            self._db.execute(INSERT, (round, status, turn, x, feedback, outcome))

    def _write(self, state: Any, turn: int) -> None:
        run = self._db.execute
        run("DELETE FROM state")
        for name, array in state.to_arrays().items():
            if name != KEY:
                run("INSERT INTO state (name, array) VALUES (?, ?)", (name, _bytes(array)))
        self._note({"turn": turn, "version": __version__})

    def _note(self, values: dict[str, Any]) -> None:
        for name, value in values.items():
            pair = name, json.dumps(value)
            self._db.execute("INSERT OR REPLACE INTO meta (name, value) VALUES (?, ?)", pair)

    @contextmanager
    def _transaction(self) -> Iterator[Any]:
        """All of it or nothing; what goes wrong is said, and the file stays as it was."""
        with self._errors:
            try:
                self._db.execute("BEGIN IMMEDIATE")
                yield self._db.execute
                self._db.execute("COMMIT")
            except BaseException:
                with suppress(sqlite3.Error):
                    self._db.execute("ROLLBACK")
                raise


class InOurWords:
    """A block in which errors of SQLite's and of the system are said in our words.

    It is a class, as every round enters it.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.opened = False  # and whole by then: what SQLite finds wrong may be the disk's failure

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: Any, error: BaseException | None, trace: Any) -> None:
        if isinstance(error, UnicodeDecodeError):
            raise self.damaged(str(error)) from None
        if isinstance(error, Error) or not isinstance(error, sqlite3.Error | OSError):
            return
        code = getattr(error, "sqlite_errorname", "")
        if code.startswith(("SQLITE_BUSY", "SQLITE_LOCKED")):
            raise in_use(self.path) from None
        if code.startswith(("SQLITE_NOTADB", "SQLITE_CORRUPT")) and self.opened:
            raise NotWritten(
                f"{self.path} could not be written: {error}. Its disk may have failed: opening it "
                "again says whether it is damaged"
            ) from error
        if code.startswith("SQLITE_NOTADB"):
            raise NotReadable(f"{self.path} is not the file of an agent: {error}") from None
        if code.startswith("SQLITE_CORRUPT"):
            raise self.damaged(str(error)) from None
        raise NotWritten(
            f"{self.path} could not be written: {error}. What was there before is unchanged"
        ) from error

    def damaged(self, words: str) -> NotReadable:
        """The error that a file is not whole."""
        short = " ".join(words.replace("*** in database main ***", "").split())
        return NotReadable(
            f"{self.path} is damaged ({short}): `coldq agent recover` saves what is readable"
        )


def make_tables(run: Callable[[str], Any]) -> None:
    """The tables of a new file, and whose it is."""
    for command in TABLES.split(";"):
        run(command)
    run(f"PRAGMA application_id={OURS}")
    run(f"PRAGMA user_version={FORMAT}")


def with_outcomes(run: Callable[[str], Any]) -> None:
    """See to it that rounds have a place for their outcome, which older files lack."""
    if "outcome" not in {column[1] for column in run("PRAGMA table_info(rounds)")}:
        run("ALTER TABLE rounds ADD COLUMN outcome BLOB")


def path_of(path: str | os.PathLike[str]) -> Path:
    """The path of an agent's file; raise unless it can name one, and those that SQLite has beside.

    >>> from coldq.agent.store import path_of
    >>> path_of("a" * 1000)
    Traceback (most recent call last):
    ...
    coldq.errors.InvalidInput: path must name a file that can be kept, but this name is too ...
    """
    named, words = named_file(path), "path must name a file that can be kept, but"
    if str(path) == ":memory:" or "\0" in str(path):
        raise InvalidInput(f"{words} is {str(path)!r:.200}")
    try:
        Path(f"{named}-journal").lstat()
    except OSError as error:
        if error.errno == ENAMETOOLONG:
            raise InvalidInput(f"{words} this name is too long: {str(path)!r:.200}") from None
    return named


def file_and_log(path: Path) -> tuple[bytes, bytes]:
    """An agent's file and the log beside it, by names that neither links nor a new folder change.

    SQLite has the log beside what a link leads to, and keeps their whole names.
    """
    real = os.fsencode(os.path.realpath(path))
    return real, real + b"-wal"


def _is_still(name: bytes, opened: tuple[int, ...]) -> bool:
    """Whether a name is still that of the file that was opened by it."""
    try:
        return which_file(name) == opened
    except OSError:
        return False


def start_of(state: Any) -> str:
    """A digest of the decision of a first state."""
    x = np.asarray(state.x, FLOATS) + 0.0  # -0.0 is no other start
    return hashlib.sha256(x.tobytes()).hexdigest()


def fingerprint(state: Any) -> str:
    """The text that says whose state it is."""
    return str(state.to_arrays().get(KEY, ""))


def _bytes(array: Any) -> bytes:
    file = io.BytesIO()
    np.save(file, np.asarray(array), allow_pickle=False)
    return file.getvalue()


def _array(data: bytes) -> np.ndarray:
    return np.load(io.BytesIO(data), allow_pickle=False)
