// SPDX-License-Identifier: Apache-2.0
#include "readers/kineto/event_stream.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <random>

#include "tests/support/temporary_folder.h"

namespace lockstep::readers::kineto {
namespace {

constexpr size_t kMargin = size_t{2} << 20;  // limits are met by the buffer

struct Read {
  std::vector<std::string> events;
  std::vector<std::pair<std::string, std::string>> values;
  bool is_object = false, is_whole = false;
  uint64_t damages = 0, first_damage = 0, oversized = 0;
};

Read read(const std::string& text) {
  const test::TemporaryFolder folder;
  const std::string path = folder / "stream";
  std::ofstream(path, std::ios::binary) << text;
  Read out;
  {
    auto file = InputFile::open(path);
    EXPECT_TRUE(file);
    EventStream stream(*file);
    while (true) {
      const EventStream::Piece piece = stream.next();
      if (piece.kind == EventStream::Kind::kEnd) break;
      EXPECT_EQ(text.substr(piece.offset, piece.text.size()), piece.text);
      if (piece.kind == EventStream::Kind::kEvent)
        out.events.emplace_back(piece.text);
      else
        out.values.emplace_back(piece.key, piece.text);
    }
    out.is_object = stream.is_object();
    out.is_whole = stream.is_whole();
    out.damages = stream.damages();
    out.first_damage = stream.first_damage();
    out.oversized = stream.oversized();
  }
  return out;
}

TEST(EventStream, CutsValuesAndEvents) {
  const Read got = read(
      R"( {"schemaVersion": 1, "a": {"b": [1, "}]"]}, "t": "x \" y", "traceEvents": [ {"ph":"X"} , {"name":"{\"[\\"}
         ], "late" : [1,2], "n": null } )");
  EXPECT_TRUE(got.is_object);
  EXPECT_TRUE(got.is_whole);
  EXPECT_EQ(got.damages, 0u);
  EXPECT_EQ(got.events, (std::vector<std::string>{R"({"ph":"X"})", R"({"name":"{\"[\\"})"}));
  const std::vector<std::pair<std::string, std::string>> values = {{"schemaVersion", "1"},
                                                                   {"a", R"({"b": [1, "}]"]})"},
                                                                   {"t", R"("x \" y")"},
                                                                   {"late", "[1,2]"},
                                                                   {"n", "null"}};
  EXPECT_EQ(got.values, values);
}

TEST(EventStream, WhatIsNoObjectHasNothing) {
  for (const char* text : {"", "  ", "[1]", "x", "\"a\""}) {
    const Read got = read(text);
    EXPECT_FALSE(got.is_object) << text;
    EXPECT_TRUE(got.events.empty());
  }
  EXPECT_TRUE(read("{}").is_whole);
  EXPECT_FALSE(read("{").is_whole);
}

std::string random_text(std::mt19937& random, size_t most) {
  constexpr std::string_view kPieces[] = {"a",    "{", "}", "[",   "]",        "\\\"",
                                          "\\\\", ",", ":", "\\n", "\xc3\xa9", " "};
  std::string text;
  for (size_t n = random() % most; n > 0; --n) text += kPieces[random() % std::size(kPieces)];
  return text;
}

