"""Electricity prices of the New York ISO: the ten days in the package, and NYISO's own files."""

from __future__ import annotations

import csv
import gzip
import math
import zlib
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from functools import cache
from io import StringIO
from itertools import pairwise
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from coldq.base.arrays import Array, Value, real_array, whole_number
from coldq.base.describe import describable
from coldq.base.errors import InvalidInput
from coldq.problems import data

ZONES = (
    "CAPITL", "CENTRL", "DUNWOD", "GENESE", "HUD VL", "LONGIL", "MHK VL", "MILLWD", "N.Y.C.",
    "NORTH", "WEST",
)  # fmt: skip
PROXY_ZONES = ("H Q", "NPX", "O H", "PJM")  # neighbours, in NYISO's files beside its own
READABLE_ZONES = ZONES + PROXY_ZONES
PUBLISHED_ZONES = ("LONGIL", "N.Y.C.", "NORTH", "WEST")  # whose prices of May 2017 are real
HEADER = ["Time Stamp", "Name", "PTID", "LBMP ($/MWHr)"]  # what we read; more may follow
SLOT_LENGTH = timedelta(minutes=5)
DAY_LENGTH = timedelta(days=1)
SLOTS_A_DAY = DAY_LENGTH // SLOT_LENGTH
DAY_AND_WEEK = SLOTS_A_DAY, 7 * SLOTS_A_DAY  # periods, in slots

Note = tuple[tuple[str, ...], str]


@describable
@dataclass(frozen=True, eq=False, repr=False, init=False)
class ZonalPrices(Value):
    """Prices of several zones on one five-minute grid, and where they come from.

    Parameters
    ----------
    zones
        The names of k zones.
    values
        (T, k) prices in $/MWh.
    first
        The end of the first interval, local time.
    source
        A sentence on where the prices come from.
    filled
        How many prices of each zone stand for missing ones; none by default.
    notes
        Pairs of zones and what is to be said of them.

    >>> from datetime import datetime
    >>> import coldq
    >>> prices = coldq.problems.ZonalPrices(
    ...     ["EAST", "WEST"], [[20.0, 30.0], [21.0, -5.0]], first=datetime(2024, 1, 1, 0, 5),
    ...     source="Prices: our own meter.",
    ... )
    >>> prices.only(["WEST"]).values.ravel(), str(prices.stamps[-1])
    (array([30., -5.]), '2024-01-01T00:10')
    """

    zones: tuple[str, ...]
    values: Array
    first: datetime
    source: str
    filled: tuple[int, ...]
    notes: tuple[Note, ...]

    def __init__(
        self,
        zones: Iterable[str],
        values: ArrayLike,
        *,
        first: datetime | str,
        source: str,
        filled: Iterable[int] | None = None,
        notes: Iterable[Note] = (),
    ) -> None:
        zones = zone_names(zones)
        values = real_array("values", values, 2)
        if values.ndim != 2 or values.shape[1] != len(zones) or not len(values):
            raise InvalidInput(
                f"values must have one row a slot and one column for each of the {len(zones)} "
                f"zones, but has shape {values.shape}"
            )
        with suppress(ValueError):  # which is refused with the others
            first = datetime.fromisoformat(first) if isinstance(first, str) else first
        if not isinstance(first, datetime):
            raise InvalidInput(
                f"first must be a datetime, or one as text such as 2024-01-01T00:05, but is "
                f"{first!r:.200}"
            )
        counts = (0,) * len(zones) if filled is None else tuple(filled)
        if len(counts) != len(zones):
            raise InvalidInput(f"filled needs {len(zones)} counts, one a zone, but is {counts}")
        self._set(
            zones=zones, values=values, first=first, source=source, filled=counts,
            notes=tuple((tuple(some), words) for some, words in notes),
        )  # fmt: skip

    def _arguments(self) -> dict[str, Any]:
        return super()._arguments() | {"first": self.first.isoformat()}

    @property
    def stamps(self) -> np.ndarray:
        """The end of every interval, local time."""
        return np.datetime64(self.first.replace(tzinfo=None), "m") + 5 * np.arange(len(self.values))

    @property
    def provenance(self) -> tuple[str, ...]:
        """Sentences on where the prices come from, and which of them are not as published."""
        here = [([z for z in zones if z in self.zones], words) for zones, words in self.notes]
        return (self.source, *(f"{', '.join(zones)}: {words}" for zones, words in here if zones))

    def only(self, zones: Iterable[str]) -> ZonalPrices:
        """The prices of some of the zones, in the order given."""
        zones = zone_names(zones)
        for zone in zones:
            if zone not in self.zones:
                raise InvalidInput(f"zones may name {', '.join(self.zones)}, but has {zone!r}")
        columns = [self.zones.index(zone) for zone in zones]
        return ZonalPrices(
            zones, self.values[:, columns], first=self.first, source=self.source,
            filled=[self.filled[j] for j in columns], notes=self.notes,
        )  # fmt: skip


