// SPDX-License-Identifier: Apache-2.0
#include "store/clickhouse/wire/sql_text.h"

#include <gtest/gtest.h>

namespace lockstep::store::clickhouse {
namespace {

using namespace std::string_literals;

TEST(SqlText, LeavesNoTextItsQuotes) {
  EXPECT_EQ(literal("fleet"), "'fleet'");
  EXPECT_EQ(literal(""), "''");
  EXPECT_EQ(literal("it's"), R"('it\'s')");
  EXPECT_EQ(literal(R"(\')"), R"('\\\'')");
  EXPECT_EQ(literal("a\0b\n"s), R"('a\x00b\x0A')");
  EXPECT_EQ(literal("\xff`\""), "'\xff`\"'") << "bytes that are no text, and other quotes, as they are";
}

TEST(SqlText, LeavesNoNameItsQuotes) {
  EXPECT_EQ(identifier("fleet"), "`fleet`");
  EXPECT_EQ(identifier("a`; DROP TABLE b; --"), R"(`a\`; DROP TABLE b; --`)");
  EXPECT_EQ(identifier("a\\"), R"(`a\\`)");
}

}  // namespace
}  // namespace lockstep::store::clickhouse
