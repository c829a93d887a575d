"""Which versions are installed, known without importing any of them."""

from __future__ import annotations

PACKAGES = ("jax", "jaxlib", "libtpu", "jax-cuda12-plugin", "jax-cuda13-plugin")
"""What an answer can depend on, by name in the package index."""


def installed_versions() -> tuple[tuple[str, str], ...]:
    """(name, version) of Python, shardviz and those of `PACKAGES` that are installed."""
    from importlib.metadata import PackageNotFoundError, version
    from platform import python_version

    found = [("python", python_version())]
    for package in ("shardviz", *PACKAGES):
        try:
            found.append((package, version(package)))
        except PackageNotFoundError:
            continue
    return tuple(found)
