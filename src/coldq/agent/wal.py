"""SQLite's write-ahead log, as https://www.sqlite.org/fileformat2.html#walformat describes it.

SQLite stops reading a log at the first frame whose checksum is wrong, and takes what follows for
the torn tail of a transaction that was never finished. Here damage is told from such a tail.
"""

from __future__ import annotations

from functools import cache
from typing import NamedTuple

import numpy as np

HEADER_BYTES, FRAME_BYTES = 32, 24  # before all frames, and before the page of each
SECTOR_BYTES = 512  # what a disk writes at once, or does not
LOG_MAGIC, LOG_VERSION = 0x377F0682, 3007000
MAX_PAGE_BYTES = 65536


class Log(NamedTuple):
    """A log: its pages up to the last whole transaction, and what is wrong behind that."""

    page_size: int
    pages: tuple[tuple[int, bytes], ...]  # numbers and contents, in the order of writing
    end: int  # of the last whole transaction, in bytes
    torn: bool  # whether the beginning of another transaction follows
    damage: str  # why acknowledged transactions are lost, or nothing

    @classmethod
    def read(cls, data: bytes) -> Log:
        """The log that a file holds.

        A transaction is written when the one before is on disk. Whatever follows the end of a
        transaction says that it was whole once, so that more than one broken one is damage.
        """
        empty = cls(0, (), 0, False, "")
        if len(data) < HEADER_BYTES:
            return empty
        head = np.frombuffer(data, ">u4", HEADER_BYTES // 4).astype(np.uint32)
        if not _is_header(head, data):
            lost = len(data) > HEADER_BYTES
            return empty._replace(torn=True, damage="its header is not whole" if lost else "")
        page_size, size = int(head[2]), FRAME_BYTES + int(head[2])
        count, rest = divmod(len(data) - HEADER_BYTES, size)
        frames = np.frombuffer(data, np.uint8, count * size, HEADER_BYTES).reshape(count, size)
        fields = np.ascontiguousarray(frames[:, :FRAME_BYTES]).view(">u4").astype(np.uint32)
        mine = (fields[:, 2:4] == head[4:6]).all(axis=1)
        body = np.ascontiguousarray(np.delete(frames, np.s_[8:FRAME_BYTES], axis=1))
        before = np.vstack([head[6:8], fields[:-1, 4:6]])[:count]
        sums = checksums(body.view(_words(head)).astype(np.uint32), before)
        whole = mine & (sums == fields[:, 4:6]).all(axis=1) & (fields[:, 0] > 0)
        valid = count if whole.all() else int(whole.argmin())
        # Of a torn frame whose salts begin a sector the mark before them may be an older frame's.
        parted = (HEADER_BYTES + 8 + size * np.arange(count)) % SECTOR_BYTES == 0
        ends = np.flatnonzero((fields[:, 1] > 0) & (whole | ~parted))  # of transactions
        committed = int(max(ends[ends < valid], default=-1)) + 1
        last = data[HEADER_BYTES + count * size :]
        cut = rest >= FRAME_BYTES and last[8:16] == data[16:24]  # the head of one more is there
        left = [*(np.flatnonzero(mine[committed:]) + committed), *([count] if cut else [])]
        over = next((k for k in left if k in ends), None)
        damage = ""
        if over is not None and left[-1] > over:
            damage = f"frame {valid + 1} is not whole, though later ones are there"
        kept = zip(fields[:committed, 0].tolist(), frames[:committed, FRAME_BYTES:], strict=True)
        pages = tuple((number, page.tobytes()) for number, page in kept)
        return cls(page_size, pages, HEADER_BYTES + committed * size, bool(left), damage)

    def over(self, file: bytes) -> bytes:
        """A database file with this log applied: all of it in one file, without a log."""
        whole = bytearray(file)
        for number, page in self.pages:
            end = number * self.page_size
            whole.extend(bytes(max(end - len(whole), 0)))
            whole[end - self.page_size : end] = page
        whole[18:20] = b"\1\1"  # no log is to be looked for
        return bytes(whole)


def checksums(words: np.ndarray, before: np.ndarray) -> np.ndarray:
    """The checksums of rows of 32-bit words, each going on from a pair of sums.

    SQLite adds two words at a time, ``s0 += a + s1; s1 += b + s0``. That is linear in all of them
    modulo 2^32, with Fibonacci's numbers as factors.
    """
    factors = _fibonacci(words.shape[1] + 2)
    first, second = factors[-3::-1], factors[-2:0:-1]
    zero = before[:, 0] * factors[-3] + before[:, 1] * factors[-2]
    one = before[:, 0] * factors[-2] + before[:, 1] * factors[-1]
    sums = words @ np.ascontiguousarray(np.stack([first, second], axis=1)[: words.shape[1]])
    return sums + np.stack([zero, one], axis=1)


@cache
def _fibonacci(count: int) -> np.ndarray:
    """F_0 to F_{count-1} modulo 2^32."""
    numbers = [0, 1]
    while len(numbers) < count:
        numbers.append((numbers[-1] + numbers[-2]) % 2**32)
    return np.array(numbers, np.uint32)


def _is_header(head: np.ndarray, data: bytes) -> bool:
    size = int(head[2])
    if int(head[0]) & ~1 != LOG_MAGIC or head[1] != LOG_VERSION:
        return False
    if not 512 <= size <= MAX_PAGE_BYTES or size & (size - 1):
        return False
    words = np.frombuffer(data, _words(head), 6).astype(np.uint32)
    return bool((checksums(words[None], np.zeros((1, 2), np.uint32))[0] == head[6:8]).all())


def _words(head: np.ndarray) -> str:
    """The order of the bytes in a word that is summed up."""
    return ">u4" if head[0] & 1 else "<u4"
