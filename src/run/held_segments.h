// SPDX-License-Identifier: Apache-2.0
// Keeps what processes of a run have in memory that has no name (format/segment_layout.h): it then outlives them, and is put
// into their files when they have gone. For the launcher, whose descendants they are.
#pragma once
#include <condition_variable>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <thread>

#include "run/process_files.h"

namespace lockstep::run {

// Has a thread, which looks at the run directory 20 times a second while files come.
class HeldSegments {
 public:
  explicit HeldSegments(std::string run);
  ~HeldSegments();
  HeldSegments(const HeldSegments&) = delete;
  HeldSegments& operator=(const HeldSegments&) = delete;

  size_t count();
  // Finishes the files of those that have gone, once more, and lets go of all.
  void stop();

 private:
  void run();
  bool look();
  bool take(const ProcessFile& file);
  void adopt();

  const std::string run_;
  std::set<std::string> known_;      // files that there is nothing to be learned from any more
  std::map<std::string, int> held_;  // descriptor, by file
  std::mutex mutex_;                 // of held_ and stopping_
  std::condition_variable wake_;
  bool stopping_ = false;
  std::thread thread_;
};

}  // namespace lockstep::run
