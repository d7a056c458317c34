"""NYISO's daily files: every rule by which they are read, and every refusal, on files made here."""

from __future__ import annotations

import csv
import gzip
import io
from datetime import datetime, timedelta
from importlib.resources import files
from itertools import permutations

import numpy as np
import pytest

import coldq
from coldq.problems import JobScheduling, ZonalPrices, read_nyiso

HEADER = (
    '"Time Stamp","Name","PTID","LBMP ($/MWHr)","Marginal Cost Losses ($/MWHr)",'
    '"Marginal Cost Congestion ($/MWHr)"'
)
MINUTE = timedelta(minutes=1)


def row(stamp: datetime, zone: str, price: object) -> str:
    return f'"{stamp:%m/%d/%Y %H:%M:%S}","{zone}",61752,{price},-0.03,-21.03'


def day_rows(day: str, zones=("WEST", "NORTH"), price=lambda k, j: 100 * j + k + 0.25):
    """One day as NYISO writes it: the first interval ends at 00:05, the last at midnight."""
    first = datetime.fromisoformat(day)
    return [
        row(first + 5 * k * MINUTE, zone, price(k, j))
        for k in range(1, 289)
        for j, zone in enumerate(zones)
    ]


def write(path, rows, header=HEADER):
    path.write_text("\n".join([header, *rows]) + "\n")
    return path


def bundled() -> tuple[list[str], list[list[str]]]:
    """The price file in the package, read without the package."""
    name = "nyiso-lbmp-5min-2017-05-01_2017-05-10.csv.gz"
    packed = files("coldq.problems").joinpath("data", name).read_bytes()
    header, *rows = csv.reader(io.StringIO(gzip.decompress(packed).decode()))
    return header[1:], rows


def test_a_day_is_read_with_midnight_as_its_last_interval(tmp_path) -> None:
    path = write(tmp_path / "a.csv", day_rows("2024-02-29"))
    prices = read_nyiso(path, ["NORTH", "WEST"])
    np.testing.assert_array_equal(prices.values[:, 0], np.arange(1, 289) + 100.25)
    np.testing.assert_array_equal(prices.values[:, 1], np.arange(1, 289) + 0.25)
    assert prices.zones == ("NORTH", "WEST")
    assert prices.filled == (0, 0)
    assert str(prices.stamps[0]) == "2024-02-29T00:05"
    assert str(prices.stamps[-1]) == "2024-03-01T00:00"


def test_the_package_s_own_prices_survive_nyiso_s_format_bit_for_bit(tmp_path) -> None:
    zones, rows = bundled()
    stamps = [datetime.fromisoformat(r[0]) for r in rows]
    paths = []
    for day in range(10):
        lines = []
        for k in range(288 * day, 288 * (day + 1)):
            lines += [row(stamps[k], z, p) for z, p in zip(zones, rows[k][1:], strict=True)]
            lines += [row(stamps[k], z, 1e6) for z in ("H Q", "NPX", "O H", "PJM")]
        paths.append(write(tmp_path / f"201705{day + 1:02}realtime_zone.csv", lines))
    read = read_nyiso(reversed(paths))
    assert read.zones == tuple(zones)
    assert read.values.tobytes() == np.array([r[1:] for r in rows], float).tobytes()
    ours, theirs = JobScheduling(), JobScheduling.from_nyiso(paths)
    assert theirs.horizon == 2880
    assert theirs.prices.values.tobytes() == ours.prices.values.tobytes()
    assert (
        "2017-05-01 to 2017-05-10, read from 20170501realtime_zone.csv and 9 other files."
        in (theirs.provenance[0])
    )
    assert not any("reconstructed" in sentence for sentence in theirs.provenance)


