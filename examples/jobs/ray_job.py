# SPDX-License-Identifier: Apache-2.0
"""Ray: workers inherit what runtime_env says. PREFIX and RUN are the same path on every node."""
import os

PREFIX = os.environ.get("LOCKSTEP_PREFIX", "/opt/lockstep")


def runtime_env(run):
    """For ray.init(runtime_env=...): every worker that loads NCCL writes its file into `run`."""
    return {"env_vars": {"LOCKSTEP_DIR": run, "NCCL_PROFILER_PLUGIN": f"{PREFIX}/lib/liblockstep-nccl.so", "RAY_DEDUP_LOGS": "0"}}


if __name__ == "__main__":
    import ray
    from ray.train import ScalingConfig
    from ray.train.torch import TorchTrainer

    def train():
        import torch
        import torch.distributed as dist
        for _ in range(100):
            dist.all_reduce(torch.ones(1 << 20, device="cuda"))

    ray.init(runtime_env=runtime_env("/shared/run"))
    TorchTrainer(train, scaling_config=ScalingConfig(num_workers=8, use_gpu=True)).fit()
