"""Devices that wait for others at a collective, by XLA's warnings of a rendezvous on CPUs and GPUs."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable

from shardviz.hlo.collective import Collective

STUCK = "threads to join the rendezvous"
_WARNING = re.compile(
    r"(?:\[id=(?P<place>\d+)\] )?(?P<kind>This thread has been waiting for|Termination timeout for)"
    r" `(?P<name>.*?)` (?:for|of) (?P<seconds>\d+) seconds.*?Expected (?P<expected>\d+) "
    + STUCK
    + r"(?:, but only (?P<arrived>\d+))?"
)
_RANK = re.compile(r" for rank (\d+)")


def stuck_collectives(log: str, text: str = "", collectives: Iterable[Collective] = ()) -> tuple[str, ...]:
    """A sentence for each collective to which some devices have not come: each thread that waits has warned,
    by the place in which it came, or by its rank, or by neither; before XLA ends the process it may say how
    many came. `text` is the HLO of the program with the `collectives`."""
    warned: dict[str, list[re.Match[str]]] = {}
    for match in _WARNING.finditer(log):
        warned.setdefault(_RANK.sub("", match["name"]), []).append(match)
    sources = {one.name: f", {one.source}" for one in collectives if one.source}
    said = []
    for name, matches in warned.items():
        ranks = sorted({int(rank) for each in matches for rank in _RANK.findall(each["name"])})
        threads = Counter(each["kind"] for each in matches if not each["place"]).values()
        places = {each["place"] for each in matches if each["place"]}
        arrived = (int(each["arrived"] or 0) for each in matches)
        waiting = max(*arrived, len(ranks) or max(threads, default=0), len(places))
        which = f" (ranks {', '.join(map(str, ranks))})" if ranks else ""
        channel = re.search(r"op[_ ]id[=:](\d+)", name)
        line = channel and re.search(rf"([\w.-]+) = .*channel_id={channel[1]}\b", text)
        at = re.split(" RendezvousKey|;", name.removeprefix("rendezvous of "))[0]
        at += sources.get(line[1], "") if line else ""
        seconds = max(int(each["seconds"]) for each in matches)
        said.append(
            f"{waiting} of {matches[0]['expected']} devices{which} wait for the others at {at}: {seconds} s"
        )
    return tuple(said)
