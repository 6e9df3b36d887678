// SPDX-License-Identifier: Apache-2.0
// The run directory is the spool: what the store did not take is made anew from it, so a store that is down
// costs no memory, and gets the newest state when it comes back.
#include "cli/push/follow.h"

#include <algorithm>
#include <filesystem>

#include "base/text/units.h"
#include "cli/kit/console.h"
#include "cli/kit/interrupt.h"
#include "live/newest_states.h"
#include "run/process_info.h"
#include "store/fleet_now.h"

namespace lockstep::cli::push {
namespace {

using std::chrono::milliseconds;
using Clock = std::chrono::steady_clock;

constexpr milliseconds kInterval{2'000}, kLongestPause{60'000};
constexpr size_t kMostNameBytes = 256;

// Not what torchrun calls every job that was given no id.
// The name has to be alike on all hosts, as a store joins what they write by it. So the job id of the
// scheduler goes before the directory, which may be local.
std::string name_of(const Arguments& arguments) {
  if (arguments.has("run")) return arguments.value("run");
  std::string job = run::own_job_place().job;
  if (!job.empty() && job != "none") return job;
  const auto path = std::filesystem::absolute(arguments.operands().front()).lexically_normal();
  return path.filename().empty() ? path.parent_path().filename() : path.filename();
}

class Follower {
 public:
  Follower(const std::string& run, std::string name, const store::FleetTarget& target)
      : run_(run), states_(run), name_(std::move(name)), target_(target), patience_(target.patience) {
    target_.patience = milliseconds(0);  // it is this loop that tries again, with newer states
  }

  int run() {
    const Interrupt interrupt(Interrupt::Second::kEnds);
    for (;;) {
      // Asked before the look, so that the newest state is sent once more after an interrupt.
      const bool is_last = interrupt.wanted();
      const Result<bool> written = look();
      // A store that refuses will refuse again.
      if (!written && written.error().code != ErrorCode::kIo) return fail(written.error());
      // Its end is written once more, if the store takes it at once.
      if (is_last) return written ? kExitOk : kExitCannotTell;
      if (written && *written) return kExitOk;
      // While the job runs there is always something newer to send, so patience begins at its end.
      if (!written && has_ended_ && Clock::now() > ended_ + patience_) return give_up(written.error());
      // Doubled up to a minute: a store that is overloaded is not helped by retries.
      pause_ = written ? kInterval : std::min(2 * pause_, kLongestPause);
      interrupt.wait(pause_);
    }
  }

 private:
  // Whether all has been written that there will be.
  Result<bool> look() {
    auto processes = states_.look();
    // Its launcher merges a run that has ended, and removes its directory.
    if (!processes && states_.all_ended())
      return Error{ErrorCode::kNotFound, "is gone, and its end was not written: push what it was merged into",
                   run_};
    // The job has not begun, or its directory is out of reach for a while.
    if (!processes) {
      if (!std::exchange(is_waiting_, true)) warn("waiting: " + processes.error().message());
      return false;
    }
    is_waiting_ = false;
    if (states_.all_ended() && !std::exchange(has_ended_, true)) ended_ = Clock::now();
    // A rank that is restarted makes an ended job run again.
    has_ended_ = states_.all_ended();
    const auto sent = send(*processes);
    if (!sent) {
      if (sent.error().code == ErrorCode::kIo && !std::exchange(is_down_, true))
        warn(without_patience(sent.error()) + "; trying again");
      return sent.error();
    }
    if (std::exchange(is_down_, false)) warn("the store answers again");
    return has_ended_;
  }

  Result<void> send(const std::vector<model::FollowedProcess>& processes) {
    if (!writer_) {
      LOCKSTEP_ASSIGN(writer_, store::NowWriter::open(target_, name_));
    }
    return writer_->write(processes);
  }

  // The way into the store has no patience of its own.
  static std::string without_patience(const Error& error) {
    const std::string text = error.message();
    return text.substr(0, text.find("; gave up"));
  }
  static int give_up(const Error& error) {
    fail(error);
    return kExitCannotTell;
  }

  const std::string run_;
  live::NewestStates states_;
  const std::string name_;
  store::FleetTarget target_;
  const milliseconds patience_;
  std::unique_ptr<store::NowWriter> writer_;
  milliseconds pause_ = kInterval;
  bool is_waiting_ = false, is_down_ = false, has_ended_ = false;
  Clock::time_point ended_{};
};

}  // namespace

int follow(const Arguments& arguments, const store::FleetTarget& target) {
  if (arguments.operands().size() != 1) return fail("--follow takes one run directory");
  const std::string& run = arguments.operands().front();
  std::error_code error;
  if (std::filesystem::exists(run, error) && !std::filesystem::is_directory(run, error))
    return fail(run + ": is no directory: --follow takes a run that is being written");
  const std::string name = name_of(arguments);
  if (name.empty() || name.size() > kMostNameBytes)
    return fail("--run takes a name of 1 to " + std::to_string(kMostNameBytes) + " bytes");
  return Follower(run, name, target).run();
}

}  // namespace lockstep::cli::push
