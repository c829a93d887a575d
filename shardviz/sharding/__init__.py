"""Meshes, partition specs, arrays and the layout of one over the other. Standard library only."""

from shardviz.sharding.array import ShardedArray, Uneven, shard_shape, uneven_dims
from shardviz.sharding.array import array_bytes, canonical_dtype
from shardviz.sharding.layout import DeviceShard, Layout
from shardviz.sharding.mesh import Mesh
from shardviz.sharding.partition_spec import PartitionSpec

__all__ = [
    "DeviceShard",
    "Layout",
    "Mesh",
    "PartitionSpec",
    "ShardedArray",
    "Uneven",
    "array_bytes",
    "canonical_dtype",
    "shard_shape",
    "uneven_dims",
]
