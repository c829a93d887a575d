"""Elements of tuples as XLA's newer dumps write them: ``%state#0``."""

from __future__ import annotations

from shardviz.hlo import read_hlo

LOOP = """HloModule m, num_partitions=4

%add (a: f32[], b: f32[]) -> f32[] {
  ROOT %s = f32[] add(%a, %b)
}

%body (state: (s32[], f32[8]{0:T(8)})) -> (s32[], f32[8]) {
  %state = (s32[], f32[8]{0:T(8)}) parameter(0)
  %one = s32[] constant(1)
  %next = s32[] add(%state#0, %one)
  %sum = f32[8] all-reduce(%state#1), channel_id=1, replica_groups=[1,4]<=[4], to_apply=%add
  ROOT %both = (s32[], f32[8]) tuple(%next, %sum)
}

%more (state: (s32[], f32[8])) -> pred[] {
  %state = (s32[], f32[8]) parameter(0)
  %six = s32[] constant(6)
  ROOT %less = pred[] compare(%state#0, %six), direction=LT
}

ENTRY %main (x: f32[8]) -> f32[8] {
  %x = f32[8] parameter(0)
  %zero = s32[] constant(0)
  %start = (s32[], f32[8]) tuple(%zero, %x)
  %loop = (s32[], f32[8]) while(%start), condition=%more, body=%body
  ROOT %end = f32[8] negate(%loop#1)
}
"""


def test_a_loop_is_counted_through_them():
    module = read_hlo(LOOP, origins=True)
    assert module.unread == ()
    assert [(each.op, each.count) for each in module.collectives] == [("all-reduce", 6)]


def test_they_are_what_get_tuple_element_takes():
    spelled = LOOP
    for name, index, shape in (("state", 0, "s32[]"), ("state", 1, "f32[8]{0:T(8)}"), ("loop", 1, "f32[8]")):
        spelled = spelled.replace(f"%{name}#{index}", f"%{name}{index}")
        definition = f"  %{name}{index} = {shape} get-tuple-element(%{name}), index={index}\n"
        lines = []
        for line in spelled.splitlines(keepends=True):
            lines.append(line)
            if line.startswith(f"  %{name} = "):
                lines.append(definition)
        spelled = "".join(lines)
    assert "#" not in spelled
    assert read_hlo(spelled, infer=True) == read_hlo(LOOP, infer=True)


def test_a_number_sign_elsewhere_is_left_alone():
    text = LOOP.replace("%state#0, %six", "%state#0, %six, #7)")
    assert read_hlo(text).name == "m"
