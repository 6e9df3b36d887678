// SPDX-License-Identifier: Apache-2.0
// The findings of `lockstep diagnose` on the same run, now and then, and how it aligned the hosts' clocks. A
// diagnosis reads the whole run, so it is another process of this program, at low priority, that takes at
// most a twentieth of the time; what it needs and what befalls it does not touch the exporter. One thread.
#pragma once
#include <sys/types.h>

#include <chrono>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "live/lateness.h"

namespace lockstep::exporters::metrics {

struct Findings {
  struct One {
    std::string finding_class, id, severity;
    std::string rank;  // if it blames one: its number; of several "several"
    std::string comm;  // name; empty none
    auto operator<=>(const One&) const = default;
  };
  static constexpr size_t kMost = 32, kMostClocks = 16384;

  bool asked = false;     // diagnoses are made at all
  std::vector<One> list;  // each once; the most important kMost of those that are more than notes
  std::map<std::string, size_t> by_severity;
  live::Clocks clocks;             // kMostClocks of them; what it could not align is not there
  double ended_s = 0, took_s = 0;  // of the last one that gave an answer; ended: since the Unix epoch
  uint64_t failures = 0;
};

// What `diagnose --json` printed; an error if it is no such document.
Result<void> read_findings(std::string_view document, Findings& findings);

class Diagnoses {
 public:
  using Clock = std::chrono::steady_clock;
  // `pause` between the end of one and the begin of the next, at least; 0: none are made.
  Diagnoses(std::vector<std::string> paths, std::chrono::milliseconds pause);
  Diagnoses(const Diagnoses&) = delete;
  Diagnoses& operator=(const Diagnoses&) = delete;
  ~Diagnoses();

  // Begins one when it is time, takes what one has said that has ended. Never waits.
  void go_on();
  // Until one has ended that began now.
  void wait_for_one();
  const Findings& findings() const { return findings_; }

 private:
  void begin();
  void take_answer(int status);
  Clock::duration time_taken() const;
  void fail();

  std::vector<std::string> paths_;
  std::chrono::milliseconds pause_;
  Findings findings_;
  pid_t child_ = -1;
  int answer_ = -1;  // a file in memory
  Clock::time_point begun_, next_;
};

}  // namespace lockstep::exporters::metrics
