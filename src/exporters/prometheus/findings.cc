// SPDX-License-Identifier: Apache-2.0
// Runs `lockstep diagnose` as a process of its own, at low priority and for at most a twentieth of the time.
// A diagnosis reads the whole run, so its memory and any crash must stay outside the exporter that a fleet
// depends on.
#include "exporters/prometheus/findings.h"

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <nlohmann/json.hpp>
#include <set>

#include "base/exit_codes.h"
#include "base/unix_time.h"
#include "exporters/prometheus/label_slots.h"

extern char** environ;

namespace lockstep::exporters::metrics {
namespace {

using nlohmann::json;

// The answer is parsed in the exporter's memory, which a fleet relies on: a larger one is a failure.
constexpr off_t kMostAnswer = off_t{64} << 20;
// Of columns; what is more lies in files.
constexpr const char* kMemory = "256M";
// A diagnosis is followed by a pause of at least this many times its own length.
constexpr int kShareOfTime = 20;
constexpr int kUnknownStatus = SIGKILL;  // as waitpid() has it: no exit, so no answer

std::string text_at(const json& object, const char* key) {
  auto at = object.find(key);
  return at != object.end() && at->is_string() ? label_text(at->get_ref<const std::string&>())
                                               : std::string();
}

std::string rank_of(const json& finding) {
  auto ranks = finding.find("ranks");
  if (ranks == finding.end() || !ranks->is_array() || ranks->empty()) return {};
  // A list of ranks would be a new series with every set of ranks that a finding names.
  if (ranks->size() > 1) return "several";
  return (*ranks)[0].is_number_integer() ? std::to_string((*ranks)[0].get<int64_t>()) : std::string();
}

pid_t wait_for(pid_t child, int& status, int flags) {
  for (;;) {
    const pid_t ended = waitpid(child, &status, flags);
    if (ended >= 0 || errno != EINTR) return ended;
  }
}

std::string contents(int file) {
  struct stat status {};
  if (fstat(file, &status) != 0 || status.st_size <= 0 || status.st_size > kMostAnswer) return {};
  std::string text(static_cast<size_t>(status.st_size), '\0');
  ssize_t got = pread(file, text.data(), text.size(), 0);
  text.resize(got > 0 ? static_cast<size_t>(got) : 0);
  return text;
}

// Each bound by itself: between two the nearer one is continued, and widens with the time since.
live::Clocks clocks_of(const json& rows) {
  std::map<std::string, std::vector<model::HostClock::Knot>> knots;
  std::set<std::string> same;
  json reference_of;
  for (const json& row : rows) {
    if (!row.is_object()) continue;
    // Process files have it without the dashes.
    std::string boot = row.value("boot_id", json()).is_string() ? row["boot_id"].get<std::string>() : "";
    boot.erase(std::remove(boot.begin(), boot.end(), '-'), boot.end());
    const json at = row.value("at_ns", json()), offset = row.value("offset_ns", json()),
               half_width = row.value("half_width_ns", json());
    if (boot.empty() || !at.is_number_integer() || !offset.is_number_integer() ||
        !half_width.is_number_integer())
      continue;
    if (knots.size() >= Findings::kMostClocks && !knots.contains(boot)) continue;
    const auto middle = offset.get<int64_t>(), half = half_width.get<int64_t>(), at_ns = at.get<int64_t>();
    // Bounds keep the sums below from overflowing, whatever the document holds.
    if (middle < -live::kMostNs || middle > live::kMostNs || half < 0 || half > live::kMostNs ||
        at_ns < -live::kMostNs || at_ns > live::kMostNs)
      continue;
    // Others are against another host's clock.
    const json source = row.value("source", json());
    if (reference_of == nullptr) reference_of = source;
    if (source != reference_of) continue;
    if (row.value("same_boot", json()) == true) same.insert(boot);
    knots[boot].push_back({at_ns, middle - half, middle + half, true});
  }
  live::Clocks clocks;
  for (auto& [boot, of] : knots) {
    std::stable_sort(of.begin(), of.end(), [](const auto& a, const auto& b) { return a.at_ns < b.at_ns; });
    clocks[boot] = same.contains(boot) ? model::HostClock::same() : model::HostClock(std::move(of));
  }
  return clocks;
}

}  // namespace

Result<void> read_findings(std::string_view document, Findings& findings) {
  const Error wrong{ErrorCode::kInvalidInput, "not what `lockstep diagnose --json` prints", {}};
  json parsed = json::parse(document, nullptr, false);
  if (!parsed.is_object() || !parsed.contains("findings") || !parsed["findings"].is_array()) return wrong;
  std::vector<Findings::One> list;
  std::map<std::string, size_t> by_severity = {{"note", 0}, {"warning", 0}, {"critical", 0}};
  for (const json& finding : parsed["findings"]) {
    if (!finding.is_object()) return wrong;
    Findings::One one{text_at(finding, "class"), text_at(finding, "id"), text_at(finding, "severity"),
                      rank_of(finding), text_at(finding, "comm")};
    // An unknown severity would be a new series, and says that the document is another version's.
    auto severity = by_severity.find(one.severity);
    if (severity == by_severity.end()) return wrong;
    ++severity->second;
    if (one.severity == "note" || list.size() >= Findings::kMost) continue;
    if (std::find(list.begin(), list.end(), one) == list.end()) list.push_back(std::move(one));
  }
  // Only now, so that a document that is wrong in the middle leaves the last answer as it was.
  findings.list = std::move(list);
  findings.by_severity = std::move(by_severity);
  const auto clocks = parsed.find("clock");
  findings.clocks = clocks != parsed.end() && clocks->is_array() ? clocks_of(*clocks) : live::Clocks();
  return {};
}

Diagnoses::Diagnoses(std::vector<std::string> paths, std::chrono::milliseconds pause)
    : paths_(std::move(paths)), pause_(pause), next_(Clock::now()) {
  findings_.asked = pause.count() > 0;
}

Diagnoses::~Diagnoses() {
  if (child_ > 0) {
    kill(child_, SIGKILL);
    int status = 0;
    wait_for(child_, status, 0);
  }
  if (answer_ >= 0) close(answer_);
}

void Diagnoses::begin() {
  begun_ = Clock::now();
  // A file in memory and not a pipe: nobody has to drain it, so the exporter never waits for the child, nor
  // the child for the exporter.
  answer_ = memfd_create("lockstep-diagnosis", MFD_CLOEXEC);
  if (answer_ < 0) return fail();
  std::vector<std::string> words = {"lockstep", "diagnose", "--json", "--memory", kMemory, "--"};
  words.insert(words.end(), paths_.begin(), paths_.end());
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  posix_spawn_file_actions_t files;
  posix_spawn_file_actions_init(&files);
  posix_spawn_file_actions_addopen(&files, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_adddup2(&files, answer_, STDOUT_FILENO);
  posix_spawn_file_actions_addopen(&files, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
  // The same program, also where its file has been replaced or its path is gone.
  int failed = posix_spawn(&child_, "/proc/self/exe", &files, nullptr, argv.data(), environ);
  posix_spawn_file_actions_destroy(&files);
  if (failed != 0) {
    child_ = -1;
    return fail();
  }
  // A failure is left alone: it costs the child's low priority and nothing else.
  setpriority(PRIO_PROCESS, static_cast<id_t>(child_), 10);
}

void Diagnoses::fail() {
  ++findings_.failures;
  if (answer_ >= 0) close(answer_);
  answer_ = -1;
  next_ = Clock::now() + std::max<Clock::duration>(pause_, kShareOfTime * (Clock::now() - begun_));
}

// It is asked now and then whether it has ended: the time of its answer says more exactly.
Diagnoses::Clock::duration Diagnoses::time_taken() const {
  struct stat status {};
  timespec now{};
  if (fstat(answer_, &status) != 0 || clock_gettime(CLOCK_REALTIME, &now) != 0) return Clock::now() - begun_;
  const auto since = std::chrono::seconds(now.tv_sec - status.st_mtim.tv_sec) +
                     std::chrono::nanoseconds(now.tv_nsec - status.st_mtim.tv_nsec);
  return std::max<Clock::duration>(Clock::now() - begun_ - since, Clock::duration::zero());
}

void Diagnoses::take_answer(int status) {
  child_ = -1;
  const Clock::duration took = time_taken();
  // Other exit codes say what was found: they come with an answer.
  const int code = WIFEXITED(status) ? WEXITSTATUS(status) : kExitUsage;
  if (code == kExitUsage || !read_findings(contents(answer_), findings_)) return fail();
  close(answer_);
  answer_ = -1;
  findings_.took_s = std::chrono::duration<double>(took).count();
  findings_.ended_s = static_cast<double>(unix_now_ns()) / 1e9;
  next_ = Clock::now() + std::max<Clock::duration>(pause_, kShareOfTime * took);
}

void Diagnoses::go_on() {
  if (!findings_.asked) return;
  if (child_ < 0) {
    if (Clock::now() >= next_) begin();
    return;
  }
  int status = kUnknownStatus;
  // An error says that it has ended, and not how.
  if (wait_for(child_, status, WNOHANG) != 0) return take_answer(status);
  // One that takes so long will not end in time to be of use.
  if (Clock::now() - begun_ > std::max<Clock::duration>(10 * pause_, std::chrono::minutes(10)))
    kill(child_, SIGKILL);
}

void Diagnoses::wait_for_one() {
  if (!findings_.asked) return;
  if (child_ < 0) begin();
  if (child_ < 0) return;
  int status = kUnknownStatus;
  wait_for(child_, status, 0);
  take_answer(status);
}

}  // namespace lockstep::exporters::metrics
