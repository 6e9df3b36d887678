// SPDX-License-Identifier: Apache-2.0
// A segment without a name dies with its process unless somebody else has it open. The launcher can open it
// through /proc/PID/fd while the process lives, so it has to come in time: it is woken by the kernel when a
// file appears, and looks 20 times a second until the header says which descriptor it is. It opens by the
// number that a file names, and a file may lie: what is opened has to be a memfd of our name and has to bear
// the file's key.
#include "run/held_segments.h"

#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <sys/eventfd.h>
#include <sys/inotify.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <utility>

#include "base/start_thread.h"
#include "format/segment_layout.h"
#include "run/process_info.h"
#include "segment/adopt.h"

namespace lockstep::run {
namespace {

namespace fs = std::filesystem;

constexpr int kStartingMs = 50, kHoldingMs = 1000, kNeverMs = -1;
constexpr int kMostLooks = 600;  // at a file whose process does not start
constexpr size_t kMost = 4096;

// The processes are of this host, so the kernel knows what they make, on any file system.
int watch(const std::string& run) {
  const int news = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
  if (news >= 0 && inotify_add_watch(news, run.c_str(), IN_CREATE | IN_MOVED_TO) < 0) {
    close(news);
    return -1;
  }
  return news;
}

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

HeldSegments::HeldSegments(std::string run)
    : run_(std::move(run)),
      news_(watch(run_)),
      stop_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)),
      thread_(start_thread([this] { this->run(); })) {}

HeldSegments::~HeldSegments() {
  stop();
  for (const int descriptor : {news_, stop_}) {
    if (descriptor >= 0) close(descriptor);
  }
}

size_t HeldSegments::count() {
  const std::lock_guard lock(mutex_);
  return held_.size();
}

void HeldSegments::stop() {
  is_stopping_ = true;
  eventfd_write(stop_, 1);
  if (thread_.joinable()) thread_.join();
  const std::lock_guard lock(mutex_);  // of count(), which any thread may call
  adopt();
  for (const auto& [file, descriptor] : held_) close(descriptor);
  held_.clear();
}

void HeldSegments::run() {
  pthread_setname_np(pthread_self(), "lockstep-hold");
  for (int sleep_ms = 0; sleep(sleep_ms);) {
    const std::lock_guard lock(mutex_);
    bool is_starting = true;  // for all we know, where memory is out
    attempt([&] { is_starting = look(); });
    adopt();
    // Held memory has to be looked at for its process' end; without inotify new files have to be looked for.
    const bool wakes_up = !held_.empty() || news_ < 0;
    sleep_ms = is_starting || stop_ < 0 ? kStartingMs : wakes_up ? kHoldingMs : kNeverMs;
  }
}

// Until there is news or the time is over. False when it is to stop.
bool HeldSegments::sleep(int milliseconds) const {
  pollfd of[] = {{stop_, POLLIN, 0}, {news_, POLLIN, 0}};
  // Looks once a second whether it is to stop: the word that it is may have failed.
  const bool is_long = milliseconds == kNeverMs;
  while (poll(of, 2, is_long ? kHoldingMs : milliseconds) == 0 && is_long && !is_stopping_) {
  }
  alignas(inotify_event) char events[4096];
  while (read(news_, events, sizeof events) > 0) {
  }
  return !is_stopping_;
}

// True while a process is starting.
bool HeldSegments::look() {
  std::error_code error;
  bool is_starting = false;
  for (fs::directory_iterator at(run_, error), end; !error && at != end; at.increment(error)) {
    std::string path = at->path().string();
    if (!path.ends_with(".lks") || known_.contains(path) || held_.size() >= kMost) continue;
    if (!take(process_file(path)) && ++starting_[path] < kMostLooks) {
      is_starting = true;
      continue;
    }
    starting_.erase(path);
    known_.insert(std::move(path));
  }
  return is_starting;
}

// False if it is to be looked at again.
bool HeldSegments::take(const ProcessFile& file) {
  if (!file.valid || file.is_building) return false;
  // A segment with a name outlives its process by itself, and a dead process has no descriptors any more.
  if (file.segment_descriptor == 0 || is_alive(file.process) != true) return true;
  const std::string path =
      "/proc/" + std::to_string(file.process.pid) + "/fd/" + std::to_string(file.segment_descriptor);
  // Before opening: the number may be that of a pipe or a device.
  if (!is_nameless(path)) return true;
  const auto held = held_.try_emplace(file.path, -1).first;  // first: it may want memory
  held->second = open(path.c_str(), O_RDWR | O_CLOEXEC | O_NONBLOCK);
  if (held->second >= 0 && has_key(held->second, file.segment_key)) return true;
  if (held->second >= 0) close(held->second);
  held_.erase(held);
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
