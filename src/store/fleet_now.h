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

// Looks at a followed run again and again. One thread.
class FollowedRun {
 public:
  // Asks nothing of the run yet. Errors as those of open_followed_run().
  static Result<std::unique_ptr<FollowedRun>> open(const FleetTarget& target);
  virtual ~FollowedRun() = default;
  // By rank, host and pid; a process may live where its host has not written for long. An error where none
  // has written for a minute of what has not ended: that is not of now.
  virtual Result<std::vector<model::FollowedProcess>> look() = 0;
  virtual std::string name() const = 0;  // the URL without user and key, with the run
};

// Its processes, as the source's parts. Those that a host has not written for long may live or not. An error
// without a run says which there are. `target.url` has the run behind a '#'.
Result<std::unique_ptr<model::TraceSource>> open_followed_run(const FleetTarget& target);

}  // namespace lockstep::store