def test_files_may_come_in_any_order_plain_gzipped_or_together(tmp_path) -> None:
    days = [day_rows(f"2024-06-0{d}", price=lambda k, j, d=d: 1000 * d + k) for d in (1, 2, 3)]
    paths = [write(tmp_path / f"{d}.csv", rows) for d, rows in enumerate(days)]
    packed = tmp_path / "packed"  # by content, not by name
    packed.write_bytes(gzip.compress(paths[1].read_bytes()))
    expected = np.concatenate([1000 * d + np.arange(1, 289.0) for d in (1, 2, 3)])
    for order in permutations([paths[0], packed, paths[2]]):
        np.testing.assert_array_equal(read_nyiso(order, ["WEST"]).values[:, 0], expected)
    # All days in one file, headers and blank lines included, rows in any order, one day twice.
    shuffled = np.random.default_rng(0).permutation([*days[0], *days[1], HEADER, "", *days[2]])
    whole = write(tmp_path / "whole.csv", shuffled)
    np.testing.assert_array_equal(
        read_nyiso([whole, str(paths[2])], ["WEST"]).values[:, 0], expected
    )
    assert read_nyiso(order, ["WEST"]) == read_nyiso(order[::-1], ["WEST"])


def test_a_byte_order_mark_and_windows_line_ends_do_not_matter(tmp_path) -> None:
    plain = write(tmp_path / "a.csv", day_rows("2024-06-01"))
    other = tmp_path / "sub" / "a.csv"
    other.parent.mkdir()
    other.write_bytes(b"\xef\xbb\xbf" + plain.read_bytes().replace(b"\n", b"\r\n"))
    assert read_nyiso(other, ["WEST"]) == read_nyiso(plain, ["WEST"])


def test_off_schedule_intervals_are_dropped_and_counted(tmp_path) -> None:
    rows, when = day_rows("2024-06-01"), datetime(2024, 6, 1, 14, 7)
    clean = read_nyiso(write(tmp_path / "a.csv", rows), ["WEST"])
    rows[100:100] = [row(when, "WEST", 999.0), row(when, "NORTH", 999.0)]
    rows.append(row(datetime(2024, 6, 1, 14, 10, 12), "WEST", 999.0))
    prices = read_nyiso(write(tmp_path / "a.csv", rows), ["WEST"])
    np.testing.assert_array_equal(prices.values, clean.values)
    assert prices.source == clean.source + " 2 intervals off the five-minute grid are dropped."


def test_a_proxy_is_read_only_when_asked_for(tmp_path) -> None:
    path = write(tmp_path / "a.csv", day_rows("2024-06-01", ("WEST", "H Q", "PJM")))
    np.testing.assert_array_equal(read_nyiso(path, ["WEST"]).values[:2, 0], [1.25, 2.25])
    np.testing.assert_array_equal(read_nyiso(path, ["PJM"]).values[:2, 0], [201.25, 202.25])


def test_missing_prices_are_filled_with_the_price_before_up_to_a_limit(tmp_path) -> None:
    both = [*day_rows("2024-06-01", ("WEST",)), *day_rows("2024-06-02", ("WEST",))]
    expected = np.tile(np.arange(1, 289) + 0.25, 2)
    # Two at the end of a day and one at the beginning of the next are three in a row.
    gone = [10, 50, 51, 286, 287, 288, 575]
    for k in gone:
        expected[k] = expected[k - 1]
    path = write(tmp_path / "a.csv", [r for k, r in enumerate(both) if k not in gone])
    prices = read_nyiso(path, ["WEST"])
    np.testing.assert_array_equal(prices.values[:, 0], expected)
    assert prices.filled == (7,)
    assert prices.provenance[1:] == ("WEST: 7 missing, each filled with the price before it.",)
    with pytest.raises(coldq.InvalidInput, match="no price at 2024-06-02 00:05:00"):
        read_nyiso(path, ["WEST"], longest_gap=2)
    with pytest.raises(coldq.InvalidInput, match="no price at 2024-06-01 00:55:00"):
        read_nyiso(path, ["WEST"], longest_gap=0)


def broken(change):
    """A good day's rows after a change; lines count from the header, which is line 1."""
    rows = day_rows("2024-06-01", ("WEST",))
    return change(rows) or rows


def replace_row(index, text):
    def change(rows):
        rows[index] = text

    return change


