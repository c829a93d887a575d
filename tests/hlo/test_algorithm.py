from __future__ import annotations

import pytest

from shardviz.hlo.schedule.algorithm import algorithm_of

TPU = '"collective_algorithm_config":{%s,"debug":"\\nType: 1D {colors:2} \\"x\\""}'
GPU = '"collective_backend_config":{"is_sync":true,"backend":"%s","kernel_strategy":"KERNEL_STRATEGY_%s"}'


@pytest.mark.parametrize(
    ("config", "algorithm"),
    [
        (
            TPU % '"emitter":"RotatedPincerEmitter","strategy":"UniDirection1DRingStrategy"',
            "rotated pincer, uni direction 1D ring",
        ),
        (
            TPU % '"emitter":"RotatedPincerEmitter","strategy":"UniDirectionNDRingStrategy"',
            "rotated pincer, uni direction ND ring",
        ),
        (TPU % '"emitter":"2DAllGatherNonMajorDim"', "2D all gather non major dim"),
        (GPU % ("DEFAULT", "DEFAULT"), ""),
        (GPU % ("NVSHMEM", "TRITON_TWO_SHOT"), "nvshmem, triton two shot"),
        ('"flag_configs":[]', ""),
        ('"collective_algorithm_config":{"emitter":"Cut', ""),
    ],
)
def test_compilers_words(config, algorithm):
    line = f"%a = f32[8] all-reduce(%p), backend_config={{{config}}}"
    assert algorithm_of(line) == algorithm
    assert algorithm_of(line[:10]) == ""
