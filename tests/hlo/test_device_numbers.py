"""Groups of one slice's devices, and groups across slices, as positions in the mesh of all slices."""

from __future__ import annotations

import pytest
from hypothesis import given, strategies as st

from shardviz.errors import QuestionError
from shardviz.hlo.device_numbers import across, slice_positions
from shardviz.hlo.replica_groups import ReplicaGroups, placed_lists
from shardviz.sharding.digits import row_major


def sets(groups: ReplicaGroups) -> list[tuple[int, ...]]:
    return sorted(groups.expand())


@given(
    st.integers(2, 4), st.sampled_from([(1, 2), (2, 2), (2, 3), (4, 2)]), st.randoms(use_true_random=False)
)
def test_slices_in_any_order(num_slices, shape, rng):
    """Against counting: device k of a slice is the k-th position that is on that slice."""
    per_slice = shape[0] * shape[1]
    kind = rng.choice(["outermost", "innermost", "middle", "any"])
    slices = {
        "outermost": [s for s in range(num_slices) for _ in range(per_slice)],
        "innermost": [s for _ in range(per_slice) for s in range(num_slices)],
        "middle": [s for _ in range(shape[0]) for s in range(num_slices) for _ in range(shape[1])],
        "any": rng.sample([s for s in range(num_slices) for _ in range(per_slice)], num_slices * per_slice),
    }[kind]
    where = [[p for p, s in enumerate(slices) if s == each] for each in range(num_slices)]
    positions = slice_positions(num_slices, per_slice, slices)
    (outer, inner) = row_major(shape)
    for groups in (ReplicaGroups((outer,), (inner,)), ReplicaGroups((inner,), (outer,))):
        expected = sorted(tuple(of[i] for i in group) for of in where for group in groups.expand())
        assert sets(groups.placed(positions)) == expected
        assert sets(ReplicaGroups(lists=groups.expand()).placed(positions)) == expected
        assert sorted(placed_lists(groups.expand(), positions)) == expected
    assert sets(across(positions)) == sorted(zip(*where, strict=True))
    if kind == "outermost":
        assert positions == slice_positions(num_slices, per_slice, None)


@pytest.mark.parametrize("slices", [[0, 0, 0, 1], [0, 1], [0, 1, 2, 2]])
def test_slices_of_other_sizes_are_refused(slices):
    with pytest.raises(QuestionError, match=r"the devices are not on 2 slices of 2"):
        slice_positions(2, 2, slices)
