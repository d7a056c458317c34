"""What a sweep says: a section a problem on the page, with a picture, tables and LaTeX."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import cycle
from pathlib import Path

from matplotlib.figure import Figure as Canvas

from coldq.base.palette import PALETTE
from coldq.evaluation.comparison import escaped
from coldq.evaluation.report.files import plain, write_text
from coldq.evaluation.report.numbers import percentage
from coldq.evaluation.report.parts import Part, join, render
from coldq.evaluation.report.pictures import SUFFIXES, as_address, new_canvas, write_picture
from coldq.evaluation.sweeps.answers import Answers
from coldq.evaluation.sweeps.table import Sweep, shown

LATEX_ROWS = 12  # settings of a problem that LaTeX has, the front and the recommended among them


def write_sweep_page(sweep: Sweep, answered: Sequence[Answers], path: Path) -> None:
    """Write pictures and LaTeX of what a sweep says, and join a part with all problems to the page.

    >>> import pathlib, tempfile, coldq
    >>> from coldq.evaluation.report.sweeps import write_sweep_page
    >>> from coldq.evaluation.sweeps.answers import answers
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "index.html"
    >>> sweep = coldq.sweep(problems=["linear"], learners=["COLDQ", "OGD"], seeds=2)
    >>> write_sweep_page(sweep, answers(sweep), path)
    >>> "linear" in path.read_text(encoding="utf-8")
    True
    """
    sections, contents = [], []
    for k, one in enumerate(answered, 1):
        name = f"sweep-{k}-{plain(one.problem, 'problem')}"
        picture = write_picture(path.parent / "figures" / name, _draw, one)
        write_text(path.parent / f"{name}.tex", latex(one))
        contents.append((name, one.problem))
        sections.append(
            render(
                "sweep.html.jinja", name=name, one=one, suffixes=SUFFIXES, shown=shown,
                picture=as_address(picture), percentage=percentage, tuned=list(one.tuned()),
                sensitivities=list(one.sensitivities()),
            )
        )  # fmt: skip
    if sweep.failures or sweep.missing:
        sections.append(render("sweep-failures.html.jinja", sweep=sweep))
    title = sweep.title or "A sweep"
    lead = "Learners with many parameters: loss against violation, problem by problem."
    join(Part("sweep", title, lead, contents, "\n".join(sections)), path)


def latex(one: Answers) -> str:
    r"""The settings of a problem for a paper, with ``\toprule`` and the like of booktabs."""
    several = len(one.seeds) > 1
    ahead = [k for k in dict.fromkeys([one.recommended, *one.front]) if k is not None]
    others = [k for k in one.means[:, 1].argsort(kind="stable").tolist() if k not in ahead]
    lines = [
        r"\begin{tabular}{llrrrrrr}",
        r"\toprule",
        r"learner & parameters & loss & violation & dynamic regret & static regret & rank, loss & "
        r"rank, violation \\",
        r"\midrule",
    ]
    for k in (ahead + others)[: max(LATEX_ROWS, len(ahead))]:
        setting = one.settings[k]
        mark = "$^*$" if k == one.recommended else ""
        cells = [f"{escaped(setting.learner)}{mark}", escaped(setting.words)]
        cells += [words.replace("±", r"$\pm$") for words in setting.measures]
        for mean, low, high in one.ranks[:, k]:
            cells.append(f"{mean:.1f}" + (f" [{low:.1f}, {high:.1f}]" if several else ""))
        lines.append(" & ".join(cells) + r" \\")
        if k == ahead[-1] and others:
            lines.append(r"\midrule")
    seeds = f"{len(one.seeds)} seeds; means with 95% intervals" if several else "1 seed"
    about = (
        f"% {one.problem}, T = {one.horizon}, {seeds}. "
        "Above the line: the Pareto front; * is recommended."
        f"{''.join(f' {note}' for note in one.notes)}"
    )
    return "\n".join([*lines, r"\bottomrule", r"\end{tabular}", about]) + "\n"


def _draw(one: Answers) -> Canvas:
    """Loss against violation of every setting, and the front."""
    canvas = new_canvas(7.0, 3.6)
    axes = canvas.subplots()
    for (label, own), look in zip(one.places.items(), cycle(PALETTE), strict=False):
        axes.plot(
            one.means[own, 0], one.means[own, 1], look.marker, markersize=4.0, color=look.colour,
            markeredgecolor="white", markeredgewidth=0.4, label=label,
        )  # fmt: skip
    ahead = list(one.front)
    axes.step(
        one.means[ahead, 0], one.means[ahead, 1], where="post", color="#666666", linewidth=0.8,
        linestyle="--", zorder=0, label="Pareto front",
    )  # fmt: skip
    axes.axhline(one.allowed, color="#333333", linewidth=0.5, linestyle=":", label="budget")
    if one.recommended is not None:
        x, y = one.means[one.recommended]
        axes.plot([x], [y], "o", markersize=10.0, markerfacecolor="none", color="#333333",
                  label="recommended")  # fmt: skip
    axes.set_xlabel("loss, mean over seeds")
    axes.set_ylabel("hard violation, mean over seeds")
    title = f"{one.problem}, T = {one.horizon:,}, {len(one.seeds)} seeds"
    canvas.suptitle(title, fontsize=8.5, parse_math=False)  # a $ is a dollar
    legend = canvas.legend(*axes.get_legend_handles_labels(), loc="outside lower center", ncols=6)
    for text in legend.get_texts():
        text.set_parse_math(False)
    return canvas
