// SPDX-License-Identifier: Apache-2.0
// Who a process is, as people look for it: its rank in the job, its host, its process number there, and its
// GPU. The one place that words it. Run-wide device numbers (Process::gpu) tell devices apart in tables and
// reach no sentence.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>

#include "model/string_pool.h"
#include "model/trace.h"

namespace lockstep::model {

struct Who {
  int32_t rank = -1;  // in the job; -1 unknown
  int32_t local_rank = -1;
  // Of its first GPU, as the host counts them; -1 unknown, also where only the process' own number is known,
  // and that is not the host's.
  int32_t device = -1;
  int64_t pid = 0;            // 0 unknown
  std::string host{}, pci{};  // empty unknown
  std::string boot_id{};      // in hex; what names this boot of the host
  bool gone = false;          // it has ended, as far as anything shows
  bool is_amd = false;        // its GPU, as far as anything shows

  // "rank 5", else "pid 1234", else "GPU 3", else "a process": where the host is said already.
  std::string label() const;
  // The label; "pid 1234 on node-006" without a rank: where a sentence has said the rest, or has many of
  // them.
  std::string name() const;
  // "rank 51 (GPU 3 of node-006, pid 4259)"; what is unknown is left out.
  std::string text() const;
  // "GPU 3", else "GPU 0000:1b:00.0", else "local rank 3", else empty
  std::string gpu() const;
};

Who who(const Process& process, const StringPool& strings);

// By the clock of its GPU's times, else by the model. False also where neither is known.
bool is_amd(const Process& process, const StringPool& strings);

// The host's number of the device that a process calls `ordinal`: the process counts those alone that its
// environment shows it (`visible`, Process::visible_devices). -1 where that names devices other than by
// number.
int32_t host_device(int32_t ordinal, std::string_view visible);

}  // namespace lockstep::model
