"""Random problems on several meshes: what is said of Shardy's answers, checked against what it inserted."""

from __future__ import annotations

import random
import re
from collections import Counter
from collections.abc import Iterator
from functools import cache
from itertools import chain, combinations

import pytest

from shardviz.compare import SAME_TRAFFIC, differences
from shardviz.compiler import Worker
from shardviz.errors import ShardvizError
from shardviz.hlo import wire_bytes
from shardviz.notation.mesh import parse_mesh
from shardviz.planner.plan import HLO_OPS
from shardviz.planner.planner import Planner
from shardviz.planner.problem.reading import problem_from_text
from shardviz.targets import parse_targets

TEXTS = (
    *("bd,df->bf", "ab->ba", "abc->ac", "abc->cab", "ab,b->a", "i,j->ij", "ij,ij->", "ij,ij->ij", "a,dg->ad"),
    *("btd,btf->df", "btd,df->btf", "bqhd,bkhd->bhqk", "aec,bce->eb", "bd,df->bf;bf,fd->bd"),
    *("ed,cd->ce;ce,abe->aec", "bd,dk->bk;bk,bk->bk", "bd,df->bf;bf,fz->bz;bz,zd->bd"),
)
MESHES = ("X=2,Y=4", "X=4", "X=8,Y=2", "Y=3,Z=2,X=2", "X=2,Y=2,Z=2", "D=4,M=2", "X=2,Y=2,Z=2,W=2")
SIZES = (48, 96, 192)
AXIS = r"[A-Z](?::\(\d+\)\d+)?"
MOVED = re.compile(rf"(?:(\d+) times )?([a-z]+(?:-[a-z]+)+) over ({AXIS}(?:, {AXIS})*) \(([\d,]+) bytes\)")
"""A collective in a sentence: how often it is listed, its operation, axes and bytes."""
OF_ARRAY = re.compile(r"(?:moves|adds up) ((?:the sums of )?[A-Z]\w*)(?: over \w(?:, \w)*)? by ")
"""An array that a list of collectives in a sentence is about."""
MOST_TRANSFERS = 14
"""Of so many the sums of all subsets are computed."""


def random_spec(draw: random.Random, rank: int, axes: list[str]) -> str:
    dims: list[str] = [""] * rank
    for axis in draw.sample(axes, len(axes)):
        if rank and draw.random() < 0.65:
            dims[draw.randrange(rank)] += axis
    return "".join("_" if not each else each if len(each) == 1 else f"({each})" for each in dims)


def random_question(draw: random.Random) -> tuple[str, str, str, str]:
    text, mesh = draw.choice(TEXTS), draw.choice(MESHES)
    axes = re.findall("[A-Z]", mesh)
    parts = []
    for number, part in enumerate(text.split(";")):
        operands, _, result = part.partition("->")
        specs = [random_spec(draw, len(each), axes) for each in operands.split(",")]
        if number and draw.random() < 0.8:
            specs[0] = ""
        is_last = number == text.count(";")
        asked = draw.random() < (0.75 if is_last else 0.1)
        parts.append(",".join(specs) + (f"->{random_spec(draw, len(result), axes)}" if asked else ""))
    sizes = ",".join(f"{letter}={draw.choice(SIZES)}" for letter in sorted({*filter(str.isalpha, text)}))
    return text, mesh, "; ".join(parts), sizes


@cache
def planner(mesh: str) -> Planner:
    return Planner(parse_mesh(mesh))


def answered(worker: Worker, seed: str, count: int) -> Iterator[tuple]:
    """Questions with the plan, Shardy's answer and the differences; what JAX refuses is passed over."""
    draw = random.Random(seed)
    (target,) = parse_targets("shardy")
    for question in (random_question(draw) for _ in range(count)):
        text, mesh, specs, sizes = question
        try:
            problem = problem_from_text(text, mesh=parse_mesh(mesh), specs=specs, sizes=sizes)
        except ShardvizError:
            continue
        answer = worker.ask(problem, target)
        if answer.status == "ok":
            plan = planner(mesh).plan(problem)
            yield question, plan, answer, differences(plan, answer)


def kinds(moved) -> Counter:
    return Counter((op, frozenset(axes), size) for op, axes, size, sent in moved if sent)


def check(question, plan, answer, found) -> None:
    ours = [(HLO_OPS[one.op], one.axes, one.bytes, one.wire_bytes) for one in plan.collectives]
    theirs = [(one.op, one.axes, one.bytes, one.wire_bytes) for one in answer.collectives if one.wire_bytes]
    differs = kinds(ours) != kinds(theirs)
    assert any(one.code not in SAME_TRAFFIC for one in found) == differs, question
    arrays = {each.name for part in plan.problem.parts for each in (*part.operands, part.result)}
    for one in found:
        told = [(op, axes, size) for _, op, axes, size in listed(one.message)]
        there = {(op, axes, size): sent for op, axes, size, sent in (*ours, *theirs)}
        assert {*told} <= {*there}, (question, one)
        assert {each.removeprefix("the sums of ") for each in OF_ARRAY.findall(one.message)} <= arrays, one
        check_sums(one.message, there)
        if all(len(part.operands) == 1 for part in plan.problem.parts):
            assert not re.search("multipl|product", one.message), (question, one)
        left = MOVED.sub("", one.message)
        known = {size for each in (*ours, *theirs) for size in each[2:]} | sums(ours) | sums(theirs)
        known |= held(plan, answer) if "other_result" in one.code else set()
        assert {number(each) for each in re.findall(r"[\d,]*\d(?= (?:bytes|sent))", left)} <= known, one


def listed(sentence: str) -> list[tuple[int, str, tuple[str, ...], int]]:
    return [
        (int(count or 1), op, tuple(axes.split(", ")), number(size))
        for count, op, axes, size in MOVED.findall(sentence)
    ]


def check_sums(sentence: str, there) -> None:
    """What a list is said to send is the sum of what its collectives send."""
    for clause in re.findall(
        r"((?:it|the plan) (?:does|moves|adds up) [^;]*?), sending ([\d,]+) bytes", sentence
    ):
        several = listed(clause[0].split(" where the plan ")[-1])
        sent = sum(count * there[op, axes, size] for count, op, axes, size in several)
        assert sent == number(clause[1]), sentence


def held(plan, answer) -> set[int]:
    result = plan.problem.result.with_spec(answer.result_spec)
    return {wire_bytes("send", 2, 0, 2 * multiplied(result.shard_shape(plan.problem.mesh)))}


def multiplied(shape) -> int:
    product = 1
    for size in shape:
        product *= size
    return product


def number(text: str) -> int:
    return int(text.replace(",", ""))


def sums(moved) -> set[int]:
    """The bytes that any of some collectives send together."""
    sent = [each[3] for each in moved][:MOST_TRANSFERS]
    subsets = chain.from_iterable(combinations(sent, count) for count in range(len(sent) + 1))
    return {sum(subset) for subset in subsets}


def corpus(worker: Worker, seed: str, count: int) -> Counter:
    codes: Counter[str] = Counter()
    for one in answered(worker, seed, count):
        check(*one)
        codes.update(difference.code for difference in one[-1])
    return codes


def test_every_sentence_about_a_random_answer_is_true(worker):
    codes = corpus(worker, "compare", 30)
    assert len(codes) > 5, codes


@pytest.mark.slow
def test_every_sentence_about_many_random_answers_is_true(worker):
    codes = corpus(worker, "compare at length", 160)
    assert len(codes) > 10, codes
