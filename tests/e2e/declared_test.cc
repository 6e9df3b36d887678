// SPDX-License-Identifier: Apache-2.0
// What a program says through lockstep.h, from C99, C++ and Python, followed to what a reader of each output
// gets: the process file, trace.db, and the timeline as the reader of PyTorch's profiler sees it.
#include <chrono>
#include <cstdio>
#include <fstream>
#include <iterator>
#include <ostream>
#include <set>

#include "job/assemble/assembled_source.h"
#include "model/event_kind.h"
#include "model/names/op_names.h"
#include "model/torch/comms_id.h"
#include "readers/reader.h"
#include "store/store.h"
#include "tests/e2e/workplace.h"

namespace lockstep::test {
namespace {

struct Declared {
  std::string func, dtype;
  uint64_t in, out;
  std::string group, description;
  int32_t world, start, stride, rank, peer;
  int64_t seq;
  bool is_p2p;
  int is_async;  // -1 not said
  std::string in_split, out_split;
  bool operator==(const Declared&) const = default;
};
std::ostream& operator<<(std::ostream& out, const Declared& d) {
  return out << d.func << ' ' << d.dtype << ' ' << d.in << "->" << d.out << " (" << d.group << ", "
             << d.description << ") " << d.world << ' ' << d.start << ' ' << d.stride << " rank " << d.rank
             << " peer " << d.peer << " seq " << d.seq << " p2p " << d.is_p2p << " async " << d.is_async
             << ' ' << d.in_split << ' ' << d.out_split;
}

const std::string kMany =
    "[0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, "
    "28, ..., 39]";
const std::vector<Declared> kDeclared = {
    {"ReduceScatter", "Half", 1048576, 524288, "aiter_custom_ar", "", 2, 0, 1, 0, -1, 5, false, 0, "", ""},
    {"AllGather", "BFloat16", 524288, 1048576, "3", "mesh_tp", 2, 0, 2, 0, -1, 6, false, 1, "", ""},
    {"AlltoAll", "Float", 40, 48, "0", "default_pg", 4, 0, 1, 0, -1, 7, false, -1, "[4, 12, 8, 16]",
     "[24, 0, 20, 4]"},
    {"AllReduce", "Float", 256, 256, "experts", "", 3, 0, -1, 0, -1, 1, false, -1, "", ""},
    {"Send", "Half", 4096, 4096, "1", "mesh_pp", 2, 0, 2, 0, 1, 1, true, 1, "", ""},
    {"fused_allreduce_rmsnorm", "BFloat16", 64, 64, "aiter_custom_ar", "", 2, 0, 1, 0, -1, 1, false, -1, "",
     ""},
    {"AlltoAll", "Int", 780, 780, "9", "wide", 40, 0, 1, 0, -1, 1, false, -1, kMany, kMany},
};

class DeclaredTest : public Workplace {
 protected:
  static void expect_declared(model::TraceSource& source, const std::string& where) {
    SCOPED_TRACE(where);
    ASSERT_EQ(source.processes(), 1u);
    model::Trace trace;
    auto loaded = source.load(0, trace);
    ASSERT_TRUE(loaded) << loaded.error().message();
    ASSERT_EQ(trace.ops.size(), kDeclared.size());
    for (uint32_t op = 0; op < trace.ops.size(); ++op) {
      const Declared& expected = kDeclared[op];
      EXPECT_EQ(read(trace, op), expected);
      EXPECT_EQ(trace.ops.torch_comms_id[op],
                model::comms_id({expected.group, expected.seq, expected.is_p2p, expected.start,
                                 expected.stride, expected.world}))
          << expected;
    }
  }

