// SPDX-License-Identifier: Apache-2.0
#include "arena.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>

namespace custom_allreduce {
namespace {

constexpr size_t kHead = 64;  // who has come, on a cache line of its own
constexpr int kPatienceMs = 30000;

// New memory is zero, which is how Flag and the count begin: whoever comes second must not begin them again.
void* map_shared(const std::string& name, size_t bytes) {
  if (name.empty()) return mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  int file = shm_open(name.c_str(), O_RDWR | O_CREAT, 0600);
  if (file < 0) return MAP_FAILED;
  void* memory = MAP_FAILED;
  if (ftruncate(file, static_cast<off_t>(bytes)) == 0)
    memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  close(file);
  return memory;
}

bool all_come(void* head, int ranks) {
  auto& come = *static_cast<std::atomic<int>*>(head);
  ++come;
  for (int ms = 0; come < ranks; ++ms) {
    if (ms == kPatienceMs) {
      errno = ETIMEDOUT;
      return false;
    }
    usleep(1000);
  }
  return true;
}

}  // namespace

Arena::Arena(int ranks, size_t elements, const std::string& name)
    : ranks_(ranks), elements_((elements + 15) / 16 * 16) {
  const auto flags = static_cast<size_t>(ranks) * static_cast<size_t>(ranks);
  bytes_ = kHead + flags * sizeof(Flag) + 2 * static_cast<size_t>(ranks) * elements_ * sizeof(float);
  void* memory = map_shared(name, bytes_);
  if (memory == MAP_FAILED) return;
  if (!name.empty()) {
    const bool whole = all_come(memory, ranks);
    const int error = errno;
    shm_unlink(name.c_str());
    if (!whole) {
      munmap(memory, bytes_);
      errno = error;
      return;
    }
  }
  base_ = memory;
  flags_ = reinterpret_cast<Flag*>(static_cast<char*>(memory) + kHead);
  data_ = reinterpret_cast<float*>(flags_ + flags);
}

Arena::~Arena() {
  if (base_ != nullptr) munmap(base_, bytes_);
}

}  // namespace custom_allreduce
