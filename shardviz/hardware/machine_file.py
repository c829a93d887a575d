"""A machine by the name of its hardware, or by a TOML file of figures, and that file. A text has a unit; a
plain number is in bytes, bytes per second, seconds, FLOP/s or hertz."""

from __future__ import annotations

import os
import re
import sys
import tomllib
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path

from shardviz.errors import QuestionError, ShardvizError, place, quote
from shardviz.hardware.chip_torus import ChipTorus
from shardviz.hardware.chips import DEVICE_FIGURES, ICI_HOP, MAX_DEVICES, DeviceFigures, read_device
from shardviz.hardware.clusters import Fault, parse_cluster
from shardviz.hardware.family import Family, SwitchedNodes
from shardviz.hardware.links import LINK_FIGURES, link_toml, read_link
from shardviz.hardware.machine import Machine, place_mesh
from shardviz.hardware.measured import read_measured
from shardviz.hardware.quantities import PEAK, SIZE, quoted
from shardviz.strict_table import StrictTable, parsed_table
from shardviz.user_files import open_file

FAMILIES: tuple[type[Family], ...] = (ChipTorus, SwitchedNodes)
MAX_BYTES = 64_000
READ = "shardviz.machine_file"
"""The audit event of a machine's file that is about to be read: who may read none refuses it there."""
MAX_NAME = 60

BETWEEN = {"cores": "chip", "network": "network"}
"""The tables of other links than a family's own, with their names in `Family.links`."""
KEYS = ("base", "name", "source", "chip", "device", "torus", "cores", "node", "network", "measured")


class MachineFileError(QuestionError):
    """An error of a machine's file `name`: at `key` (empty: the whole), on its line, with a `reason`."""

    def __init__(self, name: str, text: str, key: str, reason: str, hint: str = "") -> None:
        line = _line_of(text, key) if key else None
        where = quote(name, 200) if line is None else f"{quote(name, 200)}, line {line}"
        super().__init__(": ".join(filter(None, (where, key, reason))), hint)
        self.name, self.key, self.line, self.reason = name, key, line, reason


def named_machine(text: str, devices: int = 0) -> Machine:
    """The machine that ``v5p:4x4x8`` names, or a file such as ``my-cluster.toml``, for a mesh of so many
    `devices` where that is known. Raises `QuestionError` for a name of no hardware, and for a file that
    cannot be read or is wrong."""
    name = text.strip()
    if _is_file(name):
        return read_machine(Path(name))
    start = len(text) - len(text.lstrip())
    try:
        machine = parse_cluster(name.lower(), devices)
    except Fault as fault:
        where = place(text, start + fault.start, start + fault.stop)
        raise QuestionError(f"{fault.problem} {where}", fault.hint) from None
    if machine is None:
        hint = "name one as in v5p:4x4x8 or h100:2x8, or a file such as my-cluster.toml"
        raise QuestionError(f"{quote(name)} is not a machine", hint)
    return machine


def _is_file(name: str) -> bool:
    return name.lower().endswith(".toml") or os.sep in name


def read_machine(source: Path | str) -> Machine:
    """The machine of a TOML file, or of its text. Raises `MachineFileError` for what is wrong in it, and
    `QuestionError` for a file that cannot be read."""
    name = "machine.toml"
    if isinstance(source, Path):
        name, source = str(source), _content(source)
    fail: Callable[[str, str, str], ShardvizError] = partial(MachineFileError, name, source)
    table = parsed_table(source, tomllib.loads, "TOML", "look at that line", fail)
    table.only(KEYS)
    return _machine(table, Path(name).stem)


def _content(path: Path) -> str:
    """The text of a file, announced as `READ`; opened without waiting, as it may be a pipe."""
    shown = quote(str(path), 200)
    try:
        sys.audit(READ, str(path))
        with open_file(path.expanduser()) as file:
            read = file.read(MAX_BYTES + 1)
        if len(read) > MAX_BYTES:
            raise QuestionError(f"{shown} has more than {MAX_BYTES:,} bytes", "a machine's file is short")
        return read.decode("utf-8-sig")
    except FileNotFoundError:
        hint = "write one, or name hardware such as v5p:4x4x8"
        raise QuestionError(f"file {shown} does not exist", hint) from None
    except UnicodeDecodeError:
        raise QuestionError(f"{shown} is not text in UTF-8", "give a file in TOML") from None
    except (OSError, ValueError, RuntimeError) as error:
        reason = (isinstance(error, OSError) and error.strerror) or str(error)
        raise QuestionError(f"{shown} cannot be read: {reason}", "name hardware such as v5p:4x4x8") from None


