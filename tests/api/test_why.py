"""`Report.why` in Python: the reasons, and what avoids collectives, as `shardviz program --why` has them."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import pytest
from jax.sharding import AbstractMesh, AxisType, NamedSharding, PartitionSpec as P

import shardviz

MESH = AbstractMesh((2, 4), ("data", "model"), axis_types=(AxisType.Auto,) * 2)


def array(shape, *spec):
    return jax.ShapeDtypeStruct(shape, jnp.float32, sharding=NamedSharding(MESH, P(*spec)))


def mlp(x, w):
    """The second weight is split along the wrong dimension."""
    h = jnp.sin(x @ w["up"])
    return jax.lax.with_sharding_constraint(h @ w["down"], NamedSharding(MESH, P("data")))


@pytest.fixture(scope="module")
def report():
    weights = {"up": array((256, 1024), None, "model"), "down": array((1024, 256), None, "model")}
    return shardviz.inspect(mlp, array((512, 256), "data"), weights, target="cpu")


def test_what_was_tried_is_told(report):
    found = report.why()
    (one,) = {each.code for each in found.verdicts}
    assert one == "w['down']: P('model', None) in place of P(None, 'model')"
    assert found.reasons == report.reasons
    page = str(found)
    assert page.startswith("waste, and what mends it\n")
    assert "\nwhy\n" in page
    assert f"instead: {one}" in page
    (target,) = found.document()["targets"]
    (told,) = target["verdicts"]
    assert (told["code"], told["target"]) == (one, "cpu")
    assert {*told["collectives"]} <= {each["name"] for each in target["program"]["collectives"]}


def test_a_text_has_the_reasons_that_shapes_tell(report):
    found = shardviz.read_hlo(report.text, "data=2,model=4").why()
    assert found.verdicts == ()
    assert {each.kind for each in found.reasons} == {"unknown"}
    assert "is wanted" in str(found)
    assert found.document()["kind"] == "hlo"


def test_nothing_is_sent():
    assert str(shardviz.read_hlo("HloModule m\n\nENTRY e {\n}\n").why()) == "no collective: nothing is sent"
