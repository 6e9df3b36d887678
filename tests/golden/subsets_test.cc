// SPDX-License-Identifier: Apache-2.0
// Every recording with some of its files missing: what a part of the files says, more of them still say, or
// they say that kinds of evidence contradict each other.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "tests/support/places.h"
#include "tests/support/sanitizers.h"
#include "verdict/diagnosed_run.h"

namespace lockstep::golden {
namespace {

namespace fs = std::filesystem;

using analysis::Finding;
using analysis::FindingClass;
using analysis::Severity;

const std::string kData = LOCKSTEP_SOURCE_DIR "/tests/data/";

// What one set of files says.
struct Stated {
  std::vector<Finding> findings;  // that blame, or warn of something that is wrong
  bool contradicts = false;  // or names what keeps it from a verdict: a rank without a dump has left a log
};

Stated stated_by(const std::vector<std::string>& files) {
  Stated stated;
  const auto run = verdict::diagnose(files, [](double) {});
  EXPECT_TRUE(run) << run.error().message();
  if (!run) return stated;
  for (const Finding& finding : run->diagnosis.findings) {
    stated.contradicts = stated.contradicts ||
                         finding.id == analysis::FindingId::kEvidenceMissingDisagreement ||
                         finding.id == analysis::FindingId::kEvidenceMissingOtherTime ||
                         finding.id == analysis::FindingId::kEvidenceMissingFiles;
    if (finding.severity > Severity::kNote && class_of(finding.id) != FindingClass::kEvidenceMissing)
      stated.findings.push_back(finding);
  }
  return stated;
}

// Who left no file may have done anything: its own file says what.
bool may_become(FindingClass before, FindingClass after) {
  return before == after || (before == FindingClass::kRankUnreachable &&
                             (after == FindingClass::kNeverJoined || after == FindingClass::kJoinedOtherOp ||
                              after == FindingClass::kCrossCommDeadlock));
}

// Of one class, and of a rank that both name, unless one of them names none.
bool is_repeated(const Finding& finding, const Stated& by) {
  return std::any_of(by.findings.begin(), by.findings.end(), [&](const Finding& other) {
    if (!may_become(class_of(finding.id), class_of(other.id))) return false;
    return finding.ranks.empty() || other.ranks.empty() ||
           std::any_of(finding.ranks.begin(), finding.ranks.end(), [&](int32_t rank) {
             return std::count(other.ranks.begin(), other.ranks.end(), rank) > 0;
           });
  });
}

struct Recording {
  std::string name;
  std::vector<std::string> files;
};

std::vector<std::string> files_of(const std::string& folder, const std::string& suffix = "") {
  std::vector<std::string> files;
  for (const auto& entry : fs::directory_iterator(kData + folder)) {
    const std::string path = entry.path();
    if (path.ends_with(suffix)) files.push_back(path);
  }
  std::sort(files.begin(), files.end());
  return files;
}

std::vector<Recording> recordings() {
  std::vector<Recording> all;
  for (const char* name : {"eight_ranks", "every_subsystem", "no_p2p", "two_hosts"})
    all.push_back({name, files_of(std::string("logs/") + name)});
  all.push_back({"logs of a hang", files_of("logs/hang")});
  all.push_back({"dumps of a hang", files_of("flight_recorder/hang")});
  all.push_back({"dumps and logs of a hang", files_of("flight_recorder/hang")});
  for (const std::string& file : files_of("logs/hang", ".err")) all.back().files.push_back(file);
  for (const auto& entry : fs::directory_iterator(kData + "flight_recorder/cases"))
    all.push_back(
        {entry.path().filename(), files_of("flight_recorder/cases/" + entry.path().filename().string())});
  all.push_back({"snapshots of RAS", {kData + "ras/behind_1.json", kData + "ras/behind_2.json"}});
  all.push_back({"inspector", files_of("inspector")});
  return all;
}

// All sets of up to ten files, and so many of those of more that each file is added to several hundred.
TEST(Subsets, OneFileMoreTakesNothingBack) {
  constexpr uint32_t kAllOf = 10;
  for (const Recording& recording : recordings()) {
    const auto count = static_cast<uint32_t>(recording.files.size());
    ASSERT_GE(count, 2u) << recording.name;
    const uint32_t everything = (1u << count) - 1;
    const uint32_t step = (count > kAllOf ? 211 : 1) * (test::kSanitized ? 23 : 1);
    std::map<uint32_t, Stated> known;
    const auto stated = [&](uint32_t present) -> const Stated& {
      const auto found = known.find(present);
      if (found != known.end()) return found->second;
      std::vector<std::string> files;
      for (uint32_t file = 0; file < count; ++file) {
        if ((present >> file & 1) != 0) files.push_back(recording.files[file]);
      }
      return known[present] = stated_by(files);
    };
    for (uint32_t present = 1; present < everything; present += step) {
      const Stated& part = stated(present);
      for (uint32_t file = 0; file < count; ++file) {
        const uint32_t more = present | 1u << file;
        if (more == present || part.findings.empty()) continue;
        const Stated& whole = stated(more);
        for (const Finding& finding : part.findings)
          EXPECT_TRUE(whole.contradicts || is_repeated(finding, whole))
              << recording.name << ", files " << present << " + " << recording.files[file] << ": "
              << id_text(finding.id) << ": " << finding.statement << "\nthen "
              << (whole.findings.empty()
                      ? "nothing"
                      : std::string(id_text(whole.findings[0].id)) + ": " + whole.findings[0].statement);
      }
    }
  }
}

// A verdict of all files that names ranks stands with any of them missing, or becomes one that cannot tell:
// nobody is blamed of whom there are files and who is not at fault.
TEST(Subsets, FilesThatAreMissingBlameNobodyElse) {
  for (const char* name : {"flight_recorder/hang", "logs/hang"}) {
    const auto files = files_of(name, std::string(name).starts_with("logs") ? ".err" : "");
    ASSERT_EQ(files.size(), 8u);
    for (uint32_t present = 1; present < 256; present += test::kSanitized ? 23 : 1) {
      std::vector<std::string> some;
      for (uint32_t rank = 0; rank < 8; ++rank) {
        if ((present >> rank & 1) != 0) some.push_back(files[rank]);
      }
      for (const Finding& finding : stated_by(some).findings) {
        for (const int32_t rank : finding.ranks)
          EXPECT_TRUE(rank == 5 || (present >> rank & 1) == 0 || finding.severity < Severity::kCritical)
              << name << ' ' << present << ": " << finding.statement;
      }
    }
  }
}

}  // namespace
}  // namespace lockstep::golden
