// SPDX-License-Identifier: Apache-2.0
#include "cli/kit/columns.h"

#include <gtest/gtest.h>

namespace lockstep::cli {
namespace {

struct Figures {
  std::string name;
  int64_t rank;
  uint64_t ops;
  double ns;
};

void show(const Figures& row, Columns& columns) {
  columns.name_if_any("name", "<who", row.name);
  columns.number("rank", "rank", row.rank);
  columns.add_json("twice", row.ops * 2);
  columns.count("ops", "ops", row.ops);
  columns.add_text("<way", row.ops > 1000 ? "far" : "near");
  columns.duration("wait_ns", "waiting", row.ns, row.ns > 0);
}

const std::vector<Figures> kRows = {{"a", 0, 12345, 1500}, {"", -1, 7, 0}};

TEST(Columns, OneListMakesObjectsAndATable) {
  EXPECT_EQ(json_rows(kRows, show).dump(),
            R"([{"name":"a","rank":0,"twice":24690,"ops":12345,"wait_ns":1500.0},)"
            R"({"name":null,"rank":null,"twice":14,"ops":7,"wait_ns":null}])");
  EXPECT_EQ(table_of(kRows, 9, show).text(""),
            "who  rank     ops  way   waiting\n"
            "---  ----  ------  ----  -------\n"
            "a       0  12,345  far   1.50 us\n"
            "-       -       7  near        -\n");
}

TEST(Columns, ATableHasAsManyRowsAsFitAndMayHaveNone) {
  EXPECT_EQ(table_of(kRows, 1, show).text("").find("near"), std::string::npos);
  EXPECT_TRUE(table_of(kRows, 0, show).empty());
  EXPECT_TRUE(table_of(std::vector<Figures>{}, 9, show).empty());
  EXPECT_EQ(json_rows(std::vector<Figures>{}, show).dump(), "[]");
}

}  // namespace
}  // namespace lockstep::cli
