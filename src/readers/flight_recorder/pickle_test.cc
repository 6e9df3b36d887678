// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "readers/flight_recorder/value.h"

namespace lockstep::readers::flight_recorder {
namespace {

using namespace std::string_literals;

// Opcodes as PyTorch writes them: texts are followed by a place in the memo.
std::string text(const std::string& value) {
  std::string out = "X";
  for (int i = 0; i < 4; ++i) out += static_cast<char>(value.size() >> 8 * i);
  return out + value;
}
std::string put(int index) { return "q"s + static_cast<char>(index); }
std::string get(int index) { return "h"s + static_cast<char>(index); }
std::string proto(const std::string& rest, char version = 2) { return "\x80"s + version + rest; }

Document read(const std::string& bytes) {
  auto document = read_pickle(bytes);
  EXPECT_TRUE(document) << document.error().message();
  return document ? std::move(*document) : Document{};
}
std::string error(const std::string& bytes) {
  auto document = read_pickle(bytes);
  return document ? "none" : document.error().text;
}

TEST(Pickle, NumbersOfEverySize) {
  const std::string bytes = proto("](K\xff"s + "M\x00\x01"s + "J\x00\x00\x01\x00"s + "J\xff\xff\xff\xff"s +
                                  "\x8a\x08\x00\x00\x00\x00\x01\x00\x00\x00"s + "\x8a\x01\xfe"s +
                                  "\x8a\x00"s + "G?\xe0\x00\x00\x00\x00\x00\x00"s + "\x88\x89Ne."s);
  const Document document = read(bytes);
  const std::vector<ValueId>& items = document.values.items(document.root);
  const std::vector<int64_t> integers = {255, 256, 65536, -1, int64_t{1} << 32, -2, 0};
  ASSERT_EQ(items.size(), integers.size() + 4);
  for (size_t i = 0; i < integers.size(); ++i)
    EXPECT_EQ(document.values.integer(items[i], -9), integers[i]) << i;
  EXPECT_EQ(document.values[items[7]].number, 0.5);
  EXPECT_EQ(document.values.integer(items[8], -9), 1);
  EXPECT_EQ(document.values.integer(items[9], -9), 0);
  EXPECT_EQ(document.values.integer(items[10], -9), -9) << "None is no number";
}

TEST(Pickle, SharedValuesAreReadThroughTheMemo) {
  // A dict kept before it is filled, and its key again.
  const std::string bytes =
      proto("](}"s + put(0) + "(" + text("line") + put(1) + "K\x07u" + get(0) + get(1) + "e.");
  const Document document = read(bytes);
  const std::vector<ValueId>& items = document.values.items(document.root);
  ASSERT_EQ(items.size(), 3u);
  EXPECT_EQ(document.values.integer(document.values.find(items[1], "line"), 0), 7);
  EXPECT_EQ(document.values.text(items[2]), "line");
}

TEST(Pickle, WhatAPythonOfTodayWritesIsRead) {
  // Protocol 5: frame, short texts, memoize, single items, tuples.
  const std::string bytes = proto("\x95\x10\x00\x00\x00\x00\x00\x00\x00}\x94\x8c\x01"s + "a\x94](K\x01K\x02" +
                                      "es\x8c\x01" + "bK\x01K\x02\x86s.",
                                  5);
  const Document document = read(bytes);
  EXPECT_EQ(document.values.items(document.values.find(document.root, "a")).size(), 2u);
  EXPECT_EQ(document.values.items(document.values.find(document.root, "b")).size(), 2u);
}

TEST(Pickle, LongPlacesTextsAndRemovalsAreRead) {
  const std::string long_text = "\x8d\x03\x00\x00\x00\x00\x00\x00\x00"s + "abc",
                    long_put = "r\x01\x01\x00\x00"s, long_get = "j\x01\x01\x00\x00"s;
  const std::string bytes = proto("](" + long_text + long_put + "K\x07" + "0" + "(K\x08K\x09" + "1" +
                                  long_get + "\x8b\x02\x00\x00\x00\x00\x01"s + "e.");
  const Document document = read(bytes);
  const std::vector<ValueId>& items = document.values.items(document.root);
  ASSERT_EQ(items.size(), 3u) << "what is taken from the stack again is no item";
  EXPECT_EQ(document.values.text(items[0]), "abc");
  EXPECT_EQ(document.values.text(items[1]), "abc");
  EXPECT_EQ(document.values.integer(items[2], 0), 256);
}

TEST(Pickle, TuplesSetsAndDictsOfAllKinds) {
  const std::string bytes = proto("](K\x01\x85K\x01K\x02\x86K\x01K\x02K\x03\x87)(K\x01K\x02t(K\x01l(" +
                                      text("k") + "K\x05" + "d\x8f(K\x01K\x02K\x03K\x04\x90]K\x01" + "ae.",
                                  4);
  const Document document = read(bytes);
  std::vector<size_t> sizes;
  for (const ValueId item : document.values.items(document.root))
    sizes.push_back(document.values.items(item).size());
  EXPECT_EQ(sizes, (std::vector<size_t>{1, 2, 3, 0, 2, 1, 2, 4, 1}));
  EXPECT_EQ(document.values.integer(document.values.find(document.values.items(document.root)[6], "k"), 0),
            5);
}

TEST(Pickle, OperationsOnAnEmptyStackAreDamage) {
  for (const std::string& bad :
       {"0."s, "1."s, "t."s, "d."s, "(K\x01"s + "d.", "\x85."s, "q\x00."s, "a."s, "]a."s})
    EXPECT_NE(error(proto(bad)).find("not a Flight Recorder dump: "), std::string::npos) << bad;
}

TEST(Pickle, SixtyFourMarksMayBeOpen) {
  auto nested = [](size_t marks) {
    return error(proto(std::string(marks, '(') + "N" + std::string(marks, 't') + "."));
  };
  EXPECT_EQ(nested(64), "none");
  EXPECT_NE(nested(65).find("nested deeper"), std::string::npos);
}

TEST(Pickle, NothingIsEverRun) {
  for (const std::string& attack :
       {"cos\nsystem\n"s + "(" + text("true") + "tR.", "\x8c\x02os\x8c\x06system\x93."s, "(ios\nsystem\n."s,
        "}b."s, ")\x81."s, "Pname\n."s, "K\x01Q."s, "\x82\x01."s, "B\x01\x00\x00\x00x."s}) {
    EXPECT_NE(error(proto(attack)).find("(nothing of it was run), at byte "), std::string::npos) << attack;
  }
  EXPECT_NE(error(proto("cos\n")).find("at byte 2"), std::string::npos) << error(proto("cos\n"));
}

TEST(Pickle, WhatIsNoPickleIsSaidToBeNone) {
  for (const std::string& bad : {""s, "x"s, "{}"s, proto("h\x00."), proto("}(K\x01u."), proto("K\x01(e."),
                                 proto("e."), proto("s."), proto("\x86."), proto("("s + "."),
                                 proto("K\x01K\x02."), proto("]", 9), proto("}(](" + text("a") + "u.")}) {
    EXPECT_NE(error(bad).find("not a Flight Recorder dump: "), std::string::npos) << bad;
  }
  EXPECT_NE(error(proto(std::string(10'000, '('))).find("nested deeper"), std::string::npos);
  EXPECT_NE(error(proto("X\xff\xff\xff\xff")).find("ends before"), std::string::npos);
}

TEST(Pickle, AValueThatHoldsItselfEndsNowhere) {
  const Document document = read(proto("]"s + put(0) + "(" + get(0) + "e."));
  const std::vector<ValueId>& items = document.values.items(document.root);
  ASSERT_EQ(items.size(), 1u);
  EXPECT_EQ(items[0], document.root);
}

TEST(Pickle, OfACutFileWhatWasCompleteIsKept) {
  auto entry = [](int id) {
    return "}(" + text("record_id") + "K" + static_cast<char>(id) + text("state") + text("completed") + "u";
  };
  const std::string whole =
      proto("}(" + text("version") + text("2.10") + text("entries") + "](" + entry(1) + entry(2) + "eu.");
  EXPECT_TRUE(read(whole).cut.empty());
  size_t most = 0;
  for (size_t size = 0; size < whole.size(); ++size) {
    const std::string bytes = whole.substr(0, size);
    auto document = read_pickle(bytes);
    if (!document) {
      EXPECT_LT(size, 5u) << document.error().message();
      continue;
    }
    EXPECT_FALSE(document->cut.empty()) << size;
    const size_t entries = document->values.items(document->values.find(document->root, "entries")).size();
    EXPECT_GE(entries, most) << size;
    for (const ValueId id : document->values.items(document->values.find(document->root, "entries")))
      EXPECT_EQ(document->values.items(id).size(), 4u) << "a half entry, at " << size;
    most = entries;
  }
  EXPECT_EQ(most, 2u);
}

// Two marks with nothing between them: the inner one has no container.
TEST(Pickle, ACutFileWithMarksAtOnePlaceIsReadOrRefused) {
  const std::string begun = "}(" + text("version") + text("2.10") + text("entries") + "](";
  for (const std::string& more : {"("s, "(("s, "N(("s, "}(("s}) {
    const std::string bytes = proto(begun + more);
    const Document document = read(bytes);
    EXPECT_FALSE(document.cut.empty());
    EXPECT_EQ(document.values.text(document.values.find(document.root, "version")), "2.10");
  }
  EXPECT_NE(error(proto("}((")).find("items without a container"), std::string::npos);
  EXPECT_NE(error(proto("N(")).find("takes none"), std::string::npos);
}

TEST(Json, BecomesTheSameValues) {
  const std::string text =
      R"({"version":"2.10","pg_status":{"0":{"last":"12"}},"entries":[{"a":[1,-2,0.5,true,null,"x\n"]}]})";
  auto document = read_json(text);
  ASSERT_TRUE(document);
  const Values& values = document->values;
  EXPECT_EQ(
      values.integer(values.find(values.find(values.find(document->root, "pg_status"), "0"), "last"), 0), 12);
  const std::vector<ValueId>& entries = values.items(values.find(document->root, "entries"));
  ASSERT_EQ(entries.size(), 1u);
  const std::vector<ValueId>& items = values.items(values.find(entries[0], "a"));
  ASSERT_EQ(items.size(), 6u);
  EXPECT_EQ(values.integer(items[1], 0), -2);
  EXPECT_EQ(values.text(items[5]), "x\n");
  for (const std::string& bad : {""s, "{"s, "[1,"s, std::string(1000, '['), "{\"a\":1}x"s})
    EXPECT_FALSE(read_json(bad)) << bad.substr(0, 20);
}

}  // namespace
}  // namespace lockstep::readers::flight_recorder
