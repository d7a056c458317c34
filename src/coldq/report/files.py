"""Results as files for programs: parquet, JSON and CSV, each whole or not at all."""

from __future__ import annotations

import csv
import json
import re
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

import coldq
from coldq.errors import InvalidInput
from coldq.files import whole_file, write_parquet

if TYPE_CHECKING:
    from coldq.experiments.comparison import Comparison
    from coldq.experiments.rates.tables import Cell
    from coldq.experiments.reproduce import Reproduction
    from coldq.experiments.runs import FigureRuns

MADE = b"Made by <code>coldq</code>"  # in the foot of every page


def require_own_page(path: Path) -> None:
    """Raise if a page lies there that is none of ours: it would be lost."""
    try:
        own = MADE in path.read_bytes()
    except OSError:  # there is none, or writing it will say why not
        return
    if not own:
        raise InvalidInput(
            f"{path} was not written by coldq, so that it is left as it is: choose another folder, "
            "or move it away"
        )


def write_text(path: Path, text: str) -> None:
    """A file of text; what is no UTF-8 in the name of a user's file is replaced."""
    with whole_file(path) as temporary:
        temporary.write_text(text, encoding="utf-8", errors="replace")


def plain(title: str, otherwise: str) -> str:
    """A title as the name of a file: letters of any language and digits, - for all else."""
    return re.sub(r"[^\w.-]+", "-", title).strip("-.") or otherwise


def write_claims(result: Reproduction, path: Path) -> None:
    """The verdicts on the paper's claims."""
    document = {
        "coldq": coldq.__version__,
        "seeds": list(result.seeds),
        "verdicts": [verdict.to_dict() for verdict in result.verdicts],
    }
    write_text(path, json.dumps(document, indent=2) + "\n")


def write_traces(runs: FigureRuns, path: Path) -> None:
    """One row a setting, learner, seed and slot: loss, violation, and COLDQ's largest queue."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    names = pa.dictionary(pa.int16(), pa.string())
    schema = pa.schema(
        [
            ("setting", names),
            ("learner", names),
            ("seed", pa.int64()),
            ("t", pa.int32()),
            ("loss", pa.float64()),
            ("violation", pa.float64()),
            ("queue", pa.float64()),
        ]
    )
    with (
        whole_file(path) as temporary,
        temporary.open("wb") as file,
        pq.ParquetWriter(file, schema) as writer,
    ):
        for run in runs.runs:
            S, T = run.trace.loss.shape
            queue = run.trace.queue
            columns = [
                pa.array([run.setting.key] * (S * T)).dictionary_encode().cast(names),
                pa.array([run.entry.label] * (S * T)).dictionary_encode().cast(names),
                pa.array(np.repeat(np.array(run.trace.seeds), T)),
                pa.array(np.tile(np.arange(1, T + 1, dtype=np.int32), S)),
                pa.array(run.trace.loss.ravel()),
                pa.array(run.trace.violation.sum(axis=-1).ravel()),
                pa.nulls(S * T, pa.float64())
                if queue is None
                else pa.array(queue.max(axis=-1).ravel()),
            ]
            writer.write_table(pa.Table.from_arrays(columns, schema=schema))


def write_rates(found: list[Cell], out: Path) -> None:
    """rates.csv and rates.json with every cell."""
    rows = [
        {
            "algorithm": c.column.title,
            "losses": c.column.losses,
            "constraints": c.constraints,
            "measure": c.measure,
            "V_x": c.path_exponent,
            "V_g": c.variation_exponent,
            "claimed": str(c.rate),
            "claim_is_own": c.column.own,
            "claimed_slope": c.claim,
            "growth": c.grown.kind,
            "slope": c.grown.slope,
            "low": c.grown.low,
            "high": c.grown.high,
            "verdict": c.verdict,
        }
        for c in found
    ]
    with whole_file(out / "rates.csv") as path, path.open("w", newline="") as file:
        sheet = csv.DictWriter(file, list(rows[0]))
        sheet.writeheader()
        sheet.writerows(rows)
    for row, c in zip(rows, found, strict=True):
        row |= {"horizons": c.horizons, "mean_totals": c.totals.mean(axis=1).tolist()}
        row |= {key: None for key in ("slope", "low", "high") if np.isnan(row[key])}
    write_text(out / "rates.json", json.dumps(rows, indent=1))


def comparison_name(found: Comparison) -> str:
    """The name of a comparison's files."""
    rate = "" if found.rate is None else f"-{found.rate:g}"
    return f"compare-{plain(found.title, 'own')}{rate}"


def write_comparison(found: Comparison, folder: Path) -> None:
    """One row a learner, as parquet and as LaTeX, and one a learner and seed, as parquet."""
    import pyarrow as pa

    name = comparison_name(found)
    write_parquet(found.to_arrow(), folder / f"{name}.parquet")
    write_parquet(pa.table(dict(found.by_seed)), folder / f"{name}-seeds.parquet")
    write_text(folder / f"{name}.tex", found.to_latex() + "\n")
