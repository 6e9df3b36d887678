// SPDX-License-Identifier: Apache-2.0
#include "cli/kit/arguments.h"

#include <gtest/gtest.h>

namespace lockstep::cli {
namespace {

constexpr Option kOptions[] = {
    {'o', "output", "OUT", "", "out.db"},
    {'m', "mode", "MODE", "", "default", "lite default deep sample="},
    {0, "json", "", ""},
    {'n', "limit", "N", "", "20"},
    {.letter = 0, .name = "watch", .value = "SECONDS", .help = "", .fallback = "2", .value_optional = true},
    {.letter = 'c', .name = "comm", .value = "NAME", .help = "", .repeatable = true},
};
constexpr Operands kFiles = {.name = "FILE", .least = 1, .most = 2};
constexpr Operands kProgram = {.name = "COMMAND", .least = 1, .runs_command = true};
using Words = std::vector<const char*>;

Result<Arguments> parse(const Operands& operands, const Words& words) {
  return parse_arguments(kOptions, operands, words);
}

TEST(Arguments, TakesValuesInEveryForm) {
  for (const Words& words : {Words{"-o", "x"}, Words{"-ox"}, Words{"--output", "x"}, Words{"--output=x"}}) {
    Words all = words;
    all.push_back("file");
    auto arguments = parse(kFiles, all);
    ASSERT_TRUE(arguments) << words[0];
    EXPECT_EQ(arguments->value("output"), "x");
    EXPECT_EQ(arguments->operands(), std::vector<std::string>{"file"});
  }
}

TEST(Arguments, FallsBackAndKeepsEmptyValues) {
  auto arguments = parse(kFiles, {"file", "--output=", "--json"});
  ASSERT_TRUE(arguments);
  EXPECT_EQ(arguments->value("output"), "");
  EXPECT_EQ(arguments->value("mode"), "default");
  EXPECT_TRUE(arguments->has("json"));
  EXPECT_FALSE(arguments->has("mode"));
}

TEST(Arguments, AnOptionalValueIsNeverTheNextWord) {
  auto bare = parse(kFiles, {"--watch", "5"});
  ASSERT_TRUE(bare);
  EXPECT_TRUE(bare->has("watch"));
  EXPECT_EQ(bare->value("watch"), "2");
  EXPECT_EQ(bare->operands(), std::vector<std::string>{"5"});
  auto given = parse(kFiles, {"--watch=7", "file"});
  ASSERT_TRUE(given);
  EXPECT_EQ(given->value("watch"), "7");
}

TEST(Arguments, ARepeatableOptionKeepsAll) {
  auto arguments = parse(kFiles, {"file", "--comm", "a", "-cb", "--comm=a"});
  ASSERT_TRUE(arguments);
  EXPECT_EQ(arguments->values("comm"), (std::vector<std::string>{"a", "b", "a"}));
  EXPECT_TRUE(parse(kFiles, {"file"})->values("comm").empty());
}

TEST(Arguments, AChoiceThatGoesOn) {
  auto arguments = parse(kFiles, {"file", "--mode", "sample=1/2"});
  ASSERT_TRUE(arguments);
  EXPECT_EQ(arguments->value("mode"), "sample=1/2");
  EXPECT_FALSE(parse(kFiles, {"file", "--mode", "sample"}));
  EXPECT_FALSE(parse(kFiles, {"file", "--mode", "lite="}));
}

TEST(Arguments, TheTracedCommandIsExact) {
  using Argv = std::vector<std::string>;
  auto rest = [](const Words& words) { return parse(kProgram, words)->operands(); };
  EXPECT_EQ(rest({"-o", "x", "prog", "-o", "y", "--", "--json", "--"}),
            (Argv{"prog", "-o", "y", "--", "--json", "--"}));
  EXPECT_EQ(rest({"--", "--strange", "--"}), (Argv{"--strange", "--"}));
  EXPECT_EQ(rest({"--json", "--", "--", "a"}), (Argv{"--", "a"}));
  EXPECT_EQ(rest({"prog", "", "-h"}), (Argv{"prog", "", "-h"}));
  EXPECT_EQ(rest({"-"}), (Argv{"-"}));
}

TEST(Arguments, RefusesWhatItDoesNotKnow) {
  for (const Words& words : {Words{"--nope", "f"}, Words{"-x", "f"}, Words{"f", "-o"}, Words{"--json=1", "f"},
                             Words{"-m", "odd", "f"}, Words{"a", "b", "c"}, Words{}}) {
    auto arguments = parse(kFiles, words);
    ASSERT_FALSE(arguments);
    EXPECT_EQ(arguments.error().code, ErrorCode::kUsage);
    EXPECT_FALSE(arguments.error().text.empty());
  }
}

TEST(Arguments, SaysWhatAWordMayHaveMeant) {
  const auto error = [](const Operands& operands, const Words& words) {
    auto parsed = parse(operands, words);
    return parsed ? std::string() : parsed.error().text;
  };
  EXPECT_EQ(error(kFiles, {"--jsn", "file"}), "unknown option '--jsn'; did you mean --json?");
  EXPECT_EQ(error(kFiles, {"--limt=5", "file"}), "unknown option '--limt=5'; did you mean --limit?");
  EXPECT_EQ(error(kFiles, {"--explode", "file"}), "unknown option '--explode'");
  constexpr Operands kTwo = {.name = "A B", .least = 2, .most = 2};
  EXPECT_EQ(error(kTwo, {"a"}), "the command takes 2 operands (A B), not 1");
  EXPECT_EQ(error(kTwo, {"a", "b", "c"}), "the command takes 2 operands (A B), not 3");
}

TEST(Arguments, HelpNeedsNoOperands) {
  for (const char* word : {"-h", "--help"}) {
    auto arguments = parse(kFiles, {word});
    ASSERT_TRUE(arguments);
    EXPECT_TRUE(arguments->has("help"));
  }
}

TEST(Arguments, Numbers) {
  EXPECT_EQ(*parse(kFiles, {"f"})->number("limit"), 20u);
  EXPECT_EQ(*parse(kFiles, {"-n5", "f"})->number("limit"), 5u);
  EXPECT_FALSE(parse(kFiles, {"-n", "5x", "f"})->number("limit"));
  EXPECT_FALSE(parse(kFiles, {"--limit=-5", "f"})->number("limit"));
}

}  // namespace
}  // namespace lockstep::cli
