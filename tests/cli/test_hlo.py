"""`shardviz hlo`: a program and a folder of them, files that are no program, and what is saved."""

from __future__ import annotations

import contextlib
import gzip
import io
import json
import re
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from shardviz.cli.group import run
from shardviz.cli.hlo import read_text
from shardviz.errors import ShardvizError
from shardviz.hlo import text_file
from shardviz.units import human_bytes
from shardviz.user_files import EXAMPLES

Capture = pytest.CaptureFixture[str]
PROGRAM = EXAMPLES / "mlp.txt"


def document(capsys: Capture, *words: str) -> dict[str, Any]:
    assert run(["hlo", *words, "--json"]) == 0
    out, err = capsys.readouterr()
    assert err == ""
    found: dict[str, Any] = json.loads(out)
    return found


def test_for_a_person(capsys: Capture) -> None:
    assert run(["hlo", str(PROGRAM), "--width", "80"]) == 0
    out, err = capsys.readouterr()
    assert err == ""
    assert out.splitlines()[0] == "jit_step  8 partitions, scheduled"
    assert "all: 5 runs, 11 MiB sent per device" in out
    assert run(["hlo", str(PROGRAM), "--width", "80", "-v"]) == 0
    out, err = capsys.readouterr()
    assert "all                 100 %     5  11 MiB" in out
    assert "\nmodel.py:15      82 %     3  9 MiB\n" in out
    assert run(["hlo", str(PROGRAM), "--width", "80", "--picture", "--mesh", "X=2,Y=4"]) == 0
    out, err = capsys.readouterr()
    assert err == ""
    assert "\n││  fusion.1 = bf16[512,1024] fusion: convolution(acts, w2)\n" in out


def test_the_mesh_is_found_unless_it_is_given(capsys: Capture) -> None:
    found = document(capsys, str(PROGRAM))
    assert found["is_mesh_inferred"]
    assert found["mesh"]["axis_sizes"] == [2, 4]
    given = document(capsys, str(PROGRAM), "--mesh", "X=2,Y=4", "--device-order", "7,6,5,4,3,2,1,0")
    assert not given["is_mesh_inferred"]
    assert given["collectives"][2]["groups"] == [[7, 6, 5, 4], [3, 2, 1, 0]]


def test_a_packed_file_and_windows_lines_are_read(tmp_path: Path, capsys: Capture) -> None:
    text = PROGRAM.read_bytes()
    whole = document(capsys, str(PROGRAM))
    for name, data in (
        ("packed.gz", gzip.compress(text)),
        ("windows.txt", b"\xef\xbb\xbf" + text.replace(b"\n", b"\r\n")),
        ("old-mac.txt", text.replace(b"\n", b"\r")),
    ):
        path = tmp_path / name
        path.write_bytes(data)
        assert document(capsys, str(path)) == whole


def test_standard_input(monkeypatch: pytest.MonkeyPatch, capsys: Capture) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BufferedReader(io.BytesIO(PROGRAM.read_bytes()))))
    assert document(capsys, "-")["module"] == "jit_step"
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BufferedReader(io.BytesIO())))
    refused(capsys, "standard input is empty", "", "-")


class Terminal(io.RawIOBase):
    """What is typed, a line a read, then an end for each ctrl-D."""

    def __init__(self, *lines: bytes) -> None:
        self.lines = [*lines]
        self.ends = 0

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        line = self.lines.pop(0) if self.lines else b""
        self.ends += not line
        buffer[: len(line)] = line
        return len(line)


def test_one_end_of_input_is_enough_on_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    for lines in ((), (b"HloModule m\n",), (b"HloModule m\n", b"\n")):
        terminal = Terminal(*lines)
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BufferedReader(terminal)))
        with contextlib.suppress(ShardvizError):
            assert read_text("-") == b"".join(lines).decode()
        assert terminal.ends == 1


PROGRAM_BYTES = PROGRAM.read_bytes()


