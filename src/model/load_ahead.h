// SPDX-License-Identifier: Apache-2.0
// Walks the processes of a source while the next one is loaded by a second thread, where the system starts
// one, so that two at most are in memory. Used by one thread; nobody else may touch the source meanwhile.
#pragma once
#include <functional>
#include <future>
#include <memory>
#include <optional>
#include <string_view>
#include <system_error>

#include "model/trace_source.h"

namespace lockstep::model {

// Its destructor waits for a load that is under way. A process that cannot be read is an error in its turn,
// and the walk goes on.
class LoadAhead {
 public:
  struct Loaded {
    std::unique_ptr<Trace> trace = std::make_unique<Trace>();
    Result<void> result;
  };

  explicit LoadAhead(TraceSource& source) : source_(source) { start(); }
  LoadAhead(const LoadAhead&) = delete;
  LoadAhead& operator=(const LoadAhead&) = delete;
  // The next process, nullopt after the last one. The caller lets go of the previous one first, to keep the
  // bound.
  std::optional<Loaded> next() {
    if (!pending_.valid()) return std::nullopt;
    Loaded loaded = pending_.get();
    start();
    return loaded;
  }

 private:
  // Where no thread can be started, next() loads the process itself.
  void start() {
    if (started_ == source_.processes()) return;
    const auto load = [this, i = started_++] {
      Loaded loaded;
      loaded.result = source_.load(i, *loaded.trace);
      return loaded;
    };
    try {
      pending_ = std::async(std::launch::async, load);
    } catch (const std::system_error&) {
      pending_ = std::async(std::launch::deferred, load);
    }
  }
  TraceSource& source_;
  size_t started_ = 0;
  std::future<Loaded> pending_;
};

// Calls `add` with each process that can be read, until it returns false or an error. What cannot be read is
// a loss of `stage` in `run`, to which those of the run itself are added at the end. Returns how many it was
// called with; an error if nothing could be read. `progress`, of which there may be none, grows from 0 to 1.
Result<uint64_t> walk_processes(TraceSource& source, std::string_view stage,
                                const std::function<void(double)>& progress, Trace& run,
                                const std::function<Result<bool>(const Trace&)>& add);

}  // namespace lockstep::model
