"""See where every shard lives and which collectives `jit` inserts.

::

    shardviz.explain('bd,df->bf', mesh='X=2,Y=4', specs='XY,Y_->X_')   # a plan, and the compilers' answers
    shardviz.rank('bd,df->bf', mesh='X=2,Y=4')                         # all shardings worth considering
    shardviz.vary('bd,df->bf', 'b=1Ki:1Mi', specs='X_,X_->X_')         # compute and communication over sizes
    shardviz.search('bd,df->bf', machine='v5e:4x4')                    # the best meshes and shardings
    shardviz.model('llama-3-8b', rules='fsdp', mesh='data=8')          # every parameter of a model
    shardviz.serving('llama-3-8b', rules='tensor', mesh='tensor=8')    # the time of a token, by batch
    shardviz.inspect(jitted, *args)                                    # the collectives of your own program
    shardviz.with_shardings(shapes, specs, mesh)                       # arguments that nobody allocates
    shardviz.read_hlo(text)                                            # those in a compiler's text
    shardviz.lesson('reduce-scatter')                                  # a lesson, to see and to check answers
    with shardviz.profiled() as p: ...                                 # what a block ran, measured
    shardviz.testing.assert_collectives(jitted, *args, all_gather=0)   # a test that keeps them in check"""

from __future__ import annotations

from shardviz.lazy_names import lazy_names

TYPE_CHECKING = False  # what `typing` has under this name, without the time to load it
if TYPE_CHECKING:
    from shardviz import testing as testing
    from shardviz.api.arguments import with_shardings as with_shardings
    from shardviz.api.explaining import (
        CostCurve as CostCurve,
        Explanation as Explanation,
        Ranking as Ranking,
        SearchReport as SearchReport,
        explain as explain,
        rank as rank,
        search as search,
        vary as vary,
    )
    from shardviz.api.inspecting import (
        OutOfMemoryError as OutOfMemoryError,
        Report as Report,
        TargetReports as TargetReports,
        inspect as inspect,
        read_hlo as read_hlo,
    )
    from shardviz.api.lessons import LessonStageView as LessonStageView, lesson as lesson
    from shardviz.api.modelling import (
        ModelReport as ModelReport,
        ServingReport as ServingReport,
        model as model,
        serving as serving,
    )
    from shardviz.api.profiling import ProfileReport as ProfileReport, profiled as profiled
    from shardviz.errors import ShardvizError as ShardvizError
    from shardviz.sharding import Mesh as Mesh
else:
    # Loaded on first use: the command line and the compilers' process import this package, too.
    __getattr__, __dir__, __all__ = lazy_names(
        __name__,
        {
            "api.arguments": "with_shardings",
            "api.explaining": "CostCurve Explanation Ranking SearchReport explain rank search vary",
            "api.inspecting": "OutOfMemoryError Report TargetReports inspect read_hlo",
            "api.lessons": "LessonStageView lesson",
            "api.modelling": "ModelReport ServingReport model serving",
            "api.profiling": "ProfileReport profiled",
            "errors": "ShardvizError",
            "sharding": "Mesh",
            "testing": "",
        },
    )

__version__ = "0.1.0"