@pytest.mark.parametrize(
    ("data", "shown", "note"),
    [
        (PROGRAM_BYTES[: PROGRAM_BYTES.index(b"%all-gather-done =")], 3, "the text breaks off inside 'main'"),
        (PROGRAM_BYTES[: PROGRAM_BYTES.index(b"ENTRY")], 1, "the text breaks off before its ENTRY"),
        (
            PROGRAM_BYTES.replace(b"replica_groups=[2,4]<=[8]", b"replica_groups=[2,4]<=[9]"),
            2,
            "line 31: 'all-reduce.1'",
        ),
        (PROGRAM_BYTES.replace(b"{{0,1}", b"{{0,99}"), 2, "'collective-permute-start' cannot be read"),
        (PROGRAM_BYTES.replace(b"model.py", b"mod\xe9l.py"), 3, "not UTF-8 in"),
        (gzip.compress(PROGRAM_BYTES)[:-9], 3, "breaks off"),
    ],
    ids=[
        "cut off",
        "without its entry",
        "iota that does not multiply out",
        "impossible id",
        "latin-1",
        "packed and cut off",
    ],
)
def test_a_damaged_text_gives_what_can_be_read(
    data: bytes, shown: int, note: str, tmp_path: Path, capsys: Capture
) -> None:
    path = tmp_path / "damaged.txt"
    path.write_bytes(data)
    whole = (shown == 3 and b"fusion.2" in data) or data.startswith(b"\x1f\x8b")
    for words in (("--json",), ("--picture",)):
        assert run(["hlo", str(path), "--mesh", "X=2,Y=4", *words]) == (0 if whole else 2)
        out, err = capsys.readouterr()
        assert note in err
        *notes, last = err.splitlines()
        assert all(line.startswith("shardviz: note: ") for line in notes)
        assert last.startswith("shardviz: note: " if whole else "hint: ")
        if words == ("--json",):
            assert len(json.loads(out)["collectives"]) == shown
        elif words == ("--picture",):
            assert sum("▸" in line for line in out.splitlines()) == shown


WRONG = {
    "nothing": (b"", "is empty", "as_text"),
    "blanks": (b" \n\n", "is empty", "as_text"),
    "words": (b"once upon a time\n", "neither HLO nor StableHLO", "as_text"),
    "an executable": (b"\x7fELF\x02\x01\x01\x00\x00" + bytes(range(256)) * 50, "is binary, not text", "dump"),
    "UTF-16": (PROGRAM.read_text().encode("utf-16"), "is UTF-16", "iconv"),
    "UTF-16 without a mark": (PROGRAM.read_text().encode("utf-16-le"), "is UTF-16", "iconv"),
    "packed nonsense": (b"\x1f\x8bnonsense", "cannot", ""),
    "a program on one line": (PROGRAM_BYTES.replace(b"\n", b" "), "no instruction on a line", "line ends"),
    "a header alone": (b"HloModule x\n", "no instruction on a line", "as_text"),
    "an impossible group": (
        b"HloModule m, num_partitions=2\n\nENTRY %e {\n  %a = s8[] all-reduce(), replica_groups={{0,7}}\n}\n",
        "line 4: 'a' cannot be read: there is no device 7 among the 2",
        "as_text",
    ),
    "2 MB of brackets": (b"[" * 2_000_000, "neither HLO nor StableHLO", "as_text"),
    "2 MB of braces": (b"{\n" * 1_000_000, "neither HLO nor StableHLO", "as_text"),
}


@pytest.mark.parametrize("name", WRONG)
def test_what_is_no_program_is_one_sentence_and_one_hint(name: str, tmp_path: Path, capsys: Capture) -> None:
    data, said, hint = WRONG[name]
    path = tmp_path / "file"
    path.write_bytes(data)
    refused(capsys, said, hint, str(path))


