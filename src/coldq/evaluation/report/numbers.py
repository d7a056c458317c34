"""Numbers and formulas as a reader wants them."""

from __future__ import annotations

import math
import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from markupsafe import Markup

GREEK = {
    "alpha": "α",
    "beta": "β",
    "gamma": "γ",
    "epsilon": "ε",
    "eta": "η",
    "lambda": "λ",
    "mu": "μ",
}
MAX_SHOWN_RATIO = 1e6  # a number that grew by more began as rounding
SUPERSCRIPTS = str.maketrans("0123456789", "⁰¹²³⁴⁵⁶⁷⁸⁹")


def number(value: float, digits: int = 4) -> str:
    """A number to four digits, whole above a thousand, with a minus sign that is one.

    >>> from coldq.evaluation.report.numbers import number
    >>> number(40524.31), number(-395.54), number(1.5), number(2.6e-13), number(0.0)
    ('40,524', '−395.5', '1.5', '2.6e−13', '0')
    """
    if not math.isfinite(value):
        return "undefined" if math.isnan(value) else ("∞" if value > 0.0 else "−∞")
    size = abs(value)
    if size >= 1000.0:
        text = f"{value:,.0f}"
    elif 0.0 < size < 1e-4:
        text = f"{value:.1e}"
    else:
        text = f"{value:.{digits}g}"
    return text.replace("-", "−")


def amount(value: float, unit: str) -> str:
    """A number with its unit; a fraction as percent.

    >>> from coldq.evaluation.report.numbers import amount
    >>> amount(0.4252, "%"), amount(0.3261, "ms")
    ('42.5%', '0.326 ms')
    """
    if unit == "%":
        return f"{number(100.0 * value, digits=3)}%"
    return f"{number(value, digits=3)} {unit}".rstrip()


def percentage(fraction: float) -> str:
    """A signed distance as percent.

    >>> from coldq.evaluation.report.numbers import percentage
    >>> percentage(-0.0157), percentage(0.0), percentage(94.378), percentage(2e9)
    ('−1.6%', '0.0%', '+9,438%', 'from zero')
    """
    if not abs(fraction) < MAX_SHOWN_RATIO:
        return "from zero"
    digits = 1 if abs(fraction) < 10.0 else 0
    return f"{100.0 * fraction:+,.{digits}f}%".replace("+0.0%", "0.0%").replace("-", "−")


def superscripts(text: str) -> str:
    """Whole powers as they are printed.

    >>> from coldq.evaluation.report.numbers import superscripts
    >>> superscripts("X = [0, 5]^10")
    'X = [0, 5]¹⁰'
    """
    return re.sub(r"\^(\d+)", lambda power: power[1].translate(SUPERSCRIPTS), text)


def typeset(text: str) -> Markup:
    """Plain formulas as HTML: Greek letters, subscripts and powers.

    >>> from coldq.evaluation.report.numbers import typeset
    >>> print(typeset("alpha_t = t^(1/2), X = [0, 5]^10, a < b"))
    α<sub>t</sub> = t<sup>1/2</sup>, X = [0, 5]<sup>10</sup>, a &lt; b
    """
    from markupsafe import Markup, escape  # which only pages need

    html = re.sub(r"(?<![\w)])-(?=\d)", "−", str(escape(text)))
    html = re.sub(r"\b(" + "|".join(GREEK) + r")(?![a-z])", lambda name: GREEK[name[1]], html)
    html = re.sub(r"(?<=\w)_(\w)\b", r"<sub>\1</sub>", html)
    html = re.sub(r"\^\(([^()]*)\)", r"<sup>\1</sup>", html)
    return Markup(re.sub(r"\^(−?\w+)", r"<sup>\1</sup>", html))