def zone_names(zones: Iterable[str]) -> tuple[str, ...]:
    """Zones as a tuple of names, each once."""
    several = isinstance(zones, Iterable) and not isinstance(zones, str | np.ndarray)
    names = tuple(zones) if several else ()
    if not names or not all(isinstance(n, str) for n in names) or len(set(names)) < len(names):
        raise InvalidInput(
            f"zones must be different names, such as ['N.Y.C.', 'WEST'], but is {zones!r:.200}"
        )
    return names


@cache
def may_2017() -> ZonalPrices:
    """The prices in the package: all eleven zones, 1 to 10 May 2017, in part reconstructed.

    >>> from coldq.problems.nyiso import may_2017
    >>> may_2017().values.shape
    (2880, 11)
    """
    zones, values = data.columns("nyiso-lbmp-5min-2017-05-01_2017-05-10.csv.gz")
    shape = ", ".join(PUBLISHED_ZONES[:-1]) + " and " + PUBLISHED_ZONES[-1]
    return ZonalPrices(
        zones,
        values,
        first=datetime(2017, 5, 1, 0, 5),
        source="Prices: NYISO real-time zonal LBMP (P-24A), five-minute intervals, "
        "1 to 10 May 2017.",
        filled=[1 if zone in PUBLISHED_ZONES else 0 for zone in zones],
        notes=[
            (
                PUBLISHED_ZONES,
                "the published five-minute prices; one missing interval, 2017-05-06 20:35, is "
                "filled from the published hourly mean.",
            ),
            (
                tuple(zone for zone in zones if zone not in PUBLISHED_ZONES),
                "reconstructed within the hour: the hourly means are published, the shape inside "
                f"the hour is inferred from {shape}.",
            ),
        ],
    )


