"""Whether JAX agrees with a result, in a sentence."""

from __future__ import annotations

from rich.text import Text

from shardviz.errors import plural
from shardviz.render.lines import sentence
from shardviz.sharding import Mesh
from shardviz.stepping.verdict import Verdict


def verdict_lines(verdict: Verdict, mesh: Mesh, width: int) -> list[Text]:
    """That every value is equal, or how many are not, where the first of them is, and what may explain it."""
    ran, judgement = verdict.ran, verdict.judgement
    version = dict(ran.versions).get("jax", "")
    kind = "simulated CPU device" if ran.target == "cpu" else f"{ran.target} device"
    judge = f"JAX{' ' * bool(version)}{version} on {plural(mesh.size, kind)}: "
    where = ""
    if judgement.device is not None:
        index = ", ".join(map(str, judgement.index))
        where = (
            f" on device {mesh.device_id(judgement.device)} at [{index}]"
            f" {judgement.ours} here, {judgement.theirs} in JAX"
        )
    if judgement.verdict == "equal":
        lines = sentence("every value equal", width, lead=judge)
    elif judgement.verdict == "rounding":
        said = (
            f"{judgement.differing:,} of {plural(judgement.values, 'value')} differ by rounding, as another"
            f" order of the additions gives; at most {plural(judgement.ulps, 'ulp')},{where}"
        )
        lines = sentence(said, width, lead=judge)
    else:
        said = f"{judgement.differing:,} of {plural(judgement.values, 'value')} differ:{where}"
        lines = sentence(said if where else "the results differ", width, lead=f"✗ {judge}")
    for note in (judgement.note, ran.note):
        lines += sentence(note, width, 2, style="dim") if note else []
    return lines
