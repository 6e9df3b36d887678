// SPDX-License-Identifier: Apache-2.0
// Assembling is done as a process is loaded, on the thread that loads it: it needs one trace alone, so
// several processes are assembled at once.
#include "job/assemble/assembled_source.h"

#include <utility>

#include "job/assemble/assemble.h"
#include "model/torch/torch_groups.h"

namespace lockstep::job::assemble {
namespace {

class AssembledSource : public model::TraceSource {
 public:
  explicit AssembledSource(std::unique_ptr<model::TraceSource> source) : source_(std::move(source)) {}
  size_t processes() const override { return source_->processes(); }
  Result<void> load(size_t i, model::Trace& trace) override {
    LOCKSTEP_TRY(source_->load(i, trace));
    // What a reader's files call operations needs no assembling, and comes with the numbers that they give.
    if (trace.ops.size() != 0) return {};
    LOCKSTEP_TRY(assemble(trace));
    model::number_torch_operations(trace);
    return {};
  }
  void run_losses(model::Trace& trace) override { source_->run_losses(trace); }
  std::string name() const override { return source_->name(); }

 private:
  std::unique_ptr<model::TraceSource> source_;
};

}  // namespace

std::unique_ptr<model::TraceSource> assembled(std::unique_ptr<model::TraceSource> source) {
  return std::make_unique<AssembledSource>(std::move(source));
}

}  // namespace lockstep::job::assemble
