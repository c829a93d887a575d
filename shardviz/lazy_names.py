"""Names of a package, and modules, imported when they are first used; imports that a fork waits for."""

from __future__ import annotations

import os
import sys
from _thread import get_ident
from importlib import _bootstrap, import_module
from types import ModuleType

TYPE_CHECKING = False  # what `typing` has under this name, without the time to load it
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from importlib.machinery import ModuleSpec
    from typing import Any


def lazy_names(
    package: str, homes: Mapping[str, str]
) -> tuple[Callable[[str], object], Callable[[], list[str]], list[str]]:
    """``__getattr__, __dir__, __all__`` of a package, for the names that its modules give it (PEP 562).

    ``{"mesh": "Mesh is_axis_name", "testing": ""}`` gives the two names of `mesh`, and `testing` itself. Type
    checkers do not run this: under TYPE_CHECKING, the package imports every name from its module, as itself.
    """
    home_of = {name: home for home, names in homes.items() for name in names.split() or [home]}

    def getattr_(name: str) -> object:
        if name not in home_of:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        module = import_module(f"{package}.{home_of[name]}")
        return getattr(module, name) if homes[home_of[name]] else module

    def dir_() -> list[str]:
        return sorted({*vars(sys.modules[package]), *home_of})

    return getattr_, dir_, sorted(home_of)


class LazyImports:
    """``with LazyImports():`` is a block of ``from package import module`` whose modules are loaded when one
    of their names is first used; packages are loaded at once, but those of others that are named: ``with
    LazyImports("numpy"): import numpy as np``.

    So all that a command may need stands at the top of its file, and its help loads none of it. Within the
    block, of its own thread alone, a `_LateModule` takes the place of each module that is not loaded; after
    it `sys.modules` has none of them."""

    def __init__(self, *packages: str) -> None:
        self._packages = packages

    def __enter__(self) -> None:
        self._thread = get_ident()
        self._made: list[_LateModule] = []
        sys.meta_path.insert(0, self)

    def __exit__(self, *_: object) -> None:
        sys.meta_path.remove(self)
        for module in self._made:
            if sys.modules.get(module.__name__) is module:
                module.leave()

    def find_spec(self, name: str, path: Any, target: Any = None) -> ModuleSpec | None:
        """The spec of a module of this package, or of a named one, which is loaded late; None of others."""
        is_late = name.startswith("shardviz.") or name in self._packages
        if (
            not is_late
            or get_ident() != self._thread
            or any(module.__name__ == name for module in self._made)
        ):
            return None
        from importlib.machinery import ModuleSpec, PathFinder

        spec = PathFinder.find_spec(name, path, target)
        if spec is None or (spec.submodule_search_locations is not None and name not in self._packages):
            return None
        return ModuleSpec(name, self, origin=spec.origin)  # type: ignore[arg-type]

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        """The stand-in."""
        self._made.append(_LateModule(spec.name))
        return self._made[-1]

    def exec_module(self, module: ModuleType) -> None:
        """Leave the module for later."""


class _LateModule(ModuleType):
    """Stands for a module, which is imported for its first name."""

    def __getattr__(self, name: str) -> object:
        if name.startswith("__"):
            raise AttributeError(name)
        if sys.modules.get(self.__name__) is self:
            self.leave()
        return getattr(import_module(self.__name__), name)

    def leave(self) -> None:
        """Make room for the module itself."""
        del sys.modules[self.__name__]
        package, _, name = self.__name__.rpartition(".")
        if package:
            vars(sys.modules[package]).pop(name, None)


def _finish_imports() -> None:
    """Wait until no other thread stands in the import of a module of ours: a fork has one of the process's
    threads alone, and the lock of an import that another had begun would stay locked in it."""
    waited_for: set[str] = set()
    while names := {
        # Python's own, and the one place that says so; a copy, as other threads change it.
        name
        for name in [*getattr(_bootstrap, "_module_locks", ())]
        if name.startswith("shardviz.") and name not in waited_for
    }:
        for name in names:
            import_module(name)
        waited_for |= names


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_finish_imports)
