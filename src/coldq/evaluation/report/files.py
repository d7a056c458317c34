"""Results as files for programs: parquet and LaTeX, each whole or not at all."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

from coldq.base.errors import InvalidInput
from coldq.base.files import whole_file
from coldq.base.tabular import write_parquet

if TYPE_CHECKING:
    from coldq.evaluation.comparison import Comparison

OWN_MARK = b"Made by <code>coldq</code>"  # in the foot of every page


def require_own_page(path: Path) -> None:
    """Raise if a page lies there that is none of ours: it would be lost."""
    try:
        own = OWN_MARK in path.read_bytes()
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


def comparison_name(comparison: Comparison) -> str:
    """The name of a comparison's files."""
    rate = "" if comparison.rate is None else f"-{comparison.rate:g}"
    return f"compare-{plain(comparison.title, 'own')}{rate}"


def write_comparison(comparison: Comparison, folder: Path) -> None:
    """One row a learner, as parquet and as LaTeX, and one a learner and seed, as parquet."""
    import pyarrow as pa

    name = comparison_name(comparison)
    write_parquet(comparison.to_arrow(), folder / f"{name}.parquet")
    write_parquet(pa.table(dict(comparison.by_seed)), folder / f"{name}-seeds.parquet")
    write_text(folder / f"{name}.tex", comparison.to_latex() + "\n")
