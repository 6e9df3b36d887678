// SPDX-License-Identifier: Apache-2.0
// What is to be recorded now: what the environment asked for, changed by what `lockstep control` writes into
// the header of the process file (format/control_words.h). Every capture library of a process has a file and
// a Control of its own.
//
// Owned by the keeper thread once capture runs: it looks at the words on every nap, so that a request takes
// effect within 50 ms and a window ends by the process's own clock, whether or not the tool still lives.
#pragma once
#include <cstdint>

#include "capture/core/session/config.h"
#include "format/file_layout.h"

namespace lockstep::capture {

// What is recorded, and of which operations: `keep` of every `of`, of at least `min_bytes`, of these
// communicators only (0: of all).
struct Recording {
  format::Mode mode = format::Mode::kDefault;
  uint32_t keep = 0, of = 0;  // kSample
  uint64_t min_bytes = 0;
  uint32_t comms = 0;
  uint64_t comm_ids[format::kControlComms] = {};

  // Deep events of some operations only.
  bool selects() const {
    return mode == format::Mode::kSample || (mode == format::Mode::kDeep && (comms != 0 || min_bytes != 0));
  }
  bool selects_comm(uint64_t comm_id) const;
};

// Whether the n-th operation, from 0, is one of the sampled ones: the last `keep` of every `of`. Not the
// first, so that a communicator that is made and never used does not wait for its first operation for ever.
inline bool selects_number(uint32_t n, uint32_t keep, uint32_t of) { return of != 0 && n % of >= of - keep; }

// "K/N", 1 <= K <= N <= kMostSampled.
bool parse_sample(const char* text, uint32_t* keep, uint32_t* of);

class Control {
 public:
  struct Seen {
    bool changed = false;       // now() is another one
    bool window_ended = false;  // it changed by time, not by a request
    bool refused = false;       // a request that makes no sense; once for each
    bool mark = false;
    bool save = false;                          // into the file what is in memory alone
    char text[format::kControlTextBytes] = {};  // of the mark
  };

  // Once, before there is a keeper.
  void start(const Config& config, format::FileHeader* header);
  // Takes a new request, if there is one, and ends a window whose time has come. No system call.
  Seen look(const format::FileHeader* header, int64_t now_monotonic_ns);
  // Says in the header what is in force; when what look() found has been done, so that a tool can rely on it.
  // False if nothing is new.
  bool answer(format::FileHeader* header);
  const Recording& now() const { return in_window() ? window_ : base_; }
  int64_t until_ns() const { return until_ns_; }  // 0: no window
  bool in_window() const { return until_ns_ != 0; }

 private:
  enum class Read { kNothing, kTorn, kBad, kGood };
  Read read(const format::FileHeader* header, uint32_t number, format::ControlRequest* request) const;
  void take(const format::ControlRequest& request, int64_t now_monotonic_ns, Seen* seen);

  Recording base_, window_;
  int64_t until_ns_ = 0;
  uint32_t taken_ = 0, refused_ = 0;
  uint32_t torn_number_ = 0, torn_looks_ = 0;
  bool unreported_ = true;
};

}  // namespace lockstep::capture