def test_what_a_packed_file_unpacks_to_is_bounded(
    tmp_path: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(text_file, "MAX_UNPACKED", 2**23)
    path = tmp_path / "zeros.gz"
    path.write_bytes(gzip.compress(b"0" * 2**24))
    refused(capsys, "unpacks to more than 8,388,608 bytes", "gunzip", str(path))
    path.write_bytes(gzip.compress(PROGRAM_BYTES))
    assert run(["hlo", str(path)]) == 0


def refused(capsys: Capture, said: str, hint: str, *words: str) -> None:
    started = time.process_time()
    assert run(["hlo", *words]) == 2
    assert time.process_time() - started < 10
    out, err = capsys.readouterr()
    assert out == ""
    first, *rest = err.splitlines()
    assert first.startswith("shardviz: error: ")
    assert said in first
    assert len(rest) == 1
    assert rest[0].startswith("hint: ")
    assert hint in rest[0]
    assert len(err) < 600


def test_wrong_questions(tmp_path: Path, capsys: Capture) -> None:
    folder = tmp_path / "folder"
    folder.mkdir()
    (folder / "module_1.jit_f.before_optimizations.txt").write_text("")
    refused(capsys, "is a folder", "module_1.jit_f.before_optimizations.txt", str(folder))
    (folder / "module_1.jit_f.cpu_after_optimizations.txt").write_text("")
    refused(capsys, "is empty", "save compiled.as_text()", str(folder))
    refused(capsys, "a file without a name", "standard input", "")
    refused(capsys, "does not exist", "as_text", str(tmp_path / "missing"))
    refused(capsys, "is binary", "dump", "/dev/zero")
    refused(capsys, "cannot read", "", str(PROGRAM / "below"))
    refused(
        capsys, "runs on 8 devices, the mesh X=2,Y=2 has 4", "8 devices", str(PROGRAM), "--mesh", "X=2,Y=2"
    )
    refused(capsys, "cannot be combined", "leave out", str(PROGRAM), "--picture", "--json")
    refused(capsys, "--picture and --why", "leave out", str(PROGRAM), "--picture", "--why")
    refused(capsys, "--why and --time", "add --json", str(PROGRAM), "--why", "--time")
    refused(capsys, "--device-order", "--mesh", str(PROGRAM), "--device-order", "0,1")
    refused(
        capsys,
        "'all-gathr' is not an operation",
        "did you mean all-gather?",
        str(PROGRAM),
        "--op",
        "all-gathr",
    )
    refused(capsys, "'Z' is not a mesh axis", "X, Y", str(PROGRAM), "--mesh", "X=2,Y=4", "--axis", "Z")
    refused(capsys, "no loop is called 'w'", "its loops are", str(PROGRAM), "--trips", "w=3")
    mlir = tmp_path / "lowered.mlir"
    mlir.write_text("module @m {\n  func.func public @main() {\n    return\n  }\n}\n")
    refused(capsys, "not compiled yet", "compile()", str(mlir), "--picture")


FINAL = "module_000{}.jit_{}.cpu_after_optimizations.txt"
QUIET = """HloModule jit_add, num_partitions=8

ENTRY %main (x: f32[8]) -> f32[8] {
  ROOT %x = f32[8]{0} parameter(0)
}
"""


@pytest.fixture
def dumps(tmp_path: Path) -> Path:
    """A folder as XLA leaves one: two programs that send, one that does not, and other files."""
    for number, name in ((4, "g"), (2, "f")):
        (tmp_path / FINAL.format(number, name)).write_bytes(PROGRAM.read_bytes())
        (tmp_path / f"module_000{number}.jit_{name}.before_optimizations.txt").write_text("HloModule no\n")
    (tmp_path / FINAL.format(3, "add")).write_text(QUIET)
    (tmp_path / "module_0004.jit_g.cpu_after_optimizations-buffer-assignment.txt").write_text("no module")
    return tmp_path


def test_a_folder_of_dumps(dumps: Path, capsys: Capture) -> None:
    assert run(["hlo", str(PROGRAM), "--json"]) == 0
    one = json.loads(capsys.readouterr().out)
    assert run(["hlo", str(dumps), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert [each["file"] for each in found["modules"]] == [
        FINAL.format(number, name) for number, name in ((2, "f"), (3, "add"), (4, "g"))
    ]
    assert found["modules"][0]["program"] == found["modules"][2]["program"] == one
    assert run(["hlo", str(dumps), "--width", "200"]) == 0
    out, err = capsys.readouterr()
    assert err == ""
    sent = sum(total["wire_bytes"] for total in one["totals"].values())
    runs = sum(total["count"] for total in one["totals"].values())
    lines = [line.split() for line in out.splitlines()]
    assert lines[1][:4] == ["2", "jit_f", "8", str(runs)]
    assert lines[3][:3] == ["all", "8", str(2 * runs)]
    assert human_bytes(2 * sent) in out
    assert "1 module sends nothing" in out
    # Wherever its line is broken.
    assert f"shardvizhlo{dumps / FINAL.format(4, 'g')}" in "".join(out.split())


def test_what_a_tpu_leaves_last_is_its_program(tmp_path: Path, capsys: Capture) -> None:
    name = "module_0004.jit_program.cl_933746096.after_{}.txt"
    (tmp_path / name.format("codegen")).write_bytes(PROGRAM.read_bytes())
    (tmp_path / name.format("optimizations")).write_text(QUIET)
    assert run(["hlo", str(tmp_path)]) == 0
    assert "all-" in capsys.readouterr().out


def test_a_module_that_cannot_be_read_leaves_the_others(dumps: Path, capsys: Capture) -> None:
    (dumps / FINAL.format(5, "bad")).write_text("nothing of HLO")
    assert run(["hlo", str(dumps), "--machine", "v5e:2x4", "--mesh", "X=2,Y=4"]) == 2
    out = capsys.readouterr().out
    # A long path is broken where the line ends.
    assert "jit_bad.cpu_after_optimizations.txt:thisisneitherHLO" in "".join(out.split())
    assert re.search(r"jit_f +8 .* [µm]s", out)


@pytest.mark.parametrize("option", ["--picture", "--trips a=3"])
def test_options_for_one_program_of_a_folder(option: str, dumps: Path, capsys: Capture) -> None:
    words = f"{option.split()[0]} needs one program"
    refused(capsys, words, FINAL.format(4, "g"), str(dumps), *option.split())


def test_a_module_that_breaks_off_does_not_send_nothing(dumps: Path, capsys: Capture) -> None:
    (dumps / FINAL.format(5, "cut")).write_text(PROGRAM.read_text().partition("ENTRY")[0])
    assert run(["hlo", str(dumps)]) == 2
    out = capsys.readouterr().out
    assert "1 module sends nothing" in out
    assert "jit_cut.cpu_after_optimizations.txt:thetextbreaksoff" in "".join(out.split())
    assert run(["hlo", str(dumps), "--save", str(dumps / "kept.json")]) == 2
    assert "is not written: the text breaks off" in capsys.readouterr().err


def test_filters_choose_among_the_collectives_of_a_folder(dumps: Path, capsys: Capture) -> None:
    words = ["hlo", str(dumps), "--op", "all-reduce", "--axis", "axis_1"]
    assert run(words) == 0
    out = capsys.readouterr().out
    assert [line.split()[3] for line in out.splitlines()[1:3]] == ["3", "3"]
    assert "1 module sends nothing of the kind" in out
    assert run([*words, "--json"]) == 0
    first, quiet, _ = json.loads(capsys.readouterr().out)["modules"]
    assert {each["op"] for each in first["program"]["collectives"]} == {"all-reduce"}
    assert quiet["program"]["collectives"] == []
    refused(capsys, "'Z' is not a mesh axis", "axis_0, axis_1", str(dumps), "--axis", "Z")


def test_a_saved_report_is_what_diff_reads(dumps: Path, capsys: Capture) -> None:
    """Also of all modules of a folder, whose seconds have three digits as those of one."""
    for name, source in (("one", PROGRAM), ("all", dumps)):
        kept = dumps / f"{name}.json"
        words = [str(source), "--machine", "v5e:2x4", "--top", "1"]
        assert run(["hlo", *(words if source == PROGRAM else words[:-2]), "--save", str(kept)]) == 0
        assert run(["diff", str(kept), *words[:-2], "--json"]) == 0
        found = json.loads(capsys.readouterr().out.partition("\n{")[2].join(("{", "")))
        assert found["changes"] == []
        assert found["before"] == found["after"]
        assert found["before"]["seconds"] == float(f"{found['before']['seconds']:.3g}") > 0


def test_a_folder_of_which_nothing_can_be_read_is_not_saved(tmp_path: Path, capsys: Capture) -> None:
    for number in (1, 2):
        (tmp_path / f"module_000{number}.jit_f.cpu_after_optimizations.txt").write_text("garbage")
    assert run(["hlo", str(tmp_path), "--save", str(tmp_path / "out.json")]) == 2
    assert "is not written: this is neither HLO nor" in capsys.readouterr().err
    assert not (tmp_path / "out.json").exists()


def test_a_saved_report_is_printed(tmp_path: Path, capsys: Capture) -> None:
    kept = str(tmp_path / "kept.json")
    assert run(["hlo", str(PROGRAM), "--machine", "v5e:2x4", "--save", kept]) == 0
    capsys.readouterr()
    saved = json.loads(Path(kept).read_text())
    assert document(capsys, kept) == saved
    assert run(["hlo", kept]) == 0
    page = capsys.readouterr().out
    assert all(each["op"] in page and each["place"] in page for each in saved["collectives"])
    assert "machine v5e:2x4" in page
    refused(capsys, "--mesh needs a program;", "leave it out", kept, "--mesh", "X=8")
    (tmp_path / "kept.json").write_text('{"kind": "summary"}')
    refused(capsys, "kept.json'", "write it anew", kept)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("mine.py", "holds something else"),
        ("", "is not a file"),
        ("-", "is not the name of a file"),
        ("folder", "is not a file"),
    ],
)
def test_what_is_not_a_report_is_not_written_over(
    name: str, message: str, tmp_path: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine.py").write_text("x = 1")
    (tmp_path / "folder").mkdir()
    refused(capsys, message, "--help", str(PROGRAM), "--save", name)
    assert (tmp_path / "mine.py").read_text() == "x = 1"


def test_a_report_is_written_over_its_like_and_of_a_whole_program(tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert run(["hlo", str(PROGRAM), "--save", "new/one.json"]) == 0
    assert run(["hlo", str(PROGRAM), "--save", "new/one.json"]) == 0
    (tmp_path / "cut.txt").write_bytes(PROGRAM.read_bytes()[:-900])
    assert run(["hlo", "cut.txt", "--save", "cut.json"]) == 2
    assert not (tmp_path / "cut.json").exists()


def test_a_file_that_ships_is_found_in_any_folder(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert run(["hlo", "mlp.txt", "--mesh", "X=2,Y=4"]) == 0
    assert "all-reduce Y" in capsys.readouterr().out
    (tmp_path / "mlp.txt").write_text("no program")  # one's own comes first
    assert run(["hlo", "mlp.txt"]) == 2
    assert run(["hlo", "step.py"]) == 2
    assert "shardviz program step.py:FUNCTION" in capsys.readouterr().err
