"""Collectives in the middle of a sentence."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from shardviz.errors import plural
from shardviz.hlo.collective import Collective


def described(collectives: Iterable[Collective]) -> str:
    """``an all-gather``, ``2 all-gathers and 3 collective-permutes``; "" for none."""
    counted = Counter(each.op for each in collectives)
    said = [one(op) if count == 1 else plural(count, op) for op, count in counted.items()]
    return " and ".join([", ".join(said[:-1]), said[-1]] if len(said) > 1 else said)


def one(op: str) -> str:
    """``an all-gather``, ``a reduce-scatter``."""
    return f"{'an' if op[:1] in 'aeiou' else 'a'} {op}"


def over(collectives: Sequence[Collective]) -> str:
    """`` over X, Y`` where all go over the same axes, else ""."""
    axes = {each.axes for each in collectives}
    return f" over {', '.join(collectives[0].axes)}" if len(axes) == 1 and collectives[0].axes else ""


def of_bytes(collectives: Sequence[Collective]) -> str:
    """`` of 65,536 bytes each`` where all are as large, else ""."""
    sizes = {each.bytes for each in collectives}
    every = " each" if len(collectives) > 1 else ""
    return f" of {collectives[0].bytes:,} bytes{every}" if len(sizes) == 1 else ""


def directions(permutes: Sequence[Collective]) -> str:
    """`` in two directions`` where some send against the others."""
    pairs = {frozenset(each.groups) for each in permutes if each.groups}
    back = {frozenset(group[::-1] for group in each) for each in pairs}
    return " in two directions" if len(pairs) > 1 and pairs & back else ""


def matmuls_beside(each: Collective) -> int:
    """How many matmuls run while it is under way."""
    return sum(work.op == "matmul" for work in each.overlapped)


def alterations(old: Collective, new: Collective) -> list[str]:
    """What is different about a collective that is still what it was: a type, a shape, or how it runs."""
    said = []
    if old.dtype != new.dtype:
        said.append(f"{old.dtype} became {new.dtype}, {bytes_of(old, new)}")
    elif old.bytes != new.bytes:
        said.append(bytes_of(old, new))
    if (old.operand_shape, old.result_shape) != (new.operand_shape, new.result_shape):
        said.append(f"{_shapes(old)} became {_shapes(new)}")
    if old.arrays != new.arrays:
        said.append(f"of {plural(new.arrays, 'array')} instead of {old.arrays}")
    if members(old) != members(new):
        said.append(_elsewhere(old, new))
    if old.between_slices != new.between_slices:
        said.append("sent between slices" if new.between_slices else "no longer sent between slices")
    if old.count != new.count:
        said.append(_times(old.count, new.count))
    if old.is_async != new.is_async:
        said.append("made asynchronous" if new.is_async else "made synchronous")
    if matmuls_beside(old) != matmuls_beside(new):
        said.append(_moved(matmuls_beside(old), matmuls_beside(new)))
    if new.algorithm and old.algorithm != new.algorithm:
        said.append(f"carried out by {new.algorithm}")
    elif old.algorithm != new.algorithm:
        said.append(f"no longer by {old.algorithm}")
    return said


def members(each: Collective) -> tuple[object, ...]:
    """Who takes part; the order in which the groups are listed counts for nothing."""
    return each.axes, None if each.groups is None else frozenset(each.groups)


def bytes_of(old: Collective, new: Collective) -> str:
    """``65,536 bytes``, ``65,536 bytes became 131,072``."""
    return f"{old.bytes:,} bytes" + ("" if old.bytes == new.bytes else f" became {new.bytes:,}")


def _elsewhere(old: Collective, new: Collective) -> str:
    if old.axes == new.axes and old.groups and new.groups:
        was_of, is_of = ({frozenset(group) for group in groups} for groups in (old.groups, new.groups))
        if was_of == is_of:
            return "between the same devices in another order"
    was = f" instead of {', '.join(old.axes)}" if old.axes and old.axes != new.axes else ""
    return f"between other devices{was}"


def _moved(old: int, new: int) -> str:
    if not new:
        return "moved, beside no matmul any more"
    return f"moved beside {plural(new, 'matmul')}" + (f" instead of {old}" if old else "")


def _times(old: int | None, new: int | None) -> str:
    if new is None:
        return "runs in a loop of unknown length"
    if old is None:
        return "known to run once" if new == 1 else f"known to run {new:,} times"
    return f"runs {plural(new, 'time')} instead of {old:,}"


def _shapes(each: Collective) -> str:
    shapes = dict.fromkeys((each.operand_shape, each.result_shape))
    return "→".join(f"[{','.join(map(str, shape))}]" for shape in shapes)
