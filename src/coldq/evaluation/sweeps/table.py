"""What a sweep gave: a table with a row a run."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from coldq.base.errors import NotReadable
from coldq.base.notebook import html_table
from coldq.base.tabular import Tabular, library, read_parquet, write_parquet
from coldq.evaluation.sweeps.task import BEST, MEASURES
from coldq.evaluation.tasks.store import Store

if TYPE_CHECKING:
    from coldq.evaluation.sweeps.plan import Plan

NOTEBOOK_ROWS = 12  # settings that a notebook shows
INDEX_FILE = "index.parquet"
METADATA_KEY = "coldq.sweep"  # in its metadata: what holds for the whole sweep


@dataclass(frozen=True, eq=False, repr=False)
class Sweep(Tabular):
    """All runs of a sweep, as :func:`coldq.sweep` returns them: a row a run.

    Its columns are the problem, the learner, each parameter of any learner (NaN, or an empty word,
    for those that others have; one that is called as a column is `learner.seed` and the like), the
    seed, the horizon, and of the whole run the loss, the hard and the soft violation, the largest
    violation of a slot, and the dynamic and the static regret. `failures` says of each task that
    gave nothing why, `missing` how many were not done yet, `adaptive` which problems answer to
    decisions, `budget` what violation of a run is allowed, if that was said, and `notes` by problem
    why a regret is NaN.

    >>> import coldq
    >>> swept = coldq.sweep(problems=["linear"], learners=[{"learner": "COLDQ",
    ...     "epsilon": [0.1, 0.5]}], seeds=3)
    >>> len(swept), swept.to_pandas().groupby("epsilon").loss.mean().shape
    (6, (2,))
    """

    title: str
    runs: Any
    failures: tuple[dict[str, Any], ...]
    missing: int = 0
    adaptive: tuple[str, ...] = ()
    budget: float | None = None
    notes: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    def __len__(self) -> int:
        return self.runs.num_rows

    def __repr__(self) -> str:
        failed = f", {len(self.failures)} tasks failed" if self.failures else ""
        missing = f", {self.missing:,} tasks missing" if self.missing else ""
        title = f"{self.title}: " if self.title else ""
        return f"Sweep({title}{len(self):,} runs{failed}{missing})"

    def _repr_html_(self) -> str:
        """The settings that violate least, with their means over the seeds."""
        groups = ["problem", "learner", "parameters"]
        names = "loss", "violation", "dynamic_regret", "static_regret"
        means_of = [(name, "mean") for name in names]
        means = self.runs.group_by(groups, use_threads=False).aggregate(
            [*means_of, ("seed", "count")]
        )
        rows = sorted(
            zip(*(means[name].to_pylist() for name in means.column_names), strict=True),
            key=lambda row: (row[0], row[4]),
        )
        shown = [
            (
                problem,
                learner,
                words(json.loads(parameters)),
                *("-" if mean is None or np.isnan(mean) else f"{mean:,.5g}" for mean in means),
                seeds,
            )
            for problem, learner, parameters, *means, seeds in rows[:NOTEBOOK_ROWS]
        ]
        headings = (
            "problem", "learner", "parameters", "loss", "hard violation", "dynamic regret",
            "static regret", "seeds",
        )  # fmt: skip
        more = (
            f" {len(rows) - NOTEBOOK_ROWS:,} more settings are not shown."
            if len(rows) > NOTEBOOK_ROWS
            else ""
        )
        return html_table(repr(self)[6:-1], headings, shown, [f"Means over the seeds.{more}"])

    @cached_property
    def parameters(self) -> tuple[str, ...]:
        """The names of all parameters."""
        texts = self.runs["parameters"].unique().to_pylist()
        return tuple(dict.fromkeys(name for text in texts for name in json.loads(text)))

    def _columns(self) -> dict[str, np.ndarray]:
        encoded = self.runs["parameters"].combine_chunks().dictionary_encode()
        each = [json.loads(text) for text in encoded.dictionary.to_pylist()]
        place = encoded.indices.to_numpy(zero_copy_only=False)
        columns = {
            name: np.array(self.runs[name].to_pylist(), object) for name in ("problem", "learner")
        }
        of_run = ("seed", "horizon", *MEASURES)
        for name in self.parameters:
            column = f"learner.{name}" if name in (*columns, *of_run) else name
            columns[column] = _column([one.get(name) for one in each])[place]
        for name in of_run:
            columns[name] = self.runs[name].to_numpy()
        return columns


def shown(value: Any) -> str:
    """A parameter's value as it is read."""
    if isinstance(value, float):
        return f"{value:.4g}"
    return str(value).lower() if isinstance(value, bool) else str(value)


