// SPDX-License-Identifier: Apache-2.0
#include "capture/core/file/process_file.h"

#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <set>
#include <thread>
#include <vector>

#include "tests/support/lks_file.h"

namespace lockstep::capture {
namespace {

class ProcessFileTest : public ::testing::Test {
 protected:
  ProcessFileTest() {
    strcpy(identity_.host, "h");
    identity_.pid = getpid();  // in the name of a segment, which all processes of the host see
    identity_.start_ticks = 2;
    strcpy(config_.directory, (run_.path() + "/a/b").c_str());
    config_.mode = format::Mode::kDeep;
    config_.retention = format::Retention::kStream;
    config_.cap_bytes = uint64_t{64} << 20;
  }
  // Nobody closes a file here.
  ~ProcessFileTest() override {
    for (const std::string& name : segments()) std::filesystem::remove(name);
  }
  static std::vector<std::string> segments() {
    const std::string prefix =
        format::kSegmentPrefix + std::to_string(geteuid()) + "-" + std::to_string(getpid()) + "-2-nccl-";
    std::vector<std::string> found;
    for (const auto& entry : std::filesystem::directory_iterator(format::kSegmentFolder)) {
      if (entry.path().filename().string().starts_with(prefix)) found.push_back(entry.path());
    }
    return found;
  }
  bool create(ProcessFile* file) {
    bool made = file->create(config_, identity_, format::Source::kNccl, why_, sizeof why_);
    if (made) file->set_state(format::FileState::kOpen);
    return made;
  }
  static uint64_t size_of(const ProcessFile& file) {
    struct stat found {};
    stat(file.path(), &found);
    return static_cast<uint64_t>(found.st_size);
  }

