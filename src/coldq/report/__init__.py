"""The report on a reproduction: a page to read and pictures for paper."""

from coldq.report.page import write_page
from coldq.report.pictures import write_pictures

__all__ = ["write_page", "write_pictures"]
