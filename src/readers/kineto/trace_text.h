// SPDX-License-Identifier: Apache-2.0
// For tests: traces as the profiler writes them, event by event, and what the reader makes of them.
#pragma once
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "model/trace_source.h"
#include "readers/kineto/kineto.h"
#include "tests/support/temporary_folder.h"

namespace lockstep::readers::kineto::testing {

inline constexpr int64_t kBase = 1'759'300'074'000'000'000;

// `args` of an operation: what is left out is not written.
struct Comms {
  std::string collective = "allreduce", dtype = "Float";
  uint64_t in = 1024, out = 1024;
  int group_size = 4;
  std::string name = "0", description = "default_pg", ranks = "\"[0, 1, 2, 3]\"";
  int start = 0, stride = 1;
  std::string more{};  // ", \"Seq\": 3"
  std::string text() const {
    std::string out_text =
        "\"Collective name\": \"" + collective + "\", \"dtype\": \"" + dtype +
        "\", \"In msg nelems\": " + std::to_string(in) + ", \"Out msg nelems\": " + std::to_string(out) +
        ", \"In split size\": \"[]\", \"Out split size\": \"[]\", \"Group size\": " +
        std::to_string(group_size) + ", \"Process Group Name\": \"" + name +
        "\", \"Process Group Description\": \"" + description + "\", \"Process Group Ranks\": " + ranks;
    if (start >= 0) out_text += ", \"Global rank start\": " + std::to_string(start);
    if (stride > 0) out_text += ", \"Global rank stride\": " + std::to_string(stride);
    return out_text + more;
  }
};

// A whole file; tests change its parts. Events stand in the order of the calls.
class TraceText {
 public:
  std::string before =
      "\"schemaVersion\": 1, \"deviceProperties\": [{\"id\": 0, \"name\": \"NVIDIA H200\"}], ";
  std::string info =
      "\"distributedInfo\": {\"backend\": \"nccl\", \"rank\": 1, \"world_size\": 4, \"pg_count\": 1, "
      "\"nccl_version\": "
      "\"2.28.9\"}, ";
  std::string base = "\"baseTimeNanoseconds\": " + std::to_string(kBase) + ", ";
  std::string after = ", \"traceName\": \"trace.json\"";

  // Times in us.
  TraceText& event(const std::string& category, const std::string& name, int64_t ts, int64_t dur,
                   const std::string& args, int64_t tid = 4711) {
    return raw("{\"ph\": \"X\", \"cat\": \"" + category + "\", \"name\": \"" + name +
               "\", \"pid\": 4711, \"tid\": " + std::to_string(tid) + ", \"ts\": " + std::to_string(ts) +
               ".000, \"dur\": " + std::to_string(dur) + ".000, \"args\": {" + args + "}}");
  }
  // The host's call, by an id that its kernel may bear as well.
  TraceText& call(int64_t ts, int64_t dur, int id, const Comms& comms = {}, int64_t tid = 4711) {
    return event("cpu_op", "record_param_comms", ts, dur,
                 "\"External id\": " + std::to_string(id) + ", " + comms.text(), tid);
  }
  // A launch and its kernel are tied by the correlation.
  TraceText& launch(int64_t ts, int correlation, int64_t tid = 4711,
                    const std::string& name = "cudaLaunchKernelExC") {
    return event("cuda_runtime", name, ts, 3,
                 "\"cbid\": 430, \"correlation\": " + std::to_string(correlation), tid);
  }
  TraceText& kernel(const std::string& name, int64_t ts, int64_t dur, int correlation,
                    const std::string& args = "") {
    return event("kernel", name, ts, dur,
                 "\"device\": 0, \"stream\": 23, \"correlation\": " + std::to_string(correlation) +
                     (args.empty() ? "" : ", " + args),
                 23);
  }
  // Named as PyTorch names it: the kernel of the call with this id.
  TraceText& named_kernel(int64_t ts, int64_t dur, int id, const Comms& comms = {},
                          const std::string& name = "ncclDevKernel_AllReduce_Sum_f32_RING_LL(x)") {
    return kernel(name, ts, dur, id, "\"External id\": " + std::to_string(id) + ", " + comms.text());
  }
  TraceText& step(int number, int64_t ts, int64_t dur) {
    return event("user_annotation", "ProfilerStep#" + std::to_string(number), ts, dur, "\"External id\": 1");
  }
  TraceText& raw(const std::string& event) {
    events_ += (events_.empty() ? "\n  " : ",\n  ") + event;
    return *this;
  }
  std::string text() const {
    return "{" + before + info + base + "\"traceEvents\": [" + events_ + "\n  ]" + after + "}\n";
  }

 private:
  std::string events_;
};

// Each test writes into a folder of its own, which is gone afterwards.
class KinetoTest : public ::testing::Test {
 protected:
  std::string write(std::string_view text, const std::string& name = "rank1.json") {
    const std::string path = folder_ / name;
    std::ofstream(path, std::ios::binary) << text;
    return path;
  }
  // The process of the only file.
  model::Trace read(const std::string& text, const std::string& name = "rank1.json") {
    model::Trace trace;
    auto source = kFormat.open({write(text, name)});
    EXPECT_TRUE(source) << source.error().message();
    if (source) {
      const auto loaded = (*source)->load(0, trace);
      EXPECT_TRUE(loaded) << loaded.error().message();
    }
    return trace;
  }
  // Why the file is refused, at open or at load.
  std::string error(const std::string& text) {
    auto source = kFormat.open({write(text)});
    if (!source) return source.error().message();
    model::Trace trace;
    const auto loaded = (*source)->load(0, trace);
    return loaded ? "none" : loaded.error().message();
  }
  // The count of a loss; 0 without one.
  static uint64_t lost(const model::Trace& trace, std::string_view kind) {
    for (size_t i = 0; i < trace.losses.size(); ++i) {
      if (trace.strings[trace.losses.kind[i]] == kind) return trace.losses.count[i];
    }
    return 0;
  }
  static std::string func(const model::Trace& trace, size_t op) {
    return std::string(trace.strings[trace.shapes.func[trace.ops.shape[op]]]);
  }

  const test::TemporaryFolder folder_;
};

}  // namespace lockstep::readers::kineto::testing
