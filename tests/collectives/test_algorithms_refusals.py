"""What an algorithm cannot do: the reason, and the algorithms that can."""

from __future__ import annotations

import pytest

from shardviz.collectives.algorithms import ALGORITHMS, schedule_for, schedules_for
from shardviz.collectives.schedule import KINDS, Pattern
from shardviz.errors import QuestionError

REFUSALS = [
    (
        ("halving-doubling", Pattern("all_reduce", (6,))),
        "halving-doubling cannot do this: 6 devices are not a power of two",
        "for all_reduce over 6 devices there are ring, bidirectional-ring, line, direct, binomial-tree, "
        "double-binary-tree",
    ),
    (
        ("recursive-doubling", Pattern("all_gather", (3, 4))),
        "recursive-doubling cannot do this: 12 devices are not a power of two",
        "for all_gather over 12 devices there are ring, bidirectional-ring, line, bruck, direct, torus",
    ),
    (
        ("recursive-halving", Pattern("reduce_scatter", (5,))),
        "recursive-halving cannot do this: 5 devices are not a power of two",
        "for reduce_scatter over 5 devices there are ring, bidirectional-ring, line, direct",
    ),
    (
        ("torus", Pattern("all_reduce", (1, 8))),
        "torus cannot do this: a torus needs two axes of two devices or more; with one it is a ring",
        "for all_reduce over 8 devices there are ring, bidirectional-ring, line, "
        "recursive-doubling, halving-doubling, direct, binomial-tree, double-binary-tree",
    ),
    (
        ("bruck", Pattern("broadcast", (5,))),
        "bruck does not do broadcast",
        "for broadcast over 5 devices there are ring, direct, binomial-tree",
    ),
    (
        ("direct", Pattern("all_to_all", (65536,))),
        "direct cannot do this: one round would list 4,294,901,760 pieces of data, more than 4,194,304",
        "for all_to_all over 65,536 devices there is pairwise",
    ),
    (
        ("torus-split", Pattern("all_reduce", (255, 256))),
        "torus-split cannot do this: one round would list 33,358,080 pieces of data, more than 4,194,304",
        "for all_reduce over 65,280 devices there are ring, bidirectional-ring, line, binomial-tree, "
        "double-binary-tree, torus",
    ),
    (
        ("rings\x1b[2J", Pattern("permute", (5,))),
        "unknown algorithm 'rings\\x1b[2J'",
        "for permute over 5 devices there is direct",
    ),
    (("Rings", Pattern("all_gather", (5,))), "unknown algorithm 'Rings'", "did you mean ring?"),
    (("rign", Pattern("all_gather", (5,))), "unknown algorithm 'rign'", "did you mean ring?"),
    (
        ("Double_Binary_Tree", Pattern("all_reduce", (5,))),
        "unknown algorithm 'Double_Binary_Tree'",
        "did you mean double-binary-tree?",
    ),
    (
        ("pairwise", Pattern("all_reduce", (6,)), None, "psum"),
        "pairwise does not do psum",
        "for psum over 6 devices there are ring, bidirectional-ring, line, direct, binomial-tree, "
        "double-binary-tree",
    ),
    (
        ("ring", Pattern("all_reduce", (8,)), 4),
        "ring cannot do this: only its broadcast has a pipeline that could use 4 pieces",
        "leave out the pieces, or choose bidirectional-ring or double-binary-tree",
    ),
    (
        ("direct", Pattern("all_reduce", (8,)), 4),
        "direct has no pipeline that could use 4 pieces",
        "leave out the pieces, or choose bidirectional-ring or double-binary-tree",
    ),
    (
        ("binomial-tree", Pattern("broadcast", (8,)), 4),
        "binomial-tree has no pipeline that could use 4 pieces",
        "leave out the pieces, or choose ring",
    ),
    (
        ("ring", Pattern("all_gather", (8,)), 4),
        "ring cannot do this: only its broadcast has a pipeline that could use 4 pieces",
        "leave out the pieces, or choose bidirectional-ring",
    ),
    (
        ("bidirectional-ring", Pattern("all_gather", (7,)), 2),
        "bidirectional-ring cannot do this: 7 devices of all_gather have no use for 2 pieces",
        "leave out the pieces, or choose bidirectional-ring",
    ),
    (
        ("double-binary-tree", Pattern("all_reduce", (8,)), 0),
        "the payload cannot be cut into 0 pieces",
        "use 1 to 65,536",
    ),
    (
        ("double-binary-tree", Pattern("all_reduce", (8,)), 10**12),
        "the payload cannot be cut into 1000000000000 pieces",
        "use 1 to 65,536",
    ),
]


@pytest.mark.parametrize(("asked", "message", "hint"), REFUSALS, ids=lambda value: str(value)[:40])
def test_a_refusal_says_why_and_what_can(asked, message, hint):
    with pytest.raises(QuestionError) as refused:
        schedule_for(*asked)
    assert (refused.value.message, refused.value.hint) == (message, hint)


@pytest.mark.parametrize("name", ALGORITHMS)
def test_a_group_too_large_for_memory_is_refused_before_it_is_listed(name):
    pattern = Pattern("all_reduce", (2**20, 2**20))
    for ask in (lambda: schedules_for(pattern), lambda: schedule_for(name, pattern)):
        with pytest.raises(QuestionError) as refused:
            ask()
        assert refused.value.message == (
            "a group of 1,099,511,627,776 devices is too large to list what each sends"
        )
        assert refused.value.hint == "step through groups of up to 4,194,304 devices"


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    "dims",
    [(2,), (3, 7), (2, 32768)],
)
def test_there_is_always_an_algorithm(kind, dims):
    schedules = schedules_for(Pattern(kind, dims, perm=((0, 1),)))
    assert schedules
    assert [schedule.algorithm for schedule in schedules] == [
        name for name in ALGORITHMS if name in {schedule.algorithm for schedule in schedules}
    ]


def test_names_and_summaries_are_ready_for_a_table():
    for name, algorithm in ALGORITHMS.items():
        assert algorithm.name == name
        assert 0 < len(algorithm.summary) <= 70
        assert set(algorithm.kinds) <= set(KINDS)
