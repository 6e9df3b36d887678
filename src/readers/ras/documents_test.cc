// SPDX-License-Identifier: Apache-2.0
#include "readers/ras/documents.h"

#include <gtest/gtest.h>

namespace lockstep::readers::ras {
namespace {

TEST(NextDocument, TakesObjectsOutOfWhatStandsBetweenThem) {
  std::string_view text = "OK\n{\"a\": [1, {\"b\": \"}\\\"{\"}]}\n12:00\n{}\n tail";
  Document first = next_document(text), second = next_document(text), none = next_document(text);
  EXPECT_EQ(first.text, "{\"a\": [1, {\"b\": \"}\\\"{\"}]}");
  EXPECT_TRUE(first.whole);
  EXPECT_EQ(second.text, "{}");
  EXPECT_TRUE(none.text.empty());
}

TEST(NextDocument, PutsInTheCommaThatIsMissing) {
  std::string_view text = "{\"nvml_dev\": 3\n  \"status\": {\"x\": \"y\" \"z\": true \"u\": [] \"v\": 1}}";
  EXPECT_EQ(next_document(text).text,
            "{\"nvml_dev\": 3\n  ,\"status\": {\"x\": \"y\" ,\"z\": true ,\"u\": [] ,\"v\": 1}}");
}

TEST(NextDocument, SaysWhenTheEndIsMissing) {
  for (std::string_view text : {"{", "{\"a\": \"b", "{\"a\": \"b\\", "{\"a\": {}"}) {
    const std::string_view all = text;
    const Document document = next_document(text);
    EXPECT_EQ(document.text, all);
    EXPECT_FALSE(document.whole);
    EXPECT_TRUE(text.empty());
  }
}

TEST(NextDocument, ACutOneTakesNoneWithIt) {
  const std::string next = "{\n  \"nccl_version\": \"2.28.9\", \"ranks\": [{}]}";
  for (const std::string cut : {"{\"nccl_version\": 1, \"a\": [{\"b\": 1", "{\"a\": \"half of a te",
                                "{\"a\": \"half\\", "{\"nccl_version\": \"2.28.9\", \"b\": {}, \"c"}) {
    const std::string all = cut + next + "\n" + next;
    std::string_view text = all;
    const Document first = next_document(text), second = next_document(text), third = next_document(text);
    EXPECT_EQ(first.text, cut);
    EXPECT_FALSE(first.whole);
    EXPECT_EQ(second.text, next);
    EXPECT_TRUE(second.whole);
    EXPECT_TRUE(third.whole);
    EXPECT_TRUE(next_document(text).text.empty());
  }
}

TEST(NextDocument, ClosesNothingThatIsNotOpen) {
  std::string_view text = "}]{]";
  EXPECT_EQ(next_document(text).text, "{]");
}

}  // namespace
}  // namespace lockstep::readers::ras
