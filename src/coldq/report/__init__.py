"""The report: a page to read, joined from what the commands found, and pictures for paper."""

from typing import TYPE_CHECKING

from coldq._lazy import homes_of, importer

if TYPE_CHECKING:
    from coldq.report.comparison import write_comparison_page as write_comparison_page
    from coldq.report.league import write_league_page as write_league_page
    from coldq.report.page import write_page as write_page
    from coldq.report.pictures import write_pictures as write_pictures
    from coldq.report.rates import write_rates_page as write_rates_page
    from coldq.report.sweeps import write_sweep_page as write_sweep_page
    from coldq.report.targets import write_target_page as write_target_page

# What they draw with is installed where a report is wanted, and takes a second to import.
_HOME_OF = homes_of(
    {
        "coldq.report.comparison": "write_comparison_page",
        "coldq.report.league": "write_league_page",
        "coldq.report.page": "write_page",
        "coldq.report.pictures": "write_pictures",
        "coldq.report.rates": "write_rates_page",
        "coldq.report.sweeps": "write_sweep_page",
        "coldq.report.targets": "write_target_page",
    }
)
__all__ = [*_HOME_OF]  # pyright: ignore[reportUnsupportedDunderAll]
__getattr__ = importer(__name__, _HOME_OF)
