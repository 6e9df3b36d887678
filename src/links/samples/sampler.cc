// SPDX-License-Identifier: Apache-2.0
// Reads a host's counters beside a job and must cost it nothing: one thread with a small stack, one launcher
// a host, only what has changed is written, and a slow reading is followed by a pause of nineteen times its
// length. The thread is detached and shares its state, because a driver may hold it in a reading for ever,
// and the launcher must end all the same.
#include "links/samples/sampler.h"

#include <fcntl.h>
#include <pthread.h>
#include <time.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <optional>
#include <set>

#include "base/start_thread.h"
#include "links/samples/host_lock.h"
#include "links/samples/sample_log.h"

namespace lockstep::links {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using SteadyClock = std::chrono::steady_clock;

constexpr auto kStopWait = seconds(2), kAskAgain = seconds(10);
constexpr int kShareOfTime = 20;                   // of which a reading takes one at most
constexpr size_t kSamplerStack = size_t{2} << 20;  // NVML loads and starts on it
constexpr uint64_t kManyBytes = uint64_t{16} << 20, kFaultsOnlyBytes = uint64_t{48} << 20,
                   kMostWrittenBytes = uint64_t{64} << 20, kMostPendingBytes = uint64_t{1} << 20;
// For the line that says that the log is full.
constexpr size_t kRoomForTheEnd = 16;

int64_t ns_of(clockid_t clock) {
  timespec now{};
  clock_gettime(clock, &now);
  return int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec;
}

// Whole lines or nothing: what a full disk has left of one is taken back.
class LogFile {
 public:
  explicit LogFile(const std::string& path)
      : fd_(open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_APPEND | O_CLOEXEC, 0666)) {}
  ~LogFile() {
    if (fd_ >= 0) close(fd_);
  }
  LogFile(const LogFile&) = delete;
  LogFile& operator=(const LogFile&) = delete;

  bool is_open() const { return fd_ >= 0; }
  uint64_t bytes() const { return bytes_; }

  // False: there was no room, and there may be later.
  bool append(const std::string& lines) {
    if (fd_ < 0) return false;
    size_t done = 0;
    while (done < lines.size()) {
      const ssize_t put = write(fd_, lines.data() + done, lines.size() - done);
      if (put < 0 && errno == EINTR) continue;
      if (put <= 0) break;
      done += static_cast<size_t>(put);
    }
    if (done == lines.size()) {
      bytes_ += done;
      return true;
    }
    // A torn line in the middle would join with the next one: a log that cannot be mended is ended.
    if (done > 0 && ftruncate(fd_, static_cast<off_t>(bytes_)) != 0) {
      close(fd_);
      fd_ = -1;
    }
    return false;
  }

 private:
  int fd_;
  uint64_t bytes_ = 0;
};

// When what is due (links/samples/pace.h).
struct Schedule {
  milliseconds every, slowly, slowly_later, nvlink_bytes, rarely;
};
constexpr Schedule kUsual{seconds(1), seconds(10), seconds(60), seconds(600), seconds(600)};
constexpr Schedule kWatched{milliseconds(100), seconds(1), seconds(10), seconds(10), seconds(20)};

class Due {
 public:
  explicit Due(std::string watch) : watch_(std::move(watch)) {}

  struct Reading {
    Pace pace = Pace::kSecond;
    bool always = false;  // it is written even if nothing has changed
  };
  // What to read now, of a log of so many bytes.
  Reading take(SteadyClock::time_point now, uint64_t bytes) {
    Reading reading;
    const bool is_slow =
        is_due(slowly_, bytes < kManyBytes ? schedule_->slowly : schedule_->slowly_later, now);
    if (is_slow) {
      reading.always = true;
      slowly_ = now;
    }
    // No more often, as it asks the file system; no less, however large the log is.
    if (is_due(looked_, std::min(schedule_->slowly, kUsual.slowly), now)) {
      looked_ = now;
      schedule_ = HostLock::is_held(watch_) ? &kWatched : &kUsual;
    }
    if (is_due(rarely_, schedule_->rarely, now))
      reading.pace = Pace::kTenMinutes;
    else if (bytes >= kFaultsOnlyBytes)
      return reading;
    else if (is_due(nvlink_bytes_, schedule_->nvlink_bytes, now))
      reading.pace = Pace::kNvlinkBytes;
    else if (is_slow)
      reading.pace = Pace::kTenSeconds;
    if (reading.pace == Pace::kTenMinutes) rarely_ = now;
    if (reading.pace >= Pace::kNvlinkBytes) nvlink_bytes_ = now;
    return reading;
  }
  milliseconds every() const { return schedule_->every; }

