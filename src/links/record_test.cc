// SPDX-License-Identifier: Apache-2.0
#include "links/record.h"

#include <gtest/gtest.h>

#include "links/judge/judge.h"
#include "links/testing/healthy_machine.h"

namespace lockstep::links {
namespace {
using testing::healthy_record;

TEST(LinksRecord, IsReadAsItWasWritten) {
  LinksRecord record = healthy_record();
  record.before.gpus.gpus[3].throttle_reasons = 0x40;
  record.before.gpus.gpus[3].unanswered = {"nvmlX: Not Supported"};
  record.traffic->cells[5].again = {1.5, 2.5};
  const std::string text = record_text(record);
  const auto read = parse_record(text, "file");
  ASSERT_TRUE(read) << read.error().message();
  EXPECT_EQ(record_text(*read), text);
  const auto before = judge(record, nullptr), after = judge(*read, nullptr);
  ASSERT_EQ(before.size(), after.size());
  for (size_t i = 0; i < before.size(); ++i) EXPECT_EQ(before[i].statement, after[i].statement);
}

TEST(LinksRecord, RefusesWhatIsNone) {
  EXPECT_FALSE(parse_record("", "file"));
  EXPECT_FALSE(parse_record("{}", "file"));
  EXPECT_FALSE(parse_record("[1,2", "file"));
  const auto newer = parse_record(R"({"format":"lockstep-links","version":2})", "file");
  ASSERT_FALSE(newer);
  EXPECT_NE(newer.error().text.find("newer"), std::string::npos);
}

TEST(LinksRecord, WrongTypesAreAsIfAbsent) {
  const auto read = parse_record(
      R"({"format":"lockstep-links","version":1,"before":{"time_ns":"x","gpus":{"gpus":[{"index":-1,"pci":5,"links":7}]},
      "files":{"no-slash":"x","/a":5,"/b":{"link":1},"/c":"text"}},"traffic":{"cells":[{"kind":"unknown","samples":["x"]}]}})",
      "file");
  ASSERT_TRUE(read);
  EXPECT_EQ(read->before.files.entries().size(), 1u);
  EXPECT_EQ(read->before.gpus.gpus.size(), 1u);
  judge(*read, nullptr);
}

TEST(LinksRecord, AnOptionalFieldOfAnotherTypeIsAbsent) {
  const auto read = parse_record(
      R"({"format":"lockstep-links","version":1,"under_load":5,"after":"x","traffic":[],"before":{"gpus":{"gpus":[7,
      {"links":[{"number":1,"is_up":"x","errors":{"replay":"many","crc":3}}],"fabric_state":"x","pcie_width":-1}]}}})",
      "file");
  ASSERT_TRUE(read);
  EXPECT_FALSE(read->under_load);
  EXPECT_FALSE(read->after);
  EXPECT_FALSE(read->traffic);
  ASSERT_EQ(read->before.gpus.gpus.size(), 1u);
  const Gpu& gpu = read->before.gpus.gpus[0];
  ASSERT_EQ(gpu.links.size(), 1u);
  EXPECT_FALSE(gpu.links[0].is_up) << "not known, rather than down";
  EXPECT_EQ(gpu.links[0].errors, (std::map<std::string, uint64_t>{{"crc", 3}}));
  EXPECT_FALSE(gpu.fabric_state);
  EXPECT_FALSE(gpu.pcie_width);
  const auto cells = parse_record(
      R"({"format":"lockstep-links","version":1,"traffic":{"cells":[{"kind":"write","samples":["x",4.5]}]}})",
      "file");
  ASSERT_TRUE(cells && cells->traffic);
  EXPECT_EQ(cells->traffic->cells.at(0).samples, std::vector<double>{4.5});
}

TEST(LinksRecord, EveryCutIsRefusedOrHarmless) {
  const std::string text = record_text(healthy_record());
  for (size_t size = 0; size < text.size(); size += 997)
    EXPECT_FALSE(parse_record(std::string_view(text).substr(0, size), "file"));
}

}  // namespace
}  // namespace lockstep::links
