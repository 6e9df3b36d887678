// SPDX-License-Identifier: Apache-2.0
// Host clock ticks of one process file -> RunNs: piecewise linear through the file's anchors on
// CLOCK_MONOTONIC, plus one offset per boot (BootClock), so that all processes of a host share one time line
// however the wall clock was stepped. Before the first and after the last anchor the nearest piece is
// extended.
#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "format/file_layout.h"
#include "readers/native/file/read_losses.h"

namespace lockstep::readers::native {

// What all processes of one boot share. Made from the first anchors of every file of the boot.
struct BootClock {
  int64_t realtime_offset_ns = 0;  // CLOCK_REALTIME - CLOCK_MONOTONIC, at the earliest anchor of the boot
  double tick_hz = 0;              // of the cycle counter; 0 unknown
};
// `headers` of one boot, in any order.
BootClock make_boot_clock(std::span<const format::FileHeader* const> headers);

// Owned by one loader, used by one thread (it remembers the piece it used last).
class TickClock {
 public:
  // Anchors that contradict the others (time going back, a rate off by more than 1 %) are left out and
  // counted.
  static TickClock make(const format::FileHeader& header, std::span<const format::ClockAnchor> anchors,
                        const BootClock& boot, const std::string& path, ReadLosses& losses);

  // RunNs of any ticks, also of damaged ones: 128 bits hold the product, and the result is clamped. Never 0,
  // which means "did not happen" in the model.
  int64_t to_ns(uint64_t ticks) {
    const Piece* piece = &pieces_[last_];
    if (ticks < piece->from || ticks >= piece->until) [[unlikely]]
      piece = find(ticks);
    auto delta = static_cast<int64_t>(ticks - piece->base_ticks);
    return bounded((static_cast<__int128>(delta) * piece->ns_per_tick >> kShift) + piece->base_ns);
  }
  // A time on this host's CLOCK_MONOTONIC.
  int64_t from_monotonic(uint64_t ns) const {
    return bounded(static_cast<__int128>(ns) + realtime_offset_ns_);
  }

 private:
  // 48 bits behind the point: a rate is off by at most 2^-49 ns a tick.
  static constexpr int kShift = 48;
  // The ticks [from, until), and the line that holds there.
  struct Piece {
    uint64_t from, until;  // ticks
    uint64_t base_ticks;
    int64_t base_ns;      // RunNs
    int64_t ns_per_tick;  // fixed point, kShift fraction bits
  };
  static int64_t bounded(__int128 ns) {
    constexpr int64_t kMax = INT64_MAX;
    return ns < 1 ? 1 : ns > kMax ? kMax : static_cast<int64_t>(ns);
  }
  const Piece* find(uint64_t ticks);

  std::vector<Piece> pieces_;  // adjoining, from 0 to UINT64_MAX
  size_t last_ = 0;
  int64_t realtime_offset_ns_ = 0;
};

}  // namespace lockstep::readers::native
