// SPDX-License-Identifier: Apache-2.0
// The part of LogParser that knows communicators and the connections between their ranks.
#include <algorithm>
#include <cstdio>

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

int32_t number_of(std::string_view text, std::string_view name) {
  const std::string_view value = value_of(text, name);
  return value.empty() || value.size() > 9 ? -1 : static_cast<int32_t>(to_int(value));
}

int32_t small(std::string_view text) { return text.size() > 9 ? -1 : static_cast<int32_t>(to_int(text)); }

std::string hex_text(uint64_t value) {
  char text[20];
  std::snprintf(text, sizeof(text), "0x%llx", static_cast<unsigned long long>(value));
  return text;
}

bool is_same_life(const CommPart& part, int32_t rank, int32_t ranks) {
  return part.rank == rank && (part.ranks < 0 || ranks < 0 || part.ranks == ranks);
}

Transport transport_of(std::string_view via) {
  if (via.starts_with("P2P/")) return Transport::kP2p;
  if (via.starts_with("SHM") || via.starts_with("direct shared memory")) return Transport::kShm;
  if (via.starts_with("NET/")) return Transport::kNet;
  return Transport::kOther;
}

// "3[6] [send]": the rank, and the device as printed.
int32_t rank_and_device(std::string_view text, std::string& device) {
  const size_t open = text.find('[');
  if (open != kNo) device = printable(text.substr(open + 1, text.find(']', open) - open - 1).substr(0, 20));
  return small(text.substr(0, std::min(open, text.find(' '))));
}

}  // namespace

CommPart* LogParser::comm_of(uint32_t process, uint64_t pointer) {
  const auto& rows = comms_of_process_[process];
  for (size_t i = rows.size(); i-- > 0;) {
    CommPart& part = model_.comms[rows[i]];
    if (part.pointer == pointer) return part.ended ? nullptr : &part;
  }
  return nullptr;
}

CommPart* LogParser::newest_comm_of(uint32_t process, int64_t tid) {
  const auto& rows = comms_of_process_[process];
  constexpr size_t kLookBack = 64;
  for (size_t i = rows.size(); i-- > 0 && rows.size() - i <= kLookBack;) {
    if (model_.comms[rows[i]].tid == tid) return &model_.comms[rows[i]];
  }
  return nullptr;
}

void LogParser::comm_life(const Head& head, uint32_t process, const Captures& captures) {
  const std::string_view rest = captures[captures.count - 1];
  const int32_t rank = small(captures[captures.count - 2]);
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
    if (ends) return;
    if (model_.comms.size() >= LogModel::kCommsMost) {
      ++model_.coverage.beyond;
      return;
    }
    comms_of_process_[process].push_back(static_cast<uint32_t>(model_.comms.size()));
    part = &model_.comms.emplace_back();
    part->process = process;
    part->tid = head.tid;
    part->pointer = pointer;
    part->rank = rank;
    part->first = here();
  }
  if (ranks >= 0) part->ranks = ranks;
  if (part->device < 0) part->device = number_of(rest, "cudaDev");
  if (part->bus_id == 0) part->bus_id = to_hex(value_of(rest, "busId"));
  if (const uint64_t id = to_hex(value_of(rest, "commId")); id != 0) {
    part->group = hex_text(id);
  } else if (const uint64_t parent = to_hex(value_of(rest, "parent")); parent != 0 && part->group.empty()) {
    // A split has no id of its own: it is that of its parent with which call of the parent, and which colour.
    const CommPart* of = comm_of(process, parent);
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
}

void LogParser::comm_remark(LineKind kind, const Head& head, uint32_t process, const Captures& captures) {
  if (kind == LineKind::kCommTopology) {
    if (CommPart* part = comm_of(process, to_hex(captures[0]))) {
      part->nodes = small(captures[3]);
      part->local_ranks = small(captures[4]);
    }
    return;
  }
  CommPart* part = newest_comm_of(process, head.tid);
  if (part == nullptr) return;
  if (kind == LineKind::kChannelCount) part->coll_channels = small(captures[0]);
  if (kind == LineKind::kInitTime) part->init_seconds = to_double(captures[3]);
  if (kind == LineKind::kRingOrder) part->rings = small(captures[1]);
  // The list is cut at 1,023 characters: its length then tells nothing.
  if (kind == LineKind::kTrees && line_text_.size() < 1000)
    part->trees = static_cast<int32_t>(std::count(captures[0].begin(), captures[0].end(), '['));
}

void LogParser::connection(uint32_t process, const Captures& captures) {
  // Lines of one connection differ in the channel only, and come one after the other.
  const std::string_view text(captures[1].data(),
                              static_cast<size_t>(captures[3].end() - captures[1].data()));
  key_.assign(reinterpret_cast<const char*>(&process), sizeof(process)).append(text.substr(0, 200));
  if (key_ == last_connection_ && last_connection_row_ != kNobody) {
    ++model_.connections[last_connection_row_].channels;
    return;
  }
  auto found = connection_by_text_.find(key_);
  if (found == connection_by_text_.end()) {
    if (model_.connections.size() >= LogModel::kConnectionsMost) {
      ++model_.coverage.beyond;
      return;
    }
    Connection row;
    row.process = process;
    row.from = rank_and_device(captures[1], row.from_device);
    row.to = rank_and_device(captures[2], row.to_device);
    std::string_view via = captures[3];
    via = via.substr(0, std::min(via.find(" comm 0x"), size_t{80}));
    row.transport = transport_of(via);
    row.via = printable(via);
    row.gdr = via.find("/GDRDMA") != kNo;
    row.is_receive = captures[2].ends_with("[receive]");
    row.first = here();
    found = connection_by_text_.emplace(key_, static_cast<uint32_t>(model_.connections.size())).first;
    model_.connections.push_back(std::move(row));
  }
  last_connection_ = key_;
  last_connection_row_ = found->second;
  ++model_.connections[last_connection_row_].channels;
}

}  // namespace lockstep::readers::nccl_log
