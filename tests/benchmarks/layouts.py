"""Layouts of large meshes."""

from __future__ import annotations

from timing import call, line

from shardviz.sharding import Layout, Mesh, PartitionSpec, ShardedArray

MESH = Mesh(("x", "y", "z"), (64, 32, 32))
ARRAY = ShardedArray(
    "A", ("b", "s", "d"), (8192, 4096, 2048), "bf16", PartitionSpec((("x",), (), ("z", "y")))
)


def report() -> None:
    def everything() -> None:
        layout = Layout(ARRAY, MESH)
        layout.shards()
        layout.bounds()

    seconds = call(everything)
    line(f"layout of {MESH.size:,} devices: shards and bounds", f"{seconds * 1e3:.1f} ms", "50 ms")


if __name__ == "__main__":
    report()
