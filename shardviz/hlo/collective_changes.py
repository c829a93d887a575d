"""The changes that a pass made to a module's collectives, in words."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from shardviz.errors import joined, plural
from shardviz.hlo.collective import Collective
from shardviz.units import exact_bytes, human_bytes

INSERTED = "inserted: "
PERMUTE = "collective-permute"
_RINGS = ("all-gather", "reduce-scatter", "all-reduce")


def collective_changes(
    before: Sequence[Collective], after: Sequence[Collective], in_order: bool = False
) -> tuple[str, ...]:
    """A sentence for each thing that happened. Names of instructions count for nothing: passes change them
    freely. With `in_order` both stand in the order in which they run, and another order is a change too."""
    if before == after:
        return ()
    gone, here = lacking(before, after), lacking(after, before)
    if not gone and not here:
        return _moved(before, after) if in_order else ()
    changes = [
        f"{plural(len(parts), whole.op)}{over(parts)} joined into one of {human_bytes(whole.bytes)}"
        for parts, whole in _sums(gone, here)
    ]
    changes += [
        f"{one(whole.op)}{over([whole])} of {human_bytes(whole.bytes)} decomposed into {len(parts)}"
        for parts, whole in _sums(here, gone)
    ]
    for rule in (_replaced, _permuted, _altered):
        changes += rule(gone, here)
    if gone and here:
        changes.append(f"{described(gone)}{over(gone)} became {described(here)}{over(here)}{of_bytes(here)}")
    elif gone:
        changes.append(f"dropped: {described(gone)}{over(gone)}{of_bytes(gone)}")
    elif here:
        changes.append(f"{INSERTED}{described(here)}{over(here)}{of_bytes(here)}")
    return tuple(changes)


_SAID = ("op", "operand_shape", "result_shape", "dtype", "arrays", "bytes", "count", "is_async", "algorithm",
         "between_slices")  # fmt: skip


def _reads(collective: Collective) -> tuple[object, ...]:
    """All that is said of a collective but the name of its instruction and what it leads back to."""
    said = (getattr(collective, field) for field in _SAID)
    return (*said, *_members(collective), *_beside(collective))


def _beside(collective: Collective) -> list[str]:
    return [work.op for work in collective.overlapped if work.op == "matmul"]


def lacking(these: Sequence[Collective], others: Sequence[Collective]) -> list[Collective]:
    """Those of `these` that `others` lack, as often as they lack them."""
    left = Counter(map(_reads, others))
    collectives = []
    for collective in these:
        key = _reads(collective)
        left[key] -= 1
        if left[key] < 0:
            collectives.append(collective)
    return collectives


def _moved(before: Sequence[Collective], after: Sequence[Collective]) -> tuple[str, ...]:
    """The first that runs at another's place, when the collectives are the same."""
    for old, new in zip(before, after, strict=True):
        if _reads(old) != _reads(new):
            names = [f"{collective.op}{over([collective])}" for collective in (new, old)]
            if names[0] == names[1]:
                return (f"moved: the {new.op}s{over([new])} run in another order",)
            return (f"moved: {names[0]} now starts before {names[1]}",)
    return ()


def _with(op: str, like: Collective, those: Sequence[Collective]) -> list[Collective]:
    """Those of a kind between the same devices."""
    alike = (collective for collective in those if collective.op == op)
    return [collective for collective in alike if _members(collective) == _members(like)]


def _sums(many: list[Collective], few: list[Collective]) -> list[tuple[list[Collective], Collective]]:
    """Takes out those of `few`, of several arrays or long ones, that are as large as all alike in `many`."""
    sums = []
    for whole in [*few]:
        parts, rivals = (
            [each for each in _with(whole.op, whole, those) if each.dtype == whole.dtype]
            for those in (many, few)
        )
        if len(rivals) == 1 < len(parts) and sum(part.bytes for part in parts) == whole.bytes:
            sums.append((parts, whole))
            few.remove(whole)
            many[:] = [collective for collective in many if collective not in parts]
    return sums


_BECAME = (
    ("all-reduce", ("reduce-scatter", "all-gather"), "became a reduce-scatter and an all-gather"),
    ("all-reduce", ("reduce-scatter",), "and the slice after it became a reduce-scatter: {bytes}"),
    ("reduce-scatter", ("all-reduce",), "became an all-reduce and a slice after it: {bytes}"),
)
"""A collective, those between the same devices that do its work now, and what happened to it."""


def _replaced(gone: list[Collective], here: list[Collective]) -> list[str]:
    """An all-reduce as its two halves, or as the one of which each device keeps a part."""
    changes = []
    for op, others, says in _BECAME:
        for old in [collective for collective in gone if collective.op == op]:
            new = [next(iter(_with(other, old, here)), None) for other in others]
            taken = [collective for collective in new if collective is not None]
            if len(taken) == len(new):
                happened = says.format(bytes=bytes_of(old, taken[0]))
                changes.append(f"{one(op)}{over([old])} {happened}")
                gone.remove(old)
                for collective in taken:
                    here.remove(collective)
    return changes


