// SPDX-License-Identifier: Apache-2.0
// Runs work in a child of this process and takes what it prints: a reader that fails on a hostile file, or
// that needs too long, ends the child and not the server.
#pragma once
#include <chrono>
#include <functional>
#include <string>

#include "base/result.h"

namespace lockstep::cli::mcp {

// The exit code of the work, and what it wrote to stdout and stderr.
struct ChildAnswer {
  int code = 0;
  std::string out, err;
};
// `work` runs in the child with /dev/null as its input. An error if it takes longer, prints more than
// `most_bytes`, or a signal ends it. The caller has no second thread.
Result<ChildAnswer> run_confined(const std::function<int()>& work, std::chrono::seconds patience,
                                 size_t most_bytes);

}  // namespace lockstep::cli::mcp
