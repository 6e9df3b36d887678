// SPDX-License-Identifier: Apache-2.0
// Evidence without operations (logs, RAS snapshots, stacks) states things instead of recording them. It is
// judged by rules of its own and gives findings of the same shape, so that the join need not know where they
// come from.
#include <algorithm>
#include <ctime>
#include <span>
#include <tuple>

#include "analysis/log_rules/log_rules.h"
#include "analysis/ras_rules/ras_rules.h"
#include "analysis/stack_rules/stack_rules.h"
#include "base/input_file.h"
#include "base/text/units.h"
#include "links/judge/judge.h"
#include "links/judge/samples.h"
#include "links/printed/printed.h"
#include "links/samples/sample_log.h"
#include "readers/nccl_log/nccl_log.h"
#include "readers/ras/ras.h"
#include "readers/ras/read_ras.h"
#include "readers/stacks/read_stacks.h"
#include "readers/stacks/stacks.h"
#include "verdict/diagnosed_run.h"
#include "verdict/log_input.h"

namespace lockstep::verdict {
namespace {

// A text of another kind need not be a log as well. True: none of the files is one.
bool forget_other_kinds(const readers::FormatFiles& files, readers::nccl_log::LogModel& model) {
  size_t forgotten = 0;
  for (size_t i = 0; i < std::min(files.files.size(), model.states.size()); ++i) {
    // A file that another reader took may have been offered here as well, because it is text: that it holds
    // no line of a log is no trouble then.
    if (model.states[i].is_understood || !files.beside.contains(files.files[i])) continue;
    model.states[i].is_understood = true;
    ++forgotten;
  }
  return forgotten > 0 && forgotten == files.files.size();
}

Result<std::optional<Statement>> judge_logs(const readers::Inputs& inputs,
                                            const readers::FormatFiles& files) {
  LOCKSTEP_ASSIGN(auto read, read_logs(inputs, files));
  if (forget_other_kinds(files, read)) return std::optional<Statement>();
  Statement statement;
  statement.evidence.logs = std::make_shared<const readers::nccl_log::LogModel>(std::move(read));
  const auto& model = *statement.evidence.logs;
  for (const auto& process : model.processes) {
    if (process.rank >= 0) statement.evidence.hosts.emplace(process.rank, process.host);
  }
  // What a rank's own watchdog printed; launchers speak of ranks that left nothing.
  for (const auto& line : model.torch) {
    using readers::nccl_log::TorchRemark;
    const bool is_own = line.remark == TorchRemark::kTimeout || line.remark == TorchRemark::kProgress ||
                        line.remark == TorchRemark::kSignal;
    if (is_own && line.rank >= 0) statement.evidence.hosts.emplace(line.rank, "");
  }
  statement.evidence.content =
      plural(model.files.size(), "file") + ", " + plural(model.coverage.headed, "line") + " of NCCL";
  statement.findings = analysis::log_rules::judge(model);
  return std::optional(std::move(statement));
}

// Snapshots say the local time of a host, and not its zone.
join::TimeSpan ras_span(const readers::ras::RasModel& model) {
  constexpr int64_t kZoneNs = 14 * 3'600'000'000'000;  // the farthest from UTC
  join::TimeSpan span;
  for (const auto& snapshot : model.snapshots) {
    std::tm parts{};
    if (strptime(snapshot.time.c_str(), "%Y-%m-%d %H:%M:%S", &parts) == nullptr) continue;
    constexpr int kYears[] = {2000 - 1900, 2200 - 1900};  // others are no time of a job, and may not fit
    if (parts.tm_year < kYears[0] || parts.tm_year > kYears[1]) continue;
    const int64_t at_ns = int64_t{timegm(&parts)} * 1'000'000'000;
    span.first_ns = span.first_ns == 0 ? at_ns : std::min(span.first_ns, at_ns);
    span.last_ns = std::max(span.last_ns, at_ns);
    span.zone_ns = kZoneNs;
  }
  return span;
}

Result<std::optional<Statement>> judge_ras(const readers::Inputs& inputs, const readers::FormatFiles& files) {
  LOCKSTEP_ASSIGN(auto model, readers::ras::read_ras(files.files));
  for (auto& snapshot : model.snapshots) snapshot.file = inputs.unpacker->shown(std::move(snapshot.file));
  Statement statement;
  statement.evidence.hosts = analysis::ras_rules::hosts(model);
  statement.evidence.span = ras_span(model);
  statement.evidence.content = plural(model.snapshots.size(), "snapshot") + ", " +
                               plural(model.snapshots.back().comms.size(), "communicator");
  // The client's words for people list only what is wrong.
  statement.evidence.is_empty =
      std::all_of(model.snapshots.begin(), model.snapshots.end(),
                  [](const auto& snapshot) { return !snapshot.is_text && snapshot.comms.empty(); });
  statement.findings = analysis::ras_rules::judge(model);
  return std::optional(std::move(statement));
}

Result<std::optional<Statement>> judge_stacks(const readers::Inputs& inputs,
                                              const readers::FormatFiles& files) {
  LOCKSTEP_ASSIGN(auto model, readers::stacks::read_stacks(files.files));
  for (auto& stack : model.stacks) stack.file = inputs.unpacker->shown(std::move(stack.file));
  Statement statement;
  statement.evidence.hosts = analysis::stack_rules::hosts(model);
  statement.evidence.content =
      plural(files.files.size(), "file") + ", " + plural(model.stacks.size(), "stack");
  statement.findings = analysis::stack_rules::judge(model);
  return std::optional(std::move(statement));
}

// A format that holds no operations is a line here, but for those of links.
struct Judge {
  const readers::Format* format;
  Result<std::optional<Statement>> (*judge)(const readers::Inputs& inputs, const readers::FormatFiles& files);
};
constexpr Judge kJudges[] = {
    {&readers::nccl_log::kFormat, judge_logs},
    {&readers::ras::kFormat, judge_ras},
    {&readers::stacks::kFormat, judge_stacks},
};

}  // namespace

std::vector<links::HostSamples> read_link_samples(const readers::FormatFiles& files, LinkSeriesPicker& picker,
                                                  std::vector<Error>& troubles) {
  struct File {
    std::string host, path;
    int64_t start_ns;
  };
  std::vector<File> ordered;
  for (const std::string& path : files.files) {
    auto head = links::read_sample_log_head(path);
    if (head)
      ordered.push_back({std::move(head->host), path, head->start_ns});
    else
      troubles.push_back(head.error());
  }
  // A host's logs are judged in the order in which they were written.
  std::sort(ordered.begin(), ordered.end(), [](const File& a, const File& b) {
    return std::tie(a.host, a.start_ns, a.path) < std::tie(b.host, b.start_ns, b.path);
  });
  links::SamplesJudge judge;
  // One log in memory at a time: those of hundreds of hosts are gigabytes.
  for (size_t i = 0; i < ordered.size();) {
    const std::string& host = ordered[i].host;
    bool is_judged = false;
    for (; i < ordered.size() && ordered[i].host == host; ++i) {
      const auto log = links::read_sample_log(ordered[i].path);
      if (!log) {
        troubles.push_back(log.error());
      } else if (judge.add(*log)) {
        picker.add(*log);
        is_judged = true;
      }
    }
    if (is_judged) picker.end_host(judge.hosts().back());
  }
  return judge.take();
}

std::vector<LinkCheck> read_link_checks(const readers::Inputs& inputs, const readers::FormatFiles& files,
                                        std::vector<Error>& troubles) {
  // A check is the output of one tool on one host, and is read whole.
  constexpr size_t kMostBytes = size_t{64} << 20;
  constexpr size_t kMostCompared = 64;  // each with all
  std::vector<LinkCheck> checks;
  std::vector<links::LinksRecord> records;  // of the checks
  for (const std::string& path : files.files) {
    const auto file = InputFile::open(path);
    if (!file || file->size() > kMostBytes) {
      troubles.push_back(file ? Error{ErrorCode::kInvalidInput, "is too large for checks of links", path}
                              : file.error());
      continue;
    }
    std::string text(file->size(), '\0');
    text.resize(file->read_at(0, std::as_writable_bytes(std::span(text))));
    auto record = links::parse_any(text, path);
    if (!record) {
      troubles.push_back(record.error());
      continue;
    }
    const std::string shown = inputs.unpacker->shown(path);
    checks.push_back({std::string(links::tool_of(text)), shown.substr(shown.rfind('/') + 1), {}, {}});
    records.push_back(std::move(*record));
  }
  for (size_t i = 0; i < records.size(); ++i) {
    // Counts of errors say nothing of when; what rose since an earlier record of the same links does.
    const links::LinksRecord* first = nullptr;  // the earliest of the same links
    for (const links::LinksRecord& other : std::span(records).first(std::min(records.size(), kMostCompared)))
      if (links::is_earlier(other, records[i]) && (first == nullptr || links::is_earlier(other, *first)))
        first = &other;
    checks[i].facts = links::facts_of(records[i], first);
    checks[i].findings = links::judge(records[i], first);
  }
  return checks;
}

Result<std::optional<Statement>> judge_statements(const readers::Inputs& inputs,
                                                  const readers::FormatFiles& files) {
  for (const Judge& judge : kJudges) {
    if (judge.format != files.format) continue;
    LOCKSTEP_ASSIGN(auto statement, judge.judge(inputs, files));
    if (statement) statement->evidence.source = files.format->summary;
    return statement;
  }
  return std::optional<Statement>();
}

}  // namespace lockstep::verdict
