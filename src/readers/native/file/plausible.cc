// SPDX-License-Identifier: Apache-2.0
// Bounds the times that records of a file can have, for what no seal covers. They lie between the file's
// begin and its last heartbeat, with slack for a keeper thread that starved. The heartbeat itself may be
// damaged: it is there on three clocks, and the one that contradicts the other two is derived from them.
// Without any heartbeat nothing is excluded.
#include "readers/native/file/plausible.h"

#include <algorithm>
#include <cmath>
#include <span>

namespace lockstep::readers::native {
namespace {

using format::FileHeader;

constexpr double kSecondNs = 1e9;
// A heartbeat comes once a second, unless the keeper thread starves; it may never have run.
constexpr double kSlackNs = 60 * kSecondNs, kSlackWithoutKeeperNs = 86'400 * kSecondNs;
// Within the first beats nobody can tell a keeper that starves from one that never ran.
constexpr double kFirstBeatsNs = 2 * kSecondNs;
constexpr double kFastestHz = 1e10;  // where the rate is not known

double tick_hz(const FileHeader& header) {
  if (header.host_clock == format::HostClock::kMonotonic) return 1e9;
  return header.tick_hz != 0 ? static_cast<double>(header.tick_hz) : 0;
}

uint64_t ticks_after(uint64_t ticks, double by) {
  const double sum = static_cast<double>(ticks) + by;
  return sum >= 0x1p64 ? UINT64_MAX : ticks + static_cast<uint64_t>(by);
}

double between(uint64_t from, uint64_t to) {
  return to >= from ? static_cast<double>(to - from) : -static_cast<double>(from - to);
}
double between(int64_t from, int64_t to) { return static_cast<double>(to) - static_cast<double>(from); }

bool agree(double a_ns, double b_ns) {
  return std::abs(a_ns - b_ns) <= std::max(kSecondNs, 0.02 * std::max(std::abs(a_ns), std::abs(b_ns)));
}

}  // namespace

uint64_t heartbeat_ticks(const FileHeader& header) {
  const format::ClockAnchor& first = header.first_anchor;
  const double hz = tick_hz(header);
  if (header.heartbeat_ticks == 0 || hz <= 0 || header.heartbeat_monotonic_ns == 0 ||
      header.heartbeat_realtime_ns == 0)
    return header.heartbeat_ticks;
  const double by_ticks = between(first.ticks, header.heartbeat_ticks) / hz * kSecondNs;
  const double by_monotonic = between(first.monotonic_ns, header.heartbeat_monotonic_ns);
  const double by_realtime = between(first.realtime_ns, header.heartbeat_realtime_ns);
  // One witness is enough: real time may have been set, and CLOCK_MONOTONIC stands still in suspend.
  if (agree(by_ticks, by_monotonic) || agree(by_ticks, by_realtime)) return header.heartbeat_ticks;
  if (agree(by_monotonic, by_realtime) && by_monotonic >= 0)
    return ticks_after(first.ticks, by_monotonic * hz / kSecondNs);
  return 0;
}

Plausible::Plausible(const FileView& view) {
  FileHeader header = view.header();
  // The header that was read at first would exclude what was recorded since.
  if (view.capturing()) {  // it goes on while its file is read
    FileHeader now{};
    if (view.file().read_at(0, std::as_writable_bytes(std::span(&now, 1))) == sizeof now) header = now;
  }
  const uint64_t heartbeat = heartbeat_ticks(header);
  if (heartbeat == 0) return;
  const double known = tick_hz(header), hz = known > 0 ? known : kFastestHz;
  const bool may_lack_keeper = between(header.first_anchor.ticks, heartbeat) < kFirstBeatsNs / kSecondNs * hz;
  const double slack = (may_lack_keeper ? kSlackWithoutKeeperNs : kSlackNs) / kSecondNs * hz;
  latest_ = ticks_after(heartbeat, slack);
  // What GPUs did before the driver's tools interface reported it, it may report.
  const uint64_t before = header.source == format::Source::kCuda ? UINT64_MAX : ticks_after(0, slack);
  earliest_ = header.first_anchor.ticks > before ? header.first_anchor.ticks - before : 0;
}

bool Plausible::operator()(const format::RecordHead& head) const {
  const auto kind = static_cast<uint8_t>(head.kind);
  if (format::record_bytes(kind) == 0) return false;
  // Such a record is believed by its kind alone: there is nothing else to hold it against.
  if (!has_time(head.kind)) return true;
  if (!is_time(head.start)) return false;
  const bool has_stop = format::is_event(kind) && head.stop_after != format::kSaturated;
  return !has_stop || head.start + head.stop_after <= latest_;
}

}  // namespace lockstep::readers::native