  static Declared read(const model::Trace& trace, uint32_t op) {
    const model::Op row = trace.ops.row(op);
    const model::Comm comm = trace.comms.row(row.comm);
    const model::Shape shape = trace.shapes.row(row.shape);
    auto text = [&](model::StringId id) { return std::string(trace.strings[id]); };
    Declared read{
        .func = model::nccl_func(text(shape.func)),
        .dtype = std::string(model::torch_dtype(text(shape.datatype))),
        .in = row.in_count,
        .out = row.out_count,
        .group = text(comm.group_name),
        .description = text(comm.group_description),
        .world = comm.ranks,
        .start = comm.rank_start,
        .stride = comm.rank_stride,
        .rank = comm.rank,
        .peer = row.peer,
        .seq = row.torch_seq,
        .is_p2p = row.peer >= 0,
        .is_async = model::is_async_known(row.kind, row.flags) ? (row.flags & model::kFlagAsync) != 0 : -1,
        .in_split = "",
        .out_split = ""};
    for (uint32_t i = 0; i < trace.splits.size(); ++i) {
      if (trace.splits.op[i] != op) continue;
      read.in_split = text(trace.splits.in_split[i]);
      read.out_split = text(trace.splits.out_split[i]);
    }
    return read;
  }

  void follow(const Argv& program, std::map<std::string, std::string> environment = {}) {
    Argv argv = lockstep({"trace", "-o", "trace.db", "--keep", "--"});
    argv.insert(argv.end(), program.begin(), program.end());
    environment.merge(rank(0, 4));
    const Finished traced = do_here(argv, environment);
    ASSERT_EQ(traced.code, 0) << traced;
    std::string run;
    for (const std::string& name : names()) {
      if (std::filesystem::is_directory(folder_ / name)) run = name;
    }
    auto native = readers::open({path(run)});
    ASSERT_TRUE(native) << native.error().message();
    expect_declared(*job::assemble::assembled(std::move(*native)), "process file");
    auto database = store::open_trace_db(path("trace.db"));
    ASSERT_TRUE(database) << database.error().message();
    expect_declared(**database, "trace.db");
    const Finished converted = do_here(lockstep({"convert", "-f", "chrome", "-o", "rank0.json", "trace.db"}));
    ASSERT_EQ(converted.code, 0) << converted;
    auto timeline = readers::open({path("rank0.json")});
    ASSERT_TRUE(timeline) << timeline.error().message();
    expect_declared(**timeline, "timeline");
  }
};

TEST_F(DeclaredTest, FromC99) { follow({LOCKSTEP_DECLARED_C}); }

// A trace as torch.profiler writes it, of what the process did around the declared operations.
std::string profile(int64_t first_ns, int64_t last_ns) {
  constexpr int64_t kWindowNs = 7'889'238'000'000'000;
  const int64_t base = first_ns / kWindowNs * kWindowNs;
  const auto micros = [](int64_t ns) {
    char text[40];
    std::snprintf(text, sizeof text, "%lld.%03lld", static_cast<long long>(ns / 1000),
                  static_cast<long long>(ns % 1000));
    return std::string(text);
  };
  const std::string ts = micros(first_ns - base), dur = micros(last_ns - first_ns);
  return R"({"schemaVersion":1,"deviceProperties":[{"id":0,"name":"NVIDIA H200"}],"distributedInfo":{"backend":"nccl","rank":0,"world_size":4,)"
         R"("pg_count":0,"pg_config":[],"nccl_version":"2.28.9"},"displayTimeUnit":"ms","baseTimeNanoseconds":)" +
         std::to_string(base) +
         R"(,"traceEvents":[
{"ph":"M","name":"process_labels","pid":4711,"tid":0,"ts":0.000,"args":{"labels":"CPU"}},
{"ph":"X","cat":"cpu_op","name":"aten::linear","pid":4711,"tid":4711,"ts":)" +
         ts + R"(,"dur":)" + dur +
         R"(,"args":{"External id":1207,"Record function id":1207,"Ev Idx":3}},
{"ph":"X","cat":"kernel","name":"sm90_gemm","pid":0,"tid":7,"ts":)" +
         ts + R"(,"dur":1.000,"args":{"External id":1207,"device":0,"stream":7,"correlation":90210}}
],"traceName":"kineto_rank0.json"}
)";
}

