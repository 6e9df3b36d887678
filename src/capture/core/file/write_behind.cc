// SPDX-License-Identifier: Apache-2.0
// The only thread that touches a file system, so it alone waits when one does not answer. It wakes often and
// does what is due: what is new at the rate of write_every_ns, everything once a second, and in between it
// gives places back whenever it is woken for them. Segments that others left are adopted on a thread of its
// own, as their storage may hang.
#include "capture/core/file/write_behind.h"

#include <sys/prctl.h>

#include "capture/core/clock.h"
#include "segment/adopt.h"

namespace lockstep::capture {
namespace {

using Depth = FileWriter::Depth;

constexpr int64_t kMillisecond = 1'000'000;
// How often what can still be filled in is looked at; what places are given back for; whether a tool asks.
constexpr int64_t kWriteAllEvery = 1000 * kMillisecond, kRecycleEvery = kMillisecond,
                  kLookEvery = 50 * kMillisecond;
constexpr uint32_t kMostAdopted = 256;

}  // namespace

bool WriteBehind::start(ProcessFile* file, void (*asked)()) {
  file_ = file;
  asked_ = asked;
  writer_.write(*file_, file_->ring() ? Depth::kHeader : Depth::kNew);
  has_thread_ = start_thread(run, this) == 0;
  start_thread(adopt, nullptr);
  return has_thread_;
}

void WriteBehind::answer(bool save) {
  if (save) is_saving_.store(true, std::memory_order_relaxed);
  has_answer_.store(true, std::memory_order_release);
  wake();
}

void WriteBehind::finish(int64_t deadline_ns) {
  file_->segment().mark_closed();
  is_ending_.store(true, std::memory_order_release);
  if (!has_thread_) return write();
  wake();
  for (int64_t left = 1; !is_written_.load(std::memory_order_acquire) && left > 0;) {
    left = deadline_ns - clock_ns(CLOCK_MONOTONIC);
    if (left > 0) end_.nap(0, left);
  }
}

void* WriteBehind::run(void* self) {
  prctl(PR_SET_NAME, "lockstep-write");
  static_cast<WriteBehind*>(self)->write();
  return nullptr;
}

// On a thread of its own: the storage of other processes may not answer.
void* WriteBehind::adopt(void*) {
  prctl(PR_SET_NAME, "lockstep-adopt");
  segment::adopt_all(kMostAdopted);
  return nullptr;
}

void WriteBehind::write() {
  // The memory of a named ring outlives the process: its file is written when a tool asks for it, and at
  // exit.
  const bool is_kept = file_->ring() && file_->segment().name()[0] != 0;
  const int64_t write_every = write_every_ns(*file_);
  int64_t last_new = 0, last_all = 0, last_past = 0, last_look = 0;
  while (!is_ending_.load(std::memory_order_acquire)) {
    // Before anything is looked at, so that what rings from here on ends the nap.
    const uint32_t calls = bell_.calls();
    const int64_t now = clock_ns(CLOCK_MONOTONIC);
    if (is_kept) {
      // no file system has to do with what nobody may ever ask for
    } else if (now - last_all >= kWriteAllEvery) {
      writer_.write(*file_, Depth::kAll);
      last_all = last_new = last_past = now;
    } else if (now - last_new >= write_every) {
      writer_.write(*file_, Depth::kNew);
      last_new = last_past = now;
    } else if (now - last_past >= kRecycleEvery) {
      writer_.write(*file_, Depth::kPast);
      last_past = now;
    }
    if (now - last_look >= kLookEvery) {
      if (writer_.fetch_request(*file_)) asked_();
      last_look = now;
    }
    // Also where a ring is kept: a tool waits for the answer in the header.
    if (has_answer_.exchange(false, std::memory_order_acq_rel)) {
      const bool save = is_saving_.exchange(false, std::memory_order_relaxed);
      writer_.write(*file_, save ? Depth::kAll : is_kept ? Depth::kHeader : Depth::kNew);
    }
    bell_.nap(calls, kLookEvery);
  }
  // Once more, as one call that fails need not cost the end.
  if (writer_.write(*file_, Depth::kLast) || writer_.write(*file_, Depth::kLast))
    file_->segment().remove();
  else if (file_->segment().name()[0] == 0)
    writer_.give_up(*file_);
  is_written_.store(true, std::memory_order_release);
  end_.ring();
}

}  // namespace lockstep::capture
