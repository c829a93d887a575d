"""Schedules of our own making, as protobuf prints the ones that libtpu leaves."""

from __future__ import annotations

from collections.abc import Sequence


def instruction(
    number: int, name: str, opcode: str, *, operands: Sequence[int] = (), calls: Sequence[int] = ()
) -> str:
    fields = [
        f'name: "{name}"',
        f'opcode: "{opcode}"',
        "shape {\n        element_type: BF16\n        dimensions: 8\n      }",
        'metadata {\n        op_name: "jit(f)/dot"\n      }',
        f"id: {number}",
        *(f"operand_ids: {each}" for each in operands),
        *(f"called_computation_ids: {each}" for each in calls),
    ]
    return "    instructions {\n" + "".join(f"      {each}\n" for each in fields) + "    }\n"


def computation(id_: int, name: str, *instructions: str) -> str:
    return f'  computations {{\n    name: "{name}"\n{"".join(instructions)}    id: {id_}\n  }}\n'


def module(entry: str, *computations: str) -> str:
    head = f'  name: "jit_f"\n  entry_computation_name: "{entry}"\n'
    return f"hlo_module {{\n{head}{''.join(computations)}}}\n"


def simulated(id_: int, *times: tuple[int, float, float], total: float = 0, wasted: float = 0) -> str:
    """The simulation of one computation: (instruction, start, end); zeros are left out, as protobuf does."""
    text = f"computation_schedules {{\n  computation_id: {id_}\n"
    for number, start, end in times:
        text += f"  instructions {{\n    id: {number}\n"
        for field, value in (("start", start), ("end", end)):
            text += f"    {field}_timestamp_cycles: {value}\n" if value else ""
        text += "    memory_usage_after: 4096\n  }\n"
    text += "  scheduler_statistics {\n"
    text += f"    all_gather_wasted_cycles: {wasted}\n    total_wasted_cycles: {wasted}\n" if wasted else ""
    text += f"    total_cycles: {total}\n" if total else ""
    return f"{text}    memory_pressure_peak: 8192\n  }}\n  cycles_per_microsecond: 1000\n}}\n"
