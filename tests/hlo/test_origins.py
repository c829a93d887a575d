"""Where a collective's operand comes from, in both languages."""

from __future__ import annotations

import gc
import time

import pytest

from shardviz.hlo import Origin, read_hlo, read_shardy
from shardviz.hlo.arguments import MAX_ARGUMENTS, MAX_LOOKS
from shardviz.hlo.text.instructions import Instructions
from shardviz.hlo.text.values import ProgramValue, Values

HLO = """HloModule m, num_partitions=8

%widen (p.0: bf16[4,8]) -> f32[4,8] {{
  %p.0 = bf16[4,8]{{1,0}} parameter(0)
  ROOT %c = f32[4,8]{{1,0}} convert(%p.0)
}}

%multiply (a: f32[4,8], b: f32[8,8]) -> f32[4,8] {{
  %b = f32[8,8]{{1,0}} parameter(1)
  %a = f32[4,8]{{1,0}} parameter(0)
  ROOT %dot = f32[4,8]{{1,0}} dot(%a, %b), lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}}
}}

%both (x: f32[4,8], y: f32[4,8]) -> (f32[4,8], f32[4,8]) {{
  %x = f32[4,8]{{1,0}} parameter(0)
  %y = f32[4,8]{{1,0}} parameter(1)
  %n = f32[4,8]{{1,0}} negate(%y)
  ROOT %t = (f32[4,8]{{1,0}}, f32[4,8]{{1,0}}) tuple(%x, %n)
}}

ENTRY %main (P0: bf16[4,8], P1: f32[8,8], P2: f32[4,8]) -> f32[4,8] {{
  %P0 = bf16[4,8]{{1,0}} parameter(0), metadata={{op_name="A"}}
  %P1 = f32[8,8]{{1,0}} parameter(1)
  %P2 = f32[4,8]{{1,0}} parameter(2)
  %id = u32[] partition-id()
  %wide = f32[4,8]{{1,0}} fusion(%P0), kind=kLoop, calls=%widen
  %cut = f32[4,8]{{1,0}} dynamic-slice(%wide, %id, %id), dynamic_slice_sizes={{4,8}}
  %product = f32[4,8]{{1,0}} fusion(%wide, %P1), kind=kCustom, calls=%multiply
  %two = (f32[4,8]{{1,0}}, f32[4,8]{{1,0}}) fusion(%P2, %wide), kind=kLoop, calls=%both
  %one = f32[4,8]{{1,0}} get-tuple-element(%two), index=0
  %other = f32[4,8]{{1,0}} get-tuple-element(%two), index=1
  %gone = f32[4,8]{{1,0}} while(%P2), condition=%c, body=%b
  %round = f32[4,8]{{1,0}} copy(%round)
  ROOT %r = f32[4,8]{{1,0}} all-reduce({operand}), replica_groups={{{{0,1}}}}, to_apply=%add
}}
"""

HLO_CASES = {
    "%P0": Origin((0,)),
    "%wide": Origin((0,)),
    "f32[4,8]{1,0} %wide": Origin((0,)),
    "%cut": Origin((0,)),
    "%product": Origin((0, 1), computed=True),
    "%one": Origin((2,)),
    "%other": Origin((0,), computed=True),
    "%P0, %P2": Origin((0, 2)),
    "%id": Origin(()),
    "%gone": None,
    "%round": None,
    "%nowhere": None,
}


def test_what_values_are_made_of_is_no_circle_of_objects():
    # It would stay in memory until Python searches for it, and that search would look at all that was read.
    gc.collect()
    gc.disable()
    try:
        lines = Instructions(HLO.format(operand="%product"))
        made = Values(lines).how(ProgramValue(lines.root(lines.computations.all[1])))
        assert not made.only_moved
        del lines, made
        assert gc.collect() == 0
    finally:
        gc.enable()


@pytest.mark.parametrize("operand", HLO_CASES)
def test_hlo(operand):
    (found,) = read_hlo(HLO.format(operand=operand), origins=True).collectives
    assert found.origin == HLO_CASES[operand]


def test_names_without_percent_signs():
    text = HLO.format(operand="%product").replace("%", "")
    assert read_hlo(text, origins=True).collectives[0].origin == Origin((0, 1), computed=True)


def test_asynchronous_collectives_lead_to_their_operand():
    body = (
        "  %s = (f32[4,8]{1,0}, f32[8,8]{1,0}) all-gather-start(%P2), replica_groups={{0,1}}, "
        "dimensions={0}\n"
        "  %d = f32[8,8]{1,0} all-gather-done(%s)\n  ROOT %r ="
    )
    text = HLO.format(operand="%d").replace("  ROOT %r =", body)
    assert [one.origin for one in read_hlo(text, origins=True).collectives] == [Origin((2,)), Origin((2,))]


