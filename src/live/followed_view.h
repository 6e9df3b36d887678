// SPDX-License-Identifier: Apache-2.0
// The processes of a followed run (store/fleet_now.h) as LiveRun shows those of files.
#pragma once
#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "live/live_run.h"
#include "model/process_part.h"

namespace lockstep::live {

// One thread, and the looks in the order of time.
class FollowedView {
 public:
  // In the same order. Rates are those between the last two states that differ.
  std::vector<SeenProcess> look(const std::vector<model::FollowedProcess>& processes);

 private:
  // Host, boot, pid and start.
  using Key = std::tuple<std::string, std::string, int64_t, int64_t>;
  // What rates are taken from.
  struct Counted {
    uint64_t ops = 0;
    int64_t newest_ns = 0;  // when the newest operation began
    int64_t seen_ns = 0;
    double ops_per_s = 0, bytes_per_s = 0;
  };
  static Counted counted(const model::FollowedProcess& process, const Counted& before);

  std::map<Key, Counted> counted_;
};

}  // namespace lockstep::live
