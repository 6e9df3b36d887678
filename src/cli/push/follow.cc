// SPDX-License-Identifier: Apache-2.0
// The run directory is the spool: what the store did not take is made anew from it, so a store that is down
// costs no memory, and gets the newest state when it comes back.
#include "cli/push/follow.h"

#include <malloc.h>

#include <algorithm>
#include <filesystem>

#include "base/text/units.h"
#include "cli/kit/console.h"
#include "cli/kit/interrupt.h"
#include "live/newest_states.h"
#include "run/process_info.h"
#include "run/run_directory.h"
#include "store/fleet_now.h"

namespace lockstep::cli::push {
namespace {

using std::chrono::milliseconds;
using Clock = std::chrono::steady_clock;

constexpr milliseconds kInterval{2'000}, kLongestPause{60'000};
constexpr size_t kMostNameBytes = 256;

class Follower {
 public:
  explicit Follower(const FollowedJob& job)
      : run_(job.run),
        states_(job.run),
        name_(job.name),
        target_(job.target),
        patience_(target_.patience),
        until_signal_(job.until_signal) {
    target_.patience = milliseconds(0);  // it is this loop that tries again, with newer states
  }

  int run() {
    const Interrupt interrupt(Interrupt::Second::kEnds);
    for (;;) {
      // Asked before the look, so that the newest state is sent once more after an interrupt.
      const bool is_last = interrupt.wanted();
      const Result<bool> written = look(is_last);
      give_back_memory();
      // A store that refuses will refuse again.
      if (!written && written.error().code != ErrorCode::kIo) return fail(written.error());
      // Its end is written once more, if the store takes it at once.
      if (is_last) return written ? kExitOk : kExitCannotTell;
      if (written && *written && !until_signal_) return kExitOk;
      // While the job runs there is always something newer to send, so patience begins at its end.
      if (!written && has_ended_ && !until_signal_ && Clock::now() > ended_ + patience_)
        return give_up(written.error());
      // Doubled up to a minute: a store that is overloaded is not helped by retries.
      pause_ = written ? kInterval : std::min(2 * pause_, kLongestPause);
      interrupt.wait(pause_);
    }
  }

 private:
  // main() keeps freed memory for the next trace, which here comes after a rest a hundred times as long as
  // the reading: the job's host has better use for it.
  static void give_back_memory() {
#if defined(__GLIBC__)
    malloc_trim(0);
#endif
  }
  // Whether all has been written that there will be.
  Result<bool> look(bool is_last) {
    auto processes = states_.look(is_last);
    // Its launcher merges a run that has ended, and removes its directory.
    if (!processes && states_.all_ended() && is_end_written_ && !until_signal_) return true;
    if (!processes && states_.all_ended() && !until_signal_)
      return Error{ErrorCode::kNotFound, "is gone, and its end was not written: push what it was merged into",
                   run_};
    // The job has not begun, or its directory is out of reach for a while.
    if (!processes) {
      if (!std::exchange(is_waiting_, true) && !until_signal_)
        warn("waiting: " + processes.error().message());
      return false;
    }
    is_waiting_ = false;
    // A rank that is started again makes an ended job run again, which only a launcher is sure to say before.
    const bool has_ended = states_.all_ended() && !run::has_own_launcher(run_);
    if (has_ended && !has_ended_) ended_ = Clock::now();
    has_ended_ = has_ended;
    is_end_written_ = false;
    const auto sent = send(*processes);
    if (!sent) {
      if (sent.error().code == ErrorCode::kIo && !std::exchange(is_down_, true))
        warn(without_patience(sent.error()) + "; trying again");
      return sent.error();
    }
    if (std::exchange(is_down_, false)) warn("the store answers again");
    is_end_written_ = states_.all_ended();
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
  const bool until_signal_;
  std::unique_ptr<store::NowWriter> writer_;
  milliseconds pause_ = kInterval;
  bool is_waiting_ = false, is_down_ = false, has_ended_ = false, is_end_written_ = false;
  Clock::time_point ended_{};
};

}  // namespace

Result<FollowedJob> followed_job(const std::string& option, const std::string& place) {
  const size_t mark = place.find('#');
  FollowedJob followed;
  followed.target.url = place.substr(0, mark);
  followed.target.key = store::key_of_environment();
  if (mark != std::string::npos) {
    followed.name = place.substr(mark + 1);
  } else if (const std::string job = run::own_job_place().job; job != "none") {
    // Not what torchrun calls every job that was given no id.
    followed.name = job;
  }
  LOCKSTEP_TRY(store::check_target(followed.target));
  // Jobs of one name would be one job in the store. So no name is made up of the run directory's, which is
  // trace.run for most of them.
  if (followed.name.empty() || followed.name.size() > kMostNameBytes)
    return usage_error(
        option + " takes URL#NAME, such as http://store:8123/fleet#job-17, with the same name of 1 to " +
        std::to_string(kMostNameBytes) + " bytes on all hosts, which no other job has");
  return followed;
}

int follow(const FollowedJob& job) { return Follower(job).run(); }

int follow(const Arguments& arguments, std::chrono::milliseconds patience) {
  if (arguments.operands().size() != 1) return fail("--follow takes one run directory");
  auto job = followed_job("--to", arguments.value("to"));
  if (!job) return fail(job.error());
  job->run = arguments.operands().front();
  job->target.patience = patience;
  std::error_code error;
  if (std::filesystem::exists(job->run, error) && !std::filesystem::is_directory(job->run, error))
    return fail(job->run + ": is no directory: --follow takes a run that is being written");
  return Follower(*job).run();
}

}  // namespace lockstep::cli::push
