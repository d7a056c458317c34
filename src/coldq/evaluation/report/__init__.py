"""The report: a page to read, joined from what the commands found, and pictures for paper.

What it draws with is installed where a report is wanted, and takes a second to import.
"""
