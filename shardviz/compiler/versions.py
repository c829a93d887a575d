"""Which versions are installed, known without importing any of them."""

from __future__ import annotations

import re
from collections.abc import Sequence

PACKAGES = ("jax", "jaxlib", "libtpu", "jax-cuda12-plugin", "jax-cuda13-plugin")
"""What an answer can depend on, by name in the package index."""
OLDEST_JAX = "0.8.3"
"""The oldest release on which the tests pass. The libtpu of those before knows no TPU 7x."""


def installed_versions() -> tuple[tuple[str, str], ...]:
    """(name, version) of Python, shardviz and those of `PACKAGES` that are installed."""
    from platform import python_version

    return (("python", python_version()), *versions_of("shardviz", *PACKAGES))


def versions_of(*packages: str) -> tuple[tuple[str, str], ...]:
    """(name, version) of those packages that are installed."""
    from importlib.metadata import PackageNotFoundError, version

    found = []
    for package in packages:
        try:
            found.append((package, version(package)))
        except PackageNotFoundError:
            continue
    return tuple(found)


def older_than(found: str, needed: str) -> bool:
    """Whether a release as "0.8.0.dev1" comes before another; only its leading numbers count."""
    return _numbers(found) < _numbers(needed)


def libtpu_mismatch(versions: Sequence[tuple[str, str]]) -> str:
    """What is wrong with libtpu beside jax, in one sentence; "" where nothing is, or one of them is not here.

    `versions` are those of `installed_versions`.

    Each release of jax names the libtpu that it was built with in the metadata of its extra "tpu". JAX loads
    any that is installed in every process that takes a profile, and another one can end that process.
    """
    from importlib.metadata import requires

    found = dict(versions)
    if not {"jax", "libtpu"} <= found.keys():
        return ""
    for requirement in requires("jax") or ():
        asked = re.match(r"libtpu ?==((?:[0-9]+\.)*)\*", requirement)
        if asked and not f"{found['libtpu']}.".startswith(asked[1]):
            return (
                f"jax {found['jax']} asks for libtpu {asked[1]}*, and {found['libtpu']} is installed: "
                "jax.profiler.trace can end the process"
            )
    return ""


def _numbers(version: str) -> tuple[int, ...]:
    leading = re.match(r"\d+(?:\.\d+)*", version)
    return tuple(map(int, leading[0].split("."))) if leading else ()
