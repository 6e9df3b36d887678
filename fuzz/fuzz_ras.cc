// SPDX-License-Identifier: Apache-2.0
// Feeds arbitrary bytes to the reader of RAS snapshots, asks every rule, and checks that ranks are within
// their communicator.
#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>
#include <cstdlib>
#include <string>

#include "analysis/ras_rules/ras_rules.h"
#include "readers/ras/read_ras.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  namespace ras = lockstep::readers::ras;
  const int fd = memfd_create("fuzz", 0);
  if (fd < 0 || write(fd, data, size) != static_cast<ssize_t>(size)) std::abort();
  if (const auto model = ras::read_ras({"/proc/self/fd/" + std::to_string(fd)})) {
    for (const ras::Snapshot& snapshot : model->snapshots) {
      for (const ras::Comm& comm : snapshot.comms) {
        int32_t last = -1;
        for (const ras::Rank& rank : comm.ranks) {
          if (rank.rank <= last || rank.rank >= comm.size) std::abort();
          last = rank.rank;
        }
      }
    }
    for (const auto& finding : lockstep::analysis::ras_rules::judge(*model)) {
      if (finding.statement.empty() || finding.advice.empty()) std::abort();
    }
  }
  close(fd);
  return 0;
}
