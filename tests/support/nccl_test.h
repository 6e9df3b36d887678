// SPDX-License-Identifier: Apache-2.0
// Fixture of the tests that load liblockstep-nccl.so: a run directory, and a child process with the library's
// settings.
#pragma once
#include <fcntl.h>
#include <sys/mman.h>

#include <type_traits>

#include "tests/support/child.h"
#include "tests/support/lks_file.h"
#include "tests/support/nccl_plugin.h"

namespace lockstep::test {

// The live words of a process file, as another program sees them.
class LiveHeader {
 public:
  explicit LiveHeader(const std::string& path) {
    header_ = map(path, 0);
    if (header_->segment[0] == 0) return;
    const std::string segment = std::string(format::kSegmentFolder) + "/" + header_->segment;
    uint32_t places = 0;
    std::ifstream in(segment, std::ios::binary);
    in.seekg(offsetof(format::SegmentHeader, places));
    in.read(reinterpret_cast<char*>(&places), sizeof places);
    header_ = map(segment, format::segment_file_offset(places));
  }
  explicit LiveHeader(const RunDirectory& run) : LiveHeader(run.files().at(0)) {}
  format::FileState state() const {
    return static_cast<format::FileState>(__atomic_load_n(&header_->state, __ATOMIC_ACQUIRE));
  }
  uint64_t lost(capture::Loss kind) const {
    return __atomic_load_n(&header_->losses[kind], __ATOMIC_RELAXED);
  }
  uint64_t heartbeat() const { return __atomic_load_n(&header_->heartbeat_ticks, __ATOMIC_RELAXED); }
  // Writing `bytes` in all, and a megabyte more, will find room: waits for the keeper and the writer, which a
  // busy machine may hold up.
  void wait_for_room(uint64_t bytes) const {
    wait([&] {
      return __atomic_load_n(&header_->chunks_ready, __ATOMIC_RELAXED) * uint64_t{format::kChunkBytes} >
             bytes + (1 << 20);
    });
  }
  template <class Condition>
  static bool wait(Condition condition) {
    double end = seconds_now() + kPatienceSeconds;
    while (!condition()) {
      if (seconds_now() > end) {
        ADD_FAILURE() << "waited in vain";
        return false;
      }
      sleep_ms(1);
    }
    return true;
  }

 private:
  static const format::FileHeader* map(const std::string& path, uint64_t offset) {
    int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC);
    EXPECT_GE(fd, 0) << path;
    void* memory = mmap(nullptr, format::kHeaderBytes, PROT_READ, MAP_SHARED, fd, static_cast<off_t>(offset));
    EXPECT_NE(memory, MAP_FAILED);
    close(fd);
    return static_cast<const format::FileHeader*>(memory);
  }

  const format::FileHeader* header_;
};

class NcclCapture : public ::testing::Test {
 protected:
  Environment settings(const char* mode = "deep", const char* retain = "stream") const {
    return {{"LOCKSTEP_DIR", run_.path()}, {"LOCKSTEP_MODE", mode}, {"LOCKSTEP_RETAIN", retain}};
  }
  // Runs the body in a child, which has to end in order, and reads its file.
  template <class Body>
  LksFile record(const Environment& environment, Body body) {
    Exit exit = run_child(environment, std::move(body));
    EXPECT_TRUE(exit.ok()) << exit;
    return run_.file();
  }
  template <class Body>
  LksFile record(Body body) {
    return record(settings(), std::move(body));
  }

  RunDirectory run_;
};

// The same for every version of the interface.
template <class Version>
class NcclCaptureOfVersion : public NcclCapture {
 protected:
  static constexpr int kApi = Version::value;
  using Plugin = NcclPlugin<kApi>;
};
template <int kApi>
using ApiVersion = std::integral_constant<int, kApi>;
using AllVersions = ::testing::Types<ApiVersion<1>, ApiVersion<2>, ApiVersion<3>, ApiVersion<4>,
                                     ApiVersion<5>, ApiVersion<6>, ApiVersion<7>>;

}  // namespace lockstep::test
