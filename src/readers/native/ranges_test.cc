// SPDX-License-Identifier: Apache-2.0
// Ranges of NVTX: their names, their ends in other logs, and files that are cut, damaged or newer.
#include "readers/native/test_run.h"

namespace lockstep::readers::native {
namespace {

using format::RangeKind;

format::RangeRecord range(uint64_t start, uint32_t length, uint32_t name, uint32_t domain = 0,
                          RangeKind kind = RangeKind::kNested) {
  return {head(start, length), name, domain, kind, 0, 0};
}
std::string_view name(const model::Trace& trace, size_t row) { return trace.strings[trace.ranges.name[row]]; }

TEST(Ranges, AreRowsWithTheirNames) {
  FileBuilder file;
  file.header().source = format::Source::kCuda;
  FileBuilder::Log& log = file.log(100, "python", 0x7f00'1234'5678);
  FileBuilder::Log& other = file.log(101, "loader");
  const uint32_t forward = log.range_name("forward"), mine = log.range_name("mine");
  const uint32_t kernel = log.kernel_name("gemm");
  EXPECT_EQ(kernel, forward) << "kernels have numbers of their own";
  log.add(Kind::kRange, range(8000, 500, forward));
  const uint64_t elsewhere = log.add(Kind::kRange, range(8100, 0, mine, mine, RangeKind::kFree));
  log.add(Kind::kRange, range(8200, 0, 0));
  log.add(Kind::kKernel, format::KernelRecord{head(8300, 5), kernel, 1, 7, 0, 1, 0, 0, 1});
  format::StateRecord stop{head(9000), elsewhere, 0};
  stop.head.link = format::kStateStop;
  other.add(Kind::kState, stop);
  const model::Trace trace = load_one(file);
  ASSERT_EQ(trace.ranges.size(), 3u);
  EXPECT_EQ(name(trace, 0), "forward");
  EXPECT_EQ(trace.ranges.domain[0], 0u);
  EXPECT_EQ(trace.ranges.kind[0], static_cast<uint8_t>(model::RangeKind::kNested));
  EXPECT_EQ(trace.ranges.start_ns[0], at(8000));
  EXPECT_EQ(trace.ranges.end_ns[0], at(8500));
  EXPECT_EQ(trace.threads.tid[trace.ranges.thread[0]], 100);
  EXPECT_EQ(name(trace, 1), "mine");
  EXPECT_EQ(trace.strings[trace.ranges.domain[1]], "mine");
  EXPECT_EQ(trace.ranges.kind[1], static_cast<uint8_t>(model::RangeKind::kFree));
  EXPECT_EQ(trace.ranges.end_ns[1], at(9000)) << "ended by another thread";
  EXPECT_EQ(name(trace, 2), "");
  EXPECT_EQ(trace.ranges.end_ns[2], 0) << "never ended";
  EXPECT_EQ(trace.kernels.size(), 1u);
  EXPECT_EQ(trace.processes.first_ns[0], at(8300)) << "the kernel's";
  EXPECT_EQ(trace.processes.last_ns[0], at(8305)) << "a hanging process may still mark ranges";
  EXPECT_EQ(events(trace), 0u) << "they are no events of NCCL";
  EXPECT_EQ(trace.losses.size(), 0u) << losses_text(trace);
}

TEST(Ranges, LongOnesHaveTheirEndBesideThem) {
  FileBuilder file;
  FileBuilder::Log& log = file.log(100);
  const uint64_t handle = log.add(Kind::kRange, range(1000, format::kSaturated, log.range_name("epoch")));
  constexpr uint64_t kEnd = 1000 + (uint64_t{1} << 33);
  format::StateRecord stop{head(kEnd), handle, 0};
  stop.head.link = format::kStateStop;
  log.add(Kind::kState, stop);
  const model::Trace trace = load_one(file);
  ASSERT_EQ(trace.ranges.size(), 1u);
  EXPECT_EQ(trace.ranges.end_ns[0], at(kEnd));
  EXPECT_EQ(trace.losses.size(), 0u) << losses_text(trace);
}

TEST(Ranges, DamagedNamesLeaveTheirRanges) {
  FileBuilder file;
  FileBuilder::Log& log = file.log(100);
  const uint32_t bad_text = log.range_name(std::string("\xff\xfe\x80 x", 5));
  const uint32_t full = log.range_name(std::string(255, 'f'));
  log.add(Kind::kRange, range(1000, 5, bad_text));
  log.add(Kind::kRange, range(1010, 5, full));
  log.add(Kind::kRange, range(1020, 5, 77));
  log.add(Kind::kRange, range(1030, 5, full, 0xffffffff));
  format::RangeRecord odd = range(1040, 5, full);
  odd.range = static_cast<RangeKind>(999);
  log.add(Kind::kRange, odd);
  const model::Trace trace = load_one(file);
  ASSERT_EQ(trace.ranges.size(), 5u);
  EXPECT_EQ(name(trace, 0), "??? x");
  EXPECT_EQ(name(trace, 1), std::string(255, 'f'));
  EXPECT_EQ(name(trace, 2), "");
  EXPECT_EQ(trace.ranges.domain[3], 0u);
  EXPECT_EQ(trace.ranges.kind[4], static_cast<uint8_t>(model::RangeKind::kNone)) << "of a newer version";
  EXPECT_EQ(loss(trace, "unknown_range_name"), 2u) << losses_text(trace);
}

// A file cut at every unit: the ranges before it, and never more.
TEST(Ranges, CutFilesKeepWhatIsBefore) {
  FileBuilder file;
  FileBuilder::Log& log = file.log(100);
  const uint32_t text = log.range_name("forward");
  for (uint64_t i = 0; i < 20; ++i) log.add(Kind::kRange, range(1000 + 10 * i, 5, text));
  const std::vector<std::byte> bytes = file.bytes();
  const std::string path = test_dir() + "/cut.lks";
  size_t most = 0;
  for (size_t size = bytes.size() - format::kChunkBytes; size < bytes.size(); size += format::kUnitBytes) {
    write_bytes(path, std::span(bytes).first(size));
    const size_t rows = load_one(path).ranges.size();
    EXPECT_GE(rows, most);
    EXPECT_LE(rows, 20u);
    most = rows;
    if (size > bytes.size() - format::kChunkBytes + 2048) break;
  }
  EXPECT_EQ(most, 20u);
}

TEST(Ranges, NumbersNoFileCanHoldAreCounted) {
  FileBuilder file;
  file.unsealed();
  FileBuilder::Log& log = file.log(100);
  std::vector<std::byte> bytes;
  const uint32_t text = log.range_name("a name to be found");
  log.add(Kind::kRange, range(1000, 5, text));
  bytes = file.bytes();
  const std::string_view wanted = "a name to be found";
  const auto found = std::search(bytes.begin(), bytes.end(), wanted.begin(), wanted.end(),
                                 [](std::byte b, char c) { return static_cast<char>(b) == c; });
  ASSERT_NE(found, bytes.end());
  const uint32_t huge = 0xfffffff0;
  std::memcpy(&*found - sizeof(format::DefHead) + offsetof(format::DefHead, id), &huge, sizeof huge);
  const std::string path = test_dir() + "/huge.lks";
  write_bytes(path, bytes);
  const model::Trace trace = load_one(path);
  ASSERT_EQ(trace.ranges.size(), 1u);
  EXPECT_EQ(name(trace, 0), "");
  EXPECT_EQ(loss(trace, "bad_definition_number"), 1u);
  EXPECT_EQ(loss(trace, "unknown_range_name"), 1u);
}

}  // namespace
}  // namespace lockstep::readers::native
