// SPDX-License-Identifier: Apache-2.0
#include "sim/hsa/meeting.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>

namespace lockstep::sim {
namespace {

// How many have begun, in all processes.
std::atomic<uint64_t>* open_meeting() {
  const char* path = std::getenv("LOCKSTEP_SIM_MEETING");
  const int file = path == nullptr ? -1 : open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  if (file < 0 || ftruncate(file, sizeof(uint64_t)) != 0) return nullptr;
  void* memory = mmap(nullptr, sizeof(uint64_t), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  close(file);
  return memory == MAP_FAILED ? nullptr : static_cast<std::atomic<uint64_t>*>(memory);
}

}  // namespace

void meet(uint64_t arguments, const std::atomic<bool>& is_ending) {
  static std::atomic<uint64_t>* const begun = open_meeting();
  static const char* const set = std::getenv("LOCKSTEP_SIM_RANKS");
  static const uint64_t ranks = set != nullptr ? std::strtoull(set, nullptr, 10) : 1;
  static std::atomic<uint64_t> own{0};
  if (begun == nullptr || arguments == 0) return;
  uint64_t first;
  std::memcpy(&first, reinterpret_cast<const void*>(arguments), sizeof first);
  if (first < communicator_of(0) || first >= communicator_of(ranks)) return;
  const uint64_t all = ++own * ranks;
  ++*begun;
  while (*begun < all && !is_ending) {
    constexpr timespec kPause{0, 20'000};
    nanosleep(&kPause, nullptr);
  }
}

}  // namespace lockstep::sim
