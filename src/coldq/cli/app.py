"""The command: every subcommand is one call of a public function."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Annotated

import typer

import coldq
from coldq.cli import command, stoppable

RESTART_NOTE = "no file is half written, and the same command starts again"

app = typer.Typer(
    help="Constrained online learning: decide now, learn the cost and the constraints after.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    add_completion=False,
)


def run() -> None:
    """The entry point."""
    with command():
        app()


def _version(asked: bool) -> None:
    if asked:
        typer.echo(f"coldq {coldq.__version__}")
        raise typer.Exit


def _first_seeds(count: int) -> range:
    if count < 1:
        raise coldq.InvalidInput(f"--seeds must be at least 1, but is {count}")
    return range(count)


@app.callback()
def main(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """Constrained online learning: decide now, learn the cost and the constraints after."""


@app.command()
def reproduce(
    figure: Annotated[
        list[str] | None,
        typer.Option(help="Only this figure, by name or number; may be given again."),
    ] = None,
    seeds: Annotated[int, typer.Option(help="How many seeds to run.")] = 20,
    out: Annotated[Path, typer.Option(help="The folder for the report.")] = Path("results"),
    quick: Annotated[bool, typer.Option("--quick", help="A minute's look: three seeds.")] = False,
) -> None:
    """Run the paper's four experiments, check its claims, and write a report."""
    from coldq.cli.reproduce import reproduce as run_all
    from coldq.cli.terminal import print_results
    from coldq.paper.figures import FIGURES, find

    asked = [find(name).number for name in figure or ()]
    chosen = [each for each in FIGURES if not asked or each.number in asked]
    with stoppable(RESTART_NOTE):
        count = _first_seeds(3 if quick else seeds)
        run_all(chosen, count, out, quick=quick, show=print_results)
    typer.echo(f"The report: {out / 'index.html'}")


@app.command()
def compare(
    problem: Annotated[
        str,
        typer.Argument(
            help="time-varying, quadratic, linear, jobs, drifting, autoscale or dispatch, several "
            "with commas between, or all. Or your own: a table's TOML file, as `coldq new` writes "
            "one, or module:problem."
        ),
    ],
    learners: Annotated[
        str,
        typer.Option(
            help="Only these, with commas between, a module:learner among them; by default those "
            "that `coldq list` prints first."
        ),
    ] = "",
    seeds: Annotated[
        int | None,
        typer.Option(help="How many seeds to run, by default 5; one where all are the same."),
    ] = None,
    horizon: Annotated[
        int | None, typer.Option(help="How many slots; by default the paper's, or all.")
    ] = None,
    rate: Annotated[
        str, typer.Option(help="Compare at this violation rate, such as 0.01, or at 0.01,0.05.")
    ] = "",
    last: Annotated[
        int | None,
        typer.Option(help="With --rate: score the last so many slots, not the last two thirds."),
    ] = None,
    out: Annotated[Path, typer.Option(help="The folder for the report.")] = Path("results"),
) -> None:
    """Compare learners on a problem: loss, violation and regret as a table, a page and parquet.

    With --rate: at a share of violated slots, beside a safety margin tuned by hand; without
    --learners also beside forecasts with margins, tuned.
    """
    from coldq.cli.compare import keys_of, no_page, page_of, rates_of, run_compare
    from coldq.cli.terminal import print_comparison, print_overall

    names = [name.strip() for name in learners.split(",") if name.strip()]
    rates = rates_of(rate)
    if last is not None and not rate:
        raise coldq.InvalidInput("--last says which slots are scored, and requires --rate")
    chosen = None if seeds is None else _first_seeds(seeds)
    with stoppable(RESTART_NOTE):
        comparisons = run_compare(
            keys_of(problem), names, rates, chosen, out,
            horizon=horizon, last=last, show=print_comparison,
        )  # fmt: skip
        print_overall(comparisons)
    lacks = no_page()
    if lacks:
        typer.echo(f"No report was written: {lacks}")
        return
    for title in dict.fromkeys(one.title for one in comparisons):
        typer.echo(f"The report: {page_of(title, out)}")