def _machine(table: StrictTable, stem: str) -> Machine:
    name = _words(table, "name", stem)
    base = None
    if "base" in table:
        text = table.line("base", MAX_NAME)
        if _is_file(text.strip()):
            table.fail("base", "it is another file", "name hardware such as v5p:4x4x8")
        try:
            base = named_machine(text)
        except QuestionError as error:
            table.fail("base", error.message, error.hint)
    source = table.line("source", 200).strip() if "source" in table else ""
    if not source:
        source = f"{name}.toml" if base is None else f"{name}, over the figures of {base.name}: {base.source}"
    chip = _words(table, "chip", name if base is None else base.chip)
    device = DeviceFigures(()) if base is None else base.device
    if "device" in table:
        device = read_device(table.table("device"), device)
    family = _with_links_between(table, _family(table, None if base is None else base.family, chip))
    if not 1 <= family.devices <= MAX_DEVICES:
        table.fail(family.table, f"it makes {family.devices:,} devices", f"there are 1 to {MAX_DEVICES:,}")
    machine = Machine(name, device, family, source=source)
    if "measured" not in table:
        return machine
    measured = read_measured(table.tables("measured"), lambda mesh: place_mesh(machine, mesh).levels_for)
    return replace(machine, measured=measured)


def _family(table: StrictTable, before: Family | None, chip: str) -> Family:
    own = [family for family in FAMILIES if family.table in table]
    if len(own) > 1:
        kinds = " or ".join(family.words for family in own)
        tables = " or ".join(f"[{family.table}]" for family in own)
        table.fail(own[-1].table, f"a machine has {kinds}, not both", f"leave out {tables}")
    if before is None and not own:
        tables = " or ".join(f"[{family.table}]" for family in FAMILIES)
        hint = f'give base = "v5p:4x4x8", or {tables} and the keys below'
        table.fail(FAMILIES[0].table, "it is missing", hint)
    kind = own[0] if own else type(before)
    assert issubclass(kind, Family)
    if before is not None and not isinstance(before, kind):
        table.fail(kind.table, f"{chip} has {before.words}", f"write [{before.table}], or another base")
    return kind.read(table.table(kind.table, {}), before, chip)


def _words(table: StrictTable, key: str, otherwise: str) -> str:
    if key not in table:
        return otherwise
    text = table.line(key, MAX_NAME).strip()
    if not text:
        table.fail(key, "the text is empty", "write a name, or leave it out")
    return text


def _with_links_between(table: StrictTable, family: Family) -> Family:
    links = dict(family.links)
    hops = {"cores": ICI_HOP, "network": family.network_hop}
    for key, name in BETWEEN.items():
        if key in table:
            own = table.table(key)
            own.only([*LINK_FIGURES])
            links[name] = read_link(own, links.get(name), hops[key])
        elif name not in links and family.reaches(name):
            # Says that it is missing.
            table.table(key)
    return family.with_links(links)


def _line_of(text: str, key: str) -> int | None:
    """The line on which a key of a TOML text stands, from 1; None where it is not found."""
    table = ""
    tables: Counter[str] = Counter()
    for number, line in enumerate(text.split("\n"), 1):
        if header := re.match(r"\s*(\[\[?)\s*([\w.\-]+)", line):
            name = header[2]
            if header[1] == "[[":
                tables[name] += 1
                name = f"{name}.{tables[name]}"
            table = f"{name}."
            if name == key:
                return number
        elif (word := re.match(r"\s*([\w.\-]+)\s*=", line)) and f"{key}.".startswith(f"{table}{word[1]}."):
            return number
    return None


def machine_toml(machine: Machine, comment: str = "") -> str:
    """The text of a file that `read_machine` reads back to an equal machine; each line of `comment` stands
    above."""
    lines = [f"# {line}".rstrip() for line in comment.splitlines()]
    texts = {key: getattr(machine, key) for key in ("name", "chip", "source")}
    lines += [f"{key} = {quoted(text)}" for key, text in texts.items()]
    lines += ["", "[device]"]
    for key, (quantity, field) in DEVICE_FIGURES.items():
        if (value := getattr(machine.device, field)) is not None:
            lines.append(f"{key} = {value if quantity is SIZE else quantity.toml(value)}")
    if machine.device.matmuls:
        lines.append(f"matmuls = {quoted(machine.device.matmuls)}")
    lines += (f"peak.{dtype} = {PEAK.toml(peak)}" for dtype, peak in machine.device.peak)
    family = machine.family
    if family.table:
        lines += ["", f"[{family.table}]", *family.toml()]
    for key, name in BETWEEN.items():
        if name in family.links:
            lines += ["", f"[{key}]", *link_toml(family.links[name])]
    for times in machine.measured:
        lines += ["", "[[measured]]", *times.toml()]
    return "\n".join(lines) + "\n"
