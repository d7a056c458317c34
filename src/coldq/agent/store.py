"""An agent on disk: one SQLite file, in which every transaction is whole or absent.

It is in WAL mode with synchronous=FULL. What is acknowledged is on disk; a file that was cut off in
the middle of a write, by a kill or by the power, opens as of the last transaction. One whose log is
damaged, so that something acknowledged is missing, does not open. All of it is data: arrays in
NumPy's format without pickle, descriptions (:func:`coldq.describe`) as JSON, feedback as
:mod:`coldq.agent.encoding` has it.

The state is written as a snapshot now and then. Feedback that was applied since is applied again
when the file is opened, which gives the same bits. Feedback that holds functions of the user's own
is no data: its state is written at once instead.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
import sqlite3
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from os.path import samestat
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np

from coldq import __version__
from coldq.agent.acknowledged import Acknowledged, Notes
from coldq.agent.connection import Connection, ErrorsAsSentences
from coldq.agent.encoding import FLOAT, decode
from coldq.agent.lock import Lock
from coldq.agent.options import Options
from coldq.agent.outcome import outcome, recalled
from coldq.agent.paths import file_and_log, path_of
from coldq.agent.schema import (
    APPLICATION_ID,
    APPLIED,
    HELD,
    INSERT,
    OPEN,
    SKIPPED,
    STATUSES,
    UPDATE,
    Row,
    after,
    make_tables,
    require_agent,
    with_outcomes,
)
from coldq.agent.wal import Log
from coldq.base.arrays import MAX_EXACT_INTEGER, Array, whole_number
from coldq.base.describe import describe
from coldq.base.errors import InUse, InvalidInput, NotReadable, NotSaveable, NotWritten
from coldq.learners.fingerprint import KEY
from coldq.slot.feedback import Feedback

SNAPSHOT_INTERVAL = 100  # feedbacks: as many are applied again when a file is opened
Committed = Callable[[float, bool], None]  # what a transaction took, and whether it is on disk


class Store:
    """The file of one agent, locked as long as it is open."""

    def __init__(self, path: str | os.PathLike[str], new: bool = True) -> None:
        self.path = path_of(path)
        self.turn = self._saved = 0  # feedbacks applied, and those in the snapshot
        self._skipped = 0  # rounds since then
        self._unwritten: dict[int, bytes] = {}  # the latest decision, if it was only opened
        self._errors = ErrorsAsSentences(self.path)
        self._file, self._log = file_and_log(self.path)
        self._files: list[tuple[Path, os.stat_result]] = []  # both, as they were opened
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
                self._files = [(name, name.stat()) for name in (self._file, self._log)]
                self._notes = Notes(self.path)
            self._errors.opened = True
        except BaseException:
            self.close()
            raise

    def _require_log(self) -> Acknowledged | None:
        """Raise if something acknowledged is missing as the log is damaged; the round last noted.

        This comes before SQLite opens the file, as it drops from the log what it does not apply.
        """
        file, log = self._file, self._log
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
        """Raise unless the last acknowledged round is in a database."""
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
        owner = run("PRAGMA application_id").fetchone()[0]
        self.is_new = not tables and owner in (0, APPLICATION_ID)
        if self.is_new and not new:
            raise NotReadable(f"{self.path} is empty: no agent was ever in it")
        if not self.is_new:
            require_agent(self.path, run)
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
        """Options of the agent in a file."""
        if not path_of(path).is_file():
            raise InvalidInput(f"there is no agent in {path}: coldq.Agent(..., path=) makes one")
        store = cls(path, new=False)
        try:
            return store.options()
        finally:
            store.close()

    def create(self, learner: Any, state: Any, options: dict[str, Any]) -> None:
        """Write the tables of a new agent, and its first state."""
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
        """Options of the agent."""
        with self._errors:
            meta = dict(self._db.execute("SELECT name, value FROM meta"))
        try:
            found = {name: json.loads(value) for name, value in meta.items()}
            self.turn = self._saved = whole_number("turn", found["turn"], 0)
            return Options.of(found)
        except (KeyError, TypeError, ValueError, RecursionError) as error:
            raise self._errors.damaged(f"its description is not whole: {error!r}") from None

    def note(self, **options: Any) -> None:
        """Write other options than before."""
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
            if row.status not in STATUSES or not 1 <= row.round <= MAX_EXACT_INTEGER:
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
        return np.frombuffer(row.x, FLOAT).reshape(like.shape).astype(np.float64, copy=False)

    def feedback(self, row: Row) -> Feedback:
        """The feedback of a round, built from its data."""
        try:
            return decode(row.feedback)
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
        """Take a new round, which is written with what comes next.

        A kill may forget one, but never what it plays: that is the decision of the state on disk,
        so that the agent which opens the file next knows it too. Of several in a row no more than
        one is put off.
        """
        data = x.astype(FLOAT, copy=False).tobytes()
        if self._unwritten:
            self._put([(round, OPEN, None, data, None, None)])
        else:
            self._unwritten[round] = data

    def unopened(self, round: int) -> None:
        """Forget a round that was opened for nothing."""
        self._unwritten.pop(round, None)

    def hold(self, round: int, known: bytes | None) -> None:
        """Write feedback that waits."""
        self._put([(round, HELD, None, self._unwritten.get(round), known, None)])

    def settle(self, settled: Sequence[Any], oldest: int) -> None:
        """Write settled rounds, in the order in which they were applied, and perhaps a snapshot."""
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
                made = outcome(each.state, len(known or b""))
                rows.append((round, APPLIED, turn, new.get(round), known, made))
        if as_data and turn - self._saved + skipped < SNAPSHOT_INTERVAL:
            self._put(rows)
            self._skipped = skipped
        else:
            self._put(rows, (settled[-1].state, turn, oldest))
        self.turn = turn

    def snapshot(self, state: Any, oldest: int) -> None:
        """Write the state as it is, so that opening the file applies nothing again."""
        if self._saved != self.turn or self._unwritten or self._skipped:
            self._put([], (state, self.turn, oldest))

    def require_ours(self) -> None:
        """Raise in a fork of the process that opened the file, which writes to it too."""
        if os.getpid() != self._process:
            raise InUse(
                f"{self.path} is in use by the process that this one was forked from: an agent "
                "with a file belongs to the process that opened it"
            )

    def require_there(self) -> None:
        """Raise unless the file and its log are still those that their names lead to."""
        size = 0
        for name, opened in self._files:
            found = _status(name)
            if found is None or not samestat(found, opened):
                raise NotWritten(
                    f"{name} is gone, or another file than the one that was opened: "
                    "nothing was written, and nothing has changed"
                )
            size = found.st_size
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
            return self._notes.read(), self._log.read_bytes()

    def close(self) -> None:
        """Let go of the file; in a fork of the process that opened it nothing happens."""
        if os.getpid() != self._process:
            return
        with suppress(sqlite3.Error, AttributeError):  # it may never have been opened
            if self._cut:  # half of the log would be applied
                self._db.leave_open()
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
        still = [samestat(now, then) for name, then in self._files if (now := _status(name))]
        if still == [False, True]:
            with suppress(OSError):
                self._log.rename(f"{self._log}-left")

    def _put(
        self, rows: list[tuple[Any, ...]], snapshot: tuple[Any, int, int] | None = None
    ) -> None:
        """Write rounds, with a decision if they are new, and perhaps the state, in one transaction.

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
        found = _status(self._log)  # the next write says if there is none
        self._logged = self._logged if found is None else found.st_size

    def _tidy(self) -> None:
        """Cut off the log what a failed write has left there, which looks like damage."""
        with self._errors:
            found = Log.read(self._log.read_bytes())
            if found.torn:
                os.truncate(self._log, found.end)
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
        """A transaction: all of it or nothing, and an error leaves the file as it was."""
        with self._errors:
            try:
                self._db.execute("BEGIN IMMEDIATE")
                yield self._db.execute
                self._db.execute("COMMIT")
            except BaseException:
                with suppress(sqlite3.Error):
                    self._db.execute("ROLLBACK")
                raise


def _status(name: Path) -> os.stat_result | None:
    """Which file a name leads to, and its size; None if there is none."""
    try:
        return name.stat()
    except OSError:
        return None


def start_of(state: Any) -> str:
    """A digest of the decision of a first state."""
    x = np.asarray(state.x, FLOAT) + 0.0  # -0.0 is no other start
    return hashlib.sha256(x.tobytes()).hexdigest()


def fingerprint(state: Any) -> str:
    """The fingerprint of a state's learner, as text."""
    return str(state.to_arrays().get(KEY, ""))


def _bytes(array: Any) -> bytes:
    file = io.BytesIO()
    np.save(file, np.asarray(array), allow_pickle=False)
    return file.getvalue()


def _array(data: bytes) -> np.ndarray:
    return np.load(io.BytesIO(data), allow_pickle=False)
