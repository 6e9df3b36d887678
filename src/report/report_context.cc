// SPDX-License-Identifier: Apache-2.0
// Decides what all pages share: which evidence they draw, where time begins, and which processes and
// operations the findings name. A host whose clock is not aligned is placed as if it had begun with the run,
// and is marked so.
#include "report/report_context.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <ctime>
#include <map>

#include "base/utf8.h"

namespace lockstep::report {

using analysis::Finding;
using model::Job;

namespace {

constexpr int64_t kExact = int64_t{1} << 53;  // beyond it, doubles skip whole numbers

// The communicator that a finding names: its row may be that of another kind of evidence.
std::optional<uint32_t> comm_named(const Job& job, const Finding& finding) {
  if (finding.comm.empty()) return std::nullopt;
  if (finding.comm_row && *finding.comm_row < job.comms.size() &&
      job.comm_name(*finding.comm_row) == finding.comm)
    return finding.comm_row;
  std::optional<uint32_t> found;
  for (uint32_t comm = 0; comm < job.comms.size(); ++comm) {
    if (job.comm_name(comm) != finding.comm) continue;
    // Two communicators may share a name. Neither is shown rather than the wrong one.
    if (found) return std::nullopt;
    found = comm;
  }
  return found;
}

}  // namespace

ReportContext::ReportContext(const verdict::DiagnosedRun& run) : run_(run) {
  for (const verdict::Evidence& evidence : run.evidence) {
    if (!evidence.job || evidence.job->processes.empty()) continue;
    // Evidence is in the order of trust, so the first with operations is the one to draw.
    main_ = &evidence;
    break;
  }
  processes_.resize(run.diagnosis.findings.size());
  comms_.resize(run.diagnosis.findings.size());
  if (main_ == nullptr) return;
  find_span();
  find_named();
}

void ReportContext::find_span() {
  struct Span {
    int64_t first = INT64_MAX, last = INT64_MIN;
  };
  std::map<uint32_t, Span> spans;  // by clock
  const auto common_ns = [&](uint32_t process, int64_t ns) {
    const auto common = job().common_ns(process, ns);
    return common ? common->ns : ns;
  };
  for (uint32_t i = 0; i < job().processes.size(); ++i) {
    const model::Process& row = job().processes[i].row;
    // A process without a record has no time, and would move the begin of the run to 1970.
    if (row.first_ns <= 0) continue;
    Span& span = spans[clock_of(i)];
    span.first = std::min(span.first, common_ns(i, row.first_ns));
    span.last = std::max(span.last, common_ns(i, std::max({row.first_ns, row.last_ns, row.heartbeat_ns})));
  }
  shifts_.resize(job().processes.size());
  if (spans.empty()) return;
  has_one_clock_ = spans.size() == 1;
  // Clock 0, the reference, comes first in the map where any process has it.
  begin_ns_ = spans.begin()->second.first;
  for (const auto& [clock, span] : spans)
    // The page is JavaScript, whose numbers are doubles: a larger length would not be exact there.
    length_ns_ = std::max(length_ns_, std::min<int64_t>(difference(span.last, span.first), kExact - 1));
  for (uint32_t i = 0; i < shifts_.size(); ++i) {
    const auto span = spans.find(clock_of(i));
    if (span != spans.end() && span->first != 0) shifts_[i] = difference(*begin_ns_, span->second.first);
  }
}

bool ReportContext::is_of_this_run(const Finding& finding) const {
  if (main_ == nullptr) return false;
  return finding.sources.empty() ||
         std::none_of(run_.evidence.begin(), run_.evidence.end(), [&](const verdict::Evidence& evidence) {
           return evidence.source == finding.sources.front() &&
                  !verdict::join::same_time(evidence.span, main_->span);
         });
}

void ReportContext::find_named() {
  named_.resize(job().processes.size());
  for (uint32_t i = 0; i < job().processes.size(); ++i) {
    if (job().processes[i].row.rank >= 0) by_rank_.emplace_back(job().processes[i].row.rank, i);
  }
  std::sort(by_rank_.begin(), by_rank_.end());
  for (size_t i = 0; i < processes_.size(); ++i) {
    const Finding& finding = run_.diagnosis.findings[i];
    // Rank 3 of another run is none of these.
    if (!is_of_this_run(finding)) continue;
    for (int32_t rank : finding.ranks) {
      // A rank may have several processes, such as those before and after a restart.
      for (auto at = std::lower_bound(by_rank_.begin(), by_rank_.end(), std::pair(rank, uint32_t{0}));
           at != by_rank_.end() && at->first == rank; ++at)
        processes_[i].push_back(at->second);
    }
    std::sort(processes_[i].begin(), processes_[i].end());
    for (uint32_t process : processes_[i]) named_[process] = true;
    comms_[i] = comm_named(job(), finding);
  }
}

uint32_t ReportContext::clock_of(uint32_t process) const {
  const uint32_t host = job().processes[process].host;
  return job().hosts[host].clock.known() ? 0 : host + 1;
}

int64_t ReportContext::placed_ns(uint32_t process, int64_t ns) const {
  const auto common = job().common_ns(process, ns);
  return common ? common->ns : placed_common_ns(process, ns);
}

int64_t ReportContext::placed_common_ns(uint32_t process, int64_t common_ns) const {
  return sum(common_ns, shifts_[process]);
}

Json ReportContext::since_begin(int64_t placed_ns) const {
  if (!begin_ns_) return nullptr;
  const int64_t since = difference(placed_ns, *begin_ns_);
  return since <= -kExact || since >= kExact ? Json(nullptr) : Json(since);
}

Json ReportContext::since_begin(uint32_t process, int64_t ns) const {
  return ns == 0 ? Json(nullptr) : since_begin(placed_ns(process, ns));
}

Json ReportContext::since_begin_of(size_t finding) const {
  const std::optional<int64_t>& since_ns = run_.diagnosis.findings[finding].since_ns;
  if (!since_ns || !is_of_this_run(run_.diagnosis.findings[finding])) return nullptr;
  if (has_one_clock()) return since_begin(*since_ns);
  const std::vector<uint32_t>& named = processes_[finding];
  // A time that several clocks might have given has no place on the page.
  const bool is_known = !named.empty() && std::all_of(named.begin(), named.end(), [&](uint32_t process) {
    return clock_of(process) == clock_of(named.front());
  });
  return is_known ? since_begin(placed_common_ns(named.front(), *since_ns)) : Json(nullptr);
}

std::optional<OperationKey> ReportContext::operation_of(size_t finding) const {
  // Transfers have a place between two ranks, not on the communicator.
  if (run_.diagnosis.findings[finding].op_address.starts_with("p2p:")) return std::nullopt;
  const std::optional<uint64_t>& index = run_.diagnosis.findings[finding].op_index;
  const std::string& func = run_.diagnosis.findings[finding].func;
  if (!comms_[finding] || !index || *index >= model::kNoIndex || func == "Send" || func == "Recv")
    return std::nullopt;
  return OperationKey(*comms_[finding], static_cast<uint32_t>(*index));
}

uint32_t ReportContext::process_of_rank(int32_t rank) const {
  const auto at = std::lower_bound(by_rank_.begin(), by_rank_.end(), std::pair(rank, uint32_t{0}));
  return at == by_rank_.end() || at->first != rank ? model::kNoRow : at->second;
}

int64_t difference(int64_t a, int64_t b) {
  int64_t out = 0;
  if (!__builtin_sub_overflow(a, b, &out)) return out;
  return a < b ? INT64_MIN : INT64_MAX;
}

int64_t sum(int64_t a, int64_t b) {
  int64_t out = 0;
  if (!__builtin_add_overflow(a, b, &out)) return out;
  return a < 0 ? INT64_MIN : INT64_MAX;
}

Json whole_ns(double ns) {
  if (!std::isfinite(ns) || std::abs(ns) >= static_cast<double>(kExact)) return nullptr;
  return static_cast<int64_t>(std::llround(ns));
}

std::string shown(std::string_view text) {
  const bool cut = text.size() > kTextMost;
  constexpr std::string_view kMark = "\xe2\x80\xa6";
  std::string out = valid_utf8(cut ? cut_utf8(text, kTextMost - kMark.size()) : text);
  for (char& c : out) {
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) c = ' ';
  }
  return cut ? out + std::string(kMark) : out;
}

Json shown_or_null(std::string_view text) { return text.empty() ? Json(nullptr) : Json(shown(text)); }

Json missing(std::string why) { return {{"missing", std::move(why)}}; }

std::string iso_time(int64_t unix_ns) {
  constexpr int64_t kSecond = 1'000'000'000;
  int64_t seconds = unix_ns / kSecond, rest = unix_ns % kSecond;
  if (rest < 0) {
    rest += kSecond;
    --seconds;
  }
  const std::time_t time = seconds;
  std::tm parts{};
  gmtime_r(&time, &parts);
  char day[40], text[64];
  std::strftime(day, sizeof day, "%Y-%m-%dT%H:%M:%S", &parts);
  std::snprintf(text, sizeof text, "%s.%09ldZ", day, static_cast<long>(rest));
  return text;
}

}  // namespace lockstep::report
