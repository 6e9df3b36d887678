// SPDX-License-Identifier: Apache-2.0
// The run directory as its launchers see it.
//
//   RUN/manifest.json                        what was asked for; state running, then complete
//   RUN/launchers/<host>.<pid>.<start>.json  one per launcher; state running, then left; touched while it
//                                            runs
//   RUN/merge.lock                           held by the launcher that merges
//   RUN/census.<host>.<pid>.json             processes that a launcher saw
//   RUN/links.<host>.<pid>.log               counters of the host's links, by the launcher that samples them
//   RUN/links.<host>.lock                    held by that launcher
//   RUN/<host>.<pid>.<start>.<source>.lks    written by the capture libraries, one each per process
//   RUN/nccl.<host>.<pid>.log                written by NCCL, unless the user has its log elsewhere
//   RUN/flight_recorder_<rank>               written by PyTorch when an operation has timed out
//
// A directory is never reused: launchers that one job starter began together share one, every other run gets
// a new one, numbered if need be. Nothing that is not listed above is ever removed. Creating the manifest
// decides who owns the directory, creating the lock decides who merges, so both work over NFS. A launcher
// that died is recognised by its process on the same host and by a silent minute on others.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "run/manifest.h"

namespace lockstep::run {

// Where a launcher writes the counters of its host's links, and the file whose lock it holds meanwhile.
std::string link_log_path(const std::string& run, const ProcessIdentity& launcher);
std::string link_lock_path(const std::string& run, const ProcessIdentity& launcher);
// The file whose lock those hold who want them sampled faster.
std::string link_watch_path(const std::string& run, const ProcessIdentity& launcher);
// The file whose lock the one holds that writes to a store what this host's processes do.
std::string follow_lock_path(const std::string& run, const ProcessIdentity& launcher);
// Those of all launchers, by name; none for a path that is no directory.
std::vector<std::string> link_logs(const std::string& run);
// By its name alone.
bool is_link_log(const std::string& path);
// Whether a launcher of this host has not left yet: it may start ranks again.
bool has_own_launcher(const std::string& run);

class RunDirectory {
 public:
  // Creates `path` or a numbered sibling, or joins the one that a launcher of the same start has made.
  static Result<RunDirectory> create_or_join(const std::string& path, const Manifest& manifest);

  const std::string& path() const { return path_; }
  bool joined() const { return joined_; }
  // Says that this launcher still runs; about every ten seconds.
  void touch() const;

  enum class Leaving {
    kLast,           // every launcher has left and the lock is ours: merge
    kOthersRunning,  // another launcher will merge
  };
  // Says that this launcher's command has ended. Waits a little for launchers that have not begun yet.
  Leaving leave();
  // Gives up the lock that kLast gave, without saying that the run is complete.
  void unlock() const;
  // After a verified merge: the directory is not joined any more.
  Result<void> mark_complete();
  // Removes the files of the launchers, those named, and then the directory if nothing is left in it.
  void remove(const std::vector<std::string>& files) const;

 private:
  struct Others {
    size_t running = 0;
    size_t registered = 1;  // all, and this one whether or not its file can be read
  };
  RunDirectory() = default;
  static std::optional<RunDirectory> try_create(const std::string& path, const Manifest& manifest,
                                                Error& error);
  static std::optional<RunDirectory> try_join(const std::string& path, const Manifest& manifest);
  Result<void> register_launcher(const std::string& state) const;
  std::string registration_path() const;
  Others others() const;
  bool lock() const;

  std::string path_;
  Manifest manifest_;
  ProcessIdentity self_;
  bool joined_ = false;
};

}  // namespace lockstep::run
