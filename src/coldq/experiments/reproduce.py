"""The paper in one call: run its figures, check its claims, write the report."""

from __future__ import annotations

import json
import time
from collections.abc import Iterable
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

from coldq.errors import InvalidInput
from coldq.experiments.claims import Verdict, check_claims
from coldq.experiments.figures import FIGURES, Figure
from coldq.experiments.published import EndPoint, end_points
from coldq.experiments.runs import (
    ALPHAS,
    FEW_ALPHAS,
    FigureRuns,
    Stepping,
    count_runs,
    run_figure,
    stepping_with_cvxpy,
)
from coldq.files import require_writable, whole_file
from coldq.simulate import seed_tuple

MEGABYTES = 200.0  # of results for 20 seeds of all figures, with room to spare
REPORT_NEEDS = ("jinja2", "matplotlib", "plotly", "pyarrow")


@dataclass(frozen=True, eq=False)
class Reproduction:
    """Everything that the report shows."""

    figures: tuple[FigureRuns, ...]
    verdicts: tuple[Verdict, ...]
    end_points: dict[str, tuple[EndPoint, ...]]
    seeds: tuple[int, ...]
    seconds: float
    stepping: Stepping | None


def reproduce(
    figures: Iterable[Figure] = FIGURES,
    seeds: Iterable[int] = range(20),
    out: str | Path = "results",
    *,
    quick: bool = False,
) -> Reproduction:
    """Run figures of the paper over many seeds, check its claims, and write everything to `out`.

    Written are ``index.html``, ``claims.json``, every figure as PNG and PDF, and the traces as
    parquet: each file whole or not at all. A `quick` look tries few alphas where RECOO is tuned.
    """
    figures, seeds, out = tuple(figures), seed_tuple(seeds), Path(out)
    require_report()
    require_writable(out, MEGABYTES)

    from coldq.experiments.terminal import progress
    from coldq.report import write_page, write_pictures
    from coldq.warmup import warmup

    begun = time.perf_counter()
    alphas = FEW_ALPHAS if quick else ALPHAS
    with progress(1 + sum(count_runs(figure, alphas) for figure in figures)) as done:
        warmup(everything=False)
        done("kernels compiled or loaded")
        runs = tuple(run_figure(figure, seeds, done, alphas) for figure in figures)
    result = Reproduction(
        figures=runs,
        verdicts=tuple(verdict for each in runs for verdict in check_claims(each)),
        end_points={each.figure.key: end_points(each) for each in runs},
        seeds=seeds,
        seconds=time.perf_counter() - begun,
        stepping=stepping_with_cvxpy(runs),
    )
    for each in runs:
        write_pictures(each, out / "figures")
        write_traces(each, out / "traces" / f"{each.figure.key}.parquet")
    with whole_file(out / "claims.json") as path:
        path.write_text(json.dumps(claims_document(result), indent=2) + "\n", encoding="utf-8")
    write_page(result, out / "index.html")
    return result


def require_report() -> None:
    """Raise unless what the report needs is installed."""
    missing = [name for name in REPORT_NEEDS if find_spec(name) is None]
    if missing:
        raise InvalidInput(
            f"the report needs {', '.join(missing)}: install them with pip install 'coldq[report]'"
        )


def claims_document(result: Reproduction) -> dict[str, Any]:
    """What ``claims.json`` holds."""
    import coldq

    return {
        "coldq": coldq.__version__,
        "seeds": list(result.seeds),
        "verdicts": [verdict.to_dict() for verdict in result.verdicts],
    }


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
    with whole_file(path) as temporary, pq.ParquetWriter(temporary, schema) as writer:
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
