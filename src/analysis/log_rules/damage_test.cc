// SPDX-License-Identifier: Apache-2.0
// Logs of real jobs, damaged in every place: who is blamed is blamed of the whole logs too.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <set>

#include "analysis/log_rules/log_rules.h"
#include "readers/nccl_log/log_parser.h"
#include "tests/support/places.h"
#include "tests/support/sanitizers.h"

namespace lockstep::analysis::log_rules {
namespace {

namespace fs = std::filesystem;

using Files = std::vector<std::pair<std::string, std::string>>;  // name, bytes

Files files_of(const std::string& folder) {
  Files files;
  for (const auto& entry : fs::directory_iterator(LOCKSTEP_SOURCE_DIR "/tests/data/logs/" + folder)) {
    std::ifstream file(entry.path(), std::ios::binary);
    files.emplace_back(entry.path().filename(), std::string{std::istreambuf_iterator<char>(file), {}});
  }
  std::sort(files.begin(), files.end());
  return files;
}

std::vector<Finding> findings_of(const Files& files) {
  readers::nccl_log::LogParser parser;
  for (const auto& [name, bytes] : files) {
    parser.begin_file(name);
    parser.feed(bytes);
    parser.end_file();
  }
  return judge(parser.take());
}

// What is said against somebody or something: class and ranks.
std::set<std::string> blame(const std::vector<Finding>& findings) {
  std::set<std::string> stated;
  for (const Finding& finding : findings) {
    if (finding.severity == Severity::kNote || class_of(finding.id) == FindingClass::kEvidenceMissing)
      continue;
    const std::string what = "class " + std::to_string(static_cast<int>(class_of(finding.id)));
    stated.insert(what);
    for (const int32_t rank : finding.ranks) stated.insert(what + " rank " + std::to_string(rank));
  }
  return stated;
}

std::vector<size_t> line_begins(const std::string& bytes) {
  std::vector<size_t> begins = {0};
  for (size_t at = bytes.find('\n'); at != std::string::npos; at = bytes.find('\n', at + 1))
    if (at + 1 < bytes.size()) begins.push_back(at + 1);
  return begins;
}

using Damage = std::function<void(const std::string& bytes, const std::function<void(std::string)>& visit)>;

void cut_anywhere(const std::string& bytes, const std::function<void(std::string)>& visit) {
  for (const size_t begin : line_begins(bytes)) visit(bytes.substr(0, begin));
  for (size_t end = 1; end < bytes.size(); end += 41) visit(bytes.substr(0, end));
}
void lose_lines(const std::string& bytes, const std::function<void(std::string)>& visit) {
  const auto begins = line_begins(bytes);
  for (const size_t count : {size_t{1}, size_t{7}}) {
    for (size_t line = 0; line < begins.size(); ++line) {
      const size_t end = line + count < begins.size() ? begins[line + count] : bytes.size();
      visit(bytes.substr(0, begins[line]) + bytes.substr(end));
    }
  }
}
void lose_the_beginning(const std::string& bytes, const std::function<void(std::string)>& visit) {
  for (size_t begin = 0; begin < bytes.size(); begin += 97) visit(bytes.substr(begin));
}
// Of any 32 bytes a disk gives, some are no text.
void overwrite(const std::string& bytes, const std::function<void(std::string)>& visit) {
  for (size_t at = 0; at < bytes.size(); at += 29) {
    std::string damaged = bytes;
    for (size_t i = at; i < std::min(at + 32, bytes.size()); ++i)
      damaged[i] = static_cast<char>((i * 2654435761U) >> 7);
    damaged[std::min(at + 5, bytes.size() - 1)] = '\x01';
    visit(std::move(damaged));
  }
}
void zero(const std::string& bytes, const std::function<void(std::string)>& visit) {
  for (size_t at = 0; at < bytes.size(); at += 53) {
    std::string damaged = bytes;
    for (size_t i = at; i < std::min(at + 300, bytes.size()); ++i) damaged[i] = '\0';
    visit(std::move(damaged));
  }
}
void tear(const std::string& bytes, const std::function<void(std::string)>& visit) {
  const auto begins = line_begins(bytes);
  for (size_t line = 1; line < begins.size(); line += 2) {
    std::string damaged = bytes;
    damaged.erase(begins[line] - 1, 1);  // two lines in one
    visit(std::move(damaged));
    const size_t middle = (begins[line - 1] + begins[line]) / 2;
    visit(bytes.substr(0, middle) + bytes.substr(begins[line]) + bytes.substr(middle, begins[line] - middle));
  }
}

struct NamedDamage {
  const char* name;
  Damage damage;
};
void PrintTo(const NamedDamage& damage, std::ostream* out) { *out << damage.name; }

class DamagedLogs : public testing::TestWithParam<std::tuple<std::string, NamedDamage>> {};

TEST_P(DamagedLogs, BlameNobodyElse) {
  const Files files = files_of(std::get<0>(GetParam()));
  const auto whole = blame(findings_of(files));
  // A sanitizer looks at the code, not at the judgement: a tenth will do.
  constexpr size_t kEvery = test::kSanitized ? 10 : 1;
  size_t tried = 0, made = 0;
  for (size_t victim = 0; victim < files.size(); ++victim) {
    std::get<1>(GetParam()).damage(files[victim].second, [&](std::string bytes) {
      if (made++ % kEvery != 0) return;
      Files damaged = files;
      damaged[victim].second = std::move(bytes);
      const auto findings = findings_of(damaged);
      ++tried;
      for (const std::string& stated : blame(findings))
        EXPECT_TRUE(whole.contains(stated)) << files[victim].first << ", damage " << tried << ": " << stated
                                            << "; " << findings.front().statement;
    });
  }
  EXPECT_GT(tried, 40 / kEvery);
}

INSTANTIATE_TEST_SUITE_P(
    OfJobs, DamagedLogs,
    testing::Combine(testing::Values("eight_ranks", "two_hosts", "no_p2p", "hang"),
                     testing::Values(NamedDamage{"cut", cut_anywhere}, NamedDamage{"lines lost", lose_lines},
                                     NamedDamage{"beginning lost", lose_the_beginning},
                                     NamedDamage{"overwritten", overwrite}, NamedDamage{"zeroed", zero},
                                     NamedDamage{"torn", tear})));

}  // namespace
}  // namespace lockstep::analysis::log_rules
