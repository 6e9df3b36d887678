// SPDX-License-Identifier: Apache-2.0
// Builds one row for each pair of ranks, channel, device and kind of traffic. The sender's record has the
// volume and the waits of sending; the receiver's waits are added to the same row. A receiver does not know
// its sender's device, so it joins the first row of its sender that fits.
#include "analysis/network/links.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <set>
#include <tuple>

namespace lockstep::analysis::network {
namespace {

using model::kNoRow;

void add_parts(const model::RateParts& from, model::RateParts& to) {
  for (size_t i = 0; i < to.size(); ++i) {
    to[i].bytes += from[i].bytes;
    to[i].busy_ns += from[i].busy_ns;
  }
}

// Of the mean of the parts' rates, relative; 0: fewer than two are known.
double error_of_parts(const model::RateParts& parts) {
  double sum = 0, squares = 0, n = 0;
  for (const model::RatePart& part : parts) {
    if (part.busy_ns <= 0) continue;
    const double rate = static_cast<double>(part.bytes) / static_cast<double>(part.busy_ns);
    sum += rate;
    squares += rate * rate;
    ++n;
  }
  if (n < 2 || sum <= 0) return 0;
  const double mean = sum / n;
  return std::sqrt(std::max(0.0, squares / n - mean * mean) / (n - 1)) / mean;
}

class LinkMaker {
 public:
  explicit LinkMaker(const model::Job& job) : job_(job) {}

  std::vector<Link> make() {
    // Senders first: a receiver joins the row of its sender, whose device it does not know.
    for (bool senders : {true, false}) {
      for (uint32_t p = 0; p < job_.processes.size(); ++p) {
        for (const model::NetPair& pair : job_.processes[p].net_pairs) {
          if (pair.member < job_.members.size() && pair.is_send == senders) add(p, pair);
        }
      }
    }
    std::vector<Link> rows;
    for (auto& [key, link] : links_) rows.push_back(link);
    return rows;
  }

 private:
  // Ranks of the communicator. The device comes last: a receiver does not know its sender's.
  using Key = std::tuple<uint32_t, int32_t, int32_t, uint16_t, model::Traffic, int32_t>;

  uint32_t process_of(uint32_t comm, int32_t rank) const {
    const std::vector<uint32_t>& members = job_.comms[comm].members;
    if (rank < 0 || static_cast<size_t>(rank) >= members.size()) return kNoRow;
    uint32_t member = members[static_cast<size_t>(rank)];
    return member == kNoRow ? kNoRow : job_.members[member].process;
  }

  // Several GPUs in a process are ranks of the communicator, not processes.
  int32_t global_rank(uint32_t comm, int32_t rank) const {
    uint32_t process = process_of(comm, rank);
    bool whole = job_.comms[comm].ranks == job_.expected_ranks;
    int32_t named = process == kNoRow ? -1 : job_.processes[process].row.rank;
    return named >= 0 ? named : whole || process != kNoRow ? rank : -1;
  }

  Link& row(uint32_t comm, int32_t source, int32_t target, const model::NetPair& pair) {
    auto [at, is_new] = links_.try_emplace({comm, source, target, pair.channel, pair.traffic, pair.device});
    Link& link = at->second;
    if (!is_new) return link;
    link.comm = comm;
    link.from = source;
    link.to = target;
    link.channel = pair.channel;
    link.traffic = pair.traffic;
    link.device = pair.device;
    link.source = global_rank(comm, source);
    link.target = global_rank(comm, target);
    link.source_process = process_of(comm, source);
    link.target_process = process_of(comm, target);
    return link;
  }

