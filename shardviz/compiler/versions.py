"""Which versions are installed, known without importing any of them."""

from __future__ import annotations

PACKAGES = ("jax", "jaxlib", "libtpu", "jax-cuda12-plugin", "jax-cuda13-plugin")
"""What an answer can depend on, by name in the package index."""


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