def read_nyiso(
    files: str | PathLike[str] | Iterable[str | PathLike[str]],
    zones: Iterable[str] = ZONES,
    *,
    longest_gap: int = 3,
) -> ZonalPrices:
    """Prices from NYISO's own daily files of real-time zonal LBMP (report P-24A).

    NYISO calls them ``YYYYMMDDrealtime_zone.csv``. They may come in any order, plain or gzipped,
    one day or several in a file. These rules turn their rows into one five-minute grid:

    - Stamps are local time and end their interval, so 00:00 belongs to the day before.
    - A stamp off the five-minute grid is an extra dispatch: its rows are dropped, and counted.
    - Rows of zones not asked for, as the proxies H Q, NPX, O H and PJM, are passed over.
    - Days are whole and follow one another: a day missing between two others is refused.
    - A missing price is filled with the zone's price before it, at most `longest_gap` times in a
      row; ``filled`` counts them. More, or a missing price at the very beginning, is refused.
    - A row given twice counts once; two different prices for one zone and stamp are refused.
    - A day on which clocks change is refused: its local stamps are no grid.
    - Anything else (header, number of fields, stamp, zone, price) is refused with file and line.

    Parameters
    ----------
    files
        A path, or several.
    zones
        The zones to read, in the order wanted; proxies may be among them.
    longest_gap
        How many missing prices in a row are filled.

    >>> import tempfile, pathlib, coldq
    >>> rows = ['"Time Stamp","Name","PTID","LBMP ($/MWHr)"']
    >>> for k in range(1, 288):
    ...     rows.append(f'"05/01/2017 {k // 12:02}:{k % 12 * 5:02}:00","WEST",61752,{k}.5')
    >>> rows.append('"05/02/2017 00:00:00","WEST",61752,20.61')
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder, "20170501realtime_zone.csv")
    ...     _ = path.write_text("\\n".join(rows))
    ...     prices = coldq.problems.read_nyiso(path, zones=["WEST"])
    >>> prices.values[[0, -1], 0], prices.filled
    (array([ 1.5 , 20.61]), (0,))
    """
    chosen = zone_names(zones)
    for zone in chosen:
        if zone not in READABLE_ZONES:
            known = ", ".join(READABLE_ZONES)
            raise InvalidInput(f"zones may name {known}, but has the unknown {zone!r}")
    longest_gap = whole_number("longest_gap", longest_gap, 0)
    paths = _paths(files)
    prices, file_of, extra = _collected(paths, chosen)
    for zone in chosen:
        if not any(zone == name for _, name in prices):
            raise InvalidInput(f"zone {zone} has no prices in {_listed(paths)}")
    days = _require_consecutive(file_of)

    first = datetime.combine(days[0], datetime.min.time()) + SLOT_LENGTH
    values = np.full((len(days) * SLOTS_A_DAY, len(chosen)), np.nan)
    for (stamp, zone), (price, _) in prices.items():
        values[(stamp - first) // SLOT_LENGTH, chosen.index(zone)] = price
    missing, slot = np.isnan(values), np.arange(len(values))[:, None]
    # The slot of each zone's latest price; where there is none yet, too far back to be used.
    latest = np.maximum.accumulate(np.where(missing, -longest_gap - 1, slot), axis=0)
    for t, j in np.argwhere(slot - latest > longest_gap):
        raise InvalidInput(
            f"{file_of[days[t // SLOTS_A_DAY]]}: {chosen[j]} has no price at "
            f"{first + int(t) * SLOT_LENGTH}; a missing price is filled with the one before it, "
            f"but no more than longest_gap = {longest_gap} in a row"
        )
    filled = missing.sum(axis=0).tolist()
    dropped = f" {len(extra)} intervals off the five-minute grid are dropped." if extra else ""
    return ZonalPrices(
        chosen,
        np.take_along_axis(values, latest, axis=0),
        first=first,
        source="Prices: NYISO real-time zonal LBMP (P-24A), five-minute intervals, "
        f"{days[0]} to {days[-1]}, read from {_listed(paths)}.{dropped}",
        filled=filled,
        notes=[
            ((zone,), f"{count} missing, each filled with the price before it.")
            for zone, count in zip(chosen, filled, strict=True)
            if count
        ],
    )


def _collected(
    paths: Sequence[Path], chosen: Sequence[str]
) -> tuple[dict[tuple[datetime, str], tuple[float, str]], dict[date, Path], set[datetime]]:
    """Prices by stamp and zone, each with its place; a file of each day; stamps off the grid."""
    prices: dict[tuple[datetime, str], tuple[float, str]] = {}
    file_of: dict[date, Path] = {}
    extra: set[datetime] = set()
    for path in paths:
        for stamp, zone, text, place in _rows(path):
            if stamp.minute % 5 or stamp.second:
                extra.add(stamp)
                continue
            day = (stamp - SLOT_LENGTH).date()
            if day not in file_of:
                _require_steady_clocks(day, place)
                file_of[day] = path
            if zone in chosen:
                price = _price(text, place)
                known, where = prices.setdefault((stamp, zone), (price, place))
                if known != price:
                    raise InvalidInput(
                        f"{place}: {zone} costs {price} at {stamp}, but {known} in {where}"
                    )
    return prices, file_of, extra


def _paths(files: Any) -> list[Path]:
    try:
        paths = [Path(f) for f in ([files] if isinstance(files, str | PathLike) else files)]
    except TypeError:
        raise InvalidInput(f"files must be a path or several, but is {files!r}") from None
    if not paths:
        raise InvalidInput("files must name at least one file, but is empty")
    return paths


def _rows(path: Path) -> Iterator[tuple[datetime, str, str, str]]:
    """The rows of a file: stamp, zone, the price's text, and the place for an error to name."""
    reader = csv.reader(StringIO(_text(path), newline=""), strict=True)
    stamps: dict[str, datetime] = {}  # each stamp comes once a zone
    header: list[str] = []
    while True:
        place = f"{path}, line {reader.line_num + 1}"
        try:
            row = next(reader)
        except StopIteration:
            break
        except csv.Error as error:
            raise InvalidInput(f"{place}: not a row of a CSV file ({error})") from None
        if not row or row == header:  # a blank line; days put one after another
            continue
        if not header:
            header = row
            if header[: len(HEADER)] != HEADER:
                raise InvalidInput(
                    f"{place}: the header of a real-time zonal file begins with "
                    f"{', '.join(HEADER)}, but this one is {', '.join(header)[:200]}"
                )
            continue
        if len(row) != len(header):
            raise InvalidInput(f"{place}: needs {len(header)} fields, but has {len(row)}")
        text, zone, _, price = row[: len(HEADER)]
        if zone not in READABLE_ZONES:
            raise InvalidInput(f"{place}: there is no zone {zone!r}")
        if text not in stamps:
            stamps[text] = _stamp(text, place)
        yield stamps[text], zone, price, place
    if not stamps:
        raise InvalidInput(f"{path}: the file has no prices")


def _text(path: Path) -> str:
    try:
        content = path.read_bytes()
        if content[:2] == b"\x1f\x8b":
            content = gzip.decompress(content)
    except (OSError, EOFError, zlib.error) as error:
        raise InvalidInput(f"{path}: cannot be read ({error})") from None
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise InvalidInput(f"{path}: is neither text nor gzipped text") from None


def _stamp(text: str, place: str) -> datetime:
    try:
        return datetime.strptime(text, "%m/%d/%Y %H:%M:%S")
    except ValueError:
        raise InvalidInput(
            f"{place}: a stamp is written as 05/31/2017 23:55:00, but here as {text!r}"
        ) from None


def _price(text: str, place: str) -> float:
    try:
        price = float(text.replace("_", "?"))  # Python would read 1_0 as ten
    except ValueError:
        price = math.nan
    if not math.isfinite(price):
        raise InvalidInput(f"{place}: the price must be a finite number, but is {text!r}")
    return price


def _require_steady_clocks(day: date, place: str) -> None:
    if np.datetime64(day) in _clock_changes(day.year):
        raise InvalidInput(
            f"{place}: clocks change on {day}, so that its local stamps are no five-minute grid; "
            "take days before it or days after it"
        )


def _require_consecutive(file_of: dict[date, Path]) -> list[date]:
    """The days in order, none missing between them."""
    days = sorted(file_of)
    for day, following in pairwise(days):
        if following - day != DAY_LENGTH:
            raise InvalidInput(
                f"no file has prices of {day + DAY_LENGTH}: {file_of[day]} ends with {day}, and "
                f"{file_of[following]} goes on with {following}"
            )
    return days


@cache
def _clock_changes(year: int) -> list[np.datetime64]:
    """The Sundays on which daylight saving begins and ends, by the law of 2007 or of 1987."""
    begins, ends = (("03", 1), ("11", 0)) if year >= 2007 else (("04", 0), ("11", -1))
    return [
        np.busday_offset(f"{year:04}-{month}", sunday, roll="forward", weekmask="Sun")
        for month, sunday in (begins, ends)
    ]


def _listed(paths: list[Path]) -> str:
    """The first file by name, and how many others."""
    others = len(paths) - 1
    more = f" and {others} other file{'s' if others > 1 else ''}" if others else ""
    return min(path.name for path in paths) + more
