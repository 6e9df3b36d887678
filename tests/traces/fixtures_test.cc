// SPDX-License-Identifier: Apache-2.0
// The process files in tests/traces/v<N>, which the library of that format version wrote once and which every
// later reader must read. `expected.txt` says what is in each. To add one for a new version:
// LOCKSTEP_RECORD_TRACES=FOLDER makes the files of today's libraries there, to be compressed with gzip -9.
#include <atomic>
#include <fstream>
#include <sstream>
#include <thread>

#include "format/seal.h"
#include "lockstep/lockstep.h"
#include "readers/native/run.h"
#include "segment/adopt.h"
#include "tests/support/nccl_test.h"
#include "tests/support/nvtx.h"
#include "tests/support/places.h"

namespace lockstep::test {
namespace {

using format::Kind;

// Chunks that are sealed, since 1.4, and of those the ones whose seal does not fit what it covers.
std::pair<size_t, size_t> seals(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  file.seekg(format::kHeaderBytes);
  std::vector<unsigned char> chunk(format::kChunkBytes);
  size_t sealed = 0, broken = 0;
  while (file.read(reinterpret_cast<char*>(chunk.data()), static_cast<std::streamsize>(chunk.size()))) {
    format::ChunkHeader header;
    memcpy(&header, chunk.data(), sizeof header);
    const format::ChunkSeal seal = header.seal;
    if (header.magic != format::kChunkMagic || !format::has_seal(header.purpose) || seal.units == 0) continue;
    ++sealed;
    const size_t covered = size_t{seal.units} * format::kUnitBytes;
    if (covered <= chunk.size())
      std::fill(chunk.begin() + static_cast<ptrdiff_t>(covered), chunk.end(), static_cast<unsigned char>(0));
    const format::ChunkSeal now = format::make_seal(chunk.data());
    broken += now.units != seal.units || now.header != seal.header || now.entries != seal.entries;
  }
  return {sealed, broken};
}

std::string summary(const LksFile& file) {
  static constexpr const char* kKinds[] = {
      "",
#define RECORD(kind, name, type, event) #name,
#include "format/record_kinds.def"
#undef RECORD
  };
  static constexpr const char* kLosses[] = {
#define LOSS(index, name, text) #name,
#include "format/losses.def"
#undef LOSS
  };
  std::ostringstream out;
  out << "state " << file.header().state << " logs " << file.logs() << " comms "
      << file.count(format::Def::kComm) << " ended " << file.count(format::Def::kCommEnd) << " shapes "
      << file.count(format::Def::kShape) << " streams " << file.count(format::Def::kStream) << " threads "
      << file.count(format::Def::kThread);
  for (uint32_t kind = 1; kind < std::size(kKinds); ++kind) {
    if (size_t n = file.count(static_cast<Kind>(kind))) out << ' ' << kKinds[kind] << ' ' << n;
  }
  for (uint32_t loss = 0; loss < std::size(kLosses); ++loss) {
    if (uint64_t n = file.lost(static_cast<capture::Loss>(loss)))
      out << " lost." << kLosses[loss] << ' ' << n;
  }
  const auto [sealed, broken] = seals(file.path());
  if (sealed != 0) out << " sealed " << sealed << " broken " << broken;
  uint64_t ops = 0, bytes = 0, timed = 0;
  for (const auto& cell : file.histogram()) ops += cell.ops, bytes += cell.bytes, timed += cell.timed;
  if (ops != 0)
    out << " histogram.ops " << ops << " histogram.bytes " << bytes << " histogram.timed " << timed;
  return out.str();
}

class Traces : public NcclCapture {
 protected:
  // One folder for each version that was written.
  static std::vector<std::string> folders() {
    std::vector<std::string> found;
    for (const auto& entry : std::filesystem::directory_iterator(LOCKSTEP_SOURCE_DIR "/tests/traces")) {
      if (entry.is_directory()) found.push_back(entry.path());
    }
    return found;
  }
  static std::string unpack(const std::string& folder, const std::string& name, const RunDirectory& to) {
    std::string path = to.path() + "/" + name + ".lks";
    std::string command = "gzip -dc '" + folder + "/" + name + ".lks.gz' > '" + path + "'";
    EXPECT_EQ(system(command.c_str()), 0);
    return path;
  }
};

TEST_F(Traces, HoldWhatTheyHeld) {
  const std::vector<std::string> versions = folders();
  EXPECT_TRUE(std::filesystem::exists(LOCKSTEP_SOURCE_DIR "/tests/traces/v" + std::to_string(format::kMajor) +
                                      "." + std::to_string(format::kMinor)))
      << "a new version of the format has no files here";
  for (const std::string& folder : versions) {
    std::ifstream expected(folder + "/expected.txt");
    int traces = 0;
    for (std::string line; std::getline(expected, line);) {
      if (line.empty() || line[0] == '#') continue;
      std::string name = line.substr(0, line.find(' '));
      LksFile file(unpack(folder, name, run_));
      EXPECT_TRUE(file.problems().empty()) << folder << ' ' << name << ": " << file.problems()[0];
      EXPECT_EQ(name + ' ' + summary(file), line) << folder;
      ++traces;
    }
    EXPECT_GE(traces, 3) << folder;
  }
}

// A counter of 62.5 MHz, where this machine's may be another.
TEST_F(Traces, OfAnotherArchitectureHaveTheirTimes) {
  const std::string path = unpack(LOCKSTEP_SOURCE_DIR "/tests/traces/v1.7-aarch64", "closed", run_);
  const LksFile file(path);
  ASSERT_EQ(file.header().host_clock, format::HostClock::kCounterAarch64);
  ASSERT_EQ(file.header().tick_hz, 62'500'000u);
  auto source = readers::native::Run::open({path});
  ASSERT_TRUE(source) << source.error().message();
  model::Trace trace;
  ASSERT_TRUE((*source)->load(0, trace));
  const auto raw = file.all<format::GroupApiRecord>(Kind::kGroupApi);
  std::vector<int64_t> starts;
  for (size_t row = 0; row < trace.calls.size(); ++row) {
    if (trace.calls.kind[row] == static_cast<uint8_t>(Kind::kGroupApi))
      starts.push_back(trace.calls.start_ns[row]);
  }
  ASSERT_EQ(starts.size(), raw.size());
  EXPECT_NEAR(static_cast<double>(starts.back() - starts.front()),
              static_cast<double>(raw.back().head.start - raw.front().head.start) * 16, 1e6);
  EXPECT_NEAR(static_cast<double>(starts.front() - file.header().first_anchor.realtime_ns),
              static_cast<double>(raw.front().head.start - file.header().first_anchor.ticks) * 16, 1e6);
}

// One call of the user with all that follows from it, on the user's thread; `proxy` gets the rest.
template <class Plugin>
void* user_operation(Plugin& plugin, uint64_t i) {
  void* group_api = plugin.start_group_api();
  plugin.state(group_api, 23);
  auto call = plugin.descriptor(abi::kTypeCollApi, group_api);
  auto& api = call.coll_api;
  api.func = "AllReduce", api.count = 1024, api.datatype = "ncclFloat32", api.root = 0;
  api.stream = pointer(0x5000), api.graph_captured = false;
  if constexpr (requires { api.user_tag; }) api.user_tag = i % 4 == 0 ? 0x100 + i : 0;
  void* coll_api = plugin.start(call);
  plugin.stop(coll_api);
  plugin.state(group_api, 24);
  auto launch = plugin.descriptor(abi::kTypeKernelLaunch, group_api);
  launch.kernel_launch.stream = pointer(0x5000);
  plugin.stop(plugin.start(launch));
  void* group = plugin.start(abi::kTypeGroup);
  auto d = plugin.coll(i, coll_api, uint64_t{256} << (i % 6));
  d.coll.parent_group = group;
  void* coll = plugin.start(d);
  plugin.stop(coll);
  auto p2p = plugin.p2p(1, group_api);
  plugin.stop(plugin.start(p2p));
  plugin.stop(group);
  plugin.stop(group_api);
  return coll;
}
template <class Plugin>
void proxy_operation(Plugin& plugin, void* coll, uint64_t i) {
  void* ctrl = plugin.start(abi::kTypeProxyCtrl);
  plugin.state(ctrl, 17);
  plugin.state_with(ctrl, 18, 2);
  plugin.stop(ctrl);
  void* kernel = plugin.start_kernel_ch(coll, static_cast<uint8_t>(i % 8), 1'000'000 + 10'000 * i);
  bool send = i % 2 == 0;
  auto d = plugin.proxy_op(coll, i % 10 == 9 ? 1 : getpid(), send);
  void* op = i % 10 == 9 ? plugin.start(d, unmapped()) : plugin.start(d);
  plugin.state(op, 19);
  for (int step = 0; step < 3; ++step) {
    void* handle = plugin.start_proxy_step(op, step);
    if (step == 1) plugin.start_proxy_step(op, step);
    if (send) {
      for (int state : {8, 20, 20, 9}) plugin.state_with(handle, state, 65536);
    } else {
      for (int state : {10, 11, 12}) plugin.state_with(handle, state, 65536);
    }
    plugin.stop(handle);
  }
  plugin.stop(op);
  plugin.state_with(kernel, 22, 1'000'000 + 10'000 * i + 5'000);
  plugin.stop(kernel);
}

void record_closed() {
  NcclPlugin<7> plugin;
  plugin.init(0xc0ffee, "world", 2, 0);
  for (uint64_t i = 0; i < 60; ++i) {
    void* coll = user_operation(plugin, i);
    std::thread([&] {
      proxy_operation(plugin, coll, i);
      if (i % 20 != 0) return;
      plugin.stop(coll);
      plugin.stop(plugin.start_coll(2000 + i, coll));
    }).join();
  }
  auto d = plugin.descriptor(abi::kTypeCeColl);
  d.ce_coll = {5, "AllGather", nullptr, nullptr, 99, 0, "ncclInt8", "MC", true, 4, 2, 17, pointer(0x5000), 7};
  void* ce = plugin.start(d);
  auto sync = plugin.descriptor(abi::kTypeCeSync, ce);
  sync.ce_sync = {true, 8};
  plugin.stop(plugin.start(sync));
  auto batch = plugin.descriptor(abi::kTypeCeBatch, ce);
  batch.ce_batch = {7, 1 << 20, true};
  plugin.stop(plugin.start(batch));
  plugin.stop(ce);
  auto phase = plugin.descriptor(abi::kTypeKernelPhase, ce);
  phase.kernel_phase = {3, 1, "compute", 500};
  void* event = plugin.start(phase);
  plugin.state_with(event, 31, 900);
  plugin.stop(event);
  abi::NetSocket socket{};
  socket.length = 4096;
  auto net = plugin.descriptor(abi::kTypeNetPlugin, ce);
  net.net_plugin = {abi::kNetIdSocket, &socket};
  plugin.stop(plugin.start(net));
  plugin.stop(ce);
  plugin.stop(pointer(kPoison));
  plugin.start_coll(1000);  // stays open
  plugin.finalize(plugin.context);
}
void record_killed() {
  NcclPlugin<5> plugin;
  plugin.init(0xbad, "killed", 2, 1);
  for (uint64_t i = 0; i < 40; ++i) {
    if (i == 30) sleep(3);  // the keeper seals what there is
    proxy_operation(plugin, user_operation(plugin, i), i);
  }
  plugin.start_proxy_step(plugin.start_proxy_op(plugin.start_coll(40)), 0);
  kill(getpid(), SIGKILL);
}
void record_ring() {
  NcclPlugin<5> plugin;
  plugin.init(0x91, "ring", 2, 1);
  void* open = plugin.start_coll(5000);
  plugin.start_kernel_ch(open, 3);
  for (uint64_t i = 0; i < 2600; ++i) proxy_operation(plugin, user_operation(plugin, i), i);
}

void record_ranges() {
  setenv("NVTX_INJECTION64_PATH", LOCKSTEP_LIB_DIR "/liblockstep-cuda.so", 1);
  ASSERT_TRUE(NvtxCopy<>::initialize());
  void* domain = NvtxCopy<>::domain("loader");
  for (int i = 0; i < 20; ++i) {
    NvtxCopy<>::push(("step " + std::to_string(i)).c_str());
    const uint64_t prefetch = NvtxCopy<>::start(domain, NvtxCopy<>::named(L"pr\u00e9fetch"));
    std::thread([&] { NvtxCopy<>::end(prefetch); }).join();
    NvtxCopy<>::pop();
  }
  NvtxCopy<>::push("open");
  NvtxCopy<>::pop(domain);
}

// Groups and operations of which a program says all that it can.
void record_declared() {
  const int64_t splits[] = {4, 12, 8, 16, 24};
  lockstep_group_info group = LOCKSTEP_GROUP_INFO_INIT;
  group.name = "experts";
  group.description = "moe";
  group.start = 0;
  group.count = 5;
  lockstep_op_info op = LOCKSTEP_OP_INFO_INIT;
  op.group = lockstep_declare_group_info(&group);
  op.collective = "all_to_allv";
  op.dtype = "Float";
  op.in_count = op.out_count = 64;
  op.in_split = op.out_split = splits;
  op.in_splits = op.out_splits = 5;
  for (op.seq = 0; op.seq < 20; ++op.seq) {
    op.flags = LOCKSTEP_OP_SEQ | (op.seq % 2 == 0 ? LOCKSTEP_OP_ASYNC : LOCKSTEP_OP_SYNC);
    lockstep_end(lockstep_begin_op(&op), nullptr);
  }
  group.rank = 3;
  lockstep_declare_group_info(&group);
}

TEST_F(Traces, RecordNewOnes) {
  const char* to = getenv("LOCKSTEP_RECORD_TRACES");
  if (to == nullptr) GTEST_SKIP() << "LOCKSTEP_RECORD_TRACES says where to";
  std::ofstream expected(std::string(to) + "/expected.txt");
  expected << "# what tests/traces/fixtures_test.cc finds in each file\n";
  for (auto [name, retain, body] : {std::tuple{"closed", "stream", &record_closed},
                                    {"killed", "stream:1M", &record_killed},
                                    {"ring", "ring:1", &record_ring},
                                    {"ranges", "stream", &record_ranges},
                                    {"declared", "stream", &record_declared}}) {
    RunDirectory run;
    run_child({{"LOCKSTEP_DIR", run.path()},
               {"LOCKSTEP_MODE", "deep"},
               {"LOCKSTEP_RETAIN", retain},
               {"LOCKSTEP_CUDA", "ranges"},
               {"LOCKSTEP_LIBRARY", LOCKSTEP_LIB_DIR "/liblockstep.so"},
               {"RANK", "1"},
               {"WORLD_SIZE", "2"}},
              body);
    const std::string segment = run.file().header().segment;
    if (!segment.empty()) segment::adopt(segment.c_str());  // of one that was killed
    LksFile file = run.file();
    expected << name << ' ' << summary(file) << '\n';
    std::filesystem::copy_file(file.path(), std::string(to) + "/" + name + ".lks",
                               std::filesystem::copy_options::overwrite_existing);
  }
}

}  // namespace
}  // namespace lockstep::test