@app.command()
def new(
    name: Annotated[Path, typer.Argument(help="A new folder, such as my-load.")],
) -> None:
    """Write a commented example of a problem from a table: a CSV and a TOML that run."""
    from coldq.cli.new import write_example

    layout = write_example(name)
    typer.echo(f"{layout} says what the columns of {layout.with_suffix('.csv')} mean. Now try:")
    typer.echo(f"  coldq compare {shlex.quote(str(layout))} --rate 0.05")


@app.command()
def rates(
    quick: Annotated[bool, typer.Option("--quick", help="Short horizons, few seeds.")] = False,
    out: Annotated[Path, typer.Option(help="Where runs and results are kept.")] = Path("results"),
) -> None:
    """Measure the paper's Tables 1 and 2: growth of regret and violation beside every claim."""
    from coldq.cli.rates import measure_tables
    from coldq.paper.rates.store import store_of

    runs = store_of(out).runs
    with stoppable(f"finished runs are kept in {runs}, and the same command goes on there"):
        measure_tables(out, quick=quick)
    typer.echo(f"The report: {out / 'index.html'}")


@app.command()
def sweep(
    config: Annotated[
        str,
        typer.Argument(metavar="CONFIG.toml|report", help="What to run; or report, on what was."),
    ],
    folder: Annotated[
        Path | None, typer.Argument(help="After report: the folder that a sweep has filled.")
    ] = None,
    out: Annotated[
        Path | None, typer.Option(help="The folder for results; by default CONFIG-results.")
    ] = None,
    show: Annotated[
        bool, typer.Option("--show", help="Print the plan and its estimated time, run nothing.")
    ] = False,
    workers: Annotated[
        int | None, typer.Option(help="Processes of this machine; by default one a core.")
    ] = None,
    dask: Annotated[
        str | None, typer.Option(help="The address of a Dask scheduler, or local.")
    ] = None,
    ray: Annotated[str | None, typer.Option(help="The address of a Ray cluster.")] = None,
    retry_failed: Annotated[
        bool, typer.Option("--retry-failed", help="Run again what failed before.")
    ] = False,
    budget: Annotated[
        float | None, typer.Option(help="The hard violation that a recommended setting may have.")
    ] = None,
) -> None:
    """Run problems, learners, parameters and seeds that a TOML file names, each once; resumes.

    coldq sweep report FOLDER says what came out: fronts, sensitivities, ranks, a recommendation.
    """
    if config == "report":
        from coldq.cli.sweep import report_sweep

        with stoppable(RESTART_NOTE):
            page = report_sweep(folder, out, budget)
        typer.echo(f"The report: {page}")
        return
    from coldq.cli.sweep import run_sweep, show_plan

    if folder is not None:
        raise coldq.InvalidInput(
            f"coldq sweep takes one CONFIG, but was given {config!r} and {str(folder)!r}; "
            "coldq sweep report FOLDER takes two"
        )
    path = Path(config)
    if not path.name:
        raise coldq.InvalidInput(f"coldq sweep takes a TOML file, but {config!r} names none")
    results = path.with_name(f"{path.stem}-results") if out is None else out
    kept = f"finished tasks are kept in {results}, and the same command goes on there"
    with stoppable(kept):
        if show:
            show_plan(path, results, workers)
            return
        failed = run_sweep(
            path, results, workers=workers, dask=dask, ray=ray, retry_failed=retry_failed,
            budget=budget,
        )  # fmt: skip
    typer.echo(f"The results: {results}; coldq sweep report {results} reads them")
    if failed:
        raise typer.Exit(1)


@app.command(name="list")
def list_learners(
    as_json: Annotated[bool, typer.Option("--json", help="As JSON, one object a claim.")] = False,
) -> None:
    """Print every learner: what it claims, needs and assumes, and how sure our reading is.

    Those of the default comparison come first, then those whose rule was not read in its paper.
    """
    from coldq.cli.catalogue import print_catalogue, print_json

    (print_json if as_json else print_catalogue)()


