"""``python -m coldq.serve.healthy``: whether the server of this container is ready."""

import os
import sys
from urllib.error import URLError
from urllib.request import ProxyHandler, build_opener

TIMEOUT_SECONDS = 4.0


def main() -> int:
    """The status of the check: 0 if the server is ready, else 1 after the reason."""
    port = os.environ.get("COLDQ_PORT", "8787")
    direct = build_opener(ProxyHandler({}))
    try:
        with direct.open(f"http://127.0.0.1:{port}/ready", timeout=TIMEOUT_SECONDS) as answer:
            print(answer.read().decode())
        return 0
    except (URLError, OSError) as error:
        print(error)
        return 1


if __name__ == "__main__":
    sys.exit(main())
