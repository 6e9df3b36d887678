// SPDX-License-Identifier: Apache-2.0
// Asks the rules of rules.def about each communicator of the newest snapshot. RAS counts what each rank has
// launched, and knows nothing of times: one snapshot shows who lacks behind, two show whether anybody moves.
// Ranks that lack in many communicators are one finding, about the largest.
#include "analysis/ras_rules/ras_rules.h"

#include <algorithm>
#include <set>

#include "analysis/ras_rules/rules.h"
#include "base/text/wording.h"

namespace lockstep::analysis::ras_rules {
namespace {

constexpr size_t kMostFindings = 64;  // of one rule
constexpr size_t kMostPlaces = 4;

struct Row {
  std::optional<Case> (*rule)(const View& view, const Comm& comm);
  FindingId id;
  std::string_view advice;
};

constexpr Row kRows[] = {
#define RULE(function, id, advice) {&(function), FindingId::k##id, advice},
#include "analysis/ras_rules/rules.def"
#undef RULE
};

std::string time_of(const Snapshot& snapshot) {
  return snapshot.time.empty() ? "an unknown time" : snapshot.time;
}

// An unknown rank of the job is no rank: that of the communicator would name somebody else.
model::Who who_of(const RankPlace& place, int32_t global) {
  model::Who who{.rank = global};
  who.device = place.nvml_device;
  who.pid = std::max<int64_t>(place.pid, 0);
  who.host = place.host;
  return who;
}

Finding finding_of(const Row& row, const View& view, const Comm& comm, Case&& found) {
  Finding finding(row.id);
  finding.severity = found.severity;
  finding.statement = found.blamed.empty() ? found.what : view.who(comm, found.blamed) + " " + found.what;
  finding.comm = comm.hash;
  finding.func = std::move(found.func);
  finding.op_index = found.op_index;
  finding.evidence = std::move(found.evidence);
  finding.advice = row.advice;
  finding.needed_evidence = std::move(found.needed_evidence);
  std::set<int32_t> ranks;
  std::set<std::string> hosts;
  for (const RankPlace* rank : found.blamed) {
    ranks.insert(view.global_rank(*rank));
    if (!rank->host.empty()) hosts.insert(rank->host);
  }
  // Of ranks of which some are not known nobody is named.
  const bool all_known = !ranks.contains(-1);
  if (all_known) finding.ranks.assign(ranks.begin(), ranks.end());
  for (const RankPlace* rank : found.blamed)
    finding.who.push_back(who_of(*rank, all_known ? view.global_rank(*rank) : -1));
  finding.hosts.assign(hosts.begin(), hosts.end());
  // Several of the job's ranks are listed as who they are.
  const bool is_listed = all_known && found.blamed.size() > 1;
  for (size_t i = 0; !is_listed && i < std::min(kMostPlaces, found.blamed.size()); ++i)
    finding.evidence.push_back(view.place(*found.blamed[i]));
  const Snapshot& now = view.now();
  finding.evidence.push_back("snapshot of " + time_of(now) + ", NCCL " + now.nccl_version + ", " + now.file);
  return finding;
}

// A job, and its communicators by size.
struct Asked {
  explicit Asked(const Job& job) : view(job) {
    for (const Comm& comm : view.now().comms) comms.push_back(&comm);
    std::stable_sort(comms.begin(), comms.end(),
                     [](const Comm* a, const Comm* b) { return a->size > b->size; });
  }
  View view;
  std::vector<const Comm*> comms;
};

// The same ranks in several communicators are one finding, about the largest of these. `first`: of this
// rule.
void ask(const Row& row, const Asked& job, size_t first, std::vector<Finding>& findings) {
  std::map<std::pair<Severity, std::vector<int32_t>>, size_t> reported;
  std::map<size_t, uint64_t> more;
  const View& view = job.view;
  for (const Comm* comm : job.comms) {
    std::optional<Case> found = row.rule(view, *comm);
    if (!found) continue;
    Finding finding = finding_of(row, view, *comm, std::move(*found));
    // Findings that name nobody are not alike because of that.
    if (!finding.ranks.empty()) {
      const auto [at, is_new] = reported.try_emplace({finding.severity, finding.ranks}, findings.size());
      if (!is_new) {
        ++more[at->second];
        continue;
      }
    }
    // A damaged snapshot may have thousands of communicators with something wrong.
    if (findings.size() - first == kMostFindings) break;
    findings.push_back(std::move(finding));
  }
  for (const auto& [at, count] : more)
    findings[at].evidence.push_back("the same in " + wording::count(count, "more communicator"));
}

Finding missing(FindingId id, std::string statement, std::string_view advice) {
  Finding finding(id);
  finding.statement = std::move(statement);
  finding.advice = advice;
  return finding;
}

// `now`: the snapshot that was judged.
void report_missing(const readers::ras::RasModel& model, const Snapshot& now,
                    std::vector<Finding>& findings) {
  // RAS's own timeouts matter for the snapshot that was judged; losses count in all, since each could decide.
  uint64_t cut = 0, bad = 0, timeouts = now.timeouts;
  for (const Snapshot& snapshot : model.snapshots) {
    cut += snapshot.cut ? 1 : 0;
    bad += snapshot.bad_ranks + snapshot.left_out;
  }
  if (timeouts > 0) {
    findings.push_back(missing(FindingId::kEvidenceMissingRasTimeouts,
                               "RAS itself timed out " + wording::count(timeouts, "time") +
                                   " while asking: healthy ranks may be missing",
                               "Ask again; with a longer limit: ncclras -t SECONDS."));
  }
  if (cut + bad == 0 && model.unreadable_files.empty()) return;
  Finding finding = missing(FindingId::kEvidenceMissingRasDamaged,
                            "not all snapshots could be read: " + wording::count(cut, "snapshot") +
                                " cut short, " + wording::count(bad, "rank") + " left out, " +
                                wording::count(model.unreadable_files.size(), "file") + " without one",
                            "Take the snapshots again.");
  const bool any_whole =
      std::any_of(model.snapshots.begin(), model.snapshots.end(),
                  [](const auto& snapshot) { return !snapshot.cut && !snapshot.comms.empty(); });
  if (!any_whole) finding.severity = Severity::kWarning;
  finding.evidence = model.unreadable_files;
  findings.push_back(std::move(finding));
}

}  // namespace

std::vector<Finding> judge(const readers::ras::RasModel& model) {
  std::vector<Finding> findings;
  if (model.snapshots.empty()) return findings;
  const std::vector<Job> jobs = jobs_of(model);
  const std::vector<Asked> asked(jobs.begin(), jobs.end());
  for (const Row& row : kRows) {
    const size_t first = findings.size();
    for (const Asked& job : asked) {
      const size_t before = findings.size();
      ask(row, job, first, findings);
      if (&job == &asked.front()) continue;
      // What is wrong now comes first.
      for (size_t i = before; i < findings.size(); ++i) {
        // An earlier job's trouble explains nothing of the one that runs now.
        findings[i].severity = std::min(findings[i].severity, Severity::kNote);
        findings[i].evidence.push_back("the newest snapshot, of " + time_of(asked.front().view.now()) +
                                       ", is of another job");
      }
    }
  }
  report_missing(model, asked.front().view.now(), findings);
  std::stable_sort(findings.begin(), findings.end(),
                   [](const Finding& a, const Finding& b) { return a.severity > b.severity; });
  return findings;
}

std::map<int32_t, std::string> hosts(const readers::ras::RasModel& model) {
  std::map<int32_t, std::string> hosts;
  if (model.snapshots.empty()) return hosts;
  const std::vector<Job> jobs = jobs_of(model);
  const View view(jobs.front());
  for (const Comm& comm : view.now().comms) {
    for (const Rank& rank : comm.ranks) {
      if (const int32_t global = view.global_rank(rank); global >= 0) hosts.emplace(global, rank.host);
    }
  }
  return hosts;
}

}  // namespace lockstep::analysis::ras_rules
