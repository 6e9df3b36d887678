// SPDX-License-Identifier: Apache-2.0
// A process writes and another one reads the same memory, as fast as both can: a reader sees whole records,
// each once, and the stop of none without what was stored before it. A CPU that keeps stores and loads in
// order shows less than others would: what holds there is proved in protocols_test.cc.
#include <sys/mman.h>

#include <atomic>
#include <map>
#include <thread>
#include <vector>

#include "readers/native/file/file_view.h"
#include "readers/native/tail/live_tail.h"
#include "tests/support/nccl_test.h"

namespace lockstep::test {
namespace {

using format::Kind;
using format::Purpose;
using readers::native::Chunk;
using readers::native::ChunkBuffer;
using readers::native::FileView;
using readers::native::LiveTail;
using readers::native::ReadLosses;

constexpr uint64_t kThreads = 2, kRounds = kSanitized ? 4'000 : 20'000;

// In memory of both processes.
struct Shared {
  std::atomic<uint64_t> finished[kThreads];
  std::atomic<bool> is_read;
};

class Beside : public NcclCapture {
 protected:
  Beside() {
    void* memory = mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    shared_ = new (memory) Shared{};
  }
  ~Beside() override { munmap(shared_, sizeof *shared_); }

  // Round i of thread t: a Coll with seq i and count t, and a KernelCh whose GPU times follow from i, both
  // stopped.
  Child start_writer(const char* retain, uint64_t threads, uint64_t rounds) {
    return Child::start(settings("deep", retain), [this, threads, rounds, retain] {
      NcclPlugin<5> plugin;
      plugin.init();
      const LiveHeader live(run_);
      const auto write = [&](uint64_t t) {
        constexpr uint64_t kBytes = sizeof(format::CollRecord) + sizeof(format::KernelChRecord);
        for (uint64_t i = 0; i < rounds; ++i) {
          if (*retain == 's' && i % 128 == 0) live.wait_for_room(threads * (i + 128) * kBytes);
          auto d = plugin.coll(i, nullptr, t);
          void* coll = plugin.start(d);
          plugin.stop(coll);
          void* kernel = plugin.start_kernel_ch(coll, static_cast<uint8_t>(t), gpu_start(i));
          plugin.state_with(kernel, 22, gpu_start(i) + 3);
          plugin.stop(kernel);
          shared_->finished[t].store(i + 1, std::memory_order_release);
        }
      };
      std::vector<std::thread> others;
      for (uint64_t t = 1; t < threads; ++t) others.emplace_back(write, t);
      write(0);
      for (std::thread& other : others) other.join();
      LiveHeader::wait([&] { return shared_->is_read.load(); });  // its end is not what is looked at
    });
  }
  static uint64_t gpu_start(uint64_t round) { return 1'000'000 + round * 16; }
  bool has_begun() const {
    return LiveHeader::wait([&] { return shared_->finished[0] > 0; });
  }

