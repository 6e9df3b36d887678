// SPDX-License-Identifier: Apache-2.0
// What the reader's tests share: write a built file, read it back through the registry, look up losses and
// counts.
#pragma once
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <span>
#include <string>

#include "model/event_counts.h"
#include "readers/native/file_builder.h"
#include "readers/reader.h"
#include "tests/support/temporary_folder.h"

namespace lockstep::readers::native {

using format::Kind;

// A new, empty directory, until the program ends.
inline std::string test_dir() {
  static const test::TemporaryFolder all;
  static int made = 0;
  std::string dir = all / std::to_string(made++);
  std::filesystem::create_directories(dir);
  return dir;
}

// Damaged files are written so: bytes of a builder, changed.
inline void write_bytes(const std::string& path, std::span<const std::byte> bytes) {
  std::ofstream(path, std::ios::binary | std::ios::trunc)
      .write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
}

// The only process of a file.
inline model::Trace load_one(const std::string& path) {
  model::Trace trace;
  auto source = open({path});
  EXPECT_TRUE(source) << source.error().message();
  if (!source) return trace;
  EXPECT_EQ((*source)->processes(), 1u);
  auto loaded = (*source)->load(0, trace);
  EXPECT_TRUE(loaded) << loaded.error().message();
  return trace;
}
inline model::Trace load_one(const FileBuilder& file) {
  std::string path = test_dir() + "/p.lks";
  file.write(path);
  return load_one(path);
}

// The count of a loss, over all processes and stages; 0 without one.
inline uint64_t loss(const model::Trace& trace, std::string_view kind) {
  uint64_t count = 0;
  for (size_t i = 0; i < trace.losses.size(); ++i) {
    if (trace.strings[trace.losses.kind[i]] == kind) count += trace.losses.count[i];
  }
  return count;
}
inline std::string losses_text(const model::Trace& trace) {
  std::string text;
  for (size_t i = 0; i < trace.losses.size(); ++i) {
    text += std::string(trace.strings[trace.losses.kind[i]]) + "=" + std::to_string(trace.losses.count[i]) +
            " (" + std::string(trace.strings[trace.losses.detail[i]]) + ")\n";
  }
  return text;
}
// Rows of all tables of events: what the census counted has to arrive here.
inline uint64_t events(const model::Trace& trace) {
  uint64_t sum = 0;
  for (uint64_t count : model::count_events(trace)) sum += count;
  return sum;
}

// Heads: start, ticks until the stop (0: open).
inline format::RecordHead head(uint64_t start, uint32_t stop_after = 0, uint8_t flags = 0) {
  return {start, stop_after, Kind::kNone,
          static_cast<uint8_t>(flags | (stop_after != 0 ? format::kFlagStopped : 0)), 0};
}
// RunNs of a builder's ticks.
inline int64_t at(uint64_t ticks) { return FileBuilder::kEpochNs + static_cast<int64_t>(ticks); }

// One collective as NCCL 2.28 reports it: calls and plan on `caller`, channels on `progress`.
inline uint64_t add_allreduce(FileBuilder::Log& caller, FileBuilder::Log& progress, uint32_t comm,
                              uint64_t start, uint8_t channels = 2, uint64_t gpu_offset = 0) {
  uint16_t shape = caller.shape("AllReduce", "ncclFloat32", "RING", "LL");
  uint64_t group = caller.add(Kind::kGroupApi, format::GroupApiRecord{head(start, 900), comm, 10, 200, 1});
  uint64_t call = caller.add_child(Kind::kCollApi,
                                   format::CollApiRecord{head(start + 20, 50), 1024, comm, shape, 0}, group);
  caller.add_child(Kind::kKernelLaunch, format::KernelLaunchRecord{head(start + 300, 100), comm, 0, 0, 0},
                   group);
  uint64_t plan = caller.add(Kind::kGroup, format::GroupRecord{head(start + 500, 100), comm, 0, 0});
  format::CollRecord coll{
      head(start + 510, 50), 1024, 0x1000, 0x2000, start, comm, shape, channels, 16, 0, 0};
  coll.group_link = caller.distance(plan, sizeof coll);
  uint64_t task = caller.add_child(Kind::kColl, coll, call);
  for (uint8_t channel = 0; channel < channels; ++channel) {
    format::KernelChRecord kernel{head(start + 2000, 600),
                                  task,
                                  start + 400 + channel + gpu_offset,
                                  start + 1500 + channel + gpu_offset,
                                  comm,
                                  600};
    kernel.head.link = channel;
    progress.add(Kind::kKernelCh, kernel);
  }
  return task;
}

}  // namespace lockstep::readers::native
