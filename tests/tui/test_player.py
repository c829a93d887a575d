"""Which round is shown, and when playing ends."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from shardviz.tui.step.page import SPEEDS, Rounds


@pytest.fixture(autouse=True)
def _without_clocks(monkeypatch):
    monkeypatch.setattr(Rounds, "set_interval", lambda *_, **__: SimpleNamespace(stop=lambda: None))
    monkeypatch.setattr(Rounds, "post_message", lambda *_: True)


def loaded(rounds: int, number: int = 0) -> Rounds:
    player = Rounds()
    player.page = SimpleNamespace()
    player.load(rounds)
    player.go(number)
    return player


def test_playing_stops_at_the_last_round_and_starts_over():
    player = loaded(2)
    player.play()
    player.automatic_refresh()
    assert (player.number, player.playing) == (1, True)
    player.automatic_refresh()
    assert (player.number, player.playing) == (2, False)
    player.automatic_refresh()
    assert player.number == 2
    player.play()
    assert (player.number, player.playing) == (0, True)


def test_stepping_pauses_and_stays_among_the_rounds():
    player = loaded(3)
    player.play()
    player.go(2)
    assert (player.number, player.playing) == (2, False)
    player.go(9)
    assert player.number == 3
    player.go(-1)
    assert player.number == 0


def test_other_rounds_keep_the_part_of_the_way():
    player = loaded(6, 3)
    player.load(14, player.fraction)
    assert player.number == 7
    player.load(0, player.fraction)
    assert (player.number, player.fraction) == (0, 0.0)
    player.play()
    assert not player.playing


def test_speeds_double_and_end():
    player = loaded(3)
    player.faster(1)
    assert player.speed == 2.0
    player.faster(9)
    assert player.speed == SPEEDS[-1] == 16
    player.faster(-9)
    assert player.speed == SPEEDS[0] == 0.25