  void add(uint32_t process, const model::NetPair& pair) {
    const model::Member& member = job_.members[pair.member];
    if (pair.is_send) {
      Link& link = row(member.comm, member.rank, pair.peer, pair);
      link.transport = pair.transport;
      link.gpu_wait_ns += pair.gpu_ns;
      link.peer_wait_ns += pair.peer_ns;
      link.send_wait_ns += pair.wire_ns;
      link.busy_ns += pair.busy_ns;
      add_parts(pair.parts, link.parts);
      link.send_squares += pair.wire_squares;
      link.sending.add(pair.wire);
      add_volume(link, pair);
      return;
    }
    Link* sent = sent_row(member, pair, pair.traffic);
    // The ends may have kept different parts of an operation.
    if (sent == nullptr) sent = sent_row(member, pair, std::nullopt);
    Link& link = sent != nullptr ? *sent : row(member.comm, pair.peer, member.rank, pair);
    if (sent == nullptr || process_of(member.comm, pair.peer) == kNoRow) add_volume(link, pair);
    link.target_process = process;
    link.receive_wait_ns += pair.wire_ns;
    link.flush_wait_ns += pair.flush_ns;
    link.take_wait_ns += pair.gpu_ns;
  }

  // The first row of what is sent to a receiver over a channel, of this traffic if one is named; null: none.
  Link* sent_row(const model::Member& member, const model::NetPair& pair,
                 std::optional<model::Traffic> traffic) {
    auto at = links_.lower_bound(
        {member.comm, pair.peer, member.rank, pair.channel, traffic.value_or(model::Traffic{}), INT32_MIN});
    if (at == links_.end()) return nullptr;
    const Link& found = at->second;
    const bool is_it = found.comm == member.comm && found.from == pair.peer && found.to == member.rank &&
                       found.channel == pair.channel && (!traffic || found.traffic == *traffic);
    return is_it ? &at->second : nullptr;
  }

  static void add_volume(Link& link, const model::NetPair& pair) {
    link.steps += pair.steps;
    link.bytes += pair.bytes;
    link.first_ns = link.first_ns == 0 ? pair.first_ns : std::min(link.first_ns, pair.first_ns);
    link.last_ns = std::max(link.last_ns, pair.last_ns);
  }

  const model::Job& job_;
  std::map<Key, Link> links_;
};

}  // namespace

void Link::add(const Link& other) {
  steps += other.steps;
  bytes += other.bytes;
  gpu_wait_ns += other.gpu_wait_ns;
  peer_wait_ns += other.peer_wait_ns;
  send_wait_ns += other.send_wait_ns;
  receive_wait_ns += other.receive_wait_ns;
  flush_wait_ns += other.flush_wait_ns;
  take_wait_ns += other.take_wait_ns;
  busy_ns += other.busy_ns;
  send_squares += other.send_squares;
  sending.add(other.sending);
  add_parts(other.parts, parts);
  first_ns = std::min(first_ns, other.first_ns);
  last_ns = std::max(last_ns, other.last_ns);
}

double Link::relative_error() const {
  if (steps < 2 || send_wait_ns <= 0) return 1;
  auto n = static_cast<double>(steps);
  double mean = static_cast<double>(send_wait_ns) / n;
  double variance = std::max(0.0, send_squares / n - mean * mean);
  return std::max(std::sqrt(variance / n) / mean, error_of_parts(parts));
}

std::vector<Link> links(const model::Job& job) { return LinkMaker(job).make(); }

namespace {

// Links of equal keys added up, in the order of the keys.
template <typename KeyOf>
std::vector<Link> sums(const std::vector<Link>& links, KeyOf key_of) {
  struct Sum {
    Link link;
    std::set<std::pair<uint16_t, int32_t>> lanes;  // channel, device
  };
  std::map<decltype(key_of(links.front())), Sum> by_key;
  for (const Link& link : links) {
    auto [at, is_new] = by_key.try_emplace(key_of(link), Sum{link, {}});
    if (!is_new) at->second.link.add(link);
    at->second.lanes.emplace(link.channel, link.device);
  }
  std::vector<Link> all;
  for (auto& [key, sum] : by_key) {
    sum.link.lanes = static_cast<uint32_t>(sum.lanes.size());
    all.push_back(sum.link);
  }
  return all;
}

}  // namespace

std::vector<Link> pairs(const std::vector<Link>& links) {
  return sums(links, [](const Link& of) { return std::tuple(of.comm, of.from, of.to); });
}

std::vector<Link> flows(const std::vector<Link>& links) {
  return sums(links, [](const Link& of) { return std::tuple(of.comm, of.from, of.to, of.traffic); });
}

}  // namespace lockstep::analysis::network
