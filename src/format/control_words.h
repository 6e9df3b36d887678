// SPDX-License-Identifier: Apache-2.0
// The words of a file header by which a tool steers a running process, and by which the process says what is
// in force.
//
//   tool:     fills ControlRequest, `check` last, then stores FileHeader.control = a new number (release)
//   process:  sees a number that it has not taken, copies the request, and takes it if `check` fits and every
//             word is possible; then fills ControlState, `taken` last
//
// One tool at a time: it holds flock(LOCK_EX) on the file. The process never waits for a tool, nor a tool for
// more than a moment. A request is hostile input: one that does not fit changes nothing and is counted
// (`bad_control`). Every word is aligned and is written and read by itself.
#pragma once
#include <cstddef>
#include <cstdint>

namespace lockstep::format {

// Communicators that a request can name.
inline constexpr uint32_t kControlComms = 16;
inline constexpr uint32_t kControlTextBytes = 40;  // of a mark, its NUL included
inline constexpr uint32_t kMostSampled = 1000000;  // N of sample=K/N
// ControlRequest.what: set the mode, put a mark into the file, write all that a ring holds into its file.
inline constexpr uint32_t kControlSetMode = 1, kControlMark = 2,
                          kControlSave = 4;  // the last since minor 6

// What a tool asks for. The tool writes it under the lock; the process reads it once for each number, and
// refuses the whole of it if one word is not possible. Times are CLOCK_MONOTONIC of the process's host, sizes
// are bytes.
struct ControlRequest {
  uint32_t what;                     // one or more of the three
  uint32_t mode;                     // Mode
  uint32_t keep, of;                 // kSample: the deep events of `keep` of every `of` operations; else 0
  uint64_t min_bytes;                // no deep events of smaller operations; 0: of all sizes
  int64_t until_monotonic_ns;        // then back to what was in force before; 0: for good
  uint32_t comms;                    // of comm_ids; 0: all communicators
  uint32_t reserved;                 // 0
  uint64_t comm_ids[kControlComms];  // CommDef::comm_id; deep events of these communicators only
  // Of a mark, with its NUL; words, as each is stored by itself.
  uint64_t text[kControlTextBytes / 8];
  uint64_t check;  // control_check() of all before and the request's number
};
// On disk, and words of a request may be newer than others: the check alone says that they belong together.
static_assert(sizeof(ControlRequest) == 216 && offsetof(ControlRequest, check) % 8 == 0);

// What is in force. The process alone writes it; `taken` is stored last, so a tool that waits for its number
// there reads the rest as that request left it.
struct ControlState {
  uint32_t taken;  // number of the last request that was looked at, taken or refused; stored last
  uint32_t mode;   // Mode in force
  // As in the request.
  uint32_t keep, of;
  uint64_t min_bytes;
  int64_t until_monotonic_ns;                 // end of a window; 0 none
  uint32_t comms;                             // how many; which ones, the request alone says
  uint32_t refused;                           // requests that did not fit
  uint32_t mode_after, keep_after, of_after;  // in force when the window ends
  uint32_t waiting;  // 1: NCCL has not been told yet; it is, at the next operation where that is safe
};
static_assert(sizeof(ControlState) == 56);

// FNV-1a over the 32-bit words, with its usual 64-bit offset and prime: tells a request from garbage and from
// one that is half written. It proves nothing about who wrote it.
constexpr uint64_t control_mix(uint64_t hash, uint64_t word) {
  for (int half = 0; half < 2; ++half) {
    hash = (hash ^ (word & 0xffffffff)) * 0x100000001b3;
    word >>= 32;
  }
  return hash;
}
// The check of a request that is stored under `number`: the same words under another number do not fit, so an
// old request is not taken twice.
constexpr uint64_t control_check(const ControlRequest& r, uint32_t number) {
  uint64_t hash = control_mix(0xcbf29ce484222325, uint64_t{number} << 32 | r.what);
  hash = control_mix(hash, uint64_t{r.mode} << 32 | r.keep);
  hash = control_mix(hash, uint64_t{r.of} << 32 | r.comms);
  hash = control_mix(hash, r.min_bytes);
  hash = control_mix(hash, static_cast<uint64_t>(r.until_monotonic_ns));
  hash = control_mix(hash, r.reserved);
  for (uint64_t id : r.comm_ids) hash = control_mix(hash, id);
  for (uint64_t word : r.text) hash = control_mix(hash, word);
  return hash;
}

}  // namespace lockstep::format
