// SPDX-License-Identifier: Apache-2.0
// A request lies in a file that anybody with write access may fill with anything, while the job runs. So it
// is copied, checked as a whole, and taken or refused as a whole. One that does not fit its check may be half
// written: it gets three looks before it is refused. The answer is stored only after what was asked for is in
// force, so that a tool that waits for its number can rely on it.
#include "capture/core/session/control.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "format/control_copy.h"

namespace lockstep::capture {
namespace {

using format::ControlRequest;
using format::Mode;

bool is_sample(uint32_t keep, uint32_t of) { return keep >= 1 && keep <= of && of <= format::kMostSampled; }

bool is_possible(const ControlRequest& r) {
  // A bit of a newer tool is refused, not passed over: the tool would take it for done.
  if (r.what == 0 || (r.what & ~(format::kControlSetMode | format::kControlMark | format::kControlSave)) != 0)
    return false;
  const char* text = reinterpret_cast<const char*>(r.text);
  if ((r.what & format::kControlMark) != 0 && (*text == 0 || memchr(text, 0, sizeof r.text) == nullptr))
    return false;
  if ((r.what & format::kControlSetMode) == 0) return true;
  if (r.mode > static_cast<uint32_t>(Mode::kSample) || r.until_monotonic_ns < 0) return false;
  const bool sample = r.mode == static_cast<uint32_t>(Mode::kSample);
  if (sample ? !is_sample(r.keep, r.of) : (r.keep | r.of) != 0) return false;
  const bool deep = sample || r.mode == static_cast<uint32_t>(Mode::kDeep);
  // Communicators and sizes choose among deep events; a request that names some in a mode without any is a
  // mistake.
  return r.comms <= format::kControlComms && (deep || (r.comms == 0 && r.min_bytes == 0));
}

}  // namespace

bool Recording::selects_comm(uint64_t comm_id) const {
  bool found = comms == 0;
  for (uint32_t i = 0; i < comms; ++i) found |= comm_ids[i] == comm_id;
  return found;
}

bool parse_sample(const char* text, uint32_t* keep, uint32_t* of) {
  unsigned long numbers[2] = {};
  for (unsigned long& number : numbers) {
    if (*text < '0' || *text > '9') return false;
    char* end = nullptr;
    errno = 0;
    number = strtoul(text, &end, 10);
    if (errno != 0 || number > format::kMostSampled || *end != (&number == numbers ? '/' : 0)) return false;
    text = end + 1;
  }
  *keep = static_cast<uint32_t>(numbers[0]);
  *of = static_cast<uint32_t>(numbers[1]);
  return is_sample(*keep, *of);
}

void Control::start(const Config& config, format::FileHeader* header) {
  base_ = {};
  base_.mode = config.mode;
  base_.keep = config.sample_keep;
  base_.of = config.sample_of;
  unreported_ = true;
  answer(header);
}

Control::Read Control::read(const format::FileHeader* header, uint32_t number,
                            ControlRequest* request) const {
  format::copy_words(*request, header->request);
  __atomic_thread_fence(__ATOMIC_ACQUIRE);
  if (format::load_word(header->control) != number)
    return Read::kNothing;  // the next look finds the newer one
  if (request->check != control_check(*request, number)) return Read::kTorn;
  return is_possible(*request) ? Read::kGood : Read::kBad;
}

Control::Seen Control::look(const format::FileHeader* header, int64_t now_monotonic_ns) {
  Seen seen;
  const uint32_t number = __atomic_load_n(&header->control, __ATOMIC_ACQUIRE);
  if (number != taken_) {
    ControlRequest request;
    Read read = this->read(header, number, &request);
    // A tool may be writing the next request over one that was not looked at yet; garbage stays as it is.
    constexpr uint32_t kPatience = 3;
    if (read == Read::kTorn) {
      torn_looks_ = torn_number_ == number ? torn_looks_ + 1 : 1;
      torn_number_ = number;
      if (torn_looks_ >= kPatience) read = Read::kBad;
    }
    if (read == Read::kBad) {
      seen.refused = true;
      ++refused_;
    }
    if (read == Read::kGood) take(request, now_monotonic_ns, &seen);
    if (read == Read::kGood || read == Read::kBad) {
      taken_ = number;
      unreported_ = true;
    }
  }
  if (in_window() && now_monotonic_ns >= until_ns_) {
    until_ns_ = 0;
    seen.changed = seen.window_ended = unreported_ = true;
  }
  return seen;
}

void Control::take(const ControlRequest& request, int64_t now_monotonic_ns, Seen* seen) {
  seen->save = (request.what & format::kControlSave) != 0;
  if ((request.what & format::kControlMark) != 0) {
    seen->mark = true;
    memcpy(seen->text, request.text, sizeof seen->text);
  }
  if ((request.what & format::kControlSetMode) == 0) return;
  if (request.until_monotonic_ns != 0 && request.until_monotonic_ns <= now_monotonic_ns) return;  // over
  Recording wanted;
  wanted.mode = static_cast<Mode>(request.mode);
  wanted.keep = request.keep;
  wanted.of = request.of;
  wanted.min_bytes = request.min_bytes;
  wanted.comms = request.comms;
  memcpy(wanted.comm_ids, request.comm_ids, sizeof wanted.comm_ids);
  // A request for good also ends a window that is open.
  (request.until_monotonic_ns != 0 ? window_ : base_) = wanted;
  until_ns_ = request.until_monotonic_ns;
  seen->changed = true;
}

bool Control::answer(format::FileHeader* header) {
  if (!unreported_) return false;
  unreported_ = false;
  format::ControlState& state = header->in_force;
  const Recording& recording = now();
  format::store_word(state.mode, static_cast<uint32_t>(recording.mode));
  format::store_word(state.keep, recording.keep);
  format::store_word(state.of, recording.of);
  format::store_word(state.min_bytes, recording.min_bytes);
  format::store_word(state.until_monotonic_ns, until_ns_);
  format::store_word(state.comms, recording.comms);
  format::store_word(state.refused, refused_);
  format::store_word(state.mode_after, static_cast<uint32_t>(base_.mode));
  format::store_word(state.keep_after, base_.keep);
  format::store_word(state.of_after, base_.of);
  __atomic_store_n(&state.taken, taken_, __ATOMIC_RELEASE);
  return true;
}

}  // namespace lockstep::capture
