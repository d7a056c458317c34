"""Results of the reproduction as files for programs: parquet, JSON and CSV."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

import coldq
from coldq.base.files import whole_file
from coldq.evaluation.report.files import write_text

if TYPE_CHECKING:
    from coldq.paper.rates.tables import Cell
    from coldq.paper.reproduce import Reproduction
    from coldq.paper.runs import FigureRuns


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


def write_rates(cells: list[Cell], out: Path) -> None:
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
        for c in cells
    ]
    with whole_file(out / "rates.csv") as path, path.open("w", newline="") as file:
        sheet = csv.DictWriter(file, list(rows[0]))
        sheet.writeheader()
        sheet.writerows(rows)
    for row, c in zip(rows, cells, strict=True):
        row |= {"horizons": c.horizons, "mean_totals": c.totals.mean(axis=1).tolist()}
        row |= {key: None for key in ("slope", "low", "high") if np.isnan(row[key])}
    write_text(out / "rates.json", json.dumps(rows, indent=1))