def words(parameters: Mapping[str, Any]) -> str:
    """Parameters as they are read."""
    return ", ".join(f"{name} = {shown(value)}" for name, value in parameters.items())


def _column(values: Sequence[Any]) -> np.ndarray:
    """Numbers as numbers, with NaN for none; anything else as words."""
    if all(value is None or isinstance(value, int | float) for value in values):
        return np.array([np.nan if value is None else float(value) for value in values])
    return np.array(["" if value is None else str(value) for value in values], object)


def write_index(store: Store, plan: Plan) -> None:
    """The plan beside the results: a row for every task, with what it is and its file."""
    import pyarrow as pa

    rows = [
        {
            "task": task.key, "problem": task.title, "learner": task.label,
            "parameters": task.parameters, "first_seed": task.seeds[0], "seeds": len(task.seeds),
            "file": str(store.path(task.key).relative_to(store.folder)),
        }
        for task in plan.tasks
    ]  # fmt: skip
    adaptive = [one.title for one in plan.config.problems if one.adaptive]
    about = {"title": plan.config.title, "adaptive": adaptive, "budget": plan.config.budget}
    table = pa.Table.from_pylist(rows).replace_schema_metadata({METADATA_KEY: json.dumps(about)})
    write_parquet(table, store.folder / INDEX_FILE, through=store.arriving)


def read(folder: Path | str) -> Sweep:
    """The sweep whose results lie in a folder."""
    store, pa = Store(Path(folder)), library("pyarrow")
    try:
        index = read_parquet(store.folder / INDEX_FILE)
        about = json.loads(index.schema.metadata[METADATA_KEY.encode()])
    except (OSError, ValueError, KeyError, TypeError) as error:
        if not store.folder.is_dir():
            raise NotReadable(f"{folder}: there is no such folder") from None
        why = f"it has no {INDEX_FILE}" if isinstance(error, FileNotFoundError) else error
        raise NotReadable(f"{folder}: there is no sweep here ({why})") from None
    keys = index["task"].to_pylist()
    done = [key for key in keys if store.path(key).exists()]
    others = [store.why(key) for key in keys if not store.path(key).exists()]
    failures = tuple(why for why in others if why is not None)
    whole = pa.concat_tables(map(store.table, done)) if done else pa.table({"learner": []})
    places = whole["learner"].to_numpy()
    runs, best = (whole.filter(np.isin(places, list(BEST)) == is_best) for is_best in (False, True))
    if not runs.num_rows:
        words = f": {failures[0]['error']}" if failures else ""
        raise NotReadable(f"{folder}: no task of this sweep is done{words}")
    notes: dict[str, tuple[str, ...]] = {}
    said = zip(whole["problem"].to_pylist(), whole["notes"].to_pylist(), strict=True)
    for problem, words in dict.fromkeys(pair for pair in said if pair[1]):
        notes[problem] = (*notes.get(problem, ()), words)
    return Sweep(
        about["title"], _with_regrets(runs, best), failures, len(others) - len(failures),
        tuple(about["adaptive"]), about["budget"], notes,
    )  # fmt: skip


def _with_regrets(runs: Any, best: Any) -> Any:
    """The table of all runs, the comparators' losses taken off their own."""
    pa = library("pyarrow")
    problem, seed, loss = (runs[name].to_numpy() for name in ("problem", "seed", "loss"))
    titles, comparator = (best[name].to_numpy() for name in ("problem", "learner"))
    for label, kind in BEST.items():
        column = f"{kind}_regret"
        regret = runs[column].to_numpy().copy()
        for title in set(titles):
            least = best.filter((titles == title) & (comparator == label)).sort_by("seed")
            seeds, losses = least["seed"].to_numpy(), least["loss"].to_numpy()
            if not seeds.size:
                continue
            (here,) = np.nonzero(problem == title)
            at = np.minimum(np.searchsorted(seeds, seed[here]), seeds.size - 1)
            regret[here] = np.where(seeds[at] == seed[here], loss[here] - losses[at], np.nan)
        runs = runs.set_column(runs.column_names.index(column), column, pa.array(regret))
    return runs
