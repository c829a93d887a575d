"""Whether JAX agrees with a result, in a sentence."""

from __future__ import annotations

from rich.text import Text

from shardviz.errors import plural
from shardviz.render.lines import sentence
from shardviz.sharding import Mesh
from shardviz.stepping.verdict import Verdict


def verdict_lines(verdict: Verdict, mesh: Mesh, width: int) -> list[Text]:
    """That every value is equal, or how many are not, where the first of them is, and what may explain it."""
    ran, found = verdict.ran, verdict.verification
    version = dict(ran.versions).get("jax", "")
    kind = "simulated CPU device" if ran.target == "cpu" else f"{ran.target} device"
    judge = f"JAX{' ' * bool(version)}{version} on {plural(mesh.size, kind)}: "
    where = ""
    if found.device is not None:
        index = ", ".join(map(str, found.index))
        where = (
            f" on device {mesh.device_id(found.device)} at [{index}] {found.ours} here, {found.theirs} in JAX"
        )
    if found.verdict == "equal":
        lines = sentence("every value equal", width, lead=judge)
    elif found.verdict == "rounding":
        said = (
            f"{found.differing:,} of {plural(found.values, 'value')} differ by rounding, as another"
            f" order of the additions gives; at most {plural(found.ulps, 'ulp')},{where}"
        )
        lines = sentence(said, width, lead=judge)
    else:
        said = f"{found.differing:,} of {plural(found.values, 'value')} differ:{where}"
        lines = sentence(said if where else "the results differ", width, lead=f"✗ {judge}")
    for note in (found.note, ran.note):
        lines += sentence(note, width, 2, style="dim") if note else []
    return lines


def short_verdict(verdict: Verdict, mesh: Mesh, width: int, most: int) -> list[Text]:
    """The same in up to `most` lines, the verdict first: as much as they have room for."""
    ran, found = verdict.ran, verdict.verification
    jax = f"JAX {dict(ran.versions).get('jax', '')}".strip()
    kind = "simulated CPU device" if ran.target == "cpu" else f"{ran.target} device"
    judges = (f"{jax} on {plural(mesh.size, kind)}", jax)
    count = f"{found.differing:,} of {plural(found.values, 'value')}"
    if found.verdict == "equal":
        said = [f"every value equal: {judge}" for judge in judges]
    elif found.verdict == "rounding":
        by = f"by rounding, at most {plural(found.ulps, 'ulp')}"
        said = [f"{count} differ {by}, as another order of the additions gives: {judges[0]}"]
        said += [f"{count} differ {by}: {judge}" for judge in judges]
    else:
        where = ""
        if found.device is not None:
            index = ", ".join(map(str, found.index))
            where = f", on device {mesh.device_id(found.device)} at [{index}] {found.ours} here, "
            where += f"{found.theirs} there"
        said = [f"{count} differ from {jax}{where}", f"{count} differ from {jax}"]
    lead = "✓ " if verdict.agrees else "✗ "
    ways = [sentence(words, width, lead=lead) for words in said]
    return next((way for way in ways if len(way) <= most), ways[-1][:most])
