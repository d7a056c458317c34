"""Comparisons of learners: one by one, over grids, with intervals and pages."""
