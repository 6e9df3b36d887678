#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# TaskProlog of slurm.conf: who asks by `export LOCKSTEP_JOBS=/shared/runs` is captured without another word on
# his command line. Slurm takes `export NAME=VALUE` lines of what it prints.
[ -n "${LOCKSTEP_JOBS:-}" ] || exit 0
prefix=${LOCKSTEP_PREFIX:-/opt/lockstep}
run=$LOCKSTEP_JOBS/$SLURM_JOB_ID.$SLURM_STEP_ID
mkdir -p "$run" || exit 0
echo "export LOCKSTEP_DIR=$run"
echo "export NCCL_PROFILER_PLUGIN=$prefix/lib/liblockstep-nccl.so"