TEST_F(DeclaredTest, GoIntoTheTraceOfPyTorchsProfiler) {
  const auto now = [] {
    return std::chrono::duration_cast<std::chrono::nanoseconds>(
               std::chrono::system_clock::now().time_since_epoch())
        .count();
  };
  const int64_t before = now();
  Argv argv = lockstep({"trace", "-o", "trace.db", "--", LOCKSTEP_DECLARED_C});
  const Finished traced = do_here(argv, rank(0, 4));
  ASSERT_EQ(traced.code, 0) << traced;
  const std::string text = profile(before - 1'000'000'000, now() + 1'000'000'000);
  std::ofstream(path("kineto_rank0.json")) << text;
  const Finished converted =
      do_here(lockstep({"convert", "--into", "kineto_rank0.json", "-o", "both_rank0.json", "trace.db"}));
  ASSERT_EQ(converted.code, 0) << converted;
  EXPECT_TRUE(has(converted.out, "7 declared operations and 1 kernel of rank 0")) << converted;
  std::ifstream in(path("both_rank0.json"));
  const std::string both((std::istreambuf_iterator<char>(in)), {});
  const size_t end = text.find("\n],\"traceName\"");
  EXPECT_EQ(both.substr(0, end), text.substr(0, end)) << "what the profiler wrote stays as it is";
  EXPECT_TRUE(both.ends_with(text.substr(end)));
  auto timeline = readers::open({path("both_rank0.json")});
  ASSERT_TRUE(timeline) << timeline.error().message();
  expect_declared(**timeline, "the profiler's trace");
  const auto document = nlohmann::json::parse(both);
  std::set<uint64_t> ids;
  for (const auto& event : document["traceEvents"]) {
    if (!event.contains("args") || !event["args"].contains("Collective name")) continue;
    const bool is_host = event["cat"] == "cpu_op";
    EXPECT_EQ(event["pid"], is_host ? 4711 : 0);
    EXPECT_GT(event["args"]["External id"].get<uint64_t>(), 90210u) << "no other event's";
    EXPECT_EQ(ids.insert(event["args"]["External id"].get<uint64_t>()).second, is_host);
  }
  EXPECT_EQ(ids.size(), 7u);
  const Finished other = do_here(lockstep({"convert", "--into", "trace.db", "-o", "x.json", "trace.db"}));
  EXPECT_EQ(other.code, 2) << other;
  std::ofstream(path("notes")) << "text";
  const Finished part =
      do_here(lockstep({"convert", "--into", "kineto_rank0.json", "-o", "part.json", "trace.db", "notes"}));
  EXPECT_EQ(part.code, 3) << part;
  EXPECT_TRUE(has(part.out, "notes: not a file of a known format")) << part;
}

TEST_F(DeclaredTest, WhatTheProfilerDidNotSeeIsLeftOutAndSaid) {
  Argv argv = lockstep({"trace", "-o", "trace.db", "--", LOCKSTEP_DECLARED_CXX});
  ASSERT_EQ(do_here(argv, rank(0, 4)).code, 0);
  std::ofstream(path("kineto_rank0.json")) << profile(1'700'000'000'000'000'000, 1'700'000'001'000'000'000);
  const Finished outside =
      do_here(lockstep({"convert", "--into", "kineto_rank0.json", "-o", "out.json", "trace.db"}));
  EXPECT_EQ(outside.code, 0) << outside;
  EXPECT_TRUE(has(outside.out, "7 declared operations outside the profiler's window left out")) << outside;
  std::ofstream(path("kineto_rank3.json")) << profile(1, 2);
  std::filesystem::rename(path("kineto_rank0.json"), path("k.json"));
  std::string text;
  std::getline(std::ifstream(path("k.json")), text, '\0');
  text.replace(text.find("\"rank\":0"), 8, "\"rank\":3");
  std::ofstream(path("kineto_rank3.json")) << text;
  const Finished absent =
      do_here(lockstep({"convert", "--into", "kineto_rank3.json", "-o", "y.json", "trace.db"}));
  EXPECT_EQ(absent.code, 2) << absent;
  EXPECT_TRUE(has(absent.err, "rank 3, which is not in the run; there are: 0")) << absent;
}
TEST_F(DeclaredTest, FromCxxThroughPyTorchsMacro) { follow({LOCKSTEP_DECLARED_CXX}); }
TEST_F(DeclaredTest, FromPython) {
  follow({LOCKSTEP_PYTHON, LOCKSTEP_SOURCE_DIR "/tests/e2e/declared/declared.py"},
         {{"PYTHONPATH", LOCKSTEP_SOURCE_DIR "/python"}});
}

}  // namespace
}  // namespace lockstep::test
