"""The page of a profile: every figure at every width."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from shardviz.hardware.machine_file import named_machine
from shardviz.notation.mesh import parse_mesh
from shardviz.profiles.profile import Profile, profile_of
from shardviz.profiles.trace_files import read_trace
from shardviz.render.palette import PLAIN
from shardviz.render.profile_view import MOST_DEVICES, MOST_STEPS, profile_view
from tests.profiles.traces import TPU_TEXT, tpu_plane, xspace


@pytest.fixture(scope="module")
def profile(tmp_path_factory: pytest.TempPathFactory) -> Profile:
    file = Path(tmp_path_factory.mktemp("profile")) / "vm.xplane.pb"
    planes = {f"/device:TPU:{number}": tpu_plane(late=5.0 * number) for number in range(4)}
    file.write_bytes(xspace(planes))
    return profile_of(
        read_trace(str(file)), {}, hlo=TPU_TEXT, mesh=parse_mesh("data=4"), machine=named_machine("v5e:2x2")
    )


def page(profile: Profile, width: int, verbose: bool = True) -> list[str]:
    lines = profile_view(profile, width, PLAIN, verbose)
    assert all(line.cell_len <= width for line in lines)
    return [line.plain for line in lines]


@pytest.mark.parametrize("width", [40, 60, 80, 100, 120, 200])
def test_every_figure_is_told(profile: Profile, width: int) -> None:
    words = " ".join(" ".join(page(profile, width)).split())
    for said in (
        "2 steps of 150 µs",
        "4 devices, TPU 0 to TPU 3",
        "mesh data=4",
        "15 µs",
        "6.55 GB/s",
        "7.5 µs",
        "TPU 3 was last in 2 of 2 runs (100 %) of all-reduce.3; others waited 60 µs",
        "step 0 of jit_step on TPU 0: 150 µs",
        "predicted on v5e:2x2",
    ):
        assert said in words


def test_the_short_page_says_what_waits_and_where(profile: Profile) -> None:
    lines = page(profile, 80, verbose=False)
    assert len(lines) <= 40
    words = " ".join(" ".join(lines).split())
    for said in (
        "2 steps of 150 µs",
        "median device: compute 135 µs (42 %), exposed 105 µs (33 %), idle 80 µs (25 %) of 320 µs",
        "TPU 3 was last in 2 of 2 runs (100 %) of all-reduce.3; others waited 60 µs",
        "predicted on v5e:2x2",
    ):
        assert said in words
    assert "devices" not in lines


def test_the_charts_have_one_scale(profile: Profile) -> None:
    ticks = [line for line in page(profile, 100) if "│20 µs" in line]
    assert len(ticks) == 2
    assert ticks[0] == ticks[1]


def test_wider_pages_have_more_columns(profile: Profile) -> None:
    heads = [next(line for line in page(profile, width) if "busbw" in line) for width in (100, 200)]
    assert "min to max" not in heads[0]
    assert all(words in heads[1] for words in ("min to max", "algbw", "source", "predicted"))


def test_many_devices_and_steps_are_counted(profile: Profile) -> None:
    many = replace(
        profile,
        devices=profile.devices * 10,
        steps=tuple(replace(profile.steps[0], number=number) for number in range(30)),
    )
    lines = page(many, 100)
    assert f"  and {40 - MOST_DEVICES} devices, which --json lists" in lines
    assert f"  and {30 - MOST_STEPS} shorter steps, which --json lists" in lines


def test_a_profile_without_collectives_says_nothing_of_them(profile: Profile) -> None:
    alone = replace(
        profile, collectives=(), stragglers=(), predicted=None, mesh=None, steps=profile.steps[:1]
    )
    lines = page(alone, 100)
    assert not {"collectives", "waited for", "steps"} & {*lines}
    assert not any("predicted" in line for line in lines)
