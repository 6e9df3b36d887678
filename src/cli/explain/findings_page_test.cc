// SPDX-License-Identifier: Apache-2.0
#include "verdict/findings_page.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "analysis/finding_id.h"
#include "cli/command.h"

namespace lockstep::cli::explain {
namespace {

const verdict::Entry* find(std::string_view id) {
  for (const verdict::Entry& entry : verdict::entries()) {
    if (entry.id == id) return &entry;
  }
  return nullptr;
}

TEST(Explain, EveryFindingIsThereOnce) {
  std::set<std::string_view> ids;
  for (const verdict::Entry& entry : verdict::entries()) {
    EXPECT_TRUE(ids.insert(entry.id).second) << entry.id << " twice";
    EXPECT_FALSE(entry.body.empty()) << entry.id;
    EXPECT_FALSE(entry.chapter.empty()) << entry.id;
    EXPECT_EQ(entry.id.find(' '), std::string_view::npos) << entry.id;
    const std::string shown = text(entry, Style(false));
    EXPECT_EQ(shown.find("```"), std::string::npos) << shown;
    EXPECT_EQ(shown.find("]("), std::string::npos) << shown;
    EXPECT_GT(shown.size(), entry.id.size() + 40);
  }
  EXPECT_EQ(ids.size(), std::size(analysis::kFindings)) << "the page explains what is no finding";
  for (const analysis::FindingFacts& finding : analysis::kFindings)
    EXPECT_TRUE(ids.contains(finding.id)) << finding.id << " is not explained";
}

TEST(Explain, AnIdBeginsWithItsClass) {
  std::set<std::string_view> ids;
  for (const analysis::FindingFacts& finding : analysis::kFindings) {
    EXPECT_TRUE(ids.insert(finding.id).second) << finding.id << " twice";
    EXPECT_GE(finding.meaning.size(), 10u) << finding.id;
    // One that was called so before it had a class, and ids never change.
    if (finding.id == "clock-stepped") continue;
    EXPECT_EQ(finding.id.substr(0, finding.id.find('.')), class_text(finding.finding_class)) << finding.id;
  }
}

// A rule whose sentence is made of the lines alone, "{who}: {what}", needs words of its own.
TEST(Explain, SaysOfEachRuleWhatItFinds) {
  size_t rules = 0;
  for (const verdict::Entry& entry : verdict::entries()) {
    const std::string shown = text(entry, Style(false));
    const size_t says = shown.find("\nSays ");
    if (entry.chapter != "What logs show" || says == std::string::npos) continue;
    ++rules;
    const std::string line = shown.substr(says + 5, shown.find('\n', says + 1) - says - 5);
    EXPECT_GE(std::count_if(line.begin(), line.end(), [](char c) { return c >= 'a' && c <= 'z'; }), 5)
        << shown;
    EXPECT_EQ(line.find("what the lines show"), std::string::npos) << shown;
    // Nor are places that only lines fill a sentence.
    EXPECT_EQ(line.find("(...)"), std::string::npos) << shown;
    EXPECT_EQ(line.find("...."), std::string::npos) << shown;
    EXPECT_NE(line.substr(line.find_first_not_of(' ')).substr(0, 3), "...") << shown;
  }
  EXPECT_GT(rules, 100u);
}

TEST(Explain, ShowsSectionsAndRows) {
  const std::string section = text(*find("never-joined"), Style(false));
  EXPECT_EQ(section.find("never-joined  (Who waits for whom)\n\n"), 0u);
  EXPECT_NE(section.find("    rank 5 (GPU 5 of node0, pid 1005) never called"), std::string::npos) << section;
  const std::string row = text(*find("evidence-missing.torn"), Style(false));
  EXPECT_NE(row.find("warning"), std::string::npos) << row;
  EXPECT_EQ(row.find('|'), std::string::npos) << row;
}

int run(const std::vector<const char*>& words, std::string& out, std::string& err) {
  const Command* command = find_command("explain");
  auto arguments = parse_arguments(command->options, command->operands, words);
  EXPECT_TRUE(arguments);
  ::testing::internal::CaptureStdout();
  ::testing::internal::CaptureStderr();
  const int code = command->run(*arguments);
  out = ::testing::internal::GetCapturedStdout();
  err = ::testing::internal::GetCapturedStderr();
  return code;
}

TEST(ExplainCommand, HelpsWithWrongIds) {
  std::string out, err;
  EXPECT_EQ(run({"never-joined"}, out, err), kExitOk);
  EXPECT_EQ(run({"never-joined.nonsense"}, out, err), kExitUsage);
  EXPECT_NE(err.find("never-joined.finished"), std::string::npos) << err;
  EXPECT_EQ(run({"nonsense"}, out, err), kExitUsage);
  EXPECT_EQ(run({}, out, err), kExitOk);
  EXPECT_EQ(static_cast<size_t>(std::count(out.begin(), out.end(), '\n')), std::size(analysis::kFindings));
  EXPECT_NE(out.find("\nhost-late.growing  "), std::string::npos) << out;
  EXPECT_NE(out.find("  a rank has not called an operation that the others are in\n"), std::string::npos)
      << out;
}

}  // namespace
}  // namespace lockstep::cli::explain