@app.command()
def cite(
    name: Annotated[str, typer.Argument(help="A learner, as `coldq list` prints it.")],
) -> None:
    """Print the BibTeX entry of a learner's paper."""
    from coldq.evaluation.named import learners_of

    (learner,) = learners_of([name])
    typer.echo(coldq.citation(learner))


live = typer.Typer(help="Agents that live in a file, see docs/live-use.md.", no_args_is_help=True)
app.add_typer(live, name="agent")


@live.command()
def recover(
    path: Annotated[Path, typer.Argument(help="The damaged file.")],
    out: Annotated[Path, typer.Argument(help="A new file for what is readable.")],
) -> None:
    """Write what is readable of an agent's damaged file to a new one."""
    from coldq.agent import recover as run_recovery

    recovery = run_recovery(path, out)
    for words in recovery.lost:
        typer.echo(f"lost: {words}")
    typer.echo(f"{recovery.path} goes on after round {recovery.round}")


@live.command()
def backup(
    path: Annotated[Path, typer.Argument(help="An agent's file, which may be in use.")],
    out: Annotated[Path, typer.Argument(help="A new file for the copy.")],
) -> None:
    """Copy an agent's file as of one moment, while it is served or not."""
    from coldq.agent import backup as run_backup

    saved = run_backup(path, out)
    typer.echo(f"{saved.path} goes up to round {saved.round}")


@live.command()
def restore(
    saved: Annotated[Path, typer.Argument(help="A backup.")],
    path: Annotated[Path, typer.Argument(help="Where the agent's file is, or was.")],
) -> None:
    """Put a backup in the place of an agent's file; what is there now is kept beside it."""
    from coldq.agent import restore as run_restoring

    done = run_restoring(saved, path)
    for left in done.aside:
        typer.echo(f"kept: {left}")
    typer.echo(f"{done.path} goes on after round {done.round}")


@live.command()
def rehearse(
    seeds: Annotated[int, typer.Option(help="How many seeds to run.")] = 5,
    horizon: Annotated[int | None, typer.Option(help="How many slots; by default all.")] = None,
) -> None:
    """What feedback costs that is late, lost or doubled: the paper's problem and a real trace."""
    from coldq.cli.terminal import print_disturbed, progress
    from coldq.evaluation.disturbed import DISTURBANCES, LEARNERS, disturb

    chosen = _first_seeds(seeds)
    with stoppable("nothing was written"), progress(2 * len(LEARNERS) * len(DISTURBANCES)) as done:
        outcomes = disturb(chosen, horizon, done)
    print_disturbed(outcomes)


@app.command()
def serve(
    folder: Annotated[
        Path | None,
        typer.Option(envvar="COLDQ_FOLDER", help="Where agents live; without it, in memory."),
    ] = None,
    host: Annotated[str, typer.Option(help="The address to listen on.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(envvar="COLDQ_PORT", help="0 takes a free one.")] = 8787,
    token: Annotated[
        str | None,
        typer.Option(envvar="COLDQ_TOKEN", help="What clients must send; else one is drawn."),
    ] = None,
    no_token: Annotated[
        bool, typer.Option("--no-token", help="Let everybody on this machine in.")
    ] = False,
    resident: Annotated[int, typer.Option(help="Agents open at once; others are on disk.")] = 1000,
    largest_body: Annotated[int, typer.Option(help="In bytes.")] = 1_000_000,
    rate: Annotated[float | None, typer.Option(help="Requests a second, of all clients.")] = None,
) -> None:
    """Serve agents over HTTP: create, decide, observe, skip, inspect; a page with live plots."""
    from coldq.cli.serve import serve as run_server

    with stoppable("what was acknowledged is kept, if it was in a folder", status=0):
        run_server(
            folder, host, port, token, no_token=no_token, resident=resident,
            largest_body=largest_body, rate=rate,
        )  # fmt: skip
