#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# One node: torchrun.sh [GPUS] train.py ARGUMENTS... The run is in trace.db; what went wrong is said at the end.
set -u
gpus=${1:?GPUS}
shift
lockstep trace -o trace.db torchrun --nproc_per_node="$gpus" "$@"
code=$?
lockstep diagnose trace.db
exit "$code"
