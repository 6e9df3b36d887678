// SPDX-License-Identifier: Apache-2.0
// The part of LogParser that knows channels: rings, trees, the connections between ranks, and what was called
// on them.
#include <algorithm>
#include <charconv>

#include "readers/nccl_log/log_parser.h"

namespace lockstep::readers::nccl_log {
namespace {

constexpr size_t kNo = std::string_view::npos;

Transport transport_of(std::string_view via) {
  if (via.starts_with("P2P/")) return Transport::kP2p;
  if (via.starts_with("SHM") || via.starts_with("direct shared memory")) return Transport::kShm;
  if (via.starts_with("NET/")) return Transport::kNet;
  return Transport::kOther;
}

// "3[6] [send]": the rank, and the device as printed.
int32_t rank_and_device(std::string_view text, std::string& device) {
  const size_t open = text.find('[');
  const size_t end = std::min(open, text.find(' '));
  if (open != kNo && open == end)
    device = printable(text.substr(open + 1, text.find(']', open) - open - 1).substr(0, 20));
  return to_small(text.substr(0, end));
}

// "NET/IB/2(4)/GDRDMA": card 2, served by rank 4.
void read_card(std::string_view via, Connection& row) {
  const size_t network = via.find('/');
  const size_t card = via.find('/', network + 1);
  if (network == kNo || card == kNo) return;
  via.remove_prefix(card + 1);
  const size_t end = std::min(via.find_first_not_of("0123456789"), via.size());
  row.card = to_small(via.substr(0, end));
  if (end < via.size() && via[end] == '(') row.proxy = to_small(via.substr(end + 1, via.find(')') - end - 1));
}

// A device is printed as NVML's index, before 2.18 and by RCCL as the bus id.
bool is_device(const CommPart& part, const std::string& device) {
  if (device.empty()) return true;
  if (part.nvml_device >= 0 && device == std::to_string(part.nvml_device)) return true;
  return part.bus_id != 0 && to_hex(device) == part.bus_id;
}

// "AllReduce of 512 float32, sum", "Broadcast of 512 int8, root 3".
std::string call_text(const Captures& captures) {
  // By ncclDataType_t and ncclRedOp_t: NCCL prints their numbers.
  static constexpr std::string_view kTypes[] = {"int8",    "uint8",    "int32",      "uint32",
                                                "int64",   "uint64",   "float16",    "float32",
                                                "float64", "bfloat16", "float8e4m3", "float8e5m2"};
  static constexpr std::string_view kOps[] = {"sum", "product", "max", "min", "average"};
  const std::string func = printable(captures[0].substr(0, 40));
  const int64_t type = to_int(captures[4]), op = to_int(captures[5]);
  const bool has_type = type >= 0 && type < static_cast<int64_t>(std::size(kTypes));
  std::string text = func + " of " + std::to_string(to_int(captures[3])) + ' ' +
                     (has_type ? std::string(kTypes[type]) : "elements of type " + std::to_string(type));
  const bool is_rooted = func == "Broadcast" || func == "Reduce" || func == "Gather" || func == "Scatter";
  if (func.find("Reduce") != std::string::npos)
    text +=
        ", " + (op >= 0 && op < static_cast<int64_t>(std::size(kOps)) ? std::string(kOps[op])
                                                                      : "reduction " + std::to_string(op));
  if (is_rooted) text += ", root " + std::to_string(to_int(captures[6]));
  return text;
}

bool may_hold(const CommPart& part, const Connection& row) {
  const int32_t own = row.is_receive ? row.to : row.from, other = row.is_receive ? row.from : row.to;
  return part.rank == own && other < part.ranks &&
         is_device(part, row.is_receive ? row.to_device : row.from_device);
}

}  // namespace

ChannelPosition* LogParser::position(CommPart& part, int64_t channel) {
  if (channel < 0 || channel >= static_cast<int64_t>(Connection::kLanesMost)) return nullptr;
  const auto needed = static_cast<size_t>(channel) + 1;
  if (part.positions.size() < needed) {
    // A damaged number takes places for all channels before it, so all communicators together are bounded.
    if (positions_ + needed - part.positions.size() > LogModel::kPositionsMost) {
      ++model_.coverage.beyond;
      return nullptr;
    }
    positions_ += needed - part.positions.size();
    part.positions.resize(needed);
  }
  return &part.positions[static_cast<size_t>(channel)];
}

// "0 3 2 1": NCCL cuts it at 128 characters and ends it with dots.
void LogParser::ring_order(std::string_view channel, std::string_view ranks, CommPart& part) {
  const int64_t number = to_int(channel);
  if (number < 0 || number >= static_cast<int64_t>(Connection::kLanesMost) || ranks.ends_with("...")) return;
  std::vector<int32_t> order;
  while (!ranks.empty()) {
    const size_t end = std::min(ranks.find(' '), ranks.size());
    if (end > 0) {
      const int32_t rank = to_small(ranks.substr(0, end));
      if (rank < 0) return;
      order.push_back(rank);
    }
    ranks.remove_prefix(std::min(end + 1, ranks.size()));
  }
  // Places before it that no line is of take memory, too.
  const size_t places = std::max(part.orders.size(), static_cast<size_t>(number) + 1);
  const size_t more = places - part.orders.size() + order.size();
  if (orders_ + more > LogModel::kOrdersMost) {
    ++model_.coverage.beyond;
    return;
  }
  orders_ += more;
  part.orders.resize(places);
  part.orders[static_cast<size_t>(number)] = std::move(order);
}

// "[0] 1/8/-1->0->-1 [1] ...": down, the rank, up; release 2.4 had them the other way round.
void LogParser::trees(const Captures& captures, CommPart& part) {
  static const Pattern kNew("[{int}] {int}/{int}/{int}->{int}->{int}"),
      kOld("[{int}] {int}->{int}->{int}/{int}/{int}");
  // The list is cut at 1,023 characters: its length then says nothing, and its last piece may be half a one.
  const bool is_cut = line_text_.size() >= 1000;
  std::string_view list = captures[0];
  int32_t count = 0;
  while (!list.empty()) {
    const size_t end = std::min(list.find(" [", 1), list.size());
    Captures one;
    const std::string_view text = list.substr(0, end);
    const bool is_old = !kNew.match(text, one);
    if ((!is_old || kOld.match(text, one)) && !(is_cut && end == list.size())) {
      if (ChannelPosition* of = position(part, to_int(one[0]))) {
        of->tree_up = to_small(one[is_old ? 1 : 5]);
        for (size_t i = 0; i < of->tree_down.size(); ++i)
          of->tree_down[i] = to_small(one[(is_old ? 3 : 1) + i]);
      }
    }
    ++count;
    list.remove_prefix(std::min(end + 1, list.size()));
  }
  if (!is_cut) part.trees = count;
}

// Lines do not name the communicator, but for RCCL's: it is the one being created by that thread, or the only
// one whose ranks and devices fit.
uint32_t LogParser::comm_of_connection(const Connection& row, int64_t tid, uint64_t pointer) const {
  constexpr size_t kLookBack = 64;
  const auto& rows = contexts_[row.process].comms;
  uint32_t only = kNobody;
  size_t fitting = 0;
  for (size_t i = rows.size(); i-- > 0 && rows.size() - i <= kLookBack;) {
    const CommPart& part = model_.comms[rows[i]];
    if (part.ended || !may_hold(part, row)) continue;
    if (pointer != 0 && part.pointer == pointer) return rows[i];
    if (part.tid == tid && !part.completed) return rows[i];
    only = rows[i];
    ++fitting;
  }
  return fitting == 1 && pointer == 0 ? only : kNobody;
}

void LogParser::connection(const Head& head, uint32_t process, const Captures& captures) {
  // Lines of one connection differ in the channel only, and come one after the other.
  const std::string_view text(captures[1].data(),
                              static_cast<size_t>(captures[3].end() - captures[1].data()));
  key_.assign(reinterpret_cast<const char*>(&process), sizeof(process)).append(text.substr(0, 200));
  if (key_ != last_connection_ || last_connection_row_ == kNobody) {
    Connection row;
    row.process = process;
    row.from = rank_and_device(captures[1], row.from_device);
    row.to = rank_and_device(captures[2], row.to_device);
    row.is_receive = captures[2].ends_with("[receive]");
    std::string_view via = captures[3];
    const size_t suffix = via.find(" comm 0x");
    const uint64_t pointer =
        suffix == kNo ? 0 : to_hex(via.substr(suffix + 6, via.find(' ', suffix + 6) - suffix - 6));
    via = via.substr(0, std::min(suffix, size_t{80}));
    row.comm = comm_of_connection(row, head.tid, pointer);
    last_connection_ = key_;
    key_.append(reinterpret_cast<const char*>(&row.comm), sizeof(row.comm));
    auto found = connection_by_text_.find(key_);
    if (found == connection_by_text_.end()) {
      if (model_.connections.size() >= LogModel::kConnectionsMost) {
        ++model_.coverage.beyond;
        last_connection_row_ = kNobody;
        return;
      }
      row.transport = transport_of(via);
      row.via = printable(via);
      row.gdr = via.find("/GDRDMA") != kNo;
      if (row.transport == Transport::kNet) read_card(via, row);
      row.first = here();
      found = connection_by_text_.emplace(key_, static_cast<uint32_t>(model_.connections.size())).first;
      model_.connections.push_back(std::move(row));
    }
    last_connection_row_ = found->second;
  }
  Connection& row = model_.connections[last_connection_row_];
  ++row.channels;
  // "00/0", or "00" alone: channel and connection.
  const size_t slash = std::min(captures[0].find('/'), captures[0].size());
  const int32_t channel = to_small(captures[0].substr(0, slash));
  const bool is_first = slash == captures[0].size() || captures[0].substr(slash) == "/0";
  if (is_first && channel >= 0 && static_cast<size_t>(channel) < Connection::kLanesMost)
    row.lanes.set(static_cast<size_t>(channel));
}

namespace {
int32_t last_lane(const Connection& row) {
  int32_t last = -1;
  for (size_t lane = 0; lane < row.lanes.size(); ++lane) {
    if (row.lanes.test(lane)) last = static_cast<int32_t>(lane);
  }
  return last;
}
}  // namespace

// Where several communicators fit, that is taken whose other member has the device at the other end, and that
// has as many channels.
void LogParser::resolve_connections() {
  // The other end of a connection is a member of the same communicator, mostly of another process.
  std::unordered_map<std::string, const CommPart*> part_of_rank;
  for (const CommPart& part : model_.comms) {
    if (!part.group.empty()) part_of_rank[part.group + ' ' + std::to_string(part.rank)] = &part;
  }
  constexpr size_t kLookBack = 64;
  for (Connection& row : model_.connections) {
    if (row.comm != kNobody) continue;
    const auto& rows = contexts_[row.process].comms;
    uint32_t only = kNobody;
    size_t fitting = 0;
    for (size_t i = rows.size(); i-- > 0 && rows.size() - i <= kLookBack;) {
      const CommPart& part = model_.comms[rows[i]];
      if (!may_hold(part, row)) continue;
      const auto other =
          part_of_rank.find(part.group + ' ' + std::to_string(row.is_receive ? row.from : row.to));
      if (other != part_of_rank.end() &&
          !is_device(*other->second, row.is_receive ? row.from_device : row.to_device))
        continue;
      if (last_lane(row) >= std::max(part.coll_channels, part.p2p_channels) && part.coll_channels >= 0)
        continue;
      only = rows[i];
      ++fitting;
    }
    // Of several that fit none is taken: a connection of the wrong communicator would draw a ring that is not
    // there.
    if (fitting == 1) row.comm = only;
  }
}

// Sends and receives differ between ranks with reason, and are not kept.
void LogParser::call(uint32_t process, const Captures& captures) {
  ++model_.collectives;
  if (captures.count < 10 || captures[0] == "Send" || captures[0] == "Recv") return;
  CommPart* part = comm_of(process, to_hex(captures[7]));
  if (part == nullptr) return;
  // Calls are the most of a log, so each keeps its line in 32 bits.
  if (calls_ >= LogModel::kCallsMost || line_ > UINT32_MAX) {
    ++model_.coverage.beyond;
    return;
  }
  const std::string_view what(captures[3].data(),
                              static_cast<size_t>(captures[6].end() - captures[3].data()));
  // Equal calls share their text: a job calls a few shapes, again and again.
  key_.assign(captures[0].substr(0, 40)).append(" ").append(what.substr(0, 80));
  auto found = call_shape_by_text_.find(key_);
  if (found == call_shape_by_text_.end()) {
    if (model_.call_shapes.size() >= LogModel::kCallShapesMost) {
      ++model_.coverage.beyond;
      return;
    }
    found = call_shape_by_text_.emplace(key_, static_cast<uint32_t>(model_.call_shapes.size())).first;
    model_.call_shapes.push_back(call_text(captures));
  }
  const uint64_t number = to_hex(captures[1]);
  if (part->calls.empty()) part->first_call = number;
  part->is_used = true;
  part->calls.push_back({found->second, static_cast<uint32_t>(line_), static_cast<uint32_t>(number)});
  ++calls_;
}

}  // namespace lockstep::readers::nccl_log