JUNE = datetime(2024, 6, 1, 0, 5)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (replace_row(3, row(JUNE + 15 * MINUTE, "WEST", "n/a")),
         "line 5: the price must be a finite number, but is 'n/a'"),
        (replace_row(3, row(JUNE + 15 * MINUTE, "WEST", "")), "line 5: the price must be a finite"),
        (replace_row(3, row(JUNE + 15 * MINUTE, "WEST", "1_0")), "line 5: the price must be a fin"),
        (replace_row(0, row(JUNE, "WEST", "nan")), "line 2: the price must be a finite number"),
        (replace_row(0, row(JUNE, "WEST", "inf")), "line 2: the price must be a finite number"),
        (replace_row(7, '"06/01/2024 00:40:00","WEST",61752'), "line 9: needs 6 fields, but has 3"),
        (replace_row(7, "#"), "line 9: needs 6 fields, but has 1"),
        (replace_row(7, '"06/01/2024 00:40:00","WE"ST",61752,1,2,3'), "line 9: not a row of a CSV"),
        (replace_row(287, '"06/02/2024 00:00:00","WEST'), "line 289: not a row of a CSV"),
        (replace_row(7, row(JUNE + 35 * MINUTE, "WESTERN", 1)), "line 9: there is no zone 'WESTER"),
        (replace_row(7, '"2024-06-01 00:40:00","WEST",61752,1,2,3'),
         "line 9: a stamp is written as 05/31/2017 23:55:00, but here as '2024-06-01 00:40:00'"),
        (replace_row(7, '"06/31/2024 00:40:00","WEST",61752,1,2,3'), "line 9: a stamp is written"),
        (lambda rows: [*rows, row(JUNE, "WEST", 7.5)],
         r"line 290: WEST costs 7.5 at 2024-06-01 00:05:00, but 1.25 in .*a.csv, line 2$"),
        (lambda rows: rows[1:], "a.csv: WEST has no price at 2024-06-01 00:05:00"),
        (lambda rows: rows[:-4], "a.csv: WEST has no price at 2024-06-02 00:00:00"),
        (lambda rows: rows[:100] + rows[104:], "a.csv: WEST has no price at 2024-06-01 08:40:00"),
    ],
)  # fmt: skip
def test_a_broken_row_is_refused_with_file_and_line(tmp_path, change, words) -> None:
    path = write(tmp_path / "a.csv", broken(change))
    with pytest.raises(coldq.InvalidInput, match=words) as refused:
        read_nyiso(path, ["WEST"])
    assert str(path) in str(refused.value)


def test_a_broken_file_is_refused_by_name(tmp_path) -> None:
    path = tmp_path / "a.csv"
    packed = gzip.compress("\n".join([HEADER, *day_rows("2024-06-01")]).encode())
    hourly = HEADER.replace("LBMP", "Integrated LBMP")
    for content, words in [
        (b"", "a.csv: the file has no prices"),
        (HEADER.encode(), "a.csv: the file has no prices"),
        (packed[:200], r"a.csv: cannot be read \(.*end-of-stream"),
        (packed[:60] + bytes(20) + packed[80:], r"a.csv: cannot be read \("),
        (b"PK\x03\x04\xff\xfe", "a.csv: is neither text nor gzipped text"),
        (hourly.encode(), "line 1: the header .* begins with .*, but this one is Time Stamp"),
        ("\n".join(day_rows("2024-06-01")).encode(), "line 1: the header of a real-time zonal"),
    ]:
        path.write_bytes(content)
        with pytest.raises(coldq.InvalidInput, match=words):
            read_nyiso(path, ["WEST"])
    with pytest.raises(coldq.InvalidInput, match=r"missing.csv: cannot be read \(.*No such file"):
        read_nyiso(tmp_path / "missing.csv")
    with pytest.raises(coldq.InvalidInput, match=r"cannot be read \(.*Is a directory"):
        read_nyiso(tmp_path)


def test_a_day_missing_between_two_others_is_refused(tmp_path) -> None:
    paths = [write(tmp_path / f"{d}.csv", day_rows(f"2024-06-0{d}")) for d in (1, 2, 4)]
    words = r"no file has prices of 2024-06-03: .*2.csv ends with 2024-06-02, and .*4.csv goes on"
    with pytest.raises(coldq.InvalidInput, match=words):
        read_nyiso(paths, ["WEST"])


def test_a_zone_that_is_absent_is_refused_for_all_files_or_for_a_day(tmp_path) -> None:
    first = write(tmp_path / "1.csv", day_rows("2024-06-01"))
    second = write(tmp_path / "2.csv", day_rows("2024-06-02", ("NORTH", "PJM")))
    with pytest.raises(coldq.InvalidInput, match=r"zone CAPITL has no prices in 1.csv and 1 other"):
        read_nyiso([first, second], ["WEST", "CAPITL"])
    with pytest.raises(coldq.InvalidInput, match=r"2.csv: WEST has no price at 2024-06-02 00:20"):
        read_nyiso([first, second], ["NORTH", "WEST"])