// Whatever texts hold, and wherever the buffer ends.
TEST(EventStream, CutsEventsOfAnyContentAndLength) {
  std::mt19937 random(3);
  for (const bool one_line : {true, false}) {
    std::vector<std::string> events;
    std::string text = "{\"traceEvents\": [";
    while (text.size() < 3'000'000) {
      std::string event = "{\"ph\":\"X\",\"name\":\"" + random_text(random, 60) +
                          "\",\"args\":{\"a\":[{},[],\"" +
                          random_text(random, random() % 50 == 0 ? 30'000 : 20) + "\"]}}";
      if (!events.empty()) text += one_line ? "," : ",\n  ";
      text += event;
      events.push_back(std::move(event));
    }
    const Read got = read(text + "]}");
    EXPECT_TRUE(got.is_whole);
    EXPECT_EQ(got.damages, 0u);
    ASSERT_EQ(got.events.size(), events.size());
    EXPECT_EQ(got.events, events);
  }
}

TEST(EventStream, OfACutFileTheWholeEventsAreKept) {
  const std::string whole =
      "{\"schemaVersion\": 1,\n\"traceEvents\": [\n{\"ph\": \"X\", \"name\": \"a{\"},\n{\"ph\": \"X\", "
      "\"args\": {\"b\": [1]}}\n],\n"
      "\"traceName\": \"x\"}";
  const size_t first_end = whole.find("},\n{") + 1, second_end = whole.find("}}\n") + 2;
  for (size_t size = 0; size < whole.size(); ++size) {
    const Read got = read(whole.substr(0, size));
    EXPECT_EQ(got.events.size(), size_t{size >= first_end} + size_t{size >= second_end}) << size;
    EXPECT_FALSE(got.is_whole) << size;
    EXPECT_EQ(got.damages, 0u) << "a cut is no damage, at " << size;
  }
  EXPECT_TRUE(read(whole).is_whole);
}

// As writers before July 2026 left quotes in names.
TEST(EventStream, AQuoteTooManyCostsOneEvent) {
  const std::string bad = "{\n    \"ph\": \"X\", \"name\": \"operator\"\" _x\"\",\n    \"ts\": 1\n  }";
  const std::string good = "{\n    \"ph\": \"X\", \"name\": \"good\",\n    \"ts\": 2\n  }";
  const std::string text =
      "{\"traceEvents\": [\n  " + good + ",\n  " + bad + ",\n  " + good + ",\n  " + good + "\n]}";
  const Read got = read(text);
  EXPECT_EQ(got.damages, 1u);
  EXPECT_EQ(got.first_damage, text.find(bad));
  EXPECT_EQ(std::count(got.events.begin(), got.events.end(), good), 3);
  EXPECT_TRUE(got.is_whole);
}

TEST(EventStream, WhatFollowsGarbageIsFoundAgain) {
  const std::string good = "{\"ph\":\"X\",\"name\":\"good\"}";
  const Read got = read("{\"traceEvents\":[" + good + ",nan \"x\" }{]," + good + ",7," + good + "],\"a\":1}");
  EXPECT_EQ(std::count(got.events.begin(), got.events.end(), good), 3);
  EXPECT_EQ(got.damages, 2u);
  const Read prelude = read("{\"deviceProperties\": [\"\n\", \"traceEvents\":[" + good + "]}");
  EXPECT_EQ(prelude.events, std::vector<std::string>{good});
  EXPECT_GT(prelude.damages, 0u);
}

TEST(EventStream, RejectedEventsMayHideOthers) {
  const test::TemporaryFolder folder;
  const std::string path = folder / "stream";
  const std::string inner = "{\"ph\":\"X\",\"name\":\"inner\"}";
  const std::string outer = "{\"ph\":[," + inner + ",7]}";
  std::ofstream(path) << "{\"traceEvents\":[" << outer << "," << inner << "]}";
  {
    auto file = InputFile::open(path);
    EventStream stream(*file);
    EventStream::Piece piece = stream.next();
    EXPECT_EQ(piece.text, outer);
    stream.reject(piece);
    EXPECT_EQ(stream.next().text, inner) << "which it held";
    EXPECT_EQ(stream.next().text, inner) << "which follows";
  }
}

TEST(EventStream, WhatNoProfilerWritesIsPassedOver) {
  const std::string good = "{\"ph\":\"X\"}";
  const Read huge_value = read("{\"INFO\": [\"" + std::string(EventStream::kMostValueBytes + kMargin, 'x') +
                               "\"], \"traceEvents\": [" + good + "]}");
  EXPECT_EQ(huge_value.oversized, 1u);
  EXPECT_EQ(huge_value.events, std::vector<std::string>{good});
  EXPECT_TRUE(huge_value.is_whole);
  const Read huge_event =
      read("{\"traceEvents\": [{\"ph\":\"" + std::string(EventStream::kMostEventBytes + kMargin, 'x') +
           "\"}," + good + "," + good + "]}");
  EXPECT_EQ(huge_event.damages, 1u);
  EXPECT_EQ(huge_event.events.size(), 2u);
}

TEST(EventStream, DepthCostsNothing) {
  const std::string deep = "{\"ph\":" + std::string(400'000, '[') + std::string(400'000, ']') + "}";
  const Read got = read("{\"a\":" + std::string(100'000, '[') + std::string(100'000, ']') +
                        ",\"traceEvents\":[" + deep + "]}");
  EXPECT_EQ(got.events, std::vector<std::string>{deep});
  EXPECT_TRUE(got.is_whole);
}

// Every begin of an event hides a file's worth of garbage: looking for the end of each would never end.
TEST(EventStream, HostileFilesAreReadInLinearTime) {
  std::string text = "{\"traceEvents\":[";
  for (int i = 0; i < 2'000'000; ++i) text += "{\"ph\":[,";
  EXPECT_GT(read(text).damages, 0u);
  text = "{\"traceEvents\":[";
  for (int i = 0; i < 2'000'000; ++i) text += ",{\"ph\"\"";
  EXPECT_GT(read(text).damages, 0u);
}

}  // namespace
}  // namespace lockstep::readers::kineto