 private:
  using Moment = std::optional<SteadyClock::time_point>;
  static bool is_due(const Moment& last, milliseconds interval, SteadyClock::time_point now) {
    return !last || now - *last >= interval;
  }
  const std::string watch_;
  const Schedule* schedule_ = &kUsual;
  Moment looked_;                          // when the lock was asked last
  Moment slowly_, nvlink_bytes_, rarely_;  // when that was read last
};

// Those of which the kernel's files are read.
std::vector<std::string> interfaces_of(const WatchedFiles& files) {
  std::set<std::string> names;
  for (size_t i = 0; i < files.size(); ++i)
    if (files.key(i).kind == DeviceKind::kNetDevice) names.insert(files.key(i).device);
  return {names.begin(), names.end()};
}

}  // namespace

SampleLines::SampleLines(const std::string& root) : files_(root) {
  // A made-up tree is not this host: its drivers are not asked.
  if (root.empty()) interfaces_.emplace(interfaces_of(files_), InterfaceCounters::of_this_host());
  if (root.empty() && nvidia::may_have_gpus()) gpus_.emplace();
  declared_ = size();
  last_.resize(declared_);
}

std::string SampleLines::declaration(size_t i) const {
  return "counter " + std::to_string(i) + " " + std::string(kind_word(key(i).kind)) + " " + key(i).device +
         " " + key(i).name + "\n";
}

std::string SampleLines::head(const SampleIdentity& identity, int64_t start_ns) const {
  std::string text(kSampleLogHead);
  text += std::to_string(kSampleLogVersion) + "\nhost " + identity.host + "\nboot " + identity.boot_id +
          "\npid " + std::to_string(identity.pid) + "\nstart " + std::to_string(start_ns) + "\n";
  for (const auto& [name, path] : files_.cards()) text += "card " + name + " " + path + "\n";
  for (const auto& [name, path] : files_.gpus()) text += "gpu " + name + " " + path + "\n";
  for (size_t i = 0; i < declared_; ++i) text += declaration(i);
  return text;
}

std::string SampleLines::sample(int64_t ms, Pace due, bool always) {
  std::string news, values;
  const auto take = [&](size_t i, std::optional<uint64_t> value, bool also_unchanged) {
    // A counter that appears later is declared before the line that first has its value.
    for (; declared_ <= i; ++declared_) news += declaration(declared_);
    last_.resize(declared_);
    Last& last = last_[i];
    const bool is_same =
        last.is_written && last.is_known == value.has_value() && (!value || *value == last.value);
    if (is_same && !also_unchanged) return;
    last = {true, value.has_value(), value.value_or(0)};
    values += " " + std::to_string(i) + "=" + (value ? std::to_string(*value) : "-");
  };
  for (size_t i = 0; i < files_.size(); ++i)
    if (files_.pace(i) <= due) take(i, files_.read(i), false);
  if (interfaces_ && due >= Pace::kTenSeconds)
    interfaces_->read(
        [&](size_t i, std::optional<uint64_t> value) { take(files_.size() + i, value, false); });
  // Of what is read seldom, it matters when it was read.
  if (gpus_)
    gpus_->read(due, [&](size_t i, std::optional<uint64_t> value) {
      take(before_gpus() + i, value, gpus_->pace(i) >= Pace::kNvlinkBytes);
    });
  if (values.empty() && !always) return {};
  return news + "at " + std::to_string(ms) + values + "\n";
}

bool has_links_to_sample(const std::string& root) {
  return WatchedFiles(root).size() > 0 || (root.empty() && nvidia::may_have_gpus());
}

struct Sampler::State {
  SamplerPlaces places;
  SampleIdentity identity;
  std::mutex mutex;
  std::condition_variable news;
  bool is_stopping = false, has_ended = false;