def test_a_parameter_of_another_computation_is_no_argument():
    lines = "  %p = f32[8]{0} parameter(0)\n  %r = f32[8]{0} all-reduce(%p)\n"
    text = f"HloModule m\n\n%f (p: f32[8]) -> f32[8] {{\n{lines}}}\n"
    assert read_hlo(text, origins=True).collectives[0].origin is None


MLIR = """module @m {{
  sdy.mesh @mesh = <["X"=2]>
  func.func {function}(%arg0: tensor<8x8xf32>, %arg1: tensor<8x8xf32>) -> tensor<8x8xf32> {{
    %cst = stablehlo.constant dense<0.0> : tensor<f32>
    %0 = stablehlo.transpose %arg1, dims = [1, 0] : (tensor<8x8xf32>) -> tensor<8x8xf32>
    %1 = sdy.sharding_constraint %0 <@mesh, [{{}}, {{}}]> : tensor<8x8xf32>
    %2 = stablehlo.dot_general %arg0, %1, contracting_dims = [1] x [0] : () -> tensor<8x8xf32>
    %3 = stablehlo.reduce(%arg0 init: %cst) applies stablehlo.add across dimensions = [1] : tensor<8xf32>
    %4 = call @other(%arg0) : (tensor<8x8xf32>) -> tensor<8x8xf32>
    %5 = sdy.all_slice [{{"X"}}, {{}}] %2 out_sharding=<@mesh, [{{"X"}}, {{}}]> : tensor<8x8xf32>
    %6 = sdy.all_gather [{{"X"}}, {{}}] {operand} out_sharding=<@mesh, [{{}}, {{}}]> : tensor<8x8xf32>
    return %6 : tensor<8x8xf32>
  }}
}}
"""

MLIR_CASES = {
    "%arg0": Origin((0,)),
    "%1": Origin((1,)),
    "%2": Origin((0, 1), computed=True),
    "%3": Origin((0,), computed=True),
    "%4": Origin((0,), computed=True),
    "%5": Origin((0, 1), computed=True),
    "%cst": Origin(()),
    "%7": None,
}


@pytest.mark.parametrize("operand", MLIR_CASES)
def test_shardy(operand):
    found = read_shardy(MLIR.format(function="public @main", operand=operand)).collectives
    assert found[-1].origin == MLIR_CASES[operand]


def test_only_the_arguments_of_the_main_function_count():
    found = read_shardy(MLIR.format(function="private @main2", operand="%arg0")).collectives
    assert found[-1].origin is None


def chain(length: int) -> str:
    """All-reduces one after another, the last of a sum over all that went before."""
    lines = [f"  %v{i} = f32[8]{{0}} add(%v{i - 1}, %v{max(0, i - 2)})" for i in range(1, length)]
    return (
        "HloModule m\n\nENTRY %e (v0: f32[8]) -> f32[8] {\n  %v0 = f32[8]{0} parameter(0)\n"
        + "\n".join(lines)
        + f"\n  %r = f32[8]{{0}} all-reduce(%v{length - 1})\n}}\n"
    )


