"""The limits of the last slots, beside one plain array."""

from __future__ import annotations

import numpy as np
import pytest

from coldq.learners.recent import BLOCK_LENGTH, Recent

NOW = np.zeros(0, np.int64)  # no slots are asked for


@pytest.mark.parametrize("together", [True, False])
@pytest.mark.parametrize("batch", [(), (3,), (2, 2)])
@pytest.mark.parametrize("slots", [1, 64, 65, 200])
def test_it_holds_what_a_plain_array_holds(
    slots: int, batch: tuple[int, ...], together: bool
) -> None:
    rng, n = np.random.default_rng(slots), 2
    recent = Recent.zeros((*batch, n), slots)
    room = recent.shape[-1]
    assert room >= slots and room % BLOCK_LENGTH == 0
    plain = np.zeros((*batch, n, room))
    first = np.zeros(batch, np.int64) if together else rng.integers(0, 500, batch)
    for step in range(1, 2 * room + 5):
        t, limits = first + step, rng.standard_normal((*batch, n))
        before, old = recent, np.array(recent)
        recent, _ = recent.recall(t, NOW, limits)
        for where in np.ndindex(*batch):
            plain[where][:, t[where] % room] = limits[where]
        if step % 37 == 1:
            assert np.array_equal(np.array(before), old)  # the one before is as it was
            assert np.array_equal(np.array(recent), plain)
            back = np.arange(min(step, slots))
            ago = t[..., None] - back
            _, found = recent.recall(t, back)
            for where in np.ndindex(*batch):
                assert np.array_equal(found[where], plain[where][:, ago[where] % room])
    assert recent.ndim == len(batch) + 2 and recent.dtype == np.float64
    again = Recent.of(np.array(recent))
    assert np.array_equal(np.array(again), plain) and again.shape == recent.shape
    assert Recent.of(recent) is recent


def test_without_slots_nothing_is_kept() -> None:
    nothing = Recent.zeros((3, 2), 0)
    assert np.array(nothing).shape == (3, 2, 0)
    assert nothing.recall(np.array([1, 2, 3]), NOW, np.ones((3, 2)))[0] is nothing


def test_a_slot_more_makes_one_new_block_and_none_can_be_written_to() -> None:
    recent = Recent.zeros((1,), 300)
    for t in range(1, 400):
        before, (recent, _) = recent, recent.recall(np.array(t), NOW, np.array([float(t)]))
        changed = [a is not b for a, b in zip(before.blocks, recent.blocks, strict=True)]
        assert changed.index(True) == t % recent.shape[-1] // BLOCK_LENGTH and sum(changed) == 1
    with pytest.raises(ValueError, match="read-only"):
        recent.blocks[0][...] = 1.0
