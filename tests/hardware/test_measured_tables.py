"""Tables of what was measured: nonsense is refused at its key, on its line."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from shardviz.hardware.machine_file import MachineFileError, read_machine
from shardviz.hardware.measured import KEYS, POINT_KEYS, REGIME_KEYS

HEAD = 'base = "v5e:4x4"\n'
TABLE = """[[measured]]
op = "psum"
mesh = "X=4,Y=4"
axes = "Y"
dtype = "bf16"
noise = 0.05
regimes = [
    {from = "4KiB", latency = "3us", bandwidth = "80GB/s"},
    {from = "1MiB", latency = "1us", latency_error = "0.1us", bandwidth = "70GB/s", bandwidth_error = 1e9},
]
"""


def test_a_table_is_read():
    (found,) = read_machine(HEAD + TABLE).measured
    assert (found.op, found.mesh, found.axes, found.dtype, found.noise) == (
        "psum",
        "X=4,Y=4",
        ("Y",),
        "bf16",
        0.05,
    )
    assert [(each.start, each.latency, each.bandwidth) for each in found.regimes] == [
        (4096, pytest.approx(3e-6), 80e9),
        (2**20, pytest.approx(1e-6), 70e9),
    ]
    assert [level.kind for level in found.links] == ["line"]


@pytest.mark.parametrize(
    ("old", "new", "message", "hint"),
    [
        ('"psum"', '"pmean"', "line 3: measured.1.op: 'pmean' is none of all_gather", "psum"),
        ('op = "psum"\n', "", "measured.1.op: it is missing", ""),
        ('mesh = "X=4,Y=4"\n', "", "measured.1.mesh: it is missing", ""),
        ("dtype =", "dtipe =", "line 6: measured.1.dtipe: there is no such key", "dtype?"),
        ('"X=4,Y=4"', '"X=4,Y=2"', "line 4: measured.1.mesh: machine has 16 devices", "--mesh"),
        ('"X=4,Y=4"', '"X=4 Y"', "line 4: measured.1.mesh: ", ""),
        ('axes = "Y"', 'axes = "Z"', "line 5: measured.1.axes: X=4,Y=4 has no axis 'Z'", "X, Y"),
        ('axes = "Y"', 'axes = "Y,Y"', "line 5: measured.1.axes: an axis is named twice", "once"),
        (
            '"X=4,Y=4"\naxes = "Y"',
            '"X=16,Y=1"\naxes = "Y"',
            "measured.1.axes: its groups have one device",
            "",
        ),
        ('"bf16"', '"bf17"', "line 6: measured.1.dtype: ", ""),
        ("0.05", "-1", "line 7: measured.1.noise: '-1' is not a number from 0 to 100", "20 %"),
        ("0.05", "true", "line 7: measured.1.noise: 'True' is not a number", "20 %"),
        ('"3us"', '"3GB"', "line 8: measured.1.regimes.1.latency: ", "1us"),
        ('"3us"', '"-3us"', "measured.1.regimes.1.latency: -3us is outside the range 0 to 1 s", ""),
        ('"80GB/s"', "80", "measured.1.regimes.1.bandwidth: 80 is outside the range 1 kB/s", ""),
        ('"80GB/s"', '"nanGB/s"', "measured.1.regimes.1.bandwidth: ", ""),
        ('"1MiB"', '"4KiB"', "measured.1.regimes.2.from: it is not above that of the regime before", "small"),
        ('"1MiB"', '"-1MiB"', "measured.1.regimes.2.from: -1MiB is outside the range 0 to 1 PiB", ""),
        ("from =", "form =", "measured.1.regimes.1.form: there is no such key", "from?"),
        (
            'latency = "3us", bandwidth = "80GB/s"',
            'latency = 0, bandwidth = "inf"',
            "it takes no time",
            "one",
        ),
    ],
)
def test_nonsense_is_refused_at_its_key(old, new, message, hint):
    with pytest.raises(MachineFileError) as error:
        read_machine(HEAD + TABLE.replace(old, new, 1))
    assert message in error.value.message
    assert error.value.message.count("measured.1") == 1
    assert hint in error.value.hint


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (f"measured = 3\n{HEAD}", "measured: it is a number, not a list"),
        (f"{HEAD}[measured]\nop = 1", "measured: it is a table, not a list"),
        (HEAD + TABLE[: TABLE.index("regimes")], "measured.1.regimes: it is missing"),
        (HEAD + TABLE[: TABLE.index("regimes")] + "regimes = []", "measured.1.regimes: there are 0"),
        (HEAD + TABLE + TABLE, "line 13: measured.2.op: psum over Y of X=4,Y=4 is given twice"),
        (HEAD + TABLE + TABLE.replace('"Y"', '"Q"'), "line 15: measured.2.axes: "),
    ],
)
def test_tables_that_are_none_are_refused(text, message):
    with pytest.raises(MachineFileError) as error:
        read_machine(text)
    assert message in error.value.message


@pytest.mark.parametrize(
    ("points", "message"),
    [
        ("[]", "line 12: measured.1.points: there are 0"),
        ('[{size = "1MiB"}]', "measured.1.points.1.time: it is missing"),
        ('[{size = "1MiB", time = "0s"}]', "measured.1.points.1.time: 0s is outside the range"),
        ('[{size = "1MiB", time = "3m"}]', "measured.1.points.1.time: 'm' is not a unit of time"),
        ('[{size = 0, time = "3us"}]', "measured.1.points.1.size: it is 0 bytes, which sends nothing"),
        ('[{size = 9, time = "3us"}, {size = 9, time = "3us"}]', "measured.1.points.2.size: it is not above"),
        ('[{bytes = 9, time = "3us"}]', "measured.1.points.1.bytes: there is no such key"),
    ],
)
def test_points_that_are_none_are_refused(points, message):
    with pytest.raises(MachineFileError) as error:
        read_machine(f"{HEAD}{TABLE}points = {points}\n")
    assert message in error.value.message


def test_the_page_names_every_key():
    page = (Path(__file__).parents[2] / "docs" / "machines.md").read_text(encoding="utf-8")
    rows = "\n".join(line.split("|")[1] for line in page.splitlines() if line.startswith("| `measured"))
    keys = {f"measured.{key}" for key in KEYS}
    keys |= {f"measured.regimes.{key}" for key in REGIME_KEYS}
    keys |= {f"measured.points.{key}" for key in POINT_KEYS}
    assert set(re.findall(r"`([\w.]+)`", rows)) == keys
