// SPDX-License-Identifier: Apache-2.0
// Keeps what processes of a run have in memory that has no name (format/segment_layout.h): it then outlives
// them, and is put into their files when they have gone. For the launcher, whose descendants they are.
#pragma once
#include <atomic>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <thread>

#include "run/process_files.h"

namespace lockstep::run {

// Has a thread where one can be started, which sleeps until a file appears in the run directory. It looks at
// that 20 times a second until its process has started, and once a second at processes whose memory it holds.
class HeldSegments {
 public:
  explicit HeldSegments(std::string run);
  ~HeldSegments();
  HeldSegments(const HeldSegments&) = delete;
  HeldSegments& operator=(const HeldSegments&) = delete;

  // Processes whose memory is held now. Any thread.
  size_t count();
  // Finishes the files of those that have gone, once more, and lets go of all.
  void stop();

 private:
  void run();
  bool look();
  bool take(const ProcessFile& file);
  void adopt();
  bool sleep(int milliseconds) const;

  const std::string run_;
  const int news_;  // of files in the run directory; -1: the kernel gives none
  const int stop_;  // written to by stop(); -1: the thread looks 20 times a second whether it is to
  std::atomic<bool> is_stopping_{false};
  std::set<std::string> known_;          // files that there is nothing to be learned from any more
  std::map<std::string, int> starting_;  // how often they were looked at in vain
  std::map<std::string, int> held_;      // descriptor, by file
  std::mutex mutex_;                     // of held_
  std::thread thread_;
};

}  // namespace lockstep::run
