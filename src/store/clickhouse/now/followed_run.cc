// SPDX-License-Identifier: Apache-2.0
// A host that has fallen silent may be cut off from the store alone: what it wrote last is taken as a file
// that arrives late, and its age is said. Ages are differences between followers' clocks, which are a few
// seconds apart at most.
#include "store/clickhouse/now/followed_run.h"

#include <algorithm>
#include <map>
#include <tuple>

#include "base/text/units.h"
#include "base/unix_time.h"
#include "store/clickhouse/now/part_bytes.h"
#include "store/clickhouse/wire/client.h"
#include "store/clickhouse/wire/digest.h"
#include "store/clickhouse/wire/sql_text.h"
#include "store/fleet_now.h"

namespace lockstep::store {
namespace clickhouse {

uint64_t followed_run_number(std::string_view name) { return Digest().add(name).value(); }

std::string_view followed_life(model::Liveness liveness, bool beats) {
  switch (liveness) {
    case model::Liveness::kRunning:
      return "running";
    case model::Liveness::kStopped:
      return "stopped";
    case model::Liveness::kGone:
      return "gone";
    case model::Liveness::kUnknown:
      break;
  }
  return beats ? "beats" : "unknown";
}

}  // namespace clickhouse

namespace {

using namespace clickhouse;
using model::ProcessPart;

// A follower writes every two seconds, and less often while the store refuses.
constexpr int64_t kSilentNs = 15'000'000'000;
// The states of all processes of a job come in one answer.
constexpr size_t kMostAnswerBytes = size_t{1} << 31;

std::optional<int64_t> parse_signed(const std::string& text) {
  const bool is_negative = text.starts_with('-');
  const auto digits = parse_number(std::string_view(text).substr(is_negative ? 1 : 0));
  if (!digits || *digits > uint64_t{INT64_MAX}) return std::nullopt;
  return is_negative ? -static_cast<int64_t>(*digits) : static_cast<int64_t>(*digits);
}

struct StoredProcess {
  std::string host, life, details;
  bool closed = false;
  int64_t heartbeat_ns = 0, seen_ns = 0, rank = -1, pid = 0;
  std::map<uint64_t, std::string> members;  // by number of the communicator
};

// The processes of one look, and which of them are too old to be of now.
class Processes {
 public:
  explicit Processes(std::vector<StoredProcess> list) : list_(std::move(list)) {
    for (const StoredProcess& process : list_) newest_ns_ = std::max(newest_ns_, process.seen_ns);
    // The one comparison with the clock of this machine, hence the wider margin.
    age_ns_ = unix_now_ns() - newest_ns_;
    is_old_ = age_ns_ > 4 * kSilentNs;
  }

  size_t size() const { return list_.size(); }
  const StoredProcess& operator[](size_t i) const { return list_[i]; }
  // All have fallen silent: then nothing is known of now.
  bool is_old() const { return is_old_; }
  // Since the newest was written.
  int64_t age_ns() const { return age_ns_; }
  bool all_ended() const { return std::all_of(list_.begin(), list_.end(), has_ended); }
  bool is_silent(const StoredProcess& process) const {
    return is_old_ || (newest_ns_ - process.seen_ns > kSilentNs && !has_ended(process));
  }
  // Of what is too old to be of now, by host.
  std::map<std::string, int64_t> ages() const {
    std::map<std::string, int64_t> ages;
    if (is_old_) ages["all hosts"] = age_ns_;
    for (const StoredProcess& process : list_) {
      if (is_old_ || !is_silent(process)) continue;
      int64_t& age = ages[process.host];
      age = std::max(age, newest_ns_ - process.seen_ns);
    }
    return ages;
  }

  // False: its bytes are not those of a state.
  bool unpack(const StoredProcess& process, model::FollowedProcess& state, ProcessPart& part) const {
    // The process comes first: it says how many communicators must follow.
    const auto members = unpack_process(process.details, part);
    if (!members) return false;
    for (uint64_t comm = 0; comm < *members; ++comm) {
      const auto member = process.members.find(comm);
      // In the order of their numbers, as the process names them by position.
      if (member == process.members.end() || !unpack_member(member->second, part)) return false;
    }
    state.heartbeat_ns = process.heartbeat_ns;
    state.seen_ns = process.seen_ns;
    state.closed = process.closed;
    // Its liveness stays unknown: it may live on a host that the store does not hear.
    if (is_silent(process)) return true;
    for (const auto life : {model::Liveness::kRunning, model::Liveness::kStopped, model::Liveness::kGone})
      if (process.life == followed_life(life, false)) state.liveness = life;
    state.beats = process.life == followed_life(model::Liveness::kUnknown, true);
    return true;
  }

