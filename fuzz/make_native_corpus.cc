// SPDX-License-Identifier: Apache-2.0
// Writes the seeds of fuzz/corpus/native: small process files with every kind of record. Run after a change
// of format/.
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <span>
#include <string>

#include "readers/native/file_builder.h"

namespace {

using namespace lockstep;
using format::Kind;
using readers::native::FileBuilder;

format::RecordHead head(uint64_t start, uint32_t stop_after) {
  return {start, stop_after, Kind::kNone, format::kFlagStopped, 0};
}

// Every kind of definition and record once or a few times.
void fill(FileBuilder& file, int rounds) {
  uint32_t comm = file.comm(0xabc, 0, 2, "world");
  file.define(format::Def::kAnchor, 0, format::AnchorDef{{}, {2'000'000'000, 2'000'000'000, 1, 1, 1, 0}, 0});
  file.define(format::Def::kCommIdentity, comm, format::CommIdentityDef{});
  file.define(format::Def::kCommEnd, comm, format::CommEndDef{});
  file.define(format::Def::kGroupRanks, comm, format::GroupRanksDef{{}, 0, 2, {0, 1}});
  FileBuilder::Log& caller = file.log(100, "main");
  FileBuilder::Log& progress = file.log(101, "progress");
  uint16_t shape = caller.shape("AllReduce", "ncclFloat32", "RING", "LL");
  uint16_t stream = caller.stream(0xfeed);
  const uint32_t range_name = caller.range_name("forward"), domain = caller.range_name("mine");
  FileBuilder::Log& gpu = file.log(103, "gpu", 0x7f00'0000'0067);
  const uint32_t kernel_name =
      gpu.kernel_name("_Z39ncclDevKernel_AllReduce_Sum_f32_RING_LL24ncclDevKernelArgsStorageILm4096EE");
  const uint32_t other_name = gpu.kernel_name("_ZN2at6native6kernelILi4ENS0_4AddfEEEviT0_S2_");
  for (int i = 0; i < rounds; ++i) {
    auto t = static_cast<uint64_t>(10'000 + i * 10'000);
    uint64_t group = caller.add(Kind::kGroupApi, format::GroupApiRecord{head(t, 900), comm, 10, 20, 1});
    uint64_t call = caller.add_child(Kind::kCollApi,
                                     format::CollApiRecord{head(t + 1, 5), 4, comm, shape, stream}, group);
    caller.add_child(Kind::kP2pApi, format::P2pApiRecord{head(t + 2, 5), 4, comm, shape, stream}, group);
    caller.add_child(Kind::kKernelLaunch, format::KernelLaunchRecord{head(t + 3, 5), comm, stream, 0, 0},
                     group);
    uint64_t plan = caller.add(Kind::kGroup, format::GroupRecord{head(t + 4, 5), comm, 0, 0});
    format::CollRecord coll{head(t + 5, 5), 4, 1, 2, static_cast<uint64_t>(i), comm, shape, 1, 4, 0, 0};
    coll.group_link = caller.distance(plan, sizeof coll);
    uint64_t task = caller.add_child(Kind::kColl, coll, call);
    caller.add_child(Kind::kP2p, format::P2pRecord{head(t + 6, 5), 4, 1, comm, 1, 0, shape, 1, 0}, plan);
    caller.add(Kind::kUserTag, format::UserTagRecord{head(0, 0), task, 7});
    uint64_t kernel = progress.add(Kind::kKernelCh,
                                   format::KernelChRecord{head(t + 50, 100), task, t + 20, t + 60, comm, 90});
    progress.add(Kind::kKernelPhase,
                 format::KernelPhaseRecord{head(t + 50, 100), task, t + 20, t + 60, comm, 0, 1, 0});
    uint64_t op = progress.add(
        Kind::kProxyOp,
        format::ProxyOpRecord{
            head(t + 50, 100), task, format::make_context(0x7a9, comm), 100, 1, 2, 64, 0, 10, 0, {}});
    uint64_t step =
        progress.add(Kind::kProxyStep, format::ProxyStepRecord{head(t + 55, 20), op, 1, 2, 3, 64, 0, 1, 0});
    progress.add(Kind::kNetPlugin, format::NetPluginRecord{head(t + 56, 9), step, 0x10001, 1, 2, {}});
    progress.add(Kind::kProxyCtrl, format::ProxyCtrlRecord{head(t + 60, 9), comm, 1, 2, 3, 17, 18});
    format::StateRecord state{head(t + 70, 0), kernel, 9};
    state.head.link = 22;
    caller.add(Kind::kState, state);
    uint64_t ce = caller.add_child(
        Kind::kCeColl, format::CeCollRecord{head(t + 80, 9), 4, 1, 2, 3, comm, shape, stream, 1, 0, 0, {}},
        call);
    caller.add_child(Kind::kCeSync, format::CeSyncRecord{head(t + 81, 2), comm, 2, 0}, ce);
    caller.add_child(Kind::kCeBatch, format::CeBatchRecord{head(t + 82, 2), 64, comm, 2}, ce);
    caller.add(Kind::kApiOp, format::ApiOpRecord{head(t + 90, 5), 4, 4, 0, 5, 6, 0, comm, shape, 0, -1, 0});
    caller.add(Kind::kMark, format::MarkRecord{head(t + 95, 0), static_cast<uint64_t>(i), shape, 1, 0});
    const auto correlation = static_cast<uint32_t>(i + 1);
    gpu.add(Kind::kKernel,
            format::KernelRecord{head(t + 20, 40), kernel_name, correlation, 7, 0, 1, 0, 0, 2});
    gpu.add(Kind::kKernel, format::KernelRecord{head(t + 70, 9), other_name, correlation, 7, 0, 1, 5, 2, 1});
    gpu.add(Kind::kLaunchCall,
            format::LaunchCallRecord{head(t + 4, 1), correlation, 0x67, format::LaunchCall::kKernel, 0, 0});
    gpu.add(Kind::kCopy, format::CopyRecord{head(t + 90, 5), 64, correlation, 7, 0, 1,
                                            format::CopyKind::kPeerCopy, 3, 3, 0});
    const uint64_t range = caller.add(Kind::kRange, format::RangeRecord{head(t + 96, 0), range_name, domain,
                                                                        format::RangeKind::kFree, 0, 0});
    format::StateRecord stop{head(t + 99, 0), range, 0};
    stop.head.link = format::kStateStop;
    gpu.add(Kind::kState, stop);
    caller.add(Kind::kLink, format::LinkRecord{head(0, 0), task, call});
  }
}

void write(const std::string& path, std::span<const std::byte> bytes) {
  std::ofstream(path, std::ios::binary)
      .write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: make_native_corpus DIRECTORY\n");
    return 2;
  }
  std::string dir = argv[1];
  std::filesystem::create_directories(dir);
  // Whatever a fuzzer changes in sealed chunks contradicts their seals: most seeds have none.
  FileBuilder empty, small, ring, sealed;
  for (FileBuilder* file : {&empty, &small, &ring}) file->unsealed();
  write(dir + "/empty.lks", empty.bytes());
  fill(small, 3);
  std::vector<std::byte> bytes = small.bytes();
  // A file may end behind its last record; short seeds make a quick fuzzer.
  write(dir + "/small.lks", std::span(bytes).first(bytes.size() - format::kChunkBytes / 2));
  ring.ring(1);
  ring.header().host_clock = format::HostClock::kTsc;
  fill(ring, 40);
  ring.log(102).histogram({.key = 6 | 1 << 16,
                           .ops = 1,
                           .bytes = 4,
                           .first_ticks = 1,
                           .last_ticks = 2,
                           .timed = 0,
                           .sum_ns = 0,
                           .min_ns = 0,
                           .max_ns = 0,
                           .buckets = {},
                           .shape_log = 1,
                           .reserved0 = 0});
  write(dir + "/ring.lks", ring.bytes());
  fill(sealed, 3);
  bytes = sealed.bytes();
  write(dir + "/sealed.lks", std::span(bytes).first(bytes.size() - format::kChunkBytes / 2));
  write(dir + "/header_only.lks", std::span(bytes).first(format::kHeaderBytes));
  write(dir + "/cut_header.lks", std::span(bytes).first(1000));
  return 0;
}
