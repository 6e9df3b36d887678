#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# EpilogSlurmctld, or by hand when a job has ended: says of each step of JOB what went wrong, and leaves a report.
# slurm_epilog.sh [JOB]
set -u
job=${1:-${SLURM_JOB_ID:?}}
for run in "${LOCKSTEP_JOBS:?}/$job".*; do
  [ -d "$run" ] || continue
  lockstep diagnose "$run" > "$run/diagnosis.txt" 2>&1
  lockstep report -o "$run/report.html" "$run" > /dev/null 2>&1
done
exit 0