def _permuted(gone: list[Collective], here: list[Collective]) -> list[str]:
    """One gather or scatter that became permutes around a ring."""
    permutes = [collective for collective in here if collective.op == PERMUTE]
    rings = [collective for collective in gone if collective.op in _RINGS]
    if not permutes or len(rings) != 1 or any(collective.op == PERMUTE for collective in gone):
        return []
    gone.remove(rings[0])
    here[:] = [collective for collective in here if collective.op != PERMUTE]
    pairs = {frozenset(permute.groups) for permute in permutes if permute.groups}
    back = {frozenset(group[::-1] for group in pair) for pair in pairs}
    ways = " in two directions" if len(pairs) > 1 and pairs & back else ""
    return [f"{one(rings[0].op)}{over(rings)}{of_bytes(rings)} became {plural(len(permutes), PERMUTE)}{ways}"]


def _altered(gone: list[Collective], here: list[Collective]) -> list[str]:
    """Collectives that are still what they were, but for a type, a shape, or how they run."""
    counts: Counter[tuple[str, str, str]] = Counter()
    for is_exact in (True, False):
        for old in [*gone]:
            alike = (
                [peer for peer in _with(old.op, old, here) if peer.bytes == old.bytes] if is_exact else here
            )
            new = next((peer for peer in alike if peer.op == old.op), None)
            if new is not None:
                gone.remove(old)
                here.remove(new)
                counts[old.op, over([new]), ", ".join(_alterations(old, new))] += 1
    return [
        f"{op if count == 1 else plural(count, op)}{where}: {altered}"
        for (op, where, altered), count in counts.items()
    ]


def described(collectives: Iterable[Collective]) -> str:
    """``an all-gather``, ``2 all-gathers and 3 collective-permutes``; "" for none."""
    counted = Counter(collective.op for collective in collectives)
    return joined([one(op) if count == 1 else plural(count, op) for op, count in counted.items()])


def one(op: str) -> str:
    """``an all-gather``, ``a reduce-scatter``."""
    return f"{'an' if op[:1] in 'aeiou' else 'a'} {op}"


def over(collectives: Sequence[Collective]) -> str:
    """`` over X, Y`` where all go over the same axes, else ""."""
    axes = {collective.axes for collective in collectives}
    return f" over {', '.join(collectives[0].axes)}" if len(axes) == 1 and collectives[0].axes else ""


def of_bytes(collectives: Sequence[Collective]) -> str:
    """`` of 64 KiB each`` where all are as large, else ""."""
    sizes = {collective.bytes for collective in collectives}
    every = " each" if len(collectives) > 1 else ""
    return f" of {human_bytes(collectives[0].bytes)}{every}" if len(sizes) == 1 else ""


def _alterations(old: Collective, new: Collective) -> list[str]:
    said = []
    if old.dtype != new.dtype:
        said.append(f"{old.dtype} became {new.dtype}, {bytes_of(old, new)}")
    elif old.bytes != new.bytes:
        said.append(bytes_of(old, new))
    if (old.operand_shape, old.result_shape) != (new.operand_shape, new.result_shape):
        said.append(f"{_shapes(old)} became {_shapes(new)}")
    if old.arrays != new.arrays:
        said.append(f"of {plural(new.arrays, 'array')} instead of {old.arrays}")
    if _members(old) != _members(new):
        was = f" instead of {', '.join(old.axes)}" if old.axes and old.axes != new.axes else ""
        groups, others = ({frozenset(group) for group in record.groups or ()} for record in (old, new))
        is_turned = old.axes == new.axes and groups and groups == others
        said.append(
            "between the same devices in another order" if is_turned else f"between other devices{was}"
        )
    if old.between_slices != new.between_slices:
        said.append("sent between slices" if new.between_slices else "no longer sent between slices")
    if old.count != new.count:
        if new.count is None:
            said.append("runs in a loop of unknown length")
        elif old.count is None:
            said.append("known to run once" if new.count == 1 else f"known to run {new.count:,} times")
        else:
            said.append(f"runs {plural(new.count, 'time')} instead of {old.count:,}")
    if old.is_async != new.is_async:
        said.append("made asynchronous" if new.is_async else "made synchronous")
    before, beside = len(_beside(old)), len(_beside(new))
    if before != beside:
        instead = f" instead of {before}" if before else ""
        matmuls = f"moved beside {plural(beside, 'matmul')}{instead}"
        said.append(matmuls if beside else "moved, no longer beside a matmul")
    if old.algorithm != new.algorithm:
        no_longer = f"no longer carried out by {old.algorithm}"
        said.append(f"carried out by {new.algorithm}" if new.algorithm else no_longer)
    return said


def _members(collective: Collective) -> tuple[object, ...]:
    """The devices that take part; the order in which the groups are listed counts for nothing."""
    return collective.axes, None if collective.groups is None else frozenset(collective.groups)


def bytes_of(old: Collective, new: Collective) -> str:
    """``64 KiB``, ``64 KiB became 128 KiB``; exact figures where these would be the same."""
    if old.bytes == new.bytes:
        return human_bytes(old.bytes)
    was, here = human_bytes(old.bytes), human_bytes(new.bytes)
    return f"{exact_bytes(old.bytes)} became {new.bytes:,}" if was == here else f"{was} became {here}"


def _shapes(collective: Collective) -> str:
    shapes = dict.fromkeys((collective.operand_shape, collective.result_shape))
    return "→".join(f"[{','.join(map(str, shape))}]" for shape in shapes)
