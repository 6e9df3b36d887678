// SPDX-License-Identifier: Apache-2.0
// Counters of hosts as tracks of a process that stands for the host. Times are absolute: these are few
// events, and their sequence needs no state.
#pragma once
#include <cstdint>
#include <map>
#include <string>

#include "exporters/common/buffered_output.h"
#include "exporters/common/process_walk.h"
#include "exporters/perfetto/event_writer.h"
#include "model/trace_source.h"

namespace lockstep::exporters::perfetto {

class HostCounters {
 public:
  HostCounters(common::BufferedOutput& out, FileNumbers& numbers, common::ViewerNumbers& pids)
      : out_(out), numbers_(numbers), pids_(pids) {}
  // Returns how many events were written.
  uint64_t add(const model::HostCounter& counter);

 private:
  uint64_t process_of(const std::string& host);

  common::BufferedOutput& out_;
  FileNumbers& numbers_;
  common::ViewerNumbers& pids_;
  uint32_t sequence_ = 0;                    // 0: nothing has been written
  std::map<std::string, uint64_t> by_host_;  // the track that is its process
};

}  // namespace lockstep::exporters::perfetto
