"""One round through a switch, exact to the message: a queue at every device's link up and link down."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from shardviz.hardware.messages import Messages

    Ints = NDArray[np.int64]


def busiest_transfer(messages: Messages) -> tuple[int, int]:
    """How many bytes pass one after the other until the last message is there, and how many messages wait.

    A device sends its messages in their order. Each begins to leave the switch when it begins to come in,
    or when its receiver's link becomes free: by the time at which it began to come in, then in the order
    of messages. Both links are equally fast, so that the rest follows without a gap; all times are bytes.
    An empty message occupies no link and never waits.
    """
    import numpy as np

    full = np.flatnonzero(messages.bytes)
    src, dst, size = messages.src[full], messages.dst[full], messages.bytes[full]
    if not len(full):
        return 0, 0
    begin = np.empty_like(size)
    order = np.argsort(src, kind="stable")
    begin[order] = _before(size[order], src[order])
    order = np.lexsort((begin, dst))
    begin_in_order, size, dst = begin[order], size[order], dst[order]
    # Message k is out at S_k + max over j <= k of (begin_j - S_(j-1)), with S the running sum of the sizes
    # on its link. Ranks instead of times, shifted from link to link, keep that maximum within each link.
    sent_before = _before(size, dst)
    slack = begin_in_order - sent_before
    by_slack = np.argsort(slack)
    rank = np.empty_like(by_slack)
    rank[by_slack] = np.arange(len(slack))
    shift = np.cumsum(np.concatenate(([0], dst[1:] != dst[:-1]))) * len(slack)
    latest = slack[by_slack[np.maximum.accumulate(rank + shift) - shift]]
    leave = latest + sent_before
    waiting = (leave > begin_in_order) | (begin_in_order > 0)
    return int((leave + size).max()), int(np.count_nonzero(waiting))


def _before(size: Ints, link: Ints) -> Ints:
    """The sum of the sizes that stand before each on the same link; the links stand one after the other."""
    import numpy as np

    total = np.cumsum(size) - size
    new = np.concatenate(([True], link[1:] != link[:-1]))
    return total - np.maximum.accumulate(np.where(new, total, 0))
