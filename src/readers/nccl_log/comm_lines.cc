// SPDX-License-Identifier: Apache-2.0
// The part of LogParser that knows how communicators come and go.
#include <algorithm>

#include "base/hex.h"
#include "readers/nccl_log/log_parser.h"

namespace lockstep::readers::nccl_log {
namespace {

constexpr size_t kNo = std::string_view::npos;

// The word behind `name ` in a run of names and values; empty: not there.
std::string_view value_of(std::string_view text, std::string_view name) {
  for (size_t at = text.find(name); at != kNo; at = text.find(name, at + 1)) {
    const size_t value = at + name.size() + 1;
    if ((at > 0 && text[at - 1] != ' ') || value > text.size() || text[value - 1] != ' ') continue;
    std::string_view word = text.substr(value, text.find(' ', value) - value);
    while (word.ends_with('-')) word.remove_suffix(1);  // "key 0- Init START"
    return word;
  }
  return {};
}

int32_t number_of(std::string_view text, std::string_view name) { return to_small(value_of(text, name)); }

bool is_same_life(const CommPart& part, int32_t rank, int32_t ranks) {
  return part.rank == rank && (part.ranks < 0 || ranks < 0 || part.ranks == ranks);
}

// The number before ` name` in a list of numbers and names; -1: not there.
int32_t number_before(std::string_view text, std::string_view name) {
  const size_t at = text.find(name);
  if (at == kNo || at == 0) return -1;
  const size_t begin = text.substr(0, at).find_last_not_of("0123456789");
  return to_small(text.substr(begin == kNo ? 0 : begin + 1, at - (begin == kNo ? 0 : begin + 1)));
}

// A pointer means something within its process alone.
std::string pointer_key(uint32_t process, uint64_t pointer) {
  return std::to_string(process) + ' ' + std::to_string(pointer);
}

}  // namespace

CommPart* LogParser::comm_of(uint32_t process, uint64_t pointer) {
  // Lines of one communicator follow each other, so the one that was asked for last is asked first.
  if (last_comm_ != kNobody && model_.comms[last_comm_].process == process &&
      model_.comms[last_comm_].pointer == pointer)
    return model_.comms[last_comm_].ended ? nullptr : &model_.comms[last_comm_];
  const auto found = comm_by_pointer_.find(pointer_key(process, pointer));
  if (found == comm_by_pointer_.end() || model_.comms[found->second].ended) return nullptr;
  last_comm_ = found->second;
  return &model_.comms[last_comm_];
}

CommPart* LogParser::newest_comm_of(uint32_t process, int64_t tid) {
  const auto& rows = contexts_[process].comms;
  // What a thread is creating is among the newest. A job that makes communicators without end must not be
  // searched from its beginning for each line.
  constexpr size_t kLookBack = 64;
  for (size_t i = rows.size(); i-- > 0 && rows.size() - i <= kLookBack;) {
    if (model_.comms[rows[i]].tid == tid) return &model_.comms[rows[i]];
  }
  return nullptr;
}

// The one that a thread is creating. Where no line says that it began (before 2.18, or the line is lost),
// what is said of it waits for its end.
CommPart* LogParser::open_comm_of(uint32_t process, int64_t tid) {
  CommPart* part = newest_comm_of(process, tid);
  if (part != nullptr && !part->completed) return part;
  constexpr size_t kUnbornMost = 64;
  auto& unborn = contexts_[process].unborn;
  for (CommPart& one : unborn) {
    if (one.tid == tid) return &one;
  }
  // A damaged log may hold any number of thread ids.
  if (unborn.size() >= kUnbornMost) return nullptr;
  unborn.emplace_back().tid = tid;
  return &unborn.back();
}

// A thread makes one communicator after the other: one that it left was complete. If the next one's beginning
// is missing, what was said last may be of either.
void LogParser::leave_open_comm(uint32_t process, int64_t tid, bool is_next_completed) {
  CommPart* const part = newest_comm_of(process, tid);
  if (part == nullptr || part->completed) return;
  part->is_used = true;
  if (!is_next_completed) return;
  part->coll_channels = part->p2p_channels = part->nvls_channels = part->rings = part->trees =
      part->peer_channels = -1;
  part->positions.clear();
  part->orders.clear();
}

// A communicator that is mentioned for the first time; null: there are too many.
CommPart* LogParser::made_comm(uint32_t process, int64_t tid, uint64_t pointer, int32_t rank,
                               bool is_completed) {
  if (model_.comms.size() >= LogModel::kCommsMost) {
    ++model_.coverage.beyond;
    return nullptr;
  }
  leave_open_comm(process, tid, is_completed);
  Context& context = contexts_[process];
  const auto unborn = std::find_if(context.unborn.begin(), context.unborn.end(),
                                   [&](const CommPart& one) { return one.tid == tid; });
  const auto row = static_cast<uint32_t>(model_.comms.size());
  context.comms.push_back(row);
  comm_by_pointer_[pointer_key(process, pointer)] = row;
  // They may be of a communicator that had this pointer before.
  last_connection_row_ = last_comm_ = kNobody;
  CommPart& part = model_.comms.emplace_back();
  if (unborn != context.unborn.end()) {
    part = std::move(*unborn);
    context.unborn.erase(unborn);
  }
  part.process = process;
  part.tid = tid;
  part.pointer = pointer;
  part.rank = rank;
  part.first = here();
  return &part;
}

void LogParser::comm_life(const Head& head, uint32_t process, const Captures& captures) {
  // Counted from the end: one of the patterns has a rank more before them.
  const std::string_view rest = captures[captures.count - 1];
  const int32_t rank = to_small(captures[captures.count - 2]);
  const uint64_t pointer = to_hex(captures[captures.count - 3]);
  const size_t dash = rest.rfind("- ");
  const std::string_view event = dash == kNo ? std::string_view() : rest.substr(dash + 2);
  const int32_t ranks = std::max(number_of(rest, "nranks"), number_of(rest, "nRanks"));
  CommPart* part = comm_of(process, pointer);
  // A pointer is used again after the communicator that had it is gone, which the log need not say.
  if (part != nullptr && ((event == "Init START" && part->started) || !is_same_life(*part, rank, ranks))) {
    part->ended = true;
    part = nullptr;
  }
  const bool ends = event.ends_with("COMPLETE") && !event.starts_with("Init");
  if (part == nullptr) {
    // The end of one that the log did not mention: there is nothing to keep.
    if (ends && !event.starts_with("Abort")) return;
    part = made_comm(process, head.tid, pointer, rank, event == "Init COMPLETE");
    if (part == nullptr) return;
  }
  if (ranks >= 0) part->ranks = ranks;
  if (part->device < 0) part->device = number_of(rest, "cudaDev");
  if (part->nvml_device < 0) part->nvml_device = number_of(rest, "nvmlDev");
  if (part->bus_id == 0) part->bus_id = to_hex(value_of(rest, "busId"));
  if (const uint64_t id = to_hex(value_of(rest, "commId")); id != 0) {
    part->group = hex(id);
  } else if (const uint64_t parent = to_hex(value_of(rest, "parent")); parent != 0 && part->group.empty()) {
    // A split has no id of its own: it is that of its parent with which call of the parent, and which colour.
    CommPart* of = comm_of(process, parent);
    if (of != nullptr && of != part) of->is_used = true;
    part->is_orphan = of == nullptr;
    const std::string_view count =
        value_of(rest, "splitCount").empty() ? value_of(rest, "childCount") : value_of(rest, "splitCount");
    if (of != nullptr && of != part && !of->group.empty() && !count.empty())
      part->group = of->group.substr(0, 100) + '/' + std::string(count.substr(0, 10)) + '.' +
                    std::string(value_of(rest, "color").substr(0, 12));
  }
  if (event == "Init START") part->started = true;
  if (event == "Init COMPLETE") part->completed = true;
  if (event.starts_with("Abort") && !part->aborted) {
    part->aborted = true;
    part->abort = here();
  }
  if (ends) part->ended = true;
  part->is_used = part->is_used || event.starts_with("Destroy");
}

void LogParser::comm_remark(LineKind kind, const Head& head, uint32_t process, const Captures& captures) {
  if (kind == LineKind::kCommTopology) {
    CommPart* part = comm_of(process, to_hex(captures[0]));
    if (part == nullptr || !is_same_life(*part, to_small(captures[1]), to_small(captures[2])))
      part = made_comm(process, head.tid, to_hex(captures[0]), to_small(captures[1]), false);
    if (part == nullptr) return;
    part->ranks = to_small(captures[2]);
    part->nodes = to_small(captures[3]);
    part->local_ranks = to_small(captures[4]);
    part->local_rank = to_small(captures[5]);
    part->has_mnnvl = to_small(captures[6]) == 1;
    return;
  }
  if (kind == LineKind::kInitTime) {
    CommPart* timed = newest_comm_of(process, head.tid);
    if (timed == nullptr) return;
    timed->is_used = timed->is_used || is_same_life(*timed, to_small(captures[1]), to_small(captures[2]));
    timed->init_seconds = to_double(captures[3]);
    timed->time = here();
    return;
  }
  CommPart* part = open_comm_of(process, head.tid);
  if (part == nullptr) return;
  switch (kind) {
    case LineKind::kChannelCount:
      // Said once, before its end. A second time it is of another communicator, whose beginning is missing.
      if (part->completed) return;
      if (part->coll_channels >= 0 && part->coll_channels != to_small(captures[0])) {
        part->coll_channels = part->p2p_channels = part->nvls_channels = part->peer_channels = -1;
        return;
      }
      part->coll_channels = to_small(captures[0]);
      part->p2p_channels = number_before(captures[1], " p2p channels,");
      part->nvls_channels = number_before(captures[1], " nvls channels");
      part->peer_channels = number_before(captures[1], " p2p channels per peer");
      return;
    case LineKind::kRingOrder:
      part->rings = to_small(captures[1]);
      return ring_order(captures[0], captures[2], *part);
    case LineKind::kRingOrderOld:
      return ring_order(captures[0], captures[1], *part);
    case LineKind::kTrees:
      return trees(captures, *part);
    case LineKind::kRingPosition:
      if (ChannelPosition* of = position(*part, to_int(captures[0]))) {
        of->ring_before = to_small(captures[1]);
        of->ring_behind = to_small(captures[3]);
      }
      return;
    default:
      if (ChannelPosition* of = position(*part, to_int(captures[0]))) {
        of->tree_up = to_small(captures[1]);
        for (size_t i = 0; i < of->tree_down.size(); ++i) of->tree_down[i] = to_small(captures[3 + i]);
      }
  }
}

}  // namespace lockstep::readers::nccl_log
