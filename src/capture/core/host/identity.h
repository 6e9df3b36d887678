// SPDX-License-Identifier: Apache-2.0
// Who this process is: host, boot, pid, start, rank and job as the launcher's environment gives them. -1 and
// empty mean unknown. torchrun's variables win over Slurm's, Open MPI's and PMI's, as it may run inside any
// of them.
#pragma once
#include <cstdint>

#include "format/file_layout.h"

namespace lockstep::capture {

// As FileHeader has them; texts are cut to their field, with a NUL.
struct Identity {
  int32_t pid;
  uint32_t pid_namespace;
  uint64_t start_ticks;
  int64_t start_realtime_ns;
  int32_t rank, local_rank, world, local_world, node_rank, nodes;
  unsigned char boot_id[16];
  char launcher[16];
  char job_id[64];
  char host[128];
  char host_id[64];
  char visible_devices[256];
};

// Reads the environment and some files of /proc: for init, not for the event path.
Identity read_identity();
// Copies the identity and the command line into a file header.
void store_identity(const Identity& identity, format::FileHeader* header);

}  // namespace lockstep::capture
