"""See where every shard lives and which collectives `jit` inserts.

::

    shardviz.explain('bd,df->bf', mesh='X=2,Y=4', specs='XY,Y_->X_')   # a plan, and the compilers' answers
    shardviz.rank('bd,df->bf', mesh='X=2,Y=4')                         # all shardings worth considering
    shardviz.inspect(jitted, *args)                                    # the collectives of your own program
    shardviz.read_hlo(text)                                            # those in a compiler's text
    shardviz.testing.assert_collectives(jitted, *args, all_gather=0)   # a test that keeps them in check
"""

from __future__ import annotations

from importlib import import_module

import shardviz.forking  # noqa: F401  registers itself

TYPE_CHECKING = False  # what `typing` has under this name, without the time to load it
if TYPE_CHECKING:
    from shardviz import testing
    from shardviz.api.explaining import Explanation, Ranking, explain, rank
    from shardviz.api.inspecting import inspect
    from shardviz.api.report import Report, read_hlo
    from shardviz.errors import ShardvizError
    from shardviz.sharding import Mesh

__version__ = "0.1.0"

_HOMES = {
    "Explanation": "api.explaining",
    "Mesh": "sharding",
    "Ranking": "api.explaining",
    "Report": "api.report",
    "ShardvizError": "errors",
    "explain": "api.explaining",
    "inspect": "api.inspecting",
    "rank": "api.explaining",
    "read_hlo": "api.report",
}

__all__ = [
    "Explanation",
    "Mesh",
    "Ranking",
    "Report",
    "ShardvizError",
    "explain",
    "inspect",
    "rank",
    "read_hlo",
    "testing",
]


def __getattr__(name: str) -> object:
    # Loaded on first use: the command line and the compilers' process import this package, too.
    if name == "testing":
        return import_module("shardviz.testing")
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
