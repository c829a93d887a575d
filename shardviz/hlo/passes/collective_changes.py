"""What a pass made of a module's collectives, in words."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from shardviz.errors import plural
from shardviz.hlo.collective import Collective
from shardviz.hlo.passes.collective_words import (
    alterations,
    bytes_of,
    described,
    directions,
    matmuls_beside,
    members,
    of_bytes,
    one,
    over,
)

INSERTED = "inserted: "
PERMUTE = "collective-permute"


def collective_changes(
    before: Sequence[Collective], after: Sequence[Collective], in_order: bool = False
) -> tuple[str, ...]:
    """A sentence for each thing that happened.

    Names of instructions count for nothing: passes change them freely. With `in_order` both stand in the
    order in which they run, and another order is a change too.
    """
    if before == after:
        return ()
    gone, here = lacking(before, after), lacking(after, before)
    if not gone and not here:
        return _moved(before, after) if in_order else ()
    found: list[str] = []
    for rule in (_joined, _taken_apart, _scattered, _reduced_again, _halved, _permuted, _altered):
        found += rule(gone, here)
    if gone and here:
        found.append(f"{described(gone)}{over(gone)} became {described(here)}{over(here)}{of_bytes(here)}")
    elif gone:
        found.append(f"dropped: {described(gone)}{over(gone)}{of_bytes(gone)}")
    elif here:
        found.append(f"{INSERTED}{described(here)}{over(here)}{of_bytes(here)}")
    return tuple(found)


def reads(each: Collective) -> tuple[object, ...]:
    """All that is said of a collective but the name of its instruction and what it leads back to."""
    manner = each.is_async, matmuls_beside(each), each.algorithm, each.between_slices
    sizes = each.operand_shape, each.result_shape, each.dtype, each.arrays, each.bytes
    return each.op, *members(each), *sizes, each.count, *manner


def lacking(these: Sequence[Collective], others: Sequence[Collective]) -> list[Collective]:
    """Those of `these` that `others` lack, as often as they lack them."""
    left = Counter(map(reads, others))
    found = []
    for each in these:
        key = reads(each)
        left[key] -= 1
        if left[key] < 0:
            found.append(each)
    return found


def _moved(before: Sequence[Collective], after: Sequence[Collective]) -> tuple[str, ...]:
    """The first that runs at another's place, when the collectives are the same."""
    for old, new in zip(before, after, strict=True):
        if reads(old) != reads(new):
            names = [f"{each.op}{over([each])}" for each in (new, old)]
            if names[0] == names[1]:
                return (f"moved: the {new.op}s{over([new])} run in another order",)
            return (f"moved: {names[0]} now starts before {names[1]}",)
    return ()


def _with(op: str, like: Collective, those: Sequence[Collective]) -> list[Collective]:
    """Those of a kind between the same devices."""
    return [each for each in those if each.op == op and members(each) == members(like)]


def _joined(gone: list[Collective], here: list[Collective]) -> list[str]:
    """Several that now are one, of several arrays or of a longer one."""
    return [
        f"{plural(len(parts), whole.op)}{over(parts)} joined into one of {whole.bytes:,} bytes"
        for parts, whole in _sums(gone, here)
    ]


def _taken_apart(gone: list[Collective], here: list[Collective]) -> list[str]:
    return [
        f"{one(whole.op)}{over([whole])} of {whole.bytes:,} bytes taken apart into {len(parts)}"
        for parts, whole in _sums(here, gone)
    ]


def _sums(many: list[Collective], few: list[Collective]) -> list[tuple[list[Collective], Collective]]:
    """Takes out those of `few` that are as large as all of their kind in `many` together."""
    found = []
    for whole in [*few]:
        parts = [each for each in _with(whole.op, whole, many) if each.dtype == whole.dtype]
        rivals = [each for each in _with(whole.op, whole, few) if each.dtype == whole.dtype]
        if len(rivals) == 1 < len(parts) and sum(each.bytes for each in parts) == whole.bytes:
            found.append((parts, whole))
            few.remove(whole)
            many[:] = [each for each in many if each not in parts]
    return found


def _scattered(gone: list[Collective], here: list[Collective]) -> list[str]:
    """An all-reduce of which each device keeps a part is a reduce-scatter."""
    return [
        f"an all-reduce{over([old])} and the slice after it became a reduce-scatter: {bytes_of(old, new)}"
        for old, new in _turned("all-reduce", "reduce-scatter", gone, here)
    ]


def _reduced_again(gone: list[Collective], here: list[Collective]) -> list[str]:
    return [
        f"a reduce-scatter{over([old])} became an all-reduce and a slice after it: {bytes_of(old, new)}"
        for old, new in _turned("reduce-scatter", "all-reduce", gone, here)
    ]


def _turned(
    old: str, new: str, gone: list[Collective], here: list[Collective]
) -> list[tuple[Collective, Collective]]:
    """Takes out pairs of one kind and another between the same devices; none where something is gathered."""
    found = []
    for each in [each for each in gone if each.op == old]:
        if (others := _with(new, each, here)) and not _with("all-gather", each, here):
            found.append((each, others[0]))
            gone.remove(each)
            here.remove(others[0])
    return found


def _halved(gone: list[Collective], here: list[Collective]) -> list[str]:
    """An all-reduce as a reduce-scatter and an all-gather."""
    found = []
    for each in [each for each in gone if each.op == "all-reduce"]:
        scatters, gathers = (_with(op, each, here) for op in ("reduce-scatter", "all-gather"))
        if scatters and gathers:
            found.append(f"an all-reduce{over([each])} became a reduce-scatter and an all-gather")
            gone.remove(each)
            here.remove(scatters[0])
            here.remove(gathers[0])
    return found


def _permuted(gone: list[Collective], here: list[Collective]) -> list[str]:
    """One gather or scatter that became permutes around a ring."""
    permutes = [each for each in here if each.op == PERMUTE]
    rings = [each for each in gone if each.op in ("all-gather", "reduce-scatter", "all-reduce")]
    if not permutes or len(rings) != 1 or any(each.op == PERMUTE for each in gone):
        return []
    gone.remove(rings[0])
    here[:] = [each for each in here if each.op != PERMUTE]
    became = f"{plural(len(permutes), PERMUTE)}{directions(permutes)}"
    return [f"{one(rings[0].op)}{over(rings)}{of_bytes(rings)} became {became}"]


def _altered(gone: list[Collective], here: list[Collective]) -> list[str]:
    """Collectives that are still what they were, but for a type, a shape, or how they run."""
    found: Counter[tuple[str, str, str]] = Counter()
    for is_alike in (_is_as_large, _is_of_kind):
        for old in [*gone]:
            new = next((each for each in here if is_alike(old, each)), None)
            if new is not None:
                gone.remove(old)
                here.remove(new)
                found[old.op, over([new]), ", ".join(alterations(old, new))] += 1
    return [
        f"{op if count == 1 else plural(count, op)}{where}: {altered}"
        for (op, where, altered), count in found.items()
    ]


def _is_as_large(old: Collective, new: Collective) -> bool:
    return (old.op, old.bytes) == (new.op, new.bytes) and members(old) == members(new)


def _is_of_kind(old: Collective, new: Collective) -> bool:
    return old.op == new.op