 private:
  // One that has ended is as it was.
  static bool has_ended(const StoredProcess& process) { return process.closed || process.life == "gone"; }

  std::vector<StoredProcess> list_;
  int64_t newest_ns_ = 0, age_ns_ = 0;
  bool is_old_ = false;
};

Error damaged(const StoredProcess& process, const std::string& where) {
  return {ErrorCode::kInvalidInput,
          "the state of a process on " + process.host + " is damaged, or from another version of Lockstep",
          where};
}

class FollowedSource : public model::TraceSource {
 public:
  FollowedSource(std::string name, Processes processes)
      : name_(std::move(name)), processes_(std::move(processes)) {}

  size_t processes() const override { return processes_.size(); }
  Result<void> load(size_t, model::Trace&) override {
    return Error{ErrorCode::kUnsupported, "a followed run has no traces, only what it does now", name_};
  }
  bool gives_parts() const override { return true; }
  Result<void> load_part(size_t i, ProcessPart& part) override {
    model::FollowedProcess state;
    if (!processes_.unpack(processes_[i], state, part)) return damaged(processes_[i], name_);
    model::JobProcess& process = part.process;
    process.row.heartbeat_ns = state.heartbeat_ns;
    process.row.closed = state.closed;
    process.liveness = state.liveness;
    process.beats = state.beats;
    return {};
  }
  void run_losses(model::Trace& trace) override {
    for (const auto& [host, age] : processes_.ages())
      trace.lose(
          model::kNoRow, "read", "old_state", 1,
          "what the store has of " + host + " is " + format_duration(static_cast<double>(age)) + " old");
  }
  std::string name() const override { return name_; }

 private:
  std::string name_;
  Processes processes_;
};

// For an error text: who mistyped a run's name wants to see what there is. The newest eight are enough.
Result<std::string> runs_there(Client& client, const std::string& table) {
  LOCKSTEP_ASSIGN(const Rows rows, client.select("SELECT name, max(seen_ns) AS newest FROM " + table +
                                                     " GROUP BY name ORDER BY newest DESC LIMIT 8",
                                                 2));
  std::string names;
  for (const auto& row : rows) names += (names.empty() ? "" : ", ") + row[0];
  return names;
}

Result<std::vector<StoredProcess>> read_processes(Client& client, const std::string& database, uint64_t run) {
  const std::string where = " FINAL WHERE run = " + std::to_string(run);
  LOCKSTEP_ASSIGN(
      const Rows processes,
      client.select("SELECT process, host, liveness, closed, heartbeat_ns, seen_ns, details, rank, pid "
                    "FROM " +
                        identifier(database) + ".`now_processes`" + where,
                    9));
  LOCKSTEP_ASSIGN(
      Rows comms,
      client.select("SELECT process, comm, newest FROM " + identifier(database) + ".`now`" + where, 3));
  std::map<std::string, StoredProcess> stored;
  const Error bad{
      ErrorCode::kUnsupported, "the store's table `now_processes` holds a row that is not a state", {}};
  for (const auto& row : processes) {
    const auto heartbeat = parse_signed(row[4]), seen = parse_signed(row[5]), rank = parse_signed(row[7]),
               pid = parse_signed(row[8]);
    // Differences of these times are taken later and must fit 64 bits.
    if (!heartbeat || !seen || !rank || !pid || !is_time(*heartbeat) || !is_time(*seen)) return bad;
    stored[row[0]] = {.host = row[1],
                      .life = row[2],
                      .details = row[6],
                      .closed = row[3] != "0",
                      .heartbeat_ns = *heartbeat,
                      .seen_ns = *seen,
                      .rank = *rank,
                      .pid = *pid,
                      .members = {}};
  }
  for (auto& row : comms) {
    const auto at = stored.find(row[0]);
    const auto comm = parse_number(row[1]);
    // A communicator whose process is not there yet is left for the next look: communicators are written
    // first.
    if (at != stored.end() && comm) at->second.members[*comm] = std::move(row[2]);
  }
  std::vector<StoredProcess> list;
  for (auto& [number, process] : stored) list.push_back(std::move(process));
  // As readers of files have them.
  std::sort(list.begin(), list.end(), [](const StoredProcess& a, const StoredProcess& b) {
    return std::tie(a.rank, a.host, a.pid) < std::tie(b.rank, b.host, b.pid);
  });
  return list;
}

// Where a followed run is, and the way there.
class Place {
 public:
  static Result<Place> open(FleetTarget target) {
    const size_t mark = target.url.find('#');
    const std::string run = mark == std::string::npos ? std::string() : target.url.substr(mark + 1);
    target.url.resize(std::min(mark, target.url.size()));
    LOCKSTEP_TRY(check_target(target));
    LOCKSTEP_ASSIGN(Address address, parse_address(target.url));
    if (!target.key.empty()) address.key = target.key;
    // A reader asks the server to refuse all that writes, whatever the user may do.
    ClientLimits limits{.patience = target.patience, .settings = "readonly=1"};
    limits.http.answer_bytes = kMostAnswerBytes;
    LOCKSTEP_ASSIGN(Client client, Client::open(address, limits));
    return Place(std::move(client), address, run);
  }

