// SPDX-License-Identifier: Apache-2.0
// Feeds one reader arbitrary bytes as a file: open, load every process, assemble, diagnose. Built once per
// line of readers.def, with LOCKSTEP_FUZZ_FORMAT naming the reader.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>

#include "analysis/analysis.h"
#include "fuzz/input_file.h"
#include "job/assemble/assembled_source.h"
#include "job/gather/gather.h"
#include "model/event_counts.h"
#include "readers/reader.h"

namespace {

using namespace lockstep;

const readers::Format& format() {
  for (const readers::Format* known : readers::all()) {
    if (known->name == LOCKSTEP_FUZZ_FORMAT) return *known;
  }
  std::abort();
}

void check(bool condition, const char* what) {
  if (condition) return;
  std::fprintf(stderr, "broken: %s\n", what);
  std::abort();
}

// Rows name rows that exist.
void check_rows(const model::Trace& trace) {
  auto within = [](const auto& column, size_t rows) {
    for (uint32_t row : column) {
      if (row != model::kNoRow && row >= rows) return false;
    }
    return true;
  };
  check(within(trace.tasks.all(&model::TaskTable::call), trace.calls.size()), "tasks.call");
  check(within(trace.tasks.all(&model::TaskTable::plan), trace.calls.size()), "tasks.plan");
  check(within(trace.tasks.all(&model::TaskTable::comm), trace.comms.size()), "tasks.comm");
  check(within(trace.tasks.all(&model::TaskTable::shape), trace.shapes.size()), "tasks.shape");
  check(within(trace.channels.all(&model::ChannelTable::task), trace.tasks.size()), "channels.task");
  check(within(trace.proxy_ops.all(&model::ProxyOpTable::task), trace.tasks.size()), "proxy_ops.task");
  check(within(trace.proxy_steps.all(&model::ProxyStepTable::proxy_op), trace.proxy_ops.size()),
        "proxy_steps.proxy_op");
  check(within(trace.net_events.all(&model::NetEventTable::proxy_step), trace.proxy_steps.size()),
        "net_events.proxy_step");
  check(within(trace.ops.all(&model::OpTable::comm), trace.comms.size()), "ops.comm");
  check(within(trace.ops.all(&model::OpTable::shape), trace.shapes.size()), "ops.shape");
  check(within(trace.ops.all(&model::OpTable::call), trace.calls.size()), "ops.call");
  check(within(trace.kernels.all(&model::KernelTable::op), trace.ops.size()), "kernels.op");
  check(within(trace.ranges.all(&model::RangeTable::thread), trace.threads.size()), "ranges.thread");
  check(within(trace.calls.all(&model::CallTable::thread), trace.threads.size()), "calls.thread");
  check(trace.processes.size() == 1, "one process a load");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string path = fuzz::input_file(data, size);
  if (format().sniff_file != nullptr) format().sniff_file(path);
  if (auto source = format().open({path})) {
    auto assembled = job::assemble::assembled(std::move(*source));
    for (size_t i = 0; i < assembled->processes(); ++i) {
      model::Trace trace;
      if (assembled->load(i, trace)) check_rows(trace);
    }
    model::Trace losses;
    assembled->run_losses(losses);
    if (auto job = job::gather::gather(*assembled, {.threads = 1, .progress = {}})) analysis::diagnose(*job);
  }
  return 0;
}
