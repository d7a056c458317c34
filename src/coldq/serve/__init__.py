"""Agents over HTTP, for systems that are not Python: ``coldq serve``, see docs/live-use.md."""

from coldq.serve.app import create_app

__all__ = ["create_app"]
