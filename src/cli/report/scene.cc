// SPDX-License-Identifier: Apache-2.0
#include "cli/report/scene.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <ctime>

#include "base/utf8.h"

namespace lockstep::cli::report {

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
    if (found) return std::nullopt;
    found = comm;
  }
  return found;
}

}  // namespace

Scene::Scene(const diagnose::DiagnosedRun& run) : run_(run) {
  for (const diagnose::Evidence& evidence : run.evidence) {
    if (!evidence.job || evidence.job->processes.empty()) continue;
    main_ = &evidence;
    break;
  }
  processes_.resize(run.diagnosis.findings.size());
  comms_.resize(run.diagnosis.findings.size());
  if (main_ == nullptr) return;
  find_span();
  find_named();
}

void Scene::find_span() {
  int64_t last_ns = INT64_MIN;
  for (uint32_t i = 0; i < job().processes.size(); ++i) {
    const model::Process& row = job().processes[i].row;
    if (row.first_ns <= 0) continue;
    const int64_t first = common_ns(i, row.first_ns);
    begin_ns_ = begin_ns_ ? std::min(*begin_ns_, first) : first;
    last_ns = std::max(last_ns, common_ns(i, std::max(row.first_ns, row.last_ns)));
  }
  if (begin_ns_) length_ns_ = std::clamp<int64_t>(difference(last_ns, *begin_ns_), 0, kExact - 1);
}

void Scene::find_named() {
  named_.resize(job().processes.size());
  for (uint32_t i = 0; i < job().processes.size(); ++i) {
    if (job().processes[i].row.rank >= 0) by_rank_.emplace_back(job().processes[i].row.rank, i);
  }
  std::sort(by_rank_.begin(), by_rank_.end());
  for (size_t i = 0; i < processes_.size(); ++i) {
    const Finding& finding = run_.diagnosis.findings[i];
    for (int32_t rank : finding.ranks) {
      for (auto at = std::lower_bound(by_rank_.begin(), by_rank_.end(), std::pair(rank, uint32_t{0}));
           at != by_rank_.end() && at->first == rank; ++at)
        processes_[i].push_back(at->second);
    }
    std::sort(processes_[i].begin(), processes_[i].end());
    for (uint32_t process : processes_[i]) named_[process] = true;
    comms_[i] = comm_named(job(), finding);
  }
}

int64_t Scene::common_ns(uint32_t process, int64_t ns) const {
  const auto common = job().common_ns(process, ns);
  return common ? common->ns : ns;
}

Json Scene::since_begin(int64_t common_ns) const {
  if (!begin_ns_) return nullptr;
  const int64_t since = difference(common_ns, *begin_ns_);
  return since <= -kExact || since >= kExact ? Json(nullptr) : Json(since);
}

Json Scene::since_begin(uint32_t process, int64_t ns) const {
  return ns == 0 ? Json(nullptr) : since_begin(common_ns(process, ns));
}

std::optional<OperationKey> Scene::operation_of(size_t finding) const {
  const std::optional<uint64_t>& index = run_.diagnosis.findings[finding].op_index;
  const std::string& func = run_.diagnosis.findings[finding].func;
  if (!comms_[finding] || !index || *index >= model::kNoIndex || func == "Send" || func == "Recv")
    return std::nullopt;
  return OperationKey(*comms_[finding], static_cast<uint32_t>(*index));
}

uint32_t Scene::process_of_rank(int32_t rank) const {
  const auto at = std::lower_bound(by_rank_.begin(), by_rank_.end(), std::pair(rank, uint32_t{0}));
  return at == by_rank_.end() || at->first != rank ? model::kNoRow : at->second;
}

int64_t difference(int64_t a, int64_t b) {
  int64_t out = 0;
  if (!__builtin_sub_overflow(a, b, &out)) return out;
  return a < b ? INT64_MIN : INT64_MAX;
}

Json whole_ns(double ns) {
  if (!std::isfinite(ns) || std::abs(ns) >= static_cast<double>(kExact)) return nullptr;
  return static_cast<int64_t>(std::llround(ns));
}

std::string shown(std::string_view text) {
  const bool cut = text.size() > kTextMost;
  size_t length = std::min(text.size(), kTextMost);
  constexpr std::string_view kMark = "\xe2\x80\xa6";
  if (cut) {
    length -= kMark.size();
    while (length > 0 && (static_cast<unsigned char>(text[length]) & 0xc0) == 0x80) --length;
  }
  std::string out = valid_utf8(text.substr(0, length));
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

}  // namespace lockstep::cli::report
