# SPDX-License-Identifier: Apache-2.0
"""Declares the operations of declared_test.cc through the Python module."""
import lockstep


def run(group, *args, **said):
    with group.operation(*args, **said):
        pass


custom = lockstep.Group("aiter_custom_ar", [0, 1])
run(custom, "reduce_scatter", 1048576, 524288, "float16", seq=5, is_async=False)
run(lockstep.Group("3", [0, 2], description="mesh_tp"), "all_gather", 524288, 1048576, "bfloat16", seq=6, is_async=True)
run(lockstep.Group("0", range(4), description="default_pg"), "all_to_allv", 40, 48, "float32", seq=7, in_split=[4, 12, 8, 16],
    out_split=[24, 0, 20, 4])
run(lockstep.Group("experts", [0, 1, 3]), "allreduce", 256, 256, "Float", seq=1)
run(lockstep.Group("1", [0, 2], description="mesh_pp"), "send", 4096, 4096, "half", peer=1, seq=1, is_async=True)
run(custom, "fused_allreduce_rmsnorm", 64, 64, "BFloat16")
run(lockstep.Group("9", range(40), description="wide"), "all_to_allv", 780, 780, "int32", seq=1, in_split=range(40),
    out_split=range(40))
