// SPDX-License-Identifier: Apache-2.0
#include "run/held_segments.h"

#include <fcntl.h>
#include <unistd.h>

#include <chrono>
#include <cstring>
#include <filesystem>
#include <utility>

#include "format/segment_layout.h"
#include "run/process_info.h"
#include "segment/adopt.h"

namespace lockstep::run {
namespace {

namespace fs = std::filesystem;

// Dense while processes come, then sparse.
constexpr auto kDense = std::chrono::milliseconds(50), kSparse = std::chrono::milliseconds(1000);
constexpr uint32_t kDenseLooks = 600, kAdoptEvery = 20;  // looks
constexpr size_t kMost = 4096;

bool is_nameless(const std::string& descriptor) {
  std::error_code error;
  const std::string target = fs::read_symlink(descriptor, error).string();
  return !error && target.starts_with(std::string("/memfd:") + format::kNamelessSegment + " ");
}

bool has_key(int segment, uint64_t key) {
  format::SegmentHeader header{};
  return pread(segment, &header, sizeof header, 0) == static_cast<ssize_t>(sizeof header) &&
         std::memcmp(header.magic, format::kSegmentMagic, sizeof header.magic) == 0 && header.key == key;
}

}  // namespace

HeldSegments::HeldSegments(std::string run) : run_(std::move(run)), thread_([this] { this->run(); }) {}

HeldSegments::~HeldSegments() { stop(); }

size_t HeldSegments::count() {
  const std::lock_guard lock(mutex_);
  return held_.size();
}

void HeldSegments::stop() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  wake_.notify_all();
  if (thread_.joinable()) thread_.join();
  adopt();
  for (const auto& [file, descriptor] : held_) close(descriptor);
  held_.clear();
}

void HeldSegments::run() {
  std::unique_lock lock(mutex_);
  for (uint32_t looks = 0; !stopping_; ++looks) {
    if (look()) looks = 0;
    const bool is_dense = looks < kDenseLooks;
    if (!is_dense || looks % kAdoptEvery == 0) adopt();
    wake_.wait_for(lock, is_dense ? kDense : kSparse, [this] { return stopping_; });
  }
}

// True if files have come.
bool HeldSegments::look() {
  const size_t before = known_.size();
  std::error_code error;
  for (fs::directory_iterator at(run_, error), end; !error && at != end; at.increment(error)) {
    std::string path = at->path().string();
    if (!path.ends_with(".lks") || known_.contains(path) || held_.size() >= kMost) continue;
    if (take(process_file(path))) known_.insert(std::move(path));
  }
  return known_.size() != before;
}

// False if it is to be looked at again.
bool HeldSegments::take(const ProcessFile& file) {
  if (!file.valid || file.is_building) return false;
  if (file.segment_descriptor == 0 || is_alive(file.process) != true) return true;
  const std::string path =
      "/proc/" + std::to_string(file.process.pid) + "/fd/" + std::to_string(file.segment_descriptor);
  if (!is_nameless(path)) return true;
  const int segment = open(path.c_str(), O_RDWR | O_CLOEXEC | O_NONBLOCK);
  if (segment < 0) return true;
  if (has_key(segment, file.segment_key))
    held_.emplace(file.path, segment);
  else
    close(segment);
  return true;
}

void HeldSegments::adopt() {
  for (auto at = held_.begin(); at != held_.end();) {
    const segment::Adoption adoption = segment::adopt_open(at->second, at->first.c_str());
    if (adoption == segment::Adoption::kDone) {
      close(at->second);
      at = held_.erase(at);
    } else {
      ++at;
    }
  }
}

}  // namespace lockstep::run
