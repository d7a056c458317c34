"""The report: a page to read, joined from what the commands found, and pictures for paper."""

from coldq.report.league import write_league_page
from coldq.report.page import write_page
from coldq.report.pictures import write_pictures
from coldq.report.rates import write_rates_page
from coldq.report.targets import write_target_page

__all__ = [
    "write_league_page",
    "write_page",
    "write_pictures",
    "write_rates_page",
    "write_target_page",
]
