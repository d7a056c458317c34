"""Who does the tasks: sentences for what cannot be asked for."""

from __future__ import annotations

import socket

import pytest

import coldq
from coldq.tasks.engines import engine_of, needed, require_answer


def test_nobody_at_an_address_is_a_sentence_at_once() -> None:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        free = probe.getsockname()[1]
    with pytest.raises(coldq.InvalidInput, match=f"no cluster answers at tcp://127.0.0.1:{free}"):
        require_answer(f"tcp://127.0.0.1:{free}", "cluster")
    for address in ("nowhere", ":8786", "host:port"):
        with pytest.raises(coldq.InvalidInput, match="is host:port, but is"):
            require_answer(address, "cluster")


def test_somebody_at_an_address_is_enough() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        require_answer(f"127.0.0.1:{listening.getsockname()[1]}", "cluster")


def test_a_library_that_is_not_there_is_named_with_its_extra() -> None:
    with pytest.raises(coldq.InvalidInput, match=r"needs no_such_library: .*coldq\[odd\]"):
        needed("no_such_library", "odd", "this")


@pytest.mark.parametrize("given", [{"dask": ""}, {"ray": 3}, {"workers": 2, "ray": "a:1"}])
def test_what_cannot_be_asked_for_is_a_sentence(given) -> None:
    with pytest.raises(coldq.InvalidInput, match=r"must be an address|contradict each other"):
        engine_of(**given)
