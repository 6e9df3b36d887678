// SPDX-License-Identifier: Apache-2.0
// What the tests of this folder share: a process with a libcupti in it (sim/cupti), this library as CUDA's
// driver would start it, and a profiler that uses CUPTI as others do, through the functions that come first
// in the loader's search.
#pragma once
#include <dlfcn.h>
#include <fcntl.h>
#include <sys/mman.h>

#include <map>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "capture/cuda/cupti_abi.h"
#include "sim/cupti/fake_cupti.h"
#include "tests/support/child.h"
#include "tests/support/lks_file.h"
#include "tests/support/places.h"

extern "C" {
int InitializeInjection();
lockstep::capture::cuda::cupti::Result cuptiActivityRegisterCallbacks(
    lockstep::capture::cuda::cupti::BufferRequested, lockstep::capture::cuda::cupti::BufferCompleted);
lockstep::capture::cuda::cupti::Result cuptiActivityEnable(uint32_t);
lockstep::capture::cuda::cupti::Result cuptiActivityDisable(uint32_t);
lockstep::capture::cuda::cupti::Result cuptiActivityEnableContext(void*, uint32_t);
lockstep::capture::cuda::cupti::Result cuptiActivityDisableContext(void*, uint32_t);
lockstep::capture::cuda::cupti::Result cuptiActivityEnableDriverApi(uint32_t, uint8_t);
lockstep::capture::cuda::cupti::Result cuptiActivityFlushAll(uint32_t);
lockstep::capture::cuda::cupti::Result cuptiActivityFlushPeriod(uint32_t);
lockstep::capture::cuda::cupti::Result cuptiActivityGetNumDroppedRecords(void*, uint32_t, size_t*);
lockstep::capture::cuda::cupti::Result cuptiActivityRegisterTimestampCallback(
    lockstep::capture::cuda::cupti::Timestamp);
lockstep::capture::cuda::cupti::Result cuptiSetThreadIdType(uint32_t);
lockstep::capture::cuda::cupti::Result cuptiSubscribe(void**, void*, void*);
lockstep::capture::cuda::cupti::Result cuptiUnsubscribe(void*);
lockstep::capture::cuda::cupti::Result cuptiFinalize();
}

namespace lockstep::test {

namespace cupti = capture::cuda::cupti;

// The libcupti of the process, without anyone in between.
class Gpu {
 public:
  explicit Gpu(const char* release = "new") {
    const std::string path = std::string(LOCKSTEP_LIB_DIR "/fake-") + release + "/libcupti.so";
    library_ = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
    EXPECT_NE(library_, nullptr) << dlerror();
    cupti_ = static_cast<const sim::FakeCupti*>(dlsym(library_, sim::kFakeCuptiSymbol));
  }
  // A driver whose calls CUPTI sees.
  void load_driver() const {
    void* driver = dlopen(LOCKSTEP_LIB_DIR "/fake-new/libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    ASSERT_NE(driver, nullptr) << dlerror();
    *static_cast<void (**)(uint32_t)>(dlsym(driver, "fake_driver_call")) = cupti_->call;
  }
  template <class Function>
  Function real(const char* name) const {
    return reinterpret_cast<Function>(dlsym(library_, name));
  }
  uint64_t now() const { return cupti_->now(); }
  uint32_t launch(const sim::FakeLaunch& launch) const { return cupti_->launch(&launch); }
  void finish(uint32_t correlation, uint64_t start, uint64_t end) const {
    cupti_->finish(correlation, start, end);
  }
  // A kernel that begins now and takes a microsecond.
  uint32_t run(const sim::FakeLaunch& what) const {
    const uint32_t correlation = launch(what);
    const uint64_t start = now();
    finish(correlation, start, start + 1000);
    return correlation;
  }
  void copy(uint32_t kind, uint64_t bytes) const {
    const sim::FakeCopy what{kind, bytes};
    const uint64_t start = now();
    cupti_->copy(&what, start, start + 500);
  }
  void call(uint32_t driver_call) const { cupti_->call(driver_call); }
  void other(uint32_t kind) const { cupti_->other(kind); }
  sim::FakeState state() const { return cupti_->state(); }

 private:
  void* library_ = nullptr;
  const sim::FakeCupti* cupti_ = nullptr;
};

// Like PyTorch's: it keeps a map of the buffers it gave, flushes only while it has given some, and complains
// of others.
class Profiler {
 public:
  explicit Profiler(const Gpu& gpu)
      : next_(gpu.real<cupti::Result (*)(uint8_t*, size_t, uint8_t**)>("cuptiActivityGetNextRecord")) {
    one_ = this;
  }
  void start(const std::vector<uint32_t>& kinds) {
    EXPECT_EQ(cuptiActivityRegisterCallbacks(requested, completed), cupti::kSuccess);
    for (const uint32_t kind : kinds) EXPECT_EQ(cuptiActivityEnable(kind), cupti::kSuccess);
    kinds_ = kinds;
  }
  void stop() {
    flush();
    for (const uint32_t kind : kinds_) EXPECT_EQ(cuptiActivityDisable(kind), cupti::kSuccess);
  }
  void flush() {
    {
      const std::lock_guard guard(lock_);
      if (given_.empty()) return;
    }
    EXPECT_EQ(cuptiActivityFlushAll(cupti::kFlushForced), cupti::kSuccess);
  }
  // Records so far by kind, and by the call for calls.
  std::map<std::pair<uint32_t, uint32_t>, int> counts() {
    const std::lock_guard guard(lock_);
    return counts_;
  }
  int kernels() { return counts()[{cupti::kConcurrentKernel, 0}]; }
  int strangers() const { return strangers_; }
  // Its buffers take no more than so many records each, whatever their size.
  static void take(size_t records) { most_records_ = records; }
  // The most that came back in one.
  int most_in_a_buffer() const { return most_in_a_buffer_; }
  // From here on its callbacks may not be called: it ends the process.
  static void go() { is_gone_ = true; }
  static constexpr size_t kBufferBytes = 4096;  // small, so that many are filled