  test::RunDirectory run_;
  Identity identity_{};
  Config config_{};
  char why_[1500] = {};
};

TEST_F(ProcessFileTest, MakesDirectoriesAndAUniqueName) {
  ProcessFile files[17];
  for (int i = 0; i < 16; ++i) {
    ASSERT_TRUE(create(&files[i])) << why_;
    char suffix[8] = "";
    if (i > 0) snprintf(suffix, sizeof suffix, ".%d", i);
    EXPECT_EQ(files[i].path(),
              run_.path() + "/a/b/h." + std::to_string(getpid()) + ".2.nccl" + suffix + ".lks");
  }
  EXPECT_FALSE(create(&files[16]));
  EXPECT_FALSE(files[16].usable());
  EXPECT_NE(strstr(why_, "File exists"), nullptr) << why_;
}

TEST_F(ProcessFileTest, DoesNotFollowALink) {
  std::filesystem::create_directories(config_.directory);
  std::string target = run_.path() + "/target";
  std::filesystem::create_symlink(
      target, std::string(config_.directory) + "/h." + std::to_string(getpid()) + ".2.nccl.lks");
  ProcessFile file;
  EXPECT_TRUE(create(&file)) << why_;
  EXPECT_FALSE(std::filesystem::exists(target));
}

TEST_F(ProcessFileTest, HandsOutEachChunkOnce) {
  ProcessFile file;
  ASSERT_TRUE(create(&file)) << why_;
  file.allocate_ahead(512);
  std::vector<std::vector<uint32_t>> taken(4);
  std::vector<std::thread> threads;
  for (auto& mine : taken) {
    threads.emplace_back([&] {
      for (uint32_t chunk = file.claim_chunk(); chunk != kNoChunk; chunk = file.claim_chunk())
        mine.push_back(chunk);
    });
  }
  for (std::thread& thread : threads) thread.join();
  std::set<uint32_t> all;
  size_t count = 0;
  for (const auto& mine : taken) {
    all.insert(mine.begin(), mine.end());
    count += mine.size();
  }
  EXPECT_EQ(count, 512u);
  EXPECT_EQ(all.size(), 512u);
  EXPECT_EQ(*all.rbegin(), 511u);
}

TEST_F(ProcessFileTest, StopsAtItsCap) {
  config_.cap_bytes = 20 * format::kChunkBytes;
  ProcessFile file;
  ASSERT_TRUE(create(&file)) << why_;
  file.allocate_ahead(1000);
  EXPECT_EQ(file.state(), format::FileState::kOpen);
  uint32_t chunks = 0;
  while (file.claim_chunk() != kNoChunk) ++chunks;
  EXPECT_EQ(chunks, 20u);
  file.allocate_ahead(1);
  EXPECT_EQ(file.state(), format::FileState::kSizeCap);
  EXPECT_EQ(file.claimed(), 20u);
}

TEST_F(ProcessFileTest, MakesAChunkWhenNoneIsReady) {
  ProcessFile file;
  ASSERT_TRUE(create(&file)) << why_;
  std::vector<std::vector<uint32_t>> made(8);
  std::vector<std::thread> threads;
  for (auto& mine : made) {
    threads.emplace_back([&] {
      for (int i = 0; i < 100; ++i) {
        mine.push_back(file.make_chunk());
        memset(file.chunk(mine.back()), 1, format::kChunkBytes);
      }
    });
  }
  file.allocate_ahead(300);  // as the keeper does meanwhile
  for (std::thread& thread : threads) thread.join();
  std::set<uint32_t> all;
  for (const auto& mine : made) all.insert(mine.begin(), mine.end());
  EXPECT_EQ(all.size(), 800u);
  EXPECT_EQ(all.count(kNoChunk), 0u);
  std::set<uint32_t> numbers;
  for (const uint32_t place : all) numbers.insert(file.number(place));
  EXPECT_EQ(numbers.size(), 800u);
  EXPECT_EQ(*numbers.rbegin(), 799u) << "without gaps";
}

// A place is used again; the number of a chunk never.
TEST_F(ProcessFileTest, APlaceThatIsGivenBackGetsANewNumber) {
  ProcessFile file;
  ASSERT_TRUE(create(&file)) << why_;
  const uint32_t place = file.claim_chunk();
  EXPECT_EQ(file.number(place), 0u);
  file.give_back(place);
  EXPECT_EQ(file.entry(place), 0u);
  EXPECT_EQ(file.claim_chunk(), place);
  EXPECT_EQ(file.number(place), 1u);
  EXPECT_EQ(file.claimed(), 2u);
}

TEST_F(ProcessFileTest, ASegmentIsForItsOwnerAlone) {
  ProcessFile file;
  ASSERT_TRUE(create(&file)) << why_;
  if (file.segment().name()[0] == 0) GTEST_SKIP() << "no room in /dev/shm";
  ASSERT_EQ(segments().size(), 1u);
  struct stat found {};
  ASSERT_EQ(stat(segments()[0].c_str(), &found), 0);
  EXPECT_EQ(found.st_mode & 0777, 0600u);
  file.segment().remove();
  EXPECT_TRUE(segments().empty());
}

TEST_F(ProcessFileTest, MakesNoChunkBeyondItsCap) {
  config_.cap_bytes = 20 * format::kChunkBytes;
  ProcessFile file;
  ASSERT_TRUE(create(&file)) << why_;
  uint32_t chunks = 0;
  while (file.make_chunk() != kNoChunk) ++chunks;
  EXPECT_EQ(chunks, 20u);
  file.allocate_ahead(1);
  EXPECT_EQ(file.state(), format::FileState::kSizeCap);
}

TEST_F(ProcessFileTest, MakesNoMorePlacesThanItHas) {
  config_.cap_bytes = uint64_t{1} << 30;
  ProcessFile file;
  ASSERT_TRUE(create(&file)) << why_;
  uint32_t chunks = 0;
  while (file.make_chunk() != kNoChunk) ++chunks;
  EXPECT_EQ(chunks, file.max_chunks());
  EXPECT_EQ(file.claimed(), chunks);
  EXPECT_EQ(file.state(), format::FileState::kOpen);
  file.give_back(7);
  EXPECT_EQ(file.make_chunk(), 7u);
}

// A share is four times what nobody has: one log alone leaves a fifth for newcomers.
TEST_F(ProcessFileTest, AShareOfARingIsFourTimesWhatIsLeft) {
  config_.retention = format::Retention::kRing;
  config_.cap_bytes = 100 * format::kChunkBytes;
  ProcessFile file;
  ASSERT_TRUE(create(&file)) << why_;
  uint32_t owned = 0;
  std::set<uint32_t> all;
  for (uint32_t index; (index = file.claim_share(owned)) != kNoChunk; ++owned) all.insert(index);
  EXPECT_EQ(owned, 80u);
  EXPECT_EQ(all.size(), owned) << "each once";
  EXPECT_EQ(file.unclaimed(), 20u);
  EXPECT_FALSE(file.exceeds_share(80));
  EXPECT_TRUE(file.exceeds_share(81));
  const uint32_t newcomer = file.claim_share(0);
  EXPECT_NE(newcomer, kNoChunk);
  EXPECT_EQ(file.unclaimed(), 19u);
  EXPECT_FALSE(file.exceeds_share(76));
  EXPECT_TRUE(file.exceeds_share(77));
  EXPECT_EQ(file.claim_share(76), kNoChunk);
  file.give_back(*all.begin());
  EXPECT_EQ(file.unclaimed(), 20u);
  EXPECT_EQ(file.claim_share(79), *all.begin()) << "what was given back is there for others";
}

TEST_F(ProcessFileTest, DefinitionsLeaveHalfOfARing) {
  config_.retention = format::Retention::kRing;
  config_.cap_bytes = 64 * format::kChunkBytes;
  ProcessFile file;
  ASSERT_TRUE(create(&file)) << why_;
  for (uint32_t i = 0; i < 32; ++i) EXPECT_NE(file.claim_definitions(), kNoChunk);
  EXPECT_EQ(file.claim_definitions(), kNoChunk);
  EXPECT_EQ(file.unclaimed(), 32u);
  EXPECT_NE(file.claim_chunk(), kNoChunk);
}

TEST_F(ProcessFileTest, GivesEachReturnedChunkToOne) {
  config_.retention = format::Retention::kRing;
  config_.cap_bytes = 64 * format::kChunkBytes;
  ProcessFile file;
  ASSERT_TRUE(create(&file)) << why_;
  std::vector<std::thread> threads;
  std::atomic<uint32_t> users[64] = {};
  std::atomic<uint32_t> doubles{0};
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < 20'000; ++i) {
        uint32_t index = file.claim_chunk();
        if (index == kNoChunk) continue;
        doubles += users[index].fetch_add(1) != 0;
        users[index].fetch_sub(1);
        file.give_back(index);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(doubles, 0u);
  EXPECT_EQ(file.unclaimed(), 64u);
}

TEST_F(ProcessFileTest, ARingLiesBesideItselfForLateThreads) {
  config_.retention = format::Retention::kRing;
  config_.cap_bytes = 64 * format::kChunkBytes;
  ProcessFile file;
  ASSERT_TRUE(create(&file)) << why_;
  while (file.claim_chunk() != kNoChunk) {
  }
  EXPECT_EQ(file.make_chunk(), 64u);
  EXPECT_EQ(file.number(64), 64u);
}

TEST_F(ProcessFileTest, CloseEndsTheClaimsOfARing) {
  config_.retention = format::Retention::kRing;
  config_.cap_bytes = 100 * format::kChunkBytes;
  ProcessFile file;
  ASSERT_TRUE(create(&file)) << why_;
  for (int i = 0; i < 3; ++i) EXPECT_NE(file.claim_chunk(), kNoChunk);
  file.close();
  EXPECT_EQ(file.claim_chunk(), kNoChunk);
  EXPECT_EQ(file.make_chunk(), kNoChunk);
  EXPECT_EQ(file.claimed(), 3u);
  EXPECT_EQ(size_of(file), uint64_t{format::kHeaderBytes}) << "who writes the file is another";
}

TEST_F(ProcessFileTest, AbandonedItGivesNothingAndKeepsTheFile) {
  ProcessFile file;
  ASSERT_TRUE(create(&file)) << why_;
  uint64_t before = size_of(file);
  file.abandon();
  EXPECT_EQ(file.claim_chunk(), kNoChunk);
  EXPECT_EQ(size_of(file), before);
}

TEST_F(ProcessFileTest, SaysWhyItCannotBe) {
  strcpy(config_.directory, "/proc/none");
  ProcessFile file;
  EXPECT_FALSE(create(&file));
  EXPECT_NE(strstr(why_, "/proc/none"), nullptr) << why_;
}

}  // namespace
}  // namespace lockstep::capture
