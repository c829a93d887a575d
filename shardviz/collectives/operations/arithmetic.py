"""What members do with two addends, in the addends' own type: integers wrap around, floats overflow silently.

ml_dtypes gives NumPy's functions their meaning for bf16, the f8 and f4 types, s4 and u4: each addition is
rounded once.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from shardviz.errors import QuestionError

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Values = NDArray[Any]


def check_reduces(name: str, dtype: str) -> None:
    """Raise `QuestionError` for a dtype of which XLA can reduce nothing (jaxlib 0.10 and 0.12)."""
    if dtype in ("s2", "u2"):
        raise QuestionError(f"XLA has no {name} of {dtype}", "use s4, u4 or a wider dtype")


def added(mine: Values, received: Values) -> Values:
    """The sums."""
    import numpy as np

    with np.errstate(all="ignore"):
        sums: Values = mine + received
    return sums


def larger(mine: Values, received: Values) -> Values:
    """The larger of each two; NaN where one is."""
    import numpy as np

    with np.errstate(all="ignore"):
        found: Values = np.maximum(mine, received)
    return found


def smaller(mine: Values, received: Values) -> Values:
    """The smaller of each two; NaN where one is."""
    import numpy as np

    with np.errstate(all="ignore"):
        found: Values = np.minimum(mine, received)
    return found