  std::string name() const { return store_ + "#" + run_; }
  // An error without a process: it says which runs there are.
  Result<Processes> read() {
    std::vector<StoredProcess> processes;
    if (!run_.empty()) {
      LOCKSTEP_ASSIGN(processes, read_processes(client_, database_, followed_run_number(run_)));
    }
    if (!processes.empty()) return Processes(std::move(processes));
    LOCKSTEP_ASSIGN(const std::string names, runs_there(client_, identifier(database_) + ".`now_processes`"));
    return Error{run_.empty() ? ErrorCode::kUsage : ErrorCode::kNotFound,
                 (run_.empty() ? "name the run behind a #" : "no run '" + run_ + "' is followed there") +
                     std::string(names.empty() ? "; the store has none" : "; the store has " + names),
                 store_};
  }

 private:
  Place(Client client, const Address& address, std::string run)
      : client_(std::move(client)),
        store_(address.base + address.database),
        database_(address.database),
        run_(std::move(run)) {}
  Client client_;
  std::string store_, database_, run_;
};

class WatchedRun : public FollowedRun {
 public:
  explicit WatchedRun(Place place) : place_(std::move(place)) {}
  std::string name() const override { return place_.name(); }
  Result<std::vector<model::FollowedProcess>> look() override {
    LOCKSTEP_ASSIGN(const Processes processes, place_.read());
    if (processes.is_old() && !processes.all_ended())
      return Error{ErrorCode::kNotFound,
                   "no host has written for " + format_duration(static_cast<double>(processes.age_ns())) +
                       "; `lockstep diagnose` judges what they wrote last",
                   name()};
    std::vector<model::FollowedProcess> states;
    for (size_t i = 0; i < processes.size(); ++i) {
      const auto part = std::make_shared<ProcessPart>();
      if (!processes.unpack(processes[i], states.emplace_back(), *part)) return damaged(processes[i], name());
      states.back().part = part;
    }
    return states;
  }

 private:
  Place place_;
};

}  // namespace

bool is_followed_run(std::string_view path) {
  return path.starts_with("http://") || path.starts_with("https://");
}

Result<std::unique_ptr<FollowedRun>> FollowedRun::open(const FleetTarget& target) {
  LOCKSTEP_ASSIGN(Place place, Place::open(target));
  return std::unique_ptr<FollowedRun>(std::make_unique<WatchedRun>(std::move(place)));
}

Result<std::unique_ptr<model::TraceSource>> open_followed_run(const FleetTarget& target) {
  LOCKSTEP_ASSIGN(Place place, Place::open(target));
  LOCKSTEP_ASSIGN(Processes processes, place.read());
  return std::unique_ptr<model::TraceSource>(
      std::make_unique<FollowedSource>(place.name(), std::move(processes)));
}

}  // namespace lockstep::store
