"""Texts whose computations call themselves or each other, in long chains or in many ways, are read."""

import signal
from contextlib import contextmanager

import pytest

from shardviz.hardware.machine_file import named_machine
from shardviz.hlo.module import read_hlo
from shardviz.reports.program_report import program_report
from shardviz.reports.rematerialization import cut_gathers

SECONDS = 10
"""Of the processor; none of these takes one."""
HEAD = """HloModule m, num_partitions=4, is_scheduled=true

%add (x: f32[], y: f32[]) -> f32[] {
  %x = f32[] parameter(0)
  %y = f32[] parameter(1)
  ROOT %a = f32[] add(%x, %y)
}

"""
SUM = (
    "%sum = f32[8]{0} all-reduce(%p), channel_id=1, replica_groups={{0,1,2,3}}, use_global_device_ids=true, "
    'to_apply=%add, metadata={op_name="jit(step)/transpose(jvp(f))/dot_general"}'
)
CALLS = {"fusion": "fusion(%{}), kind=kLoop, calls=%{}", "call": "call(%{}), to_apply=%{}"}


@contextmanager
def a_limit():
    """Fail where reading goes on and on, rather than wait for it."""

    def fail(*_):
        raise AssertionError(f"more than {SECONDS} s")

    before = signal.signal(signal.SIGVTALRM, fail)
    signal.setitimer(signal.ITIMER_VIRTUAL, SECONDS)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, before)


def computation(name, *lines):
    entry = "ENTRY " if name == "main" else ""
    body = "".join(f"  {line}\n" for line in ("%p = f32[8]{0} parameter(0)", *lines))
    return f"{entry}%{name} (p: f32[8]) -> f32[8] {{\n{body}}}\n\n"


def program(opcode, *computations, run):
    """A step that updates its argument by what the computation `run` makes of it."""
    call = CALLS[opcode].format("p", run)
    return HEAD + "".join(computations) + computation(
        "main", f"%g = f32[8]{{0}} {call}", "ROOT %w = f32[8]{0} subtract(%p, %g)"
    )  # fmt: skip


def running(opcode, callee, of="p", name="c"):
    return f"%{name} = f32[8]{{0}} {CALLS[opcode].format(of, callee)}"


def chain(opcode, length):
    """Computations each of which runs the one before it."""
    links = (computation(f"f{i}", f"ROOT {running(opcode, f'f{i - 1}')}") for i in range(1, length))
    return program(opcode, computation("f0", f"ROOT {SUM}"), *links, run=f"f{length - 1}")


def diamonds(opcode, levels):
    """Computations each of which runs the one before it twice: 2 to the power of `levels` ways."""
    level = (
        computation(
            f"f{i}",
            running(opcode, f"f{i - 1}"),
            running(opcode, f"f{i - 1}", "c", "d"),
            "ROOT %s = f32[8]{0} add(%c, %d)",
        )
        for i in range(1, levels)
    )
    return program(opcode, computation("f0", f"ROOT {SUM}"), *level, run=f"f{levels - 1}")


@pytest.mark.parametrize("opcode", CALLS)
def test_a_computation_that_runs_itself(opcode):
    itself = computation("f", SUM, running(opcode, "f"), "ROOT %s = f32[8]{0} add(%c, %sum)")
    with a_limit():
        module = read_hlo(program(opcode, itself, run="f"), origins=True)
    assert [each.op for each in module.collectives] == ["all-reduce"]


@pytest.mark.parametrize("opcode", CALLS)
def test_two_that_run_each_other(opcode):
    one = computation("f", SUM, running(opcode, "g"), "ROOT %s = f32[8]{0} add(%c, %sum)")
    other = computation("g", f"ROOT {running(opcode, 'f')}")
    with a_limit():
        module = read_hlo(program(opcode, one, other, run="f"), origins=True)
    assert [each.op for each in module.collectives] == ["all-reduce"]


@pytest.mark.parametrize("opcode", CALLS)
@pytest.mark.parametrize("length", [1, 2, 5_000])
def test_a_long_chain_is_followed_to_its_end(opcode, length):
    with a_limit():
        module = read_hlo(chain(opcode, length), origins=True)
    assert [each.count for each in module.collectives] == [1]
    assert module.gradients == {"sum": (0,)}
    assert module.unread == ()


@pytest.mark.parametrize("opcode", CALLS)
def test_ways_that_double_at_each_call(opcode):
    with a_limit():
        module = read_hlo(diamonds(opcode, 60), origins=True)
    assert [each.count for each in module.collectives] == [2**59]


@pytest.mark.slow
@pytest.mark.parametrize("opcode", CALLS)
def test_times_of_ways_that_double_and_of_what_runs_itself(opcode):
    itself = computation("f", SUM, running(opcode, "f"), "ROOT %s = f32[8]{0} add(%c, %sum)")
    for text in (diamonds(opcode, 60), program(opcode, itself, run="f")):
        with a_limit():
            report = program_report(text, named_machine("v5e:2x2"), infer=True)
        assert len(report.entries) == 1


def test_sums_upon_sums():
    """Each result is made of all the sums before it: their sets must not grow with the text's square."""
    lines = []
    for i in range(2500):
        lines += [
            SUM.replace("%sum", f"%sum{i}"),
            f"%s{i} = f32[8]{{0}} add(%{f's{i - 1}' if i else 'p'}, %sum{i})",
        ]
    with a_limit():
        module = read_hlo(
            HEAD + computation("main", *lines, "ROOT %r = f32[8]{0} copy(%s2499)"), origins=True
        )
    assert len(module.collectives) == 2500


def test_gathers_whose_users_stand_far_below():
    def each(line):
        return [line.replace("%N", f"%n{i}").replace("%M", f"%m{i}") for i in range(4_000)]

    gather = (
        "%N = f32[32]{0} all-gather(%p), channel_id=1, replica_groups={{0,1,2,3}}, "
        "use_global_device_ids=true, dimensions={0}"
    )
    cut = "%M = f32[8]{0} dynamic-slice(%N, %i), dynamic_slice_sizes={8}"
    text = HEAD + computation(
        "main", "%i = u32[] partition-id()", *each(gather), *each(cut), "ROOT %r = f32[8]{0} copy(%m0)"
    )
    with a_limit():
        module = read_hlo(text, origins=True)
    assert len([*cut_gathers(module)]) == 4_000