  // True: it is to stop.
  bool sleep_until(SteadyClock::time_point moment) {
    std::unique_lock lock(mutex);
    return news.wait_until(lock, moment, [this] { return is_stopping; });
  }

  void run() {
    if (!has_links_to_sample(places.root)) return;
    // Who waits keeps no files open and does not start NVML.
    const HostLock lock(places.lock);
    // If the sampler of this host ends before the job does, the next launcher goes on.
    while (lock.take() == HostLock::Taken::kByAnother)
      if (sleep_until(SteadyClock::now() + kAskAgain)) return;
    SampleLines lines(places.root);
    if (lines.is_empty()) return;
    // Real time once; then the boot's clock, which nobody sets.
    const int64_t start_ns = ns_of(CLOCK_REALTIME), start_boottime = ns_of(CLOCK_BOOTTIME);
    const std::string head = lines.head(identity, start_ns);
    LogFile file(places.log);
    if (!file.append(head)) {
      // A log without its head says nothing.
      if (file.is_open()) unlink(places.log.c_str());
      return;
    }
    sample_until_stopped(lines, file, start_boottime);
  }

 private:
  void sample_until_stopped(SampleLines& lines, LogFile& file, int64_t start_boottime) {
    Due due(places.watch);
    std::string pending;  // what there was no room for
    bool is_full = false;
    for (bool is_last = false;;) {
      const auto begin = SteadyClock::now();
      const Due::Reading reading =
          is_last ? Due::Reading{Pace::kTenMinutes, true} : due.take(begin, file.bytes());
      // What did not fit on a full disk is tried again with the next sample, within a bound. Beyond it
      // nothing is read: a line that was left out would take declarations and changes with it that do not
      // come again.
      if (pending.size() < kMostPendingBytes)
        pending +=
            lines.sample((ns_of(CLOCK_BOOTTIME) - start_boottime) / 1'000'000, reading.pace, reading.always);
      if (is_last) pending += "end\n";
      if (!is_full && file.bytes() + pending.size() + kRoomForTheEnd > kMostWrittenBytes) {
        file.append("full\n");
        is_full = true;
      }
      if (is_full || file.append(pending)) pending.clear();
      if (is_last || is_full) return;
      const auto end = SteadyClock::now();
      const auto next =
          // A reading that took 100 ms is followed by 1.9 s of rest: a twentieth of the time at most.
          std::max<SteadyClock::time_point>(begin + due.every(), end + (end - begin) * (kShareOfTime - 1));
      is_last = sleep_until(next);
    }
  }
};

namespace {

void* run_sampler(void* argument) {
  const std::unique_ptr<std::shared_ptr<Sampler::State>> owned(
      static_cast<std::shared_ptr<Sampler::State>*>(argument));
  Sampler::State& state = **owned;
  // Nothing may leave the thread: an exception in it would end the launcher, and the job with it.
  attempt([&] { state.run(); });
  {
    const std::lock_guard lock(state.mutex);
    state.has_ended = true;
  }
  state.news.notify_all();
  return nullptr;
}

bool start_detached(void* argument) {
  pthread_attr_t attributes;
  pthread_t thread;
  if (pthread_attr_init(&attributes) != 0) return false;
  pthread_attr_setstacksize(&attributes, kSamplerStack);
  // std::thread has no stack size, and joins; both matter here.
  pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
  const int error = pthread_create(&thread, &attributes, run_sampler, argument);
  pthread_attr_destroy(&attributes);
  return error == 0;
}

}  // namespace

Sampler::Sampler(SamplerPlaces places, SampleIdentity identity) {
  auto state = std::make_shared<State>();
  state->places = std::move(places);
  state->identity = std::move(identity);
  auto owned = std::make_unique<std::shared_ptr<State>>(state);
  if (!start_detached(owned.get())) return;
  owned.release();  // NOLINT(bugprone-unused-return-value): the thread has it
  state_ = std::move(state);
}

void Sampler::stop() {
  if (!state_) return;
  std::unique_lock lock(state_->mutex);
  state_->is_stopping = true;
  state_->news.notify_all();
  state_->news.wait_for(lock, kStopWait, [this] { return state_->has_ended; });
  lock.unlock();
  // The thread has its own share of the state, and may still be in a reading.
  state_.reset();
}

}  // namespace lockstep::links
