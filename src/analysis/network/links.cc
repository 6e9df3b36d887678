// SPDX-License-Identifier: Apache-2.0
#include "analysis/network/links.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <tuple>

namespace lockstep::analysis::network {
namespace {

using model::kNoRow;

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
  using Key = std::tuple<uint32_t, int32_t, int32_t, uint16_t, int32_t>;  // ranks of the communicator

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

  Link& row(uint32_t comm, int32_t source, int32_t target, uint16_t channel, int32_t device) {
    Key key{comm, source, target, channel, device};
    auto [at, is_new] = links_.try_emplace(key);
    Link& link = at->second;
    if (!is_new) return link;
    link.comm = comm;
    link.channel = channel;
    link.device = device;
    link.source = global_rank(comm, source);
    link.target = global_rank(comm, target);
    link.source_process = process_of(comm, source);
    link.target_process = process_of(comm, target);
    return link;
  }

  void add(uint32_t process, const model::NetPair& pair) {
    const model::Member& member = job_.members[pair.member];
    if (pair.is_send) {
      Link& link = row(member.comm, member.rank, pair.peer, pair.channel, pair.device);
      link.transport = pair.transport;
      link.gpu_wait_ns += pair.gpu_ns;
      link.peer_wait_ns += pair.peer_ns;
      link.send_wait_ns += pair.wire_ns;
      link.busy_ns += pair.busy_ns;
      link.send_squares += pair.wire_squares;
      link.sending.add(pair.wire);
      add_volume(link, pair);
      return;
    }
    auto at = links_.lower_bound(Key{member.comm, pair.peer, member.rank, pair.channel, INT32_MIN});
    bool sent = at != links_.end() && at->second.comm == member.comm && std::get<1>(at->first) == pair.peer &&
                std::get<2>(at->first) == member.rank && at->second.channel == pair.channel;
    Link& link = sent ? at->second : row(member.comm, pair.peer, member.rank, pair.channel, pair.device);
    if (!sent || process_of(member.comm, pair.peer) == kNoRow) add_volume(link, pair);
    link.target_process = process;
    link.receive_wait_ns += pair.wire_ns;
    link.flush_wait_ns += pair.flush_ns;
    link.take_wait_ns += pair.gpu_ns;
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
  lanes += other.lanes;
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
  first_ns = std::min(first_ns, other.first_ns);
  last_ns = std::max(last_ns, other.last_ns);
}

double Link::relative_error() const {
  if (steps < 2 || send_wait_ns <= 0) return 1;
  auto n = static_cast<double>(steps);
  double mean = static_cast<double>(send_wait_ns) / n;
  double variance = std::max(0.0, send_squares / n - mean * mean);
  return std::sqrt(variance / n) / mean;
}

std::vector<Link> links(const model::Job& job) { return LinkMaker(job).make(); }

std::vector<Link> pairs(const std::vector<Link>& links) {
  std::vector<Link> sums;
  for (const Link& link : links) {
    bool same = !sums.empty() && sums.back().comm == link.comm &&
                sums.back().source_process == link.source_process &&
                sums.back().target_process == link.target_process && sums.back().source == link.source &&
                sums.back().target == link.target;
    if (!same) {
      sums.push_back(link);
      continue;
    }
    sums.back().add(link);
  }
  return sums;
}

}  // namespace lockstep::analysis::network
