"""A portfolio that keeps its risk below a limit while both returns and risk keep changing.

Every day the investor holds a share x_i of the wealth in each of ten assets, at most 40% in any and
at most everything together. At the end of the day the returns are known, and the covariance of the
returns is estimated anew from the last days: risk may not exceed a limit, x'S x <= limit^2. Markets
switch between calm and nervous, so the limit binds harder on some days than on others.

    python examples/portfolio.py [picture.png] [--days 750]
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import NamedTuple

import numpy as np

import coldq
from coldq.base.files import whole_file
from coldq.cli import command

ASSETS = 10
LIMIT = 0.012  # the daily standard deviation that is tolerated
MEMORY = 0.94  # of the estimate of the covariance, as is usual for daily returns
UNIT = 100.0  # returns in percent: numbers of the size of one


class Run(NamedTuple):
    """What happened, day by day."""

    wealth: np.ndarray
    unlimited: np.ndarray  # of the same learner without the risk limit
    risk: np.ndarray
    unlimited_risk: np.ndarray


def market(days: int, seed: int) -> np.ndarray:
    """Daily returns of one common factor and each asset's own noise, calm and nervous by turns."""
    rng = np.random.default_rng(seed)
    nervous = np.repeat(rng.random(days // 60 + 1) < 0.4, 60)[:days]
    size = np.where(nervous, 2.5, 1.0)[:, None]
    exposure, drift = rng.uniform(0.4, 1.6, ASSETS), rng.uniform(2e-4, 1.2e-3, ASSETS)
    common = 0.008 * size * rng.standard_normal((days, 1))
    own = 0.006 * size * rng.standard_normal((days, ASSETS))
    return drift + exposure * common + own


def invest(days: int = 750, seed: int = 0) -> Run:
    """Play the market with COLDQ, once with the risk limit and once without."""
    returns = market(days, seed)
    domain = coldq.Box(0.0, 0.4, dim=ASSETS)
    learner = coldq.COLDQ.scaled(domain, max(days, 2), gradient_bound=4.0, constraint_bound=1.0)
    whole = coldq.Affine(np.ones((1, ASSETS)), [1.0])
    limited, free = learner.init(2), learner.init(1)
    covariance = 1e-4 * np.eye(ASSETS)
    wealth, risk = np.ones((2, days + 1)), np.zeros((2, days))
    for t in range(days):
        covariance = MEMORY * covariance + (1.0 - MEMORY) * np.outer(returns[t], returns[t])
        for k, state in enumerate((limited, free)):
            wealth[k, t + 1] = wealth[k, t] * (1.0 + state.x @ returns[t])
            risk[k, t] = np.sqrt(state.x @ covariance @ state.x)
        loss = coldq.Linear(-UNIT * returns[t])
        # x'S x <= limit^2, in units of the limit: g = x'S x / limit^2 - 1.
        curvature = 2.0 * covariance / LIMIT**2
        calm = coldq.QuadraticConstraint(curvature[None], np.zeros((1, ASSETS)), [1.0])
        limited = learner.update(limited, coldq.Feedback(loss, coldq.Stacked(calm, whole)))
        free = learner.update(free, coldq.Feedback(loss, whole))
    return Run(wealth[0], wealth[1], risk[0], risk[1])


def picture(run: Run, path: Path) -> None:
    """Wealth above, risk and its limit below."""
    import matplotlib.pyplot as plt

    figure, (above, below) = plt.subplots(2, 1, figsize=(8.0, 5.6), sharex=True)
    above.plot(run.wealth, label="risk limited")
    above.plot(run.unlimited, label="no risk limit", alpha=0.7)
    above.set_ylabel("wealth")
    above.legend()
    below.plot(100.0 * run.risk, label="risk limited")
    below.plot(100.0 * run.unlimited_risk, label="no risk limit", alpha=0.7)
    below.axhline(100.0 * LIMIT, color="black", linestyle=":", label="limit")
    below.set_ylabel("risk, % a day")
    below.set_xlabel("day")
    below.legend()
    figure.tight_layout()
    with whole_file(path) as file:
        figure.savefig(file, dpi=150, format=path.suffix[1:] or "png")
    plt.close(figure)


def main(arguments: list[str] | None = None) -> Run:
    """Run, draw, and say what came of it."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--days", type=int, default=750, help="how many days")
    parser.add_argument("--seed", type=int, default=0, help="of the market")
    parser.add_argument("picture", nargs="?", type=Path, default=Path("examples/out/portfolio.png"))
    given = parser.parse_args(arguments)
    run = invest(given.days, given.seed)
    picture(run, given.picture)
    for name, wealth, risk in (
        ("risk limited", run.wealth, run.risk),
        ("no risk limit", run.unlimited, run.unlimited_risk),
    ):
        over = np.mean(risk > 1.01 * LIMIT)
        print(f"{name}: wealth {wealth[-1]:.3f}, above the limit on {over:.0%} of the days")
    print(f"picture in {given.picture}")
    return run


if __name__ == "__main__":
    with command():
        main()
