// SPDX-License-Identifier: Apache-2.0
// Several sources as one run: the processes of the first, then those of the next. A process that an earlier
// source has given too (the same trace.db twice, or beside the files that it was made of) is an error of
// load(), and so a loss.
#pragma once
#include <condition_variable>
#include <map>
#include <mutex>
#include <set>
#include <vector>

#include "model/trace_source.h"

namespace lockstep::input {

class JoinedSource : public model::TraceSource {
 public:
  explicit JoinedSource(std::vector<std::unique_ptr<model::TraceSource>> sources);
  size_t processes() const override { return places_.size(); }
  Result<void> load(size_t i, model::Trace& trace) override;
  void run_losses(model::Trace& trace) override;
  // A counter that an earlier source has given too is left out.
  Result<void> host_counters(const HostCounterVisitor& visit) override;
  std::string name() const override;

 private:
  struct Place {
    size_t source, process;
  };
  // A place is in loading_ while this lives.
  class Loading {
   public:
    Loading(JoinedSource& source, size_t place);
    ~Loading();
    Loading(const Loading&) = delete;
    Loading& operator=(const Loading&) = delete;

   private:
    JoinedSource& source_;
    std::multiset<size_t>::iterator place_;
  };
  std::vector<std::unique_ptr<model::TraceSource>> sources_;
  std::vector<Place> places_;
  std::mutex mutex_;
  std::condition_variable has_loaded_;
  std::multiset<size_t> loading_;        // places
  std::map<std::string, size_t> first_;  // who a process is -> the first place that gave it
};

}  // namespace lockstep::input
