// SPDX-License-Identifier: Apache-2.0
// What running jobs do now, in the store where their runs come later: each host writes what it sees of its
// processes, and whoever reads gets the job as its files would show it, without a file.
#pragma once
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "model/process_part.h"
#include "model/trace_source.h"
#include "store/fleet.h"

namespace lockstep::store {

// One follower's way into the store. One thread. After an error the same call, with newer states, goes on.
class NowWriter {
 public:
  // `run` names the job, alike on all its hosts. Errors as those of push(); a store that does not answer
  // within `patience` is kIo.
  static Result<std::unique_ptr<NowWriter>> open(const FleetTarget& target, const std::string& run);
  virtual ~NowWriter() = default;
  // Communicators that are as they were written last are not sent again.
  virtual Result<void> write(const std::vector<model::FollowedProcess>& processes) = 0;
  // Of the blocks that the store has confirmed since it was opened.
  virtual uint64_t sent_bytes() const = 0;
};

// http://HOST:8123/DATABASE#RUN: a followed run, where a path may stand.
bool is_followed_run(std::string_view path);

// Its processes, as the source's parts. Those that a host has not written for long may live or not. An error
// without a run says which there are. `target.url` has the run behind a '#'.
Result<std::unique_ptr<model::TraceSource>> open_followed_run(const FleetTarget& target);

}  // namespace lockstep::store
