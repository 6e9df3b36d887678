// SPDX-License-Identifier: Apache-2.0
// Follows a log of samples while it grows: each reading gives what was appended.
#pragma once
#include <cstdint>
#include <string>

#include "links/samples/sample_log.h"

namespace lockstep::links {

class SampleTail {
 public:
  explicit SampleTail(std::string path) : path_(std::move(path)) {}
  // Reads at most 4 MiB. True: there is more. log() then has the samples of this reading alone; all else of
  // it is as of the whole log so far.
  Result<bool> read();
  const SampleLog& log() const { return log_; }

 private:
  std::string path_;
  SampleLog log_;
  uint64_t offset_ = 0;  // behind the last whole line
  bool has_head_ = false;
};

}  // namespace lockstep::links
