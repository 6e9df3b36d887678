// SPDX-License-Identifier: Apache-2.0
// Finds the rank in the job for a rank of a communicator, which is all that RAS numbers. The largest
// communicator stands for the job if every process and GPU of the others is in it. Otherwise no rank of the
// job is named: a communicator's rank 3 is nobody's rank 3.
#include "analysis/ras_rules/view.h"

#include <algorithm>
#include <set>

#include "base/text/wording.h"

namespace lockstep::analysis::ras_rules {
namespace {

bool is_known(const RankPlace& place) { return !place.host.empty() && place.pid >= 0; }

std::set<std::tuple<std::string, int64_t, int32_t>> devices_of(const Comm& comm) {
  std::set<std::tuple<std::string, int64_t, int32_t>> devices;
  const auto add = [&](const RankPlace& rank) {
    if (is_known(rank)) devices.emplace(rank.host, rank.pid, rank.cuda_device);
  };
  for (const Rank& rank : comm.ranks) add(rank);
  for (const MissingRank& rank : comm.missing) add(rank);
  return devices;
}

// Ranks of the largest communicator are those of the job, if it holds whoever is in any other; of several,
// the one that most is known of.
const Comm* find_world(const Snapshot& snapshot) {
  const auto less = [](const Comm& a, const Comm& b) {
    return std::tuple(a.size, a.ranks.size() + a.missing.size()) <
           std::tuple(b.size, b.ranks.size() + b.missing.size());
  };
  const auto largest = std::max_element(snapshot.comms.begin(), snapshot.comms.end(), less);
  // A summary does not name all who are in it; where it numbers ranks of the job, they say so themselves.
  if (largest == snapshot.comms.end() || largest->is_summary) return nullptr;
  const auto all = devices_of(*largest);
  for (const Comm& comm : snapshot.comms) {
    const auto devices = devices_of(comm);
    if (!std::includes(all.begin(), all.end(), devices.begin(), devices.end())) return nullptr;
  }
  return &*largest;
}

}  // namespace

View::View(const Job& job) : now_(job.back()) {
  // One that ends early says less than a whole one before it.
  const auto whole = std::find_if(job.rbegin(), job.rend(), [](const Snapshot* snapshot) {
    return !snapshot->cut && !snapshot->comms.empty();
  });
  if (whole != job.rend()) now_ = *whole;
  if (const Comm* world = find_world(now()); world != nullptr) {
    const auto add = [this](const RankPlace& place) {
      if (is_known(place)) global_.try_emplace({place.host, place.pid, place.cuda_device}, place.rank);
    };
    for (const Rank& rank : world->ranks) add(rank);
    for (const MissingRank& rank : world->missing) add(rank);
  }
  for (const Snapshot* snapshot : job) {
    if (snapshot == now_) break;  // what follows ends early
    // Who is missing in one that ends early stands perhaps behind its end.
    if (snapshot->cut && !now().cut) continue;
    // Texts have no time: those that differ are of two moments.
    const bool same_time = snapshot->time == now().time && !(snapshot->is_text && now().is_text);
    if (same_time) continue;
    for (const Comm& comm : snapshot->comms) {
      if (!comm.hash.empty()) earlier_[comm.hash] = {&comm, snapshot};
    }
  }
}

View::Earlier View::earlier(const Comm& comm) const {
  const auto at = earlier_.find(comm.hash);
  // One hash with two sizes is two communicators.
  return at == earlier_.end() || at->second.comm->size != comm.size ? Earlier{} : at->second;
}

const Comm* View::before(const Comm& comm) const { return earlier(comm).comm; }

const std::string& View::time_before(const Comm& comm) const {
  const Earlier found = earlier(comm);
  return (found.snapshot == nullptr ? &now() : found.snapshot)->time;
}

int32_t View::global_rank(const RankPlace& place) const {
  if (place.global >= 0) return place.global;
  const auto at = global_.find({place.host, place.pid, place.cuda_device});
  return at == global_.end() ? -1 : at->second;
}

std::string View::name(const Comm& comm) {
  return "communicator " + comm.hash + " of " +
         wording::count(static_cast<uint64_t>(std::max(comm.size, 0)), "rank");
}

std::string View::who(const Comm& comm, const std::vector<const RankPlace*>& ranks) const {
  std::vector<int32_t> global, local;
  for (const RankPlace* rank : ranks) {
    global.push_back(global_rank(*rank));
    local.push_back(rank->rank);
  }
  std::sort(global.begin(), global.end());
  global.erase(std::unique(global.begin(), global.end()), global.end());
  std::sort(local.begin(), local.end());
  if (!global.empty() && global.front() >= 0 && global.size() == local.size()) return wording::ranks(global);
  return wording::ranks(local) + " of communicator " + comm.hash;
}

std::string View::place(const RankPlace& rank) const {
  const int32_t global = global_rank(rank);
  std::string text = "rank " + std::to_string(global >= 0 ? global : rank.rank) + ": ";
  text += rank.pid >= 0 ? "process " + std::to_string(rank.pid) : "a process that RAS does not know";
  if (!rank.host.empty()) text += " on " + rank.host;
  if (rank.cuda_device >= 0) text += ", GPU " + std::to_string(rank.cuda_device);
  if (rank.nvml_device >= 0 && rank.nvml_device != rank.cuda_device)
    text += " (" + std::to_string(rank.nvml_device) + " of its host)";
  return text;
}

uint64_t launched(const Rank& rank) {
  uint64_t sum = 0;
  // Saturates: counts of a damaged file must not wrap to a small sum and make a rank look behind.
  for (const auto& [func, count] : rank.launched) sum += std::min(count, UINT64_MAX - sum);
  return sum;
}

uint64_t launched(const Rank& rank, const std::string& func) {
  for (const auto& [name, count] : rank.launched) {
    if (name == func) return count;
  }
  return 0;
}

const Rank* find(const Comm& comm, int32_t rank) {
  const auto at = std::lower_bound(comm.ranks.begin(), comm.ranks.end(), rank,
                                   [](const Rank& a, int32_t wanted) { return a.rank < wanted; });
  return at != comm.ranks.end() && at->rank == rank ? &*at : nullptr;
}

std::string operations(const Rank& rank) {
  std::string text = wording::count(launched(rank), "operation"), parts;
  for (const auto& [func, count] : rank.launched) {
    if (count != 0) parts += (parts.empty() ? "" : ", ") + func + " " + std::to_string(count);
  }
  return parts.empty() ? text : text + " (" + parts + ")";
}

}  // namespace lockstep::analysis::ras_rules
