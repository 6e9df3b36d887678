// SPDX-License-Identifier: Apache-2.0
// What the environment asks of a capture library. Read once, when capture starts.
//   LOCKSTEP_DIR     run directory; %p pid, %h host, %r rank, %n node rank, %j job id. Default
//                    "lockstep-run".
//   LOCKSTEP_MODE    lite | default (standard) | deep (full) | sample=K/N | off
//   LOCKSTEP_RETAIN  stream | stream:CAP | ring:SIZE    (sizes: bytes, or with K, M, G; per process)
// A word that is not understood is not an error: the default is taken and `problem` says so.
#pragma once
#include <cstdint>

#include "capture/core/host/identity.h"
#include "format/file_layout.h"

namespace lockstep::capture {

inline constexpr uint64_t kDefaultCapBytes = uint64_t{4} << 30;
inline constexpr uint64_t kDefaultRingBytes = uint64_t{64} << 20;

struct Config {
  char directory[1024];
  format::Mode mode;
  uint32_t sample_keep, sample_of;  // kSample: K and N
  format::Retention retention;
  uint64_t cap_bytes;  // stream: size cap of the file; ring: bytes of the ring
  char problem[160];   // empty, or one line about a setting that was not understood
};

// Never fails. Reads the environment, which no other thread may change meanwhile.
Config read_config(const Identity& identity);
// "64M" -> bytes. False if it is no size.
bool parse_size(const char* text, uint64_t* bytes);

}  // namespace lockstep::capture
