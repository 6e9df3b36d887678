// SPDX-License-Identifier: Apache-2.0
// What a thread's log does in ring retention: it uses its own oldest chunk again, and what is still open in
// it moves on.
#include <cstring>

#include "capture/core/log/log_table.h"
#include "capture/core/session/session.h"

namespace lockstep::capture {

uint64_t ThreadLog::moved(uint64_t handle) const { return moved_.now(handle); }

void ThreadLog::note_end(uint64_t handle) {
  LogTable::get().find(format::handle_log(handle))->moved_.note_end(handle);
}

// The oldest chunk of records, whose content goes, but for what is still open.
uint32_t ThreadLog::drop_oldest(OpenEvents* open) {
  const uint32_t index = oldest_index_;
  const char* chunk = Session::get().file().chunk(index);
  const auto* header = reinterpret_cast<const format::ChunkHeader*>(chunk);
  const uint64_t base = uint64_t{header->chunk_no} * format::kUnitsPerChunk;
  uint64_t kept = 0;
  for (uint32_t unit = format::kChunkHeaderUnits; unit < format::kLastUnit;) {
    const char* at = chunk + unit * format::kUnitBytes;
    const auto* head = reinterpret_cast<const format::RecordHead*>(at);
    const auto kind = static_cast<uint8_t>(head->kind);
    const uint32_t bytes = format::record_bytes(kind);
    if (bytes == 0) break;
    // A stop that came on another thread is not in the record; that thread has noted the end.
    const bool is_open = head->stop_after == 0 && (head->flags & format::kFlagStopped) == 0;
    const uint64_t handle = format::make_handle(kind, id_, base + unit);
    if (is_open && format::is_event(kind) && open->count < OpenEvents::kMost &&
        !moved_.has_noted_end(handle)) {
      auto& event = open->events[open->count++];
      event.handle = handle;
      memcpy(event.bytes, at, bytes);
      ++kept;
    }
    kept += head->kind == format::Kind::kLink &&
            (head->flags & format::kFlagMoved) != 0;  // says nothing of its own
    unit += bytes / format::kUnitBytes;
  }
  moved_.forget_ends(header->chunk_no);
  __atomic_store_n(&losses_[kLoss_overwritten], losses_[kLoss_overwritten] + header->records - kept,
                   __ATOMIC_RELAXED);
  if (owned_ > 1) oldest_index_ = header->next;
  --owned_;
  return index;
}

// The next chunk for records; in ring retention, when the log has its share, its own oldest one.
uint32_t ThreadLog::take_chunk(OpenEvents* open) {
  ProcessFile& file = Session::get().file();
  uint32_t index = spare_index_;
  spare_index_ = kNoChunk;
  if (index == kNoChunk) index = file.ring() ? file.claim_share(owned_) : file.claim_chunk();
  if (index == kNoChunk && file.ring()) {
    // Others have come since: the log uses one chunk again and gives another back, so it shrinks while it
    // writes.
    if (owned_ > 2 && file.exceeds_share(owned_)) file.give_back(drop_oldest(open));
    index = drop_oldest(open);
  }
  if (index != kNoChunk) ++owned_;
  return index;
}

// Writes open events again, at the cursor, each with a record that says which handle the host knows it by.
void ThreadLog::move_open(const OpenEvents& open) {
  moved_.forget_overwritten(open, oldest_chunk_no_);
  for (uint32_t i = 0; i < open.count; ++i) {
    const auto& event = open.events[i];
    MovedEvents::Entry* entry = moved_.entry_for(event.handle);
    if (entry == nullptr) {
      lose(kLoss_overwritten);
      continue;
    }
    // It may have moved before; the host knows the first handle only.
    const uint64_t issued = entry->issued != 0 ? entry->issued : event.handle;
    entry->now = append_moved(event.bytes);
    __atomic_store_n(&entry->issued, issued, __ATOMIC_RELAXED);
    auto* link = reinterpret_cast<format::LinkRecord*>(cursor_);
    link->head.start = 0;
    link->child = entry->now;
    link->parent = issued;
    publish(link, format::Kind::kLink, format::kFlagMoved, 0);
  }
}

// A copy of an event's record. Its parent was older still, and has gone.
uint64_t ThreadLog::append_moved(const char* bytes) {
  format::RecordHead head;
  memcpy(&head, bytes, sizeof head);
  const auto kind = static_cast<uint8_t>(head.kind);
  char* at = cursor_;
  memcpy(at + sizeof head, bytes + sizeof head, format::record_bytes(kind) - sizeof head);
  auto* record = reinterpret_cast<format::RecordHead*>(at);
  record->start = head.start;
  switch (head.kind) {
    case format::Kind::kColl:
      reinterpret_cast<format::CollRecord*>(at)->group_link = 0;
      break;
    case format::Kind::kShortColl:
      reinterpret_cast<format::ShortCollRecord*>(at)->group_link = 0;
      break;
    case format::Kind::kP2p:
      reinterpret_cast<format::P2pRecord*>(at)->group_link = 0;
      break;
    default:
      break;
  }
  // Their link is a channel; any other link is a distance to a record that is gone.
  const bool is_channel = head.kind == format::Kind::kKernelCh || head.kind == format::Kind::kKernelPhase;
  return publish_bytes(at, format::record_bytes(kind), head.kind, head.flags, is_channel ? head.link : 0, 0);
}

}  // namespace lockstep::capture