def test_paths_that_meet_again_are_followed_once():
    assert read_hlo(chain(MAX_LOOKS // 2), origins=True).collectives[0].origin == Origin((0,), computed=True)


def test_what_is_too_far_away_is_given_up():
    start = time.process_time()
    assert read_hlo(chain(50 * MAX_LOOKS), origins=True).collectives[0].origin is None
    assert time.process_time() - start < 20


def test_a_value_made_of_too_many_arguments_has_no_origin():
    for count, origin in ((MAX_ARGUMENTS, True), (MAX_ARGUMENTS + 1, False)):
        names = ", ".join(f"%p{i}" for i in range(count))
        lines = "".join(f"  %p{i} = f32[8]{{0}} parameter({i})\n" for i in range(count))
        text = (
            f"HloModule m\n\nENTRY %e (p: f32[8]) -> f32[8] {{\n{lines}"
            f"  %c = f32[8]{{0}} concatenate({names})\n  %r = f32[8]{{0}} all-reduce(%c)\n}}\n"
        )
        assert (read_hlo(text, origins=True).collectives[0].origin is not None) == origin


def test_the_collectives_of_a_compiled_chain():
    """On XLA's own text: the weights are gathered, each product is summed."""
    import jax
    import jax.numpy as jnp
    from jax.sharding import NamedSharding, PartitionSpec as P

    mesh = jax.make_mesh((2, 4), ("X", "Y"), axis_types=(jax.sharding.AxisType.Auto,) * 2)

    def array(*spec):
        return jax.ShapeDtypeStruct((64, 64), jnp.bfloat16, sharding=NamedSharding(mesh, P(*spec)))

    def program(a, w1, w2, w3):
        hidden = jnp.einsum("bd,df->bf", a, w1)
        hidden = jax.lax.with_sharding_constraint(hidden, NamedSharding(mesh, P("X")))
        gathered = jax.lax.with_sharding_constraint(w3, NamedSharding(mesh, P()))
        return jnp.einsum("bf,fg->bg", hidden, w2) @ gathered

    answer = NamedSharding(mesh, P("X"))
    compiled = jax.jit(program, out_shardings=answer).lower(
        array("X", "Y"), array("Y"), array(None, "Y"), array(None, "Y")
    )
    found = read_hlo(compiled.compile().as_text(), origins=True).collectives
    origins = {(one.op, one.origin.arguments, one.origin.computed) for one in found if one.origin}
    assert ("all-reduce", (0, 1), True) in origins
    assert ("all-gather", (3,), False) in origins
    assert all(one.origin for one in found)


TPU = """HloModule m, is_scheduled=true, num_partitions=8

%start (w.0: f32[4,8]) -> (f32[4,8], f32[8,8]) {
  %w.0 = f32[4,8]{1,0} parameter(0)
  %gathered = f32[8,8]{1,0} all-gather(%w.0), replica_groups={{0,1}}, dimensions={0}
  ROOT %started = (f32[4,8]{1,0}, f32[8,8]{1,0}) custom-call(%gathered), \
custom_call_target="AsyncCollectiveStart"
}

%body (state: (s32[], f32[4,8], f32[4,8])) -> (s32[], f32[4,8], f32[4,8]) {
  %state = (s32[], f32[4,8]{1,0}, f32[4,8]{1,0}) parameter(0)
  %i = s32[] get-tuple-element(%state), index=0
  %w = f32[4,8]{1,0} get-tuple-element(%state), index=1
  %x = f32[4,8]{1,0} get-tuple-element(%state), index=2
  %begun = (f32[4,8]{1,0}, f32[8,8]{1,0}) fusion(%w), kind=kCustom, calls=%start
  %more = f32[4,8]{1,0} negate(%x)
  ROOT %next = (s32[], f32[4,8]{1,0}, f32[4,8]{1,0}) tuple(%i, %w, %more)
}

ENTRY %main (W: f32[4,8], X: f32[4,8]) -> f32[4,8] {
  %W = f32[4,8]{1,0} parameter(0)
  %X = f32[4,8]{1,0} parameter(1)
  %zero = s32[] constant(0)
  %first = (s32[], f32[4,8]{1,0}, f32[4,8]{1,0}) tuple(%zero, %W, %X)
  %loop = (s32[], f32[4,8]{1,0}, f32[4,8]{1,0}) while(%first), condition=%c, body=%body, \
backend_config={"known_trip_count":{"n":"4"}}
  %kept = f32[4,8]{1,0} get-tuple-element(%loop), index=1
  %changed = f32[4,8]{1,0} get-tuple-element(%loop), index=2
  %again = f32[8,8]{1,0} all-gather(%kept), replica_groups={{0,1}}, dimensions={0}
  ROOT %last = f32[8,8]{1,0} all-gather(%changed), replica_groups={{0,1}}, dimensions={0}
}
"""


def test_through_loops_and_the_fusions_of_tpus():
    found = {one.name: one.origin for one in read_hlo(TPU, origins=True).collectives}
    assert found == {"gathered": Origin((0,)), "again": Origin((0,)), "last": None}


def test_what_is_only_moved_is_followed_in_a_program_of_any_size():
    layers = 2 * MAX_LOOKS
    lines = "".join(
        f"  %n{i} = f32[8]{{0}} negate({f'%n{i - 1}' if i else '%p'})\n"
        f"  %r{i} = f32[8]{{0}} all-reduce(%n{i}), replica_groups={{{{0,1}}}}\n"
        for i in range(layers)
    )
    text = (
        f"HloModule m\n\nENTRY %e (p: f32[8]) -> f32[8] {{\n  %p = f32[8]{{0}} parameter(0)\n{lines}"
        "  ROOT %g = f32[8]{0} all-reduce(%p), replica_groups={{0,1}}\n}\n"
    )
    *_, last = read_hlo(text, origins=True).collectives
    assert last.origin == Origin((0,))


BARRIER = """HloModule m, num_partitions=2

ENTRY %main (w: f32[8], x: f32[8]) -> f32[16] {
  %w = f32[8]{0} parameter(0)
  %x = f32[8]{0} parameter(1)
  %before = (f32[8]{0}, f32[8]{0}) tuple(%x, %w)
  %again = (f32[8]{0}, f32[8]{0}) opt-barrier(%before)
  %taken = f32[8]{0} get-tuple-element(%again), index=1
  ROOT %whole = f32[16]{0} all-gather(%taken), replica_groups={{0,1}}, dimensions={0}
}
"""


def test_through_what_a_checkpoint_computes_again():
    (found,) = read_hlo(BARRIER, origins=True).collectives
    assert found.origin == Origin((0,))
