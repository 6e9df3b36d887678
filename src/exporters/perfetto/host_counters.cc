// SPDX-License-Identifier: Apache-2.0
#include "exporters/perfetto/host_counters.h"

#include "exporters/common/host_tracks.h"
#include "exporters/perfetto/fields.h"
#include "exporters/perfetto/proto_bytes.h"

namespace lockstep::exporters::perfetto {

uint64_t HostCounters::process_of(const std::string& host) {
  const auto [at, is_new] = by_host_.try_emplace(host, 0);
  if (!is_new) return at->second;
  at->second = ++numbers_.track;
  write_process_track(pids_.of_host(host), at->second, out_);
  return at->second;
}

uint64_t HostCounters::add(const model::HostCounter& counter) {
  const common::HostTrack track(counter);
  if (track.counter.values.empty()) return 0;
  if (sequence_ == 0) sequence_ = ++numbers_.sequence;
  const uint64_t process = process_of(track.host), uuid = ++numbers_.track;
  ProtoBytes packet, event;
  write_counter_track(track.counter, uuid, process, out_);
  for (const common::CounterValue& at : track.counter.values) {
    event.clear();
    event.number(field::event::kType, kCounterEvent).number(field::event::kTrack, uuid);
    put_counter_value(track.counter, at, event);
    packet.clear();
    packet.signed_number(field::packet::kTimestamp, at.time_ns);
    packet.number(field::packet::kTimestampClock, kRealtimeClock);
    packet.number(field::packet::kSequence, sequence_);
    write_packet(out_, packet.bytes(field::packet::kTrackEvent, event.view()).view());
  }
  return track.counter.values.size();
}

}  // namespace lockstep::exporters::perfetto
