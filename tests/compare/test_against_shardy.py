"""The plan against Shardy itself, over all 1,452 ways to split a matmul on two axes."""

from __future__ import annotations

import random
import re
from collections import Counter
from itertools import chain

import pytest

import shardviz.compare
from shardviz.hlo import Collective, read_shardy, wire_bytes
from shardviz.planner.plan import HLO_OPS, Plan
from shardviz.planner.planner import Planner, plan
from shardviz.planner.problem.reading import problem_from_text
from shardviz.sharding import Mesh, PartitionSpec, array_bytes
from tests.compare.plans_by_hand import compare

MESH = Mesh(("X", "Y"), (2, 4))
SIZES = "b=8,d=2048,f=8192"
PASSES = (
    "builtin.module(sdy-propagation-pipeline)",
    "builtin.module(func.func(sdy-insert-explicit-reshards{enable-full-version=true}))",
    "builtin.module(func.func(sdy-reshard-to-collectives))",
    "builtin.module(canonicalize)",
)
CODES = set(shardviz.compare.CAUSES)


class Shardy:
    """The partitioner inside jaxlib, asked without the compiler room: JAX writes the matmul once, and the
    shardings in it are replaced."""

    def __init__(self, sizes: str) -> None:
        import jax
        import jax.numpy as jnp
        from jax.sharding import AbstractMesh, AxisType, NamedSharding, PartitionSpec as P
        from jaxlib.mlir.passmanager import PassManager

        mesh = AbstractMesh(MESH.axis_sizes, MESH.axis_names, axis_types=(AxisType.Auto,) * 2)
        asked = problem_from_text("bd,df->bf", mesh=MESH, specs="X_,X_->X_", sizes=sizes)
        split = NamedSharding(mesh, P("X"))
        operands = [
            jax.ShapeDtypeStruct(each.shape, jnp.bfloat16, sharding=split) for each in asked.arguments
        ]
        program = jax.jit(lambda a, w: jnp.einsum("bd,df->bf", a, w), out_shardings=split)
        module = program.trace(*operands).lower(lowering_platforms=("tpu",)).compiler_ir("stablehlo")
        self.parts = str(module).split(_attribute((("X",), ())))
        assert len(self.parts) == 4
        self.module, self.context = type(module), module.context
        with self.context:
            self.passes = [PassManager.parse(name) for name in PASSES]

    def __call__(self, found: Plan) -> tuple[tuple[Collective, ...], PartitionSpec | None]:
        answer = read_shardy(self.text(found), MESH)
        return answer.collectives, answer.result_specs[0]

    def text(self, found: Plan) -> str:
        a, w = (_attribute(each.spec.dims) for each in found.problem.arguments)
        wanted = found.problem.result.spec
        result = "" if wanted is None else _attribute(wanted.dims)
        text = "".join(chain(*zip(self.parts, (a, w, result, ""), strict=True)))
        with self.context:
            module = self.module.parse(text.replace(", }", "}"))
            for each in self.passes:
                each.run(module.operation)
        return str(module)


def _attribute(dims: tuple[tuple[str, ...], ...]) -> str:
    """How a program says how an array is split."""
    axes = ", ".join("{" + ", ".join(f'"{axis}"' for axis in dim) + "}" for dim in dims)
    return f"sdy.sharding = #sdy.sharding<@mesh, [{axes}]>"


def kinds(plan_or_answer) -> Counter:
    """The multiset of (op, set of axes, bytes)."""
    if isinstance(plan_or_answer, Plan):
        return Counter((HLO_OPS[s.op], frozenset(s.axes), s.bytes) for s in plan_or_answer.collectives)
    return Counter((c.op, frozenset(c.axes), c.bytes) for c in plan_or_answer if c.wire_bytes)


def check_claims(found: Plan, answer, result, sentence: str) -> None:
    """What a sentence says of either side must stand there."""
    shown = Counter(re.findall(r"([a-z-]+) over (\w+) \(([\d,]+) bytes\)", sentence))
    there = kinds(found) + kinds(answer)
    for (op, axes, size), _ in shown.items():
        assert (op, frozenset(axes), int(size.replace(",", ""))) in there, sentence
    for sides in re.findall(r"leaves Out as (P\(.*?\)) \(", sentence):
        assert sides == str(result), sentence
    for axis in re.findall(r"also splits data over (\w), which no spec mentions", sentence):
        specs = [array.spec for array in (*found.problem.arguments, found.problem.result) if array.spec]
        assert all(axis not in spec.axes for spec in specs), sentence
    for names in re.findall(r"the plan gathers ([\w, ]+?) (?:before|after)", sentence):
        held = {step.array for step in found.collectives if step.op == "all_gather"}
        assert {*re.findall(r"[A-Z]\w*", names)} <= held, sentence


