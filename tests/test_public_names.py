"""The public names and signatures stay what they are, until somebody means to change them."""

from tests.public_names import COMMAND, RECORDED, changes, public_names


def test_public_names_and_signatures_are_the_recorded_ones():
    found = changes(RECORDED.read_text().splitlines(), public_names())
    assert not found, (
        f"the public names of coldq changed:\n{found}\nIf that is meant, say so in CHANGELOG.md "
        f"and write them down with `{COMMAND}`."
    )


def test_a_change_is_named():
    assert changes(["coldq.a(x)", "coldq.b"], ["coldq.a(x, y)", "coldq.b"]) == (
        "gone: coldq.a(x)\nnew: coldq.a(x, y)"
    )
