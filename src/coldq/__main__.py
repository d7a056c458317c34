"""``python -m coldq`` is the command ``coldq``."""

from coldq.cli.app import run

if __name__ == "__main__":
    run()
