// SPDX-License-Identifier: Apache-2.0
// A trace.db and the files that it was made of hold the same processes. The place that is loaded first keeps
// its process; the other one is an error, which callers count as a loss. Of places that are loaded at one
// time that is the one of the earlier source. Sources load without the lock, which guards the tables alone.
#include "input/joined_source.h"

#include <tuple>
#include <utility>

namespace lockstep::input {
namespace {

// As its own machine knows it. Times of records are no part of it: they are placed by the clocks of all files
// that were read together. Only where a file gives no start, as those of other tools, the first record stands
// for it.
std::string identity(const model::Trace& trace) {
  const model::ProcessTable& process = trace.processes;
  const int64_t start = process.start_ns[0] != 0 ? process.start_ns[0] : process.first_ns[0];
  std::string text(trace.strings[process.boot_id[0]]);
  for (const int64_t part : {process.pid[0], start, int64_t{process.rank[0]}})
    text += '/' + std::to_string(part);
  return text;
}

}  // namespace

JoinedSource::JoinedSource(std::vector<std::unique_ptr<model::TraceSource>> sources)
    : sources_(std::move(sources)) {
  for (size_t source = 0; source < sources_.size(); ++source) {
    for (size_t process = 0; process < sources_[source]->processes(); ++process)
      places_.push_back({source, process});
  }
}

JoinedSource::Loading::Loading(JoinedSource& source, size_t place) : source_(source) {
  const std::lock_guard lock(source_.mutex_);
  place_ = source_.loading_.insert(place);
}

JoinedSource::Loading::~Loading() {
  {
    const std::lock_guard lock(source_.mutex_);
    source_.loading_.erase(place_);
  }
  source_.has_loaded_.notify_all();
}

Result<void> JoinedSource::load(size_t i, model::Trace& trace) {
  const Place& place = places_[i];
  const Loading loading(*this, i);
  LOCKSTEP_TRY(sources_[place.source]->load(place.process, trace));
  if (trace.processes.size() == 0) return {};
  std::unique_lock lock(mutex_);
  // Each waits for places before its own alone, so the first of them waits for none.
  has_loaded_.wait(lock, [&] { return places_[*loading_.begin()].source == place.source; });
  const auto [at, is_new] = first_.try_emplace(identity(trace), i);
  const size_t other = places_[at->second].source;
  // A place that is loaded again is no copy. Nor are two alike of one source: copies come from different
  // ones.
  if (is_new || at->second == i || other == place.source) return {};
  Error twice{ErrorCode::kInvalidInput,
              "a process (pid " + std::to_string(trace.processes.pid[0]) + ") that is in " +
                  sources_[other]->name() + " too was left out",
              sources_[place.source]->name()};
  trace = {};
  return twice;
}

void JoinedSource::run_losses(model::Trace& trace) {
  for (const auto& source : sources_) source->run_losses(trace);
}

Result<void> JoinedSource::host_counters(const HostCounterVisitor& visit) {
  std::set<std::tuple<std::string, std::string, std::string, std::string, int64_t>> seen;
  for (const auto& source : sources_)
    LOCKSTEP_TRY(source->host_counters([&](const model::HostCounter& counter) {
      if (counter.values.empty()) return;
      const int64_t first_ns = counter.values.front().time_ns;
      if (seen.emplace(counter.host, counter.kind, counter.device, counter.name, first_ns).second)
        visit(counter);
    }));
  return {};
}

std::string JoinedSource::name() const {
  if (sources_.size() == 1) return sources_.front()->name();
  return sources_.front()->name() + " and " + std::to_string(sources_.size() - 1) + " more";
}

}  // namespace lockstep::input
