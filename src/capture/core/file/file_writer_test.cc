// SPDX-License-Identifier: Apache-2.0
#include "capture/core/file/file_writer.h"

#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "tests/support/lks_file.h"

namespace lockstep::capture {
namespace {

using format::ChunkHeader;
using Depth = FileWriter::Depth;

// Chunks of records of one log, which the test fills as a thread would.
class FileWriterTest : public ::testing::Test {
 protected:
  static constexpr uint32_t kLog = 1;
  static constexpr uint32_t kFull =
      (format::kLastUnit - format::kChunkHeaderUnits) * format::kUnitBytes / sizeof(format::UserTagRecord);

  void TearDown() override {
    if (file_.usable() && file_.segment().name()[0] != 0) file_.segment().remove();
  }
  void create(format::Retention retention) {
    strcpy(identity_.host, "w");
    identity_.pid = getpid();
    identity_.start_ticks = 3;
    strcpy(config_.directory, run_.path().c_str());
    config_.mode = format::Mode::kDeep;
    config_.retention = retention;
    config_.cap_bytes = 64 * format::kChunkBytes;
    char why[1500] = {};
    ASSERT_TRUE(file_.create(config_, identity_, format::Source::kNccl, why, sizeof why)) << why;
    file_.set_state(format::FileState::kOpen);
  }
  void open(uint32_t place, uint32_t chunk_no) {
    auto* header = header_of(place);
    memset(static_cast<void*>(header), 0, format::kChunkBytes);
    header->purpose = format::Purpose::kRecords;
    header->log = kLog;
    header->chunk_no = chunk_no;
    __atomic_store_n(&header->magic, format::kChunkMagic, __ATOMIC_RELEASE);
  }
  // Records from that one up to this.
  void fill(uint32_t place, uint32_t from, uint32_t to) {
    auto* records = reinterpret_cast<format::UserTagRecord*>(file_.chunk(place) + sizeof(ChunkHeader));
    for (uint32_t i = from; i < to; ++i) {
      records[i].child = 1 + i;
      records[i].head.kind = format::Kind::kUserTag;
    }
  }
  // It is full, and goes on in another place.
  void link(uint32_t place, uint32_t next) {
    header_of(place)->records = kFull;
    header_of(place)->next = file_.number(next);
  }
  ChunkHeader* header_of(uint32_t place) { return reinterpret_cast<ChunkHeader*>(file_.chunk(place)); }
  // As after kill -9, where memory is lost with the process.
  test::LksFile left() {
    const std::string copy = run_.path() + "/left";
    std::filesystem::copy_file(file_.path(), copy, std::filesystem::copy_options::overwrite_existing);
    test::LksFile::forget_segment(copy);
    return test::LksFile(copy);
  }
  static std::string problem(const test::LksFile& file) {
    return file.problems().empty() ? "" : file.problems()[0];
  }

  test::RunDirectory run_;
  Identity identity_{};
  Config config_{};
  ProcessFile file_;
  FileWriter writer_;
};

TEST_F(FileWriterTest, AChunkThatFilledUpSinceIsWrittenWithTheOnesBehindIt) {
  create(format::Retention::kStream);
  const uint32_t unused = file_.claim_chunk(), first = file_.claim_chunk();
  file_.give_back(unused);  // number 0 is never a successor
  open(first, 0);
  fill(first, 0, 1);
  ASSERT_TRUE(writer_.write(file_, Depth::kNew));
  const uint32_t second = file_.claim_chunk();
  fill(first, 1, kFull);
  link(first, second);
  open(second, 1);
  fill(second, 0, 1);
  ASSERT_TRUE(writer_.write(file_, Depth::kNew));
  const test::LksFile file = left();
  EXPECT_EQ(problem(file), "");
  EXPECT_EQ(file.records().size(), kFull + 1);
}

// Place 1 fills up before place 0, which is recycled behind it; storage then refuses place 1.
TEST_F(FileWriterTest, ARingInTheFileEndsWithTheOnlyChunkThatIsNotFull) {
  create(format::Retention::kRing);
  const uint32_t unused = file_.claim_chunk(), later = file_.claim_chunk(), first = file_.claim_chunk();
  ASSERT_LT(later, first);
  ASSERT_LT(unused, later);
  open(first, 0);
  fill(first, 0, 1);
  ASSERT_TRUE(writer_.write(file_, Depth::kAll));
  fill(first, 1, kFull);
  link(first, later);
  open(later, 1);
  fill(later, 0, 1);
  rlimit limit{};
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &limit), 0);
  const rlimit small{format::chunk_offset(first), limit.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &small), 0);
  EXPECT_FALSE(writer_.write(file_, Depth::kLast));
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &limit), 0);
  EXPECT_EQ(problem(left()), "");
  EXPECT_EQ(left().records().size(), 1u);
  ASSERT_TRUE(writer_.write(file_, Depth::kLast));
  EXPECT_EQ(problem(left()), "");
  EXPECT_EQ(left().records().size(), kFull + 1);
}

}  // namespace
}  // namespace lockstep::capture
