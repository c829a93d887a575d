"""Files of profiles: found in folders, refused in one sentence, read in little memory."""

from __future__ import annotations

import subprocess
import sys
from contextlib import suppress
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, strategies as st

from shardviz.errors import QuestionError
from shardviz.profiles.profile import profile_of
from shardviz.profiles.trace_files import profile_files, read_trace
from shardviz.profiles.wire_format import fields
from tests.profiles.traces import tpu_plane, xspace

TPU = {"/device:TPU:0": tpu_plane()}
TABLES = (4, 5)
"""Fields of a plane: the names of its events and of their stats, by number."""


def test_the_newest_profile_of_a_folder_with_all_its_hosts(tmp_path: Path) -> None:
    for day, hosts in (("2026_11_22", "ab"), ("2026_11_23", "cd")):
        folder = tmp_path / "plugins" / "profile" / day
        folder.mkdir(parents=True)
        for host in hosts:
            (folder / f"{host}.xplane.pb").write_bytes(b"x")
    assert [file.name for file in profile_files(str(tmp_path))] == ["c.xplane.pb", "d.xplane.pb"]
    older = tmp_path / "plugins" / "profile" / "2026_11_22"
    assert [file.name for file in profile_files(str(older))] == ["a.xplane.pb", "b.xplane.pb"]


def test_hosts_that_write_in_different_seconds_are_read_together(tmp_path: Path) -> None:
    for second, hosts in (("01", "abc"), ("30", "ab"), ("31", "c"), ("32", "d")):
        folder = tmp_path / "plugins" / "profile" / f"2026_11_23_13_30_{second}"
        folder.mkdir(parents=True)
        for host in hosts:
            (folder / f"{host}.xplane.pb").write_bytes(b"x")
    found = profile_files(str(tmp_path))
    assert [(file.name[0], file.parent.name[17:]) for file in found] == [
        ("a", "30"),
        ("b", "30"),
        ("c", "31"),
        ("d", "32"),
    ]
    later = tmp_path / "plugins" / "profile" / "2026_11_23_13_31_40"
    later.mkdir()
    (later / "e.xplane.pb").write_bytes(b"x")
    assert [file.name for file in profile_files(str(tmp_path))] == ["e.xplane.pb"]


def test_a_file_may_have_any_name(tmp_path: Path, profiled_folder: Path) -> None:
    (xplane,) = profiled_folder.rglob("*.xplane.pb")
    (tmp_path / "one").write_bytes(xplane.read_bytes())
    found = read_trace(str(tmp_path / "one"))
    assert [device.name for device in found.devices] == [f"CPU {number}" for number in range(8)]
    assert found.programs
    assert not found.notes


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("a.xplane.pb", b"", "is empty"),
        ("a.xplane.pb", b"\x7fELF" + bytes(range(256)) * 9, "cannot be read as a profile"),
        ("a.xplane.pb", b"hello, world\n" * 99, "cannot be read as a profile"),
        ("a.json", b'{"kind": "profile"}', "cannot be read as a profile"),
        ("a.trace.json.gz", b"\x1f\x8b", "is a trace for viewers"),
    ],
)
def test_what_is_no_profile_is_refused_in_a_sentence(
    name: str, content: bytes, words: str, tmp_path: Path
) -> None:
    (tmp_path / name).write_bytes(content)
    with pytest.raises(QuestionError, match=words) as refused:
        read_trace(str(tmp_path / name))
    assert "\n" not in refused.value.message
    assert refused.value.hint


@pytest.mark.parametrize("kept", [0.4, 0.999])
def test_a_profile_that_breaks_off_is_refused(kept: float, tmp_path: Path) -> None:
    whole = xspace(TPU)
    (tmp_path / "cut.xplane.pb").write_bytes(whole[: int(len(whole) * kept)])
    with pytest.raises(QuestionError, match="cannot be read as a profile"):
        read_trace(str(tmp_path / "cut.xplane.pb"))


@cache
def one_profile() -> bytes:
    """A profile with its tables in order: protobuf writes the entries of a map in any, each time anew."""
    profile = xspace({"/device:TPU:0": tpu_plane(runs=1)})
    _, at, stop = next(fields(profile, 0, len(profile)))
    pieces, rest = [profile[:at]], []
    for number, _, after in fields(profile, at, stop):
        rest.append((number, profile[at:after] if number in TABLES else b"", profile[at:after]))
        at = after
    pieces += [piece for *_, piece in sorted(rest, key=lambda each: each[:2])]
    return b"".join([*pieces, profile[stop:]])


@given(st.lists(st.tuples(st.floats(0, 1, exclude_max=True), st.integers(0, 255)), min_size=1, max_size=6))
def test_damage_is_refused_or_read_past(damage: list[tuple[float, int]]) -> None:
    data = bytearray(one_profile())
    for share, byte in damage:
        data[int(share * len(data))] = byte
    with TemporaryDirectory() as folder:
        file = Path(folder) / "damaged.xplane.pb"
        file.write_bytes(data)
        with suppress(QuestionError):
            profile_of(read_trace(str(file)), {})


def test_a_number_that_is_written_as_another_kind_is_refused(tmp_path: Path) -> None:
    whole, as_whole_number, as_fraction = one_profile(), b"\x20\x07", b"\x10\x07"
    assert as_whole_number in whole
    (tmp_path / "a.xplane.pb").write_bytes(whole.replace(as_whole_number, as_fraction))
    with pytest.raises(QuestionError, match="cannot be read as a profile: it is damaged"):
        read_trace(str(tmp_path / "a.xplane.pb"))


def test_names_without_a_profile(tmp_path: Path) -> None:
    for name, words in (
        ("", "does not exist"),
        (str(tmp_path / "x"), "does not exist"),
        (str(tmp_path), "folder without"),
    ):
        with pytest.raises(QuestionError, match=words):
            profile_files(name)


def test_progress_counts_the_bytes_of_all_files(tmp_path: Path) -> None:
    for host in "ab":
        (tmp_path / f"{host}.xplane.pb").write_bytes(xspace(TPU))
    seen: list[tuple[int, int]] = []
    read_trace(str(tmp_path), lambda done, size: seen.append((done, size)))
    assert {size for _, size in seen} == {2 * len(xspace(TPU))}
    assert [done for done, _ in seen] == sorted(done for done, _ in seen)
    assert seen[-1][0] == seen[-1][1] or seen[-1][0] > 0.95 * seen[-1][1]


MEMORY = """
import resource, sys
from shardviz.profiles.trace_files import read_trace
from shardviz.profiles.profile import profile_of
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
profile_of(read_trace(sys.argv[1]), {})
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)
"""


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="maxrss has another unit elsewhere")
def test_a_long_profile_takes_less_than_twice_its_size(tmp_path: Path, profiled_folder: Path) -> None:
    (file,) = profiled_folder.rglob("*.xplane.pb")
    # One message after the other is a message with all planes.
    data = file.read_bytes() * (60_000_000 // file.stat().st_size)
    (tmp_path / "long.xplane.pb").write_bytes(data)
    command = [sys.executable, "-c", MEMORY, str(tmp_path / "long.xplane.pb")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=500, check=True)
    assert int(done.stdout) * 1024 < 2 * len(data)
