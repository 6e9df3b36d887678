// SPDX-License-Identifier: Apache-2.0
// Several launchers may have left their variables in one environment: torchrun under srun sets both. The
// innermost one began this process, so the list is in that order, and each field is taken from the first that
// has it.
#include "capture/core/host/identity.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "capture/core/clock.h"
#include "capture/core/host/loaded_library.h"
#include "capture/core/host/visible_devices.h"
#include "format/redact_words.h"
#include "segment/process_stat.h"

namespace lockstep::capture {
namespace {

template <size_t N>
void copy_text(char (&out)[N], const char* text) {
  if (text == nullptr) text = "";
  size_t length = strnlen(text, N - 1);
  memcpy(out, text, length);
  out[length] = 0;
}

// Stricter than strtol: a sign or a blank is no rank.
int32_t env_number(const char* name) {
  const char* text = getenv(name);
  if (text == nullptr || *text < '0' || *text > '9') return -1;
  long value = strtol(text, nullptr, 10);
  return value < 0 || value > 0x7fffffff ? -1 : static_cast<int32_t>(value);
}

// One launcher's variables; nullptr where it has none.
struct Variables {
  const char *launcher, *rank, *local_rank, *world, *local_world, *node_rank, *nodes, *job;
};
constexpr Variables kLaunchers[] = {
    {"torchrun", "RANK", "LOCAL_RANK", "WORLD_SIZE", "LOCAL_WORLD_SIZE", "GROUP_RANK", "GROUP_WORLD_SIZE",
     "TORCHELASTIC_RUN_ID"},
    {"openmpi", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_LOCAL_RANK", "OMPI_COMM_WORLD_SIZE",
     "OMPI_COMM_WORLD_LOCAL_SIZE", nullptr, nullptr, "PMIX_NAMESPACE"},
    {"slurm", "SLURM_PROCID", "SLURM_LOCALID", "SLURM_NTASKS", "SLURM_NTASKS_PER_NODE", "SLURM_NODEID",
     "SLURM_NNODES", "SLURM_JOB_ID"},
    {"pmi", "PMI_RANK", "MPI_LOCALRANKID", "PMI_SIZE", "MPI_LOCALNRANKS", nullptr, nullptr, "PMI_JOBID"},
    {"pmi", "PMIX_RANK", nullptr, nullptr, nullptr, nullptr, nullptr, nullptr},
};

void read_launcher(Identity* identity) {
  copy_text(identity->launcher, "none");
  for (const Variables& v : kLaunchers) {
    if (env_number(v.rank) < 0) continue;
    auto take = [](int32_t* field, const char* name) {
      if (*field < 0 && name != nullptr) *field = env_number(name);
    };
    if (identity->rank < 0) copy_text(identity->launcher, v.launcher);
    take(&identity->rank, v.rank);
    take(&identity->local_rank, v.local_rank);
    take(&identity->world, v.world);
    take(&identity->local_world, v.local_world);
    take(&identity->node_rank, v.node_rank);
    take(&identity->nodes, v.nodes);
    if (identity->job_id[0] == 0 && v.job != nullptr) copy_text(identity->job_id, getenv(v.job));
  }
  // A batch job's number names the run better than torchrun's default id "none".
  if (identity->job_id[0] == 0 || strcmp(identity->job_id, "none") == 0)
    copy_text(identity->job_id, getenv("SLURM_JOB_ID"));
}

}  // namespace

Identity read_identity() {
  Identity identity{};
  identity.pid = getpid();
  identity.rank = identity.local_rank = identity.world = identity.local_world = identity.node_rank =
      identity.nodes = -1;
  identity.pid_namespace = segment::own_pid_namespace();
  segment::ProcessStat stat;
  if (segment::read_process_stat("/proc/self/stat", &stat)) identity.start_ticks = stat.start_ticks;
  long per_second = sysconf(_SC_CLK_TCK);
  if (identity.start_ticks != 0 && per_second > 0) {
    // Field 22 counts the time that the host slept, as CLOCK_BOOTTIME does.
    auto since_boot =
        static_cast<int64_t>(identity.start_ticks * (1000000000 / static_cast<uint64_t>(per_second)));
    identity.start_realtime_ns = clock_ns(CLOCK_REALTIME) - clock_ns(CLOCK_BOOTTIME) + since_boot;
  }
  segment::read_boot_id(identity.boot_id);
  read_launcher(&identity);
  // A name that is cut may come without its NUL: the last byte is never given away.
  if (gethostname(identity.host, sizeof identity.host - 1) != 0 || identity.host[0] == 0)
    copy_text(identity.host, "unknown");
  copy_text(identity.host_id, getenv("NCCL_HOSTID"));
  read_visible_devices(LoadedLibrary("libhsa-runtime64.so") ? Maker::kAmd : Maker::kOther,
                       identity.visible_devices);
  return identity;
}

// Without a copy: the first call may come from a thread with a small stack.
static void store_argv(format::FileHeader* header) {
  const int fd = open("/proc/self/cmdline", O_RDONLY | O_CLOEXEC);
  if (fd < 0) return;
  size_t length = 0, rest = 0;
  char piece[256];
  for (ssize_t got; (got = read(fd, piece, sizeof piece)) > 0;) {
    size_t kept = static_cast<size_t>(got);
    if (kept > sizeof header->argv - length) kept = sizeof header->argv - length;
    memcpy(header->argv + length, piece, kept);
    length += kept;
    rest += static_cast<size_t>(got) - kept;
  }
  close(fd);
  const char* keep = getenv(format::kArgvSetting);
  if (keep != nullptr && strcmp(keep, format::kArgvNone) == 0) {
    memset(header->argv, 0, length);
    length = rest = 0;
  } else if (keep == nullptr || strcmp(keep, format::kArgvAll) != 0) {
    const size_t left = format::redact_words(header->argv, length);
    memset(header->argv + left, 0, length - left);
    length = left;
  }
  header->argv_bytes = static_cast<uint32_t>(length);
  header->argv_total_bytes = static_cast<uint32_t>(length + rest);
}

void store_identity(const Identity& identity, format::FileHeader* header) {
  header->pid = identity.pid;
  header->pid_namespace = identity.pid_namespace;
  header->start_ticks = identity.start_ticks;
  header->start_realtime_ns = identity.start_realtime_ns;
  header->rank = identity.rank;
  header->local_rank = identity.local_rank;
  header->world = identity.world;
  header->local_world = identity.local_world;
  header->node_rank = identity.node_rank;
  header->nodes = identity.nodes;
  memcpy(header->boot_id, identity.boot_id, sizeof header->boot_id);
  copy_text(header->launcher, identity.launcher);
  copy_text(header->job_id, identity.job_id);
  copy_text(header->host, identity.host);
  copy_text(header->host_id, identity.host_id);
  copy_text(header->visible_devices, identity.visible_devices);
  store_argv(header);
}

}  // namespace lockstep::capture