@pytest.mark.parametrize(
    "day",
    ["2017-03-12", "2017-11-05", "2026-03-08", "2026-11-01", "2007-03-11", "2007-11-04",
     "2006-04-02", "2006-10-29", "2000-04-02", "2004-10-31"],
)  # fmt: skip
def test_a_day_on_which_clocks_change_is_refused(tmp_path, day) -> None:
    # In autumn an hour of stamps comes twice; the reason is given, not the contradiction.
    again = [row(datetime.fromisoformat(day) + 65 * MINUTE, "WEST", -1.0)]
    path = write(tmp_path / "a.csv", day_rows(day) + again)
    with pytest.raises(coldq.InvalidInput, match=f"a.csv, line 2: clocks change on {day}"):
        read_nyiso(path, ["WEST"])
    for near in (-1, 1):
        beside = datetime.fromisoformat(day) + timedelta(days=near)
        path = write(tmp_path / "b.csv", day_rows(f"{beside:%Y-%m-%d}"))
        assert read_nyiso(path, ["WEST"]).values.shape == (288, 1)


def test_bad_arguments_get_a_sentence(tmp_path) -> None:
    path = write(tmp_path / "a.csv", day_rows("2024-06-01"))
    for call, words in [
        (lambda: read_nyiso([]), "files must name at least one file, but is empty"),
        (lambda: read_nyiso(None), "files must be a path or several, but is None"),
        (lambda: read_nyiso([3]), r"files must be a path or several, but is \[3\]"),
        (lambda: read_nyiso(path, "WEST"), "zones must be different names, .* but is 'WEST'"),
        (lambda: read_nyiso(path, []), r"zones must be different names, .* but is \[\]"),
        (lambda: read_nyiso(path, ["WEST", "WEST"]), "zones must be different names"),
        (lambda: read_nyiso(path, ["EAST"]), "but has the unknown 'EAST'"),
        (lambda: read_nyiso(path, longest_gap=-1), "longest_gap must be a whole number"),
    ]:
        with pytest.raises(coldq.InvalidInput, match=words):
            call()


def test_prices_of_one_s_own_are_checked_values() -> None:
    noon = datetime(2024, 1, 1, 12)
    values = np.array([[1.0, 2.0], [3.0, 4.0]])
    prices = ZonalPrices(["A", "B"], values, first=noon, source="Mine.", notes=[(("B",), "odd.")])
    assert prices == ZonalPrices(
        ("A", "B"), values, first=noon, source="Mine.", notes=((("B",), "odd."),)
    )
    assert prices.provenance == ("Mine.", "B: odd.")
    assert prices.only(["A"]).provenance == ("Mine.",)
    values[0, 0] = 9.0
    assert prices.values[0, 0] == 1.0
    for arguments, words in [
        ((["A"], values), r"one column for each of the 1 zones, but has shape \(2, 2\)"),
        ((["A"], np.ones((0, 1))), "one row a slot"),
        ((["A", "B"], [[1.0, np.nan]]), "values must be finite"),
    ]:
        with pytest.raises(coldq.InvalidInput, match=words):
            ZonalPrices(*arguments, first=noon, source="Mine.")
    with pytest.raises(coldq.InvalidInput, match=r"first must be a datetime.* but is .2024."):
        ZonalPrices(["A"], [[1.0]], first="2024", source="Mine.")
    with pytest.raises(coldq.InvalidInput, match="filled needs 1 counts"):
        ZonalPrices(["A"], [[1.0]], first=noon, source="Mine.", filled=[1, 2])
    with pytest.raises(coldq.InvalidInput, match="zones may name A, B, but has 'C'"):
        prices.only(["C"])


def test_stamps_are_in_the_local_time_that_the_first_one_is_in() -> None:
    for first in ("2024-01-01T00:05", "2024-01-01T00:05+01:00", "2024-01-01T00:05Z"):
        prices = ZonalPrices(["A"], [[20.0], [21.0]], first=first, source="Our meter.")
        assert prices.stamps.astype(str).tolist() == ["2024-01-01T00:05", "2024-01-01T00:10"]
