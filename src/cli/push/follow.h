// SPDX-License-Identifier: Apache-2.0
// `push --follow`: a running job's newest state into a store, until its processes have ended.
#pragma once
#include "cli/command.h"
#include "store/fleet.h"

namespace lockstep::cli::push {

// What is followed, and into where. `name` is alike on all hosts, as a store joins what they write by it.
struct FollowedJob {
  std::string run, name;
  store::FleetTarget target;
  // Of its launcher, which may start ranks again; else until all processes have ended.
  bool until_signal = false;
};
// "URL#NAME", else URL and the id that the scheduler gave the job. `option` is what errors call it; the store
// is not asked.
Result<FollowedJob> followed_job(const std::string& option, const std::string& place);

// The exit codes.
int follow(const FollowedJob& job);
int follow(const Arguments& arguments, std::chrono::milliseconds patience);

}  // namespace lockstep::cli::push
