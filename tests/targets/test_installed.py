"""Releases: the oldest jax that serves, and the libtpu that a jax asks for."""

from __future__ import annotations

import importlib.metadata
import re
import tomllib
from pathlib import Path

import pytest

from shardviz.cli import main
from shardviz.targets import EXTRAS, OLDEST_JAX, libtpu_mismatch, older_than, pip

PROJECT = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text(encoding="utf-8"))["project"]


@pytest.mark.parametrize(
    ("found", "needed", "older"),
    [
        ("0.8.2", "0.8.3", True),
        ("0.8.3", "0.8.3", False),
        ("0.12.0.1", "0.8.3", False),
        ("0.8.3.dev20260101", "0.8.3", False),
        ("0.10.2", "0.9.2", False),
        ("unknown", "0.8.3", True),
    ],
)
def test_releases_are_ordered_by_their_numbers(found, needed, older):
    assert older_than(found, needed) == older


def test_the_package_asks_for_the_oldest_jax_that_serves():
    assert f"jax>={OLDEST_JAX}" in PROJECT["dependencies"]


@pytest.mark.parametrize("extra", EXTRAS.values(), ids=lambda extra: extra.name)
def test_a_missing_extra_is_installed_as_the_package_does(extra):
    (requirement,) = PROJECT["optional-dependencies"][extra.name]
    assert requirement.partition(";")[0] == extra.requirement


def test_pip_is_that_of_the_interpreter_which_runs(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("sys.executable", str(tmp_path / ".venv/bin/python"))
    assert pip("install", "jax[tpu]") == ".venv/bin/python -m pip install 'jax[tpu]'"
    monkeypatch.setattr("sys.executable", "/opt/my python/bin/python3")
    assert pip("install", "jax") == "'/opt/my python/bin/python3' -m pip install jax"


@pytest.mark.parametrize("asked", ["libtpu==0.0.42.*; extra == 'tpu'", "libtpu ==0.0.42.*; extra == 'tpu'"])
@pytest.mark.parametrize(
    ("found", "wrong"),
    [("0.0.42", ""), ("0.0.42.1", ""), ("0.0.52", "0.0.42.*, and 0.0.52"), ("0.0.4", "and 0.0.4")],
)
def test_another_libtpu_than_jax_asks_for_is_said(monkeypatch, capsys, asked, found, wrong):
    installed = {"jax": "0.10.2", "libtpu": found}
    read = []

    def version(name):
        read.append(name)
        return installed.get(name, "1.0")

    monkeypatch.setattr(importlib.metadata, "version", version)
    monkeypatch.setattr(importlib.metadata, "requires", lambda _: ["jaxlib<=0.10.2", asked])
    said = libtpu_mismatch(tuple(installed.items()))
    assert bool(said) == bool(wrong)
    assert wrong in said
    with pytest.raises(SystemExit, match=r"^0$"):
        main(["info", "--width", "200"])
    out = capsys.readouterr().out
    assert ("jax.profiler.trace" in out) == bool(wrong)
    assert sorted(read) == sorted({*read})


@pytest.mark.parametrize("versions", [(), (("jax", "0.10.2"),), (("libtpu", "0.0.42"),)])
def test_without_one_of_the_two_nothing_is_wrong(versions):
    assert libtpu_mismatch(versions) == ""


def test_this_jax_says_which_libtpu_it_asks_for():
    """The form of its metadata is read: a release that writes it otherwise would be found here."""
    asked = [each for each in importlib.metadata.requires("jax") if re.match(r"libtpu ?==[0-9.]+\*;", each)]
    assert len(asked) == 1
