// SPDX-License-Identifier: Apache-2.0
// A recording that is played comes out again: the same calls, in the same order, on the same threads.
#include <algorithm>
#include <map>
#include <set>

#include "tests/abi/host.h"
#include "tests/support/places.h"

namespace lockstep::test {
namespace {

class Tapes : public Host {};

const char* const kTapes[] = {"hang_torn", "copy_engine", "graph", "mix", "two_hosts"};

// Numbers handles, contexts and threads by first appearance, and drops what differs by nature.
Lines normalised(Lines lines) {
  std::map<Json, size_t> handles, threads;
  const auto number = [](std::map<Json, size_t>& names, const Json& value) -> size_t {
    return value == 0 ? 0 : names.try_emplace(value, names.size() + 1).first->second;
  };
  for (Json& line : lines) {
    line["tid"] = number(threads, line["tid"]);
    for (const char* key : {"ctx", "h", "parent", "parentGroup"})
      if (line.contains(key)) line[key] = number(handles, line[key]);
    for (const char* key : {"t", "raw", "args", "mask", "api", "pid"}) line.erase(key);
  }
  return lines;
}

TEST_F(Tapes, ComeOutAsTheyWentIn) {
  for (const std::string name : kTapes) {
    Lines expected = parse_lines(tape_text(name));
    ASSERT_EQ(expected.at(0)["call"], "tape");
    expected.erase(expected.begin());
    const Played played = echo(tape(name, name == "copy_engine" ? 6 : 5));
    ASSERT_EQ(played.code, 0) << played.err;
    const Lines want = normalised(expected), got = normalised(played.calls);
    ASSERT_EQ(got.size(), want.size()) << name;
    for (size_t i = 0; i < want.size(); ++i) {
      // The echo writes buffers that this tape leaves out, and no others.
      for (const auto& [key, value] : want[i].items())
        ASSERT_EQ(got[i].value(key, Json()), value)
            << name << ", call " << i << ", " << key << ": " << got[i];
    }
  }
}

TEST_F(Tapes, EveryVersionGetsAllEventsItKnows) {
  for (const std::string name : kTapes) {
    std::map<uint64_t, uint64_t> recorded;
    for (const Json& line : parse_lines(tape_text(name)))
      if (line["call"] == "start") ++recorded[line["type"].get<uint64_t>()];
    for (int api = 1; api <= 7; ++api) {
      const Played played = echo(tape(name, api));
      ASSERT_EQ(played.code, 0) << played.err;
      for (size_t kind = 0; kind < std::size(kEventKinds); ++kind) {
        const uint64_t all = recorded[uint64_t{1} << kind], known = kind < kinds_of(api) ? all : 0;
        EXPECT_EQ(played.report["recorded"][kEventKinds[kind]], all) << name;
        EXPECT_EQ(played.report["events"][kEventKinds[kind]], known)
            << name << " v" << api << " " << kEventKinds[kind];
        EXPECT_EQ(played.of("start", uint64_t{1} << kind).size(), known) << name << " v" << api;
      }
    }
  }
}

TEST_F(Tapes, OwnPidBecomesThePlayersAndContextsStayApart) {
  const Played played = echo(tape("two_hosts", 5));
  const Lines ops = played.of("start", 8);
  ASSERT_FALSE(ops.empty());
  for (const Json& op : ops) EXPECT_EQ(op["pid"], ops[0]["pid"]);
  EXPECT_NE(ops[0]["pid"], parse_lines(tape_text("two_hosts"))[0]["pid"]);
  EXPECT_EQ(played.of("init").size(), 3u);
  EXPECT_EQ(played.of("finalize").size(), 3u);
}

TEST_F(Tapes, TornTapeEndsWithoutFinalize) {
  const Played played = echo(tape("hang_torn", 5));
  EXPECT_EQ(played.code, 0);
  EXPECT_EQ(played.report["torn"], true);
  EXPECT_EQ(played.report["all_finalized"], false);
  EXPECT_TRUE(played.of("finalize").empty());
}

TEST_F(Tapes, RepeatMakesNewComms) {
  const Played played = echo(tape("graph", 5, {"--repeat", "3"}));
  std::set<Json> ids;
  for (const Json& line : played.of("init")) ids.insert(line["commId"]);
  EXPECT_EQ(ids.size(), 3u);
  EXPECT_EQ(played.report["loads"], 3);  // the last finalize of a round closes the plugin
  EXPECT_EQ(played.report["events"]["GroupApi"].get<int>(),
            3 * played.report["recorded"]["GroupApi"].get<int>());
}

TEST_F(Tapes, RecordedPaceKeepsTheGaps) {
  std::string text = "{\"call\":\"tape\",\"version\":1,\"pid\":7}\n";
  text += "{\"t\":1000000,\"tid\":7,\"thread\":\"a\",\"call\":\"init\",\"api\":5,\"ctx\":16,\"nranks\":1}\n";
  text += "{\"t\":41000000,\"tid\":8,\"thread\":\"b\",\"call\":\"finalize\",\"ctx\":16}\n";
  write_file(path("slow.jsonl"), text);
  const Played played = echo({"--pace", "recorded", path("slow.jsonl")});
  ASSERT_EQ(played.calls.size(), 2u) << played.err;
  EXPECT_GE(played.report["seconds"].get<double>(), 0.040);
  EXPECT_EQ(played.calls[0]["thread"], "a");
  EXPECT_EQ(played.calls[1]["thread"], "b");
}

TEST_F(Tapes, BadInputIsOneLineAndStatus2) {
  const std::string header = "{\"call\":\"tape\",\"version\":1,\"pid\":7}\n";
  const std::string init = "{\"t\":1,\"tid\":7,\"call\":\"init\",\"ctx\":16}\n";
  const std::map<std::string, std::string> bad = {
      {"empty.jsonl", ""},
      {"no_header.jsonl", init},
      {"text.jsonl", "hello\nworld\n"},
      {"middle.jsonl", header + "{\"t\":1,\n" + init},
      {"call.jsonl", header + "{\"t\":1,\"tid\":7,\"call\":\"dance\"}\n"},
      {"type.jsonl", header + init + "{\"tid\":7,\"call\":\"start\",\"ctx\":16,\"h\":32,\"type\":3}\n"},
      {"finalize.jsonl", header + "{\"tid\":7,\"call\":\"finalize\",\"ctx\":16}\n" + init},
      {"broken.jsonl.gz", tape_text("graph").insert(0, "\x1f\x8b\x08")}};
  for (const auto& [name, text] : bad) {
    write_file(path(name), text);
    const Finished finished = host(LOCKSTEP_LIB_DIR "/libempty-plugin.so", {path(name)});
    EXPECT_EQ(finished.code, 2) << name << finished;
    EXPECT_EQ(std::count(finished.err.begin(), finished.err.end(), '\n'), 1) << name << finished;
    EXPECT_NE(finished.err.find(name), std::string::npos) << finished;
  }
  for (const std::vector<std::string>& words :
       std::vector<std::vector<std::string>>{{},
                                             {"--script"},
                                             {"--script", "nothing"},
                                             {"--api", "8", "x"},
                                             {"--api", "", "x"},
                                             {"--bogus", "1", "x"},
                                             {"--fault", "nothing", "x"},
                                             {"x", "y"},
                                             {"--repeat", "0", "x"},
                                             {path("missing.jsonl")}}) {
    const Finished finished = host(LOCKSTEP_LIB_DIR "/libempty-plugin.so", words);
    EXPECT_EQ(finished.code, 2) << finished;
    EXPECT_EQ(std::count(finished.err.begin(), finished.err.end(), '\n'), 1) << finished;
  }
  EXPECT_EQ(host("/nowhere/plugin.so", {"--script", "allreduce"}).code, 2);
  EXPECT_EQ(host("libz.so.1", {"--script", "allreduce"}).code, 2);
}

}  // namespace
}  // namespace lockstep::test
