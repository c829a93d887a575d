"""Assertions for the tests of a JAX code base, which fail when a change adds a collective, bytes or seconds,
or exceeds a chip's memory.

::

    def test_the_layer_gathers_nothing():
        shardviz.testing.assert_collectives(layer, weights, x, all_reduce=1, others=0)

    def test_the_train_step_costs_what_it_did():
        shardviz.testing.check_baseline(step, params, batch, path="train_step.json", target="v5p:4x4x4")

    def test_the_model_fits():
        shardviz.testing.assert_fits("llama-3-8b", "fsdp", "data=16", "v6e:4x4", batch=16)"""

from __future__ import annotations

from shardviz.lazy_names import lazy_names

TYPE_CHECKING = False  # what `typing` has under this name, without the time to load it
if TYPE_CHECKING:
    from shardviz.testing.assertions import (
        BaselineChanged as BaselineChanged,
        assert_collectives as assert_collectives,
        assert_fits as assert_fits,
        check_baseline as check_baseline,
    )
else:
    # Loaded on first use: pytest loads the plugin of this package at its start.
    __getattr__, __dir__, __all__ = lazy_names(
        __name__, {"assertions": "BaselineChanged assert_collectives assert_fits check_baseline"}
    )