 private:
  static void requested(uint8_t** buffer, size_t* bytes, size_t* most) {
    if (is_gone_) _exit(77);
    const std::lock_guard guard(one_->lock_);
    *buffer = new uint8_t[kBufferBytes];
    *bytes = kBufferBytes;
    *most = most_records_;
    one_->given_[*buffer] = true;
  }
  static void completed(void*, uint32_t, uint8_t* buffer, size_t, size_t valid) {
    if (is_gone_) _exit(78);
    const std::lock_guard guard(one_->lock_);
    if (one_->given_.erase(buffer) == 0) {
      ++one_->strangers_;
      return;
    }
    uint8_t* at = nullptr;
    int records = 0;
    while (valid > 0 && one_->next_(buffer, valid, &at) == cupti::kSuccess) {
      one_->most_in_a_buffer_ = std::max(one_->most_in_a_buffer_, ++records);
      const cupti::Record record(at, 40);
      const bool is_call = record.kind() == cupti::kDriver || record.kind() == cupti::kRuntime;
      ++one_->counts_[{record.kind(), is_call ? record.get<uint32_t>(cupti::ApiCall::kCall) : 0}];
    }
    delete[] buffer;
  }

  static inline Profiler* one_ = nullptr;
  static inline bool is_gone_ = false;
  static inline size_t most_records_ = 0;  // 0: as many as there is room for
  cupti::Result (*next_)(uint8_t*, size_t, uint8_t**);
  std::mutex lock_;
  std::map<uint8_t*, bool> given_;
  std::map<std::pair<uint32_t, uint32_t>, int> counts_;
  std::vector<uint32_t> kinds_;
  int strangers_ = 0, most_in_a_buffer_ = 0;
};

// As `lockstep control` does it.
inline void ask(const std::string& path, format::Mode mode) {
  const int fd = open(path.c_str(), O_RDWR | O_CLOEXEC);
  void* memory = mmap(nullptr, format::kHeaderBytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  ASSERT_NE(memory, MAP_FAILED);
  close(fd);
  auto* header = static_cast<format::FileHeader*>(memory);
  const uint32_t number = header->control + 1;
  header->request = {};
  header->request.what = format::kControlSetMode;
  header->request.mode = static_cast<uint32_t>(mode);
  header->request.check = format::control_check(header->request, number);
  __atomic_store_n(&header->control, number, __ATOMIC_RELEASE);
  munmap(memory, format::kHeaderBytes);
}

class CudaCapture : public ::testing::Test {
 protected:
  Environment settings(const char* mode = "default", const char* cuda = "kernels") const {
    return {{"LOCKSTEP_DIR", run_.path()}, {"LOCKSTEP_MODE", mode}, {"LOCKSTEP_CUDA", cuda}};
  }
  // The file that a process leaves in which CUDA has started and `body` ran.
  template <class Body>
  LksFile record(Body body, const Environment& environment, const char* release = "new") {
    EXPECT_TRUE(run_child(environment, [&] {
                  Gpu gpu(release);
                  EXPECT_EQ(InitializeInjection(), 1);
                  body(gpu);
                }).ok());
    return run_.file();
  }
  template <class Body>
  LksFile record(Body body) {
    return record(body, settings());
  }
  static std::string note(const LksFile& file, const char* key) {
    std::string value;
    for (const auto& note : file.all<format::NoteDef>(format::Def::kNote)) {
      if (std::string(note.key) == key) value = note.value;
    }
    return value;
  }
  static std::map<std::pair<uint32_t, uint32_t>, std::string> kernel_names(const LksFile& file) {
    std::map<std::pair<uint32_t, uint32_t>, std::string> names;
    for (const Entry& entry : file.definitions(format::Def::kKernelName)) {
      const char* text = entry.bytes + sizeof(format::DefHead);
      names[{entry.log, entry.def().id}] =
          std::string(text, strnlen(text, entry.def().units * format::kUnitBytes - sizeof(format::DefHead)));
    }
    return names;
  }

  RunDirectory run_;
};

}  // namespace lockstep::test