  Shared* shared_ = nullptr;
};

// What is seen of one thread, in the order of its log.
struct Seen {
  uint64_t colls = 0, kernels = 0, stopped = 0;
  std::map<uint32_t, uint64_t>
      first_of_chunk;  // chunk number -> seq of its first Coll; the same in every pass
};

// Of a stream `is_whole`: all that the thread recorded is there, from the first on.
void check_records(const format::Walk<format::RecordHead>& entry, Seen& seen, bool is_first_of_chunk,
                   uint32_t chunk_no, bool is_whole) {
  const bool is_stopped = (entry.head().flags & format::kFlagStopped) != 0;
  ASSERT_EQ(is_stopped, entry.head().stop_after != 0);
  seen.stopped += is_stopped;
  if (entry.head().kind == Kind::kShortColl || entry.head().kind == Kind::kColl) {
    const auto coll = entry.head().kind == Kind::kColl ? entry.as<format::CollRecord>()
                                                       : format::expand(entry.as<format::ShortCollRecord>());
    if (is_first_of_chunk || seen.colls == 0) {
      const auto [known, is_new] = seen.first_of_chunk.try_emplace(chunk_no, coll.seq);
      ASSERT_EQ(known->second, coll.seq) << "chunk " << chunk_no;
    }
    if (is_whole || seen.colls != 0) {
      ASSERT_EQ(coll.seq, seen.colls);
    }
    seen.colls = coll.seq + 1;
    ASSERT_EQ(coll.send_buffer, 0x7000'0000'1000u);
    ASSERT_EQ(coll.recv_buffer, 0x7000'0000'2000u);
    ASSERT_LT(coll.count, kThreads);
    ASSERT_EQ(coll.shape, 1u);
    return;
  }
  ASSERT_EQ(entry.head().kind, Kind::kKernelCh);
  const auto kernel = entry.as<format::KernelChRecord>();
  const uint64_t round = (kernel.gpu_start - 1'000'000) / 16;
  if (seen.colls != 0) {
    ASSERT_EQ(round + 1, seen.colls);
  }
  ASSERT_EQ(kernel.comm, 0u);
  if (is_stopped) {
    ASSERT_EQ(kernel.gpu_stop, kernel.gpu_start + 3);
    ASSERT_NE(kernel.gpu_stop_seen_after, 0u);
  }
  ++seen.kernels;
}

TEST_F(Beside, AStreamIsReadWholeWhileItIsWritten) {
  Child child = start_writer("stream", kThreads, kRounds);
  ASSERT_TRUE(has_begun());
  const auto buffer = std::make_unique<ChunkBuffer>();
  std::map<uint16_t, Seen> before;
  for (uint64_t finished = 0; finished < kThreads * kRounds && !HasFatalFailure();) {
    finished = 0;
    for (const auto& thread : shared_->finished) finished += thread.load(std::memory_order_acquire);
    auto view = FileView::open(run_.files().at(0));
    ASSERT_TRUE(view) << view.error().text;
    ReadLosses losses;
    view->scan(losses);
    std::map<uint16_t, Seen> now;
    uint64_t seen = 0;
    for (const uint16_t log : view->logs()) {
      now[log].first_of_chunk = before[log].first_of_chunk;
      for (const Chunk& chunk : view->chunks(Purpose::kRecords, log)) {
        ASSERT_TRUE(view->read(chunk, *buffer));
        format::Walk<format::RecordHead> entry(buffer->bytes.data(), buffer->valid / format::kUnitBytes);
        bool is_first = true;
        for (; entry.next() && !HasFatalFailure();
             is_first = is_first && entry.head().kind == Kind::kKernelCh)
          check_records(entry, now[log], is_first, chunk.chunk_no, true);
      }
      ASSERT_GE(now[log].colls, before[log].colls);
      ASSERT_GE(now[log].stopped, before[log].stopped);
      seen += now[log].kernels;
    }
    ASSERT_GE(seen, finished);
    ASSERT_EQ(losses.count("bad_chunk"), 0u);
    before = std::move(now);
  }
  shared_->is_read = true;
  EXPECT_TRUE(child.wait().ok());
}

// The log uses its own chunks again, also the one that is being read.
TEST_F(Beside, ARingIsReadWhileItIsWrittenOver) {
  Child child = start_writer("ring:1M", 1, 4 * kRounds);
  ASSERT_TRUE(has_begun());
  const auto buffer = std::make_unique<ChunkBuffer>();
  std::map<uint32_t, uint64_t> first_of_chunk;
  uint64_t read = 0;
  for (bool is_last = false; !is_last && !HasFatalFailure();) {
    is_last = shared_->finished[0].load(std::memory_order_acquire) == 4 * kRounds;
    auto view = FileView::open(run_.files().at(0));
    ASSERT_TRUE(view) << view.error().text;
    ReadLosses losses;
    view->scan(losses);
    for (const uint16_t log : view->logs()) {
      for (const Chunk& chunk : view->chunks(Purpose::kRecords, log)) {
        if (!view->read(chunk, *buffer)) continue;  // used again since
        ++read;
        Seen seen;  // of this chunk alone, as the one before it may have gone
        seen.first_of_chunk = std::move(first_of_chunk);
        format::Walk<format::RecordHead> entry(buffer->bytes.data(), buffer->valid / format::kUnitBytes);
        bool is_first = true;
        for (; entry.next() && !HasFatalFailure();
             is_first = is_first && entry.head().kind == Kind::kKernelCh)
          check_records(entry, seen, is_first, chunk.chunk_no, false);
        first_of_chunk = std::move(seen.first_of_chunk);
      }
    }
  }
  EXPECT_GT(read, 0u);
  for (auto chunk = first_of_chunk.begin();
       chunk != first_of_chunk.end() && std::next(chunk) != first_of_chunk.end(); ++chunk)
    EXPECT_LT(chunk->second, std::next(chunk)->second) << "chunk " << chunk->first;
  shared_->is_read = true;
  EXPECT_TRUE(child.wait().ok());
}

// No operation is passed over, none is seen twice, and each has its shape.
TEST_F(Beside, ATailFollowsEveryOperation) {
  constexpr uint64_t kOperations = LiveTail::kMostArrivals;
  Child child = start_writer("stream", 1, kOperations);
  ASSERT_TRUE(has_begun());
  auto tail = LiveTail::open(run_.files().at(0), LiveTail::Depth::kAll);
  ASSERT_TRUE(tail) << tail.error().text;
  uint64_t next = 0;
  for (bool is_last = false; !is_last && !HasFatalFailure();) {
    is_last = shared_->finished[0].load(std::memory_order_acquire) == kOperations;
    for (const auto& arrival : (*tail)->process().arrivals) {
      ASSERT_EQ(arrival.number, next++);
      ASSERT_EQ(arrival.func, "AllReduce");
    }
    ASSERT_TRUE((*tail)->refresh());
  }
  next += (*tail)->process().arrivals.size();
  EXPECT_EQ(next, kOperations);
  EXPECT_EQ((*tail)->process().open, 0u);
  EXPECT_EQ((*tail)->process().passed_over, 0u);
  shared_->is_read = true;
  EXPECT_TRUE(child.wait().ok());
}

}  // namespace
}  // namespace lockstep::test
