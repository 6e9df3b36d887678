// SPDX-License-Identifier: Apache-2.0
// Feeds arbitrary bytes to the reader of trace.db as a file: open, load every process, diagnose, extract what
// is attached.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <span>
#include <string>

#include "analysis/analysis.h"
#include "fuzz/input_file.h"
#include "job/gather/gather.h"
#include "store/store.h"

namespace {

using namespace lockstep;

void check(bool condition, const char* what) {
  if (condition) return;
  std::fprintf(stderr, "broken: %s\n", what);
  std::abort();
}

bool within(std::span<const uint32_t> column, size_t rows) {
  for (const uint32_t row : column) {
    if (row != model::kNoRow && row >= rows) return false;
  }
  return true;
}

// Rows name rows that exist.
void check_rows(const model::Trace& trace) {
  check(trace.processes.size() > 0, "a process a load");
  check(within(trace.ops.all(&model::OpTable::comm), trace.comms.size()), "ops.comm");
  check(within(trace.ops.all(&model::OpTable::shape), trace.shapes.size()), "ops.shape");
  check(within(trace.ops.all(&model::OpTable::call), trace.calls.size()), "ops.call");
  check(within(trace.tasks.all(&model::TaskTable::comm), trace.comms.size()), "tasks.comm");
  check(within(trace.channels.all(&model::ChannelTable::task), trace.tasks.size()), "channels.task");
  check(within(trace.proxy_steps.all(&model::ProxyStepTable::proxy_op), trace.proxy_ops.size()),
        "proxy_steps.proxy_op");
  check(within(trace.kernels.all(&model::KernelTable::op), trace.ops.size()), "kernels.op");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string path = fuzz::input_file(data, size);
  if (auto source = store::open_trace_db(path)) {
    for (size_t i = 0; i < (*source)->processes(); ++i) {
      model::Trace trace;
      if ((*source)->load(i, trace)) check_rows(trace);
    }
    if (auto job = job::gather::gather(**source, {.threads = 1, .progress = {}})) analysis::diagnose(*job);
    const std::string attached = path + ".attached";
    (void)store::extract_attachments(path, [&]() -> Result<std::string> {
      std::filesystem::create_directories(attached);
      return attached;
    });
    std::filesystem::remove_all(attached);
  }
  return 0;
}