@pytest.mark.slow
def test_every_difference_from_shardy_has_a_code(matmul_specs):
    shardy, planner = Shardy(SIZES), Planner(MESH, objective="bytes")
    codes: Counter[str] = Counter()
    alike = 0
    for specs in matmul_specs:
        found = planner.plan(problem_from_text("bd,df->bf", mesh=MESH, specs=specs, sizes=SIZES))
        answer, result = shardy(found)
        differences = compare(found, "shardy", answer, result)
        codes.update(one.code for one in differences)
        same = kinds(found) == kinds(answer) and result == found.result_spec
        assert same == (not differences), specs
        alike += same
        for one in differences:
            assert one.code in CODES, one
            assert one.target == "shardy"
            assert one.message.endswith(".")
            assert not re.search(r"\.\s|  |\bNone bytes", one.message), one.message
            check_claims(found, answer, result, one.message)
    assert alike > 600
    assert "unexplained" not in codes
    # Without several kinds of difference the loop above would prove little.
    assert len(codes) >= 10, codes


SSA = re.compile(r"^ *(%\d+) = (?:stablehlo|sdy)\.(\w+) .*?(%\w+)", re.MULTILINE)
NAMED = (
    r"shardy (?:gathers|moves) (\w+) (?:over|to|before|after|by|with)",
    r"shardy adds up (\w+) (?:by|with)",
    r"shardy does not scatter the sum of (\w+)",
    r"(?:it|, then) (?:moves|adds up) (\w+) by (?=[^;]*;)",
)


def moved_arrays(text: str) -> set[tuple[str, str]]:
    """(operation, array) of each collective of a matmul, by its operands' names alone."""
    made_of = {"%arg0": "A", "%arg1": "W"}
    moved = set()
    for value, op, operand in SSA.findall(text):
        made_of[value] = "Out" if op == "dot_general" else made_of[operand]
        moved.add((op, made_of[value]))
    return moved


@pytest.mark.slow
def test_arrays_of_equal_shapes_are_told_apart(matmul_specs):
    """Every array that a sentence names is one that Shardy moves, and none that differs is passed over."""
    sizes = "b=64,d=64,f=64"
    shardy, planner = Shardy(sizes), Planner(MESH, objective="bytes")
    named = silent = 0
    for specs in matmul_specs[::10]:
        found = planner.plan(problem_from_text("bd,df->bf", mesh=MESH, specs=specs, sizes=sizes))
        text = shardy.text(found)
        answer = read_shardy(text, MESH)
        there = {(op, name) for op, name in moved_arrays(text) if op not in ("dot_general", "all_slice")}
        wanted = {(HLO_OPS[step.op].replace("-", "_"), step.array) for step in found.collectives}
        differences = compare(found, "shardy", answer.collectives, answer.result_specs[0])
        assert differences or there == wanted, specs
        silent += not differences
        names = {name for _, name in there}
        for one in differences:
            for pattern in NAMED:
                for told in re.findall(pattern, one.message):
                    assert told in names, (specs, one)
                    named += 1
    assert silent > 30
    assert named > 50


AXES = [("X",), ("Y",), ("X", "Y"), ("Y", "X"), ("Y:(2)2",), ("Y:(2)2", "X"), ("Y:(2)2", "Y:(1)2"), ()]


def random_answer(draw: random.Random) -> list[Collective]:
    """Collectives that no compiler would print together."""
    answer = []
    for _ in range(draw.randrange(6)):
        op = draw.choice(
            ("all-gather", "all-reduce", "reduce-scatter", "all-to-all", "collective-permute", "send")
        )
        axes = draw.choice(AXES)
        n = 1
        for axis in axes:
            n *= {"X": 2, "Y": 4}.get(axis, 2)
        operand = tuple(
            size // draw.choice((1, 2, 4, 8)) for size in draw.choice([(8, 16), (16, 24), (8, 24), ()])
        )
        result = tuple(
            size * n if op == "all-gather" and not dim else size for dim, size in enumerate(operand)
        )
        dtype = draw.choice(("bf16", "bf16", "f32"))
        held, made = array_bytes(operand, dtype), array_bytes(result, dtype)
        sent = wire_bytes(op, n if axes else 8, max(held, made), held)
        answer.append(Collective(op, op, axes, None, operand, result, dtype, max(held, made), sent))
    return answer


@pytest.mark.slow
@pytest.mark.parametrize(
    ("text", "sizes"),
    [("bd,df->bf", "b=8,d=16,f=24"), ("bd,df->bf;bf,fd->bd", "b=8,d=16,f=24"), ("bd,df->bf", "b=8,d=8,f=8")],
)
def test_any_answer_is_explained_whole(matmul_specs, text, sizes):
    draw = random.Random(text + sizes)
    for _ in range(50):
        specs = draw.choice(matmul_specs)
        if ";" in text:
            specs += f"; ,{draw.choice(matmul_specs).split(',')[0]}"
        found = plan(problem_from_text(text, mesh=MESH, specs=specs, sizes=sizes), objective="bytes")
        differences = compare(
            found, "cpu", random_answer(draw), draw.choice((None, PartitionSpec(((), ("X",)))))
        )
        assert {one.code for one in differences} <= CODES
