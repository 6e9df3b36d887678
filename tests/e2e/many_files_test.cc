// SPDX-License-Identifier: Apache-2.0
// A run of thousands of processes: few file descriptors, and memory for one process and the list of all.
#include <sys/resource.h>

#include "readers/native/file_builder.h"
#include "tests/e2e/workplace.h"
#include "tests/support/places.h"

namespace lockstep::test {
namespace {

using readers::native::FileBuilder;

constexpr int kFiles = 4000;
constexpr uint64_t kOps = 5;
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr long kMostMib = 2000;
#else
constexpr long kMostMib = 256;  // 40 KiB a process: its header, twice, while the run is opened
#endif

// As the capture library leaves it: with holes where nothing was written.
void write_sparse(const std::string& path, const std::vector<std::byte>& bytes) {
  constexpr size_t kPage = 4096;
  int file = open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL, 0644);
  ASSERT_GE(file, 0);
  ASSERT_EQ(ftruncate(file, static_cast<off_t>(bytes.size())), 0);
  for (size_t at = 0; at < bytes.size(); at += kPage) {
    size_t size = std::min(kPage, bytes.size() - at);
    auto page = bytes.begin() + static_cast<std::ptrdiff_t>(at);
    if (std::all_of(page, page + static_cast<std::ptrdiff_t>(size),
                    [](std::byte b) { return b == std::byte{}; }))
      continue;
    ASSERT_EQ(pwrite(file, &*page, size, static_cast<off_t>(at)), static_cast<ssize_t>(size));
  }
  close(file);
}

void write_rank(const std::string& path, int rank) {
  FileBuilder file;
  file.header().pid = 1000 + rank;
  file.header().rank = rank;
  file.header().world = kFiles;
  file.header().start_ticks = 5000;
  file.header().state = static_cast<uint32_t>(format::FileState::kClosed);
  uint32_t comm = file.comm(7, rank, kFiles, "world");
  FileBuilder::Log& log = file.log(static_cast<uint32_t>(1000 + rank));
  uint16_t shape = log.shape("AllReduce", "ncclFloat32", "RING", "LL");
  for (uint64_t op = 0; op < kOps; ++op) {
    format::RecordHead head{1000 + op * 100, 50, format::Kind::kNone, format::kFlagStopped, 0};
    log.add(format::Kind::kColl, format::CollRecord{head, 1024, 0, 0, op, comm, shape, 1, 16, 0, 0});
  }
  write_sparse(path, file.bytes());
}

class ManyFiles : public Workplace {
 protected:
  // With 64 descriptors.
  Finished confined(const std::string& words) const {
    return do_here({"sh", "-c", "ulimit -n 64; exec " LOCKSTEP_BIN_DIR "/lockstep " + words});
  }
};

TEST_F(ManyFiles, AreMergedAndSummarised) {
  std::filesystem::create_directories(path("run"));
  for (int rank = 0; rank < kFiles; ++rank)
    write_rank(path("run/h." + std::to_string(rank) + ".1.nccl.lks"), rank);
  Finished merged = confined("merge --json -o t.db run");
  ASSERT_EQ(merged.code, 0) << merged;
  auto report = nlohmann::json::parse(merged.out, nullptr, false);
  EXPECT_EQ(report["files"], kFiles);
  EXPECT_EQ(report["processes"], kFiles);
  EXPECT_EQ(report["ops"], kFiles * kOps);
  EXPECT_TRUE(report["losses"].empty()) << report["losses"];
  for (const char* words : {"summary --json run", "info --json t.db"}) {
    Finished finished = confined(words);
    ASSERT_EQ(finished.code, 0) << words << ' ' << finished.err;
    EXPECT_EQ(nlohmann::json::parse(finished.out, nullptr, false)["ops"], kFiles * kOps) << words;
  }
  rusage usage{};
  getrusage(RUSAGE_CHILDREN, &usage);  // the largest of the commands above
  EXPECT_LT(usage.ru_maxrss / 1024, kMostMib);
}

}  // namespace
}  // namespace lockstep::test
