"""Where collectives are among the matmuls of a program."""

from __future__ import annotations

from shardviz.hlo import CollectiveMatmul, read_hlo
from shardviz.hlo.overlap import matmul_orders

PROGRAM = """\
HloModule m, is_scheduled=true, num_partitions=4

%product (p: f32[4,4]) -> f32[4,4] {
  %p = f32[4,4]{1,0} parameter(0)
  ROOT %dot.9 = f32[4,4]{1,0} dot(%p, %p), lhs_contracting_dims={1}, rhs_contracting_dims={0}
}

%body (t: (f32[4,4])) -> (f32[4,4]) {
  %t = (f32[4,4]{1,0}) parameter(0)
  %x = f32[4,4]{1,0} get-tuple-element(%t), index=0
  %inside = f32[4,4]{1,0} all-reduce(%x), replica_groups={{0,1,2,3}}, to_apply=%sum
  %fused = f32[4,4]{1,0} fusion(%inside), kind=kOutput, calls=%product
  ROOT %out = (f32[4,4]{1,0}) tuple(%fused)
}

%condition (c: (f32[4,4])) -> pred[] {
  %c = (f32[4,4]{1,0}) parameter(0)
  ROOT %go = pred[] constant(false)
}

ENTRY %main (a: f32[4,4]) -> f32[4,4] {
  %a = f32[4,4]{1,0} parameter(0)
  %first = f32[4,4]{1,0} all-reduce(%a), replica_groups={{0,1,2,3}}, to_apply=%sum
  %dot.1 = f32[4,4]{1,0} dot(%first, %first), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  %tuple = (f32[4,4]{1,0}) tuple(%dot.1)
  %loop = (f32[4,4]{1,0}) while(%tuple), condition=%condition, body=%body
  %y = f32[4,4]{1,0} get-tuple-element(%loop), index=0
  %second = f32[4,4]{1,0} all-reduce(%y), replica_groups={{0,1,2,3}}, to_apply=%sum
  %dot.2 = f32[4,4]{1,0} dot(%second, %second), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  ROOT %last = f32[4,4]{1,0} all-reduce(%dot.2), replica_groups={{0,1,2,3}}, to_apply=%sum
}
"""


def standings(text: str, *matmuls: CollectiveMatmul) -> dict[str, tuple[int, int] | None]:
    module = read_hlo(text, origins=True)
    assert module.index is not None
    orders = matmul_orders(module.index, matmuls)
    return {
        line.name: (orders[line].before, orders[line].matmuls) if line in orders else None
        for line in module.lines
    }


def test_before_between_and_after_through_a_loop_and_a_fusion() -> None:
    assert standings(PROGRAM) == {"first": (0, 3), "inside": (1, 3), "second": (2, 3), "last": (3, 3)}


def test_the_parts_of_a_collective_matmul_are_one() -> None:
    ring = CollectiveMatmul("all-gather", (), 1, 4, ("inside",), ("dot.1", "fused"), 64, 64)
    assert standings(PROGRAM, ring) == {"first": (0, 2), "inside": (1, 2), "second": (1, 2), "last": (2, 2)}


def test_a_text_without_an_entry_does_not_say() -> None:
    assert standings(PROGRAM[: PROGRAM.index("ENTRY")]) == {"inside": None}
