"""Tests of learners that keep a violation rate."""
