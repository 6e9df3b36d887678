// SPDX-License-Identifier: Apache-2.0
#include "store/clickhouse/wire/answers.h"

#include <gtest/gtest.h>

namespace lockstep::store::clickhouse {
namespace {

using namespace std::string_literals;

TEST(Answers, HaveTheirCode) {
  EXPECT_EQ(error_code("Code: 252, e.displayText() = DB::Exception: Too many parts"), 252);
  EXPECT_EQ(error_code("Code: 516. DB::Exception: no"), 516);
  EXPECT_EQ(error_code("1\t2\nCode: 241. DB::Exception: late"), 241);
  for (const char* none :
       {"", "Code: ", "Code: x", "Code: 12", "Code: 99999999999,", "a name with Code: 12, in it"})
    EXPECT_EQ(error_code(none), std::nullopt) << none;
}

TEST(Answers, AreRowsOrNothing) {
  EXPECT_EQ(parse_rows("", 2), Rows{});
  EXPECT_EQ(parse_rows("a\tb\n", 2), (Rows{{"a", "b"}}));
  EXPECT_EQ(parse_rows("\t\n\t\n", 2), (Rows{{"", ""}, {"", ""}}));
  EXPECT_EQ(parse_rows("a\\t\\n\\\\\\'\\0\\q\n", 1), (Rows{{"a\t\n\\'\0q"s}}));
  EXPECT_EQ(parse_rows("a\\\n", 1), (Rows{{"a\\"}}));
  for (const char* none : {"a\tb", "a\n", "a\tb\tc\n", "a\tb\nc\n", "\n"})
    EXPECT_EQ(parse_rows(none, 2), std::nullopt) << none;
}

TEST(Answers, AreNumbersOrNothing) {
  EXPECT_EQ(parse_number("18446744073709551615"), UINT64_MAX);
  for (const char* none : {"", "-1", "1 ", "0x1", "18446744073709551616", "1.5"})
    EXPECT_EQ(parse_number(none), std::nullopt) << none;
}

TEST(Answers, AreVersionsOrNothing) {
  EXPECT_EQ(parse_version("18.16.1"), (Version{18, 16}));
  EXPECT_EQ(parse_version("24.8.4.13-lts"), (Version{24, 8}));
  EXPECT_EQ(parse_version("26.7"), (Version{26, 7}));
  for (const char* none : {"", "18", "18.", ".16", "a.b", "18.x", "99999.1", "18.99999"})
    EXPECT_EQ(parse_version(none), std::nullopt) << none;
}

TEST(Answers, KnowANameThatIsNotFoundAtFirstForWrong) {
  HttpAnswer answer;
  answer.failure = curl::kUnknownHost;
  answer.error = "Could not resolve host: stroe";
  EXPECT_EQ(judge(answer, true, false).meaning, Meaning::kNo);
  EXPECT_EQ(judge(answer, true, true).meaning, Meaning::kUnknown);
}

}  // namespace
}  // namespace lockstep::store::clickhouse
