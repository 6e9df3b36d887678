// SPDX-License-Identifier: Apache-2.0
// A second plugin behind ours sees what it sees alone, at every pair of versions, and our file is what it is
// without it.
#include <fstream>
#include <set>

#include "tests/abi/host.h"
#include "tests/support/lks_file.h"
#include "tests/support/places.h"
#include "tests/support/sanitizers.h"

namespace lockstep::test {
namespace {

// On one comm or several, call by call in one order.
const char* const kScripts[] = {"allreduce", "net_allreduce", "group_sendrecv", "alltoall",
                                "graph",     "split",         "shared_split",   "abort",
                                "ce",        "phases",        "netplugin"};
// As in lockstep_test.cc: versions differ in translation, which has no threads.
const std::vector<int> kVersions = kThreadSanitizer ? std::vector{4, 7} : std::vector{1, 2, 3, 4, 5, 6, 7};
const char* const kModes[] = {"off", "lite", "default", "deep", "sample=1/2"};

std::string library(const std::string& name) { return LOCKSTEP_LIB_DIR "/lib" + name + ".so"; }
std::string echo_of(int version) { return library("echo-plugin-v" + std::to_string(version)); }

struct Chained {
  Finished finished;
  Json report;
  Lines calls;  // what the other plugin saw
};

class Chain : public Host {
 protected:
  // Alone, as NCCL loads it, or behind ours if `mode` is not empty.
  Chained drive(const std::string& plugin, const std::string& mode, std::vector<std::string> words,
                Environment environment = {}) const {
    const std::string log = path("other.jsonl");
    std::filesystem::remove(log);
    std::filesystem::remove_all(path("run"));
    environment["ECHO_LOG"] = log;
    environment["NCCL_DEBUG"] = "INFO";
    words.insert(words.end(), {"--report", "json"});
    if (!mode.empty()) {
      environment["LOCKSTEP_CHAIN"] = plugin;
      environment["LOCKSTEP_DIR"] = path("run");
      environment["LOCKSTEP_MODE"] = mode;
    }
    Chained chained{host(mode.empty() ? plugin : library("lockstep-nccl"), words, environment), {}, {}};
    EXPECT_EQ(chained.finished.code, 0) << chained.finished;
    chained.report = Json::parse(chained.finished.out, nullptr, false);
    EXPECT_TRUE(chained.report.is_object()) << chained.finished;
    if (std::filesystem::exists(log)) chained.calls = parse_lines(read_file(log));
    std::erase_if(chained.calls, [](const Json& line) { return line["call"] == "tape"; });
    return chained;
  }
  LksFile our_file() const {
    for (const auto& entry : std::filesystem::directory_iterator(path("run")))
      if (entry.path().extension() == ".lks") return LksFile(entry.path());
    ADD_FAILURE() << "no file";
    return LksFile("");
  }
  static std::string note(const LksFile& file, const std::string& key) {
    std::string value;
    for (const auto& note : file.all<format::NoteDef>(format::Def::kNote))
      if (note.key == key) value = note.value;
    return value;
  }
};

// Without what differs by nature: when, on which thread and in which process.
Lines comparable(Lines lines, const std::set<std::string>& but = {}) {
  for (Json& line : lines) {
    for (const char* key : {"t", "tid", "pid"}) line.erase(key);
    if (line.value("state", 0) == 21) line.erase("raw");  // an address
    for (const std::string& key : but) line.erase(key);
  }
  return lines;
}

// NCCL stops an event of a network plugin without a look at its handle.
Lines without_null(Lines lines) {
  std::erase_if(lines, [](const Json& line) { return line["call"] != "start" && line.value("h", 1) == 0; });
  return lines;
}

void expect_same(const Lines& got, const Lines& want, const std::string& what) {
  ASSERT_GE(want.size(), 2u) << what;
  for (size_t i = 0; i < std::min(got.size(), want.size()); ++i)
    ASSERT_EQ(got[i], want[i]) << what << ", call " << i;
  ASSERT_EQ(got.size(), want.size()) << what;
}

// Every handle, parent and context is one that the plugin gave, an event is started before anything else is
// said of it, and states are of kinds that the event can have.
void expect_own(const Lines& calls, const std::string& what, bool foreign_parents = false) {
  std::map<uint64_t, uint64_t> types;
  std::set<uint64_t> contexts{0};
  for (const Json& line : calls) {
    const std::string call = line["call"];
    if (call == "init") contexts.insert(line["ctx"].get<uint64_t>());
    if (call == "start" || call == "finalize") {
      ASSERT_TRUE(contexts.contains(line["ctx"].get<uint64_t>())) << what << ": " << line;
    }
    if (call == "start") {
      const uint64_t type = line["type"];
      for (const char* key : {"parent", "parentGroup"}) {
        const uint64_t parent = line.value(key, uint64_t{0});
        ASSERT_TRUE(parent == 0 || types.contains(parent) || (foreign_parents && type == 8))
            << what << ": " << line;
      }
      if (line["h"] != 0) types[line["h"]] = type;
    } else if (call == "stop" || call == "state") {
      ASSERT_TRUE(types.contains(line["h"].get<uint64_t>())) << what << ": " << line;
      if (call == "stop") continue;
      const int state = line["state"];
      const uint64_t type = types[line["h"]];
      const uint64_t wanted = state <= 7 || state == 19    ? 0x8
                              : state <= 12 || state == 20 ? 0x10
                              : state <= 18                ? 0x20
                              : state == 21                ? 0x80
                              : state == 22                ? 0x40
                              : state <= 24                ? 0x100
                                                           : 0x8000;
      ASSERT_EQ(type, wanted) << what << ": " << line;
    }
  }
}

class ChainScript : public Chain, public ::testing::WithParamInterface<const char*> {};

TEST_P(ChainScript, TheSameVersionSeesTheSame) {
  for (int api : kVersions) {
    const Chained alone = drive(library("echo-plugin"), "", script(GetParam(), api));
    for (const char* mode : kModes) {
      const std::string what = "v" + std::to_string(api) + " in mode " + mode;
      const Chained behind = drive(library("echo-plugin"), mode, script(GetParam(), api));
      expect_same(comparable(behind.calls), comparable(alone.calls), what);
      EXPECT_EQ(behind.report["unwritten_handles"], 0) << what;
      expect_own(behind.calls, what);
    }
  }
}

// What an older version sees is what NCCL's own adapters would tell it; a newer one of the same era misses
// what NCCL cannot know.
TEST_P(ChainScript, EveryPairOfVersionsSeesWhatTheAdaptersTell) {
  const std::string name = GetParam();
  for (int other : kVersions) {
    const Chained alone = drive(echo_of(other), "", script(name, other));
    for (int api : kVersions) {
      if (api == other) continue;
      const std::string what = "v" + std::to_string(other) + " where NCCL speaks v" + std::to_string(api);
      const Chained behind = drive(echo_of(other), "deep", script(name, api));
      if (other > api && api < 5) {
        EXPECT_TRUE(behind.calls.empty()) << what;
        EXPECT_NE(note(our_file(), format::kNoteChained).find("has versions v" + std::to_string(other)),
                  std::string::npos)
            << what;
        if (api >= 4) {
          EXPECT_NE(behind.finished.err.find("no profiler plugin is chained"), std::string::npos) << what;
        }
        continue;
      }
      expect_own(behind.calls, what);
      // Newer events and fields are missing.
      if (other > api && (name == "ce" || name == "phases")) continue;
      std::set<std::string> but{"raw", "args"};  // uninitialised in the adapters, 0 from us
      if (other > api) but.insert({"userTag", "kernelVariant", "isSymColl"});
      if (api == 7) but.insert("rank");  // v7 has it with API events, too
      Lines got = comparable(behind.calls, but), want = comparable(alone.calls, but);
      if (other == 4) {  // its adapter forgets the channels of a send
        for (Lines* lines : {&got, &want})
          for (Json& line : *lines)
            if (line.value("type", 0) == 4) line.erase("nChannels");
      }
      expect_same(got, want, what);
    }
  }
}

// What is stored does not depend on who else watches. Threads that take turns may share a log or not, so
// links and stops between logs are left out.
TEST_P(ChainScript, OurFileIsWhatItIsUnchained) {
  const auto events_of = [](const LksFile& file) {
    std::map<std::pair<uint32_t, uint32_t>, size_t> all;
    for (const Entry& entry : file.records())
      if (!entry.is(format::Kind::kLink) && !entry.is(format::Kind::kState))
        ++all[{entry.kind, entry.head().flags & ~format::kFlagStopped}];
    return all;
  };
  for (int api : kThreadSanitizer ? std::vector{6} : std::vector{2, 4, 5, 6, 7}) {
    for (const char* mode : {"lite", "default", "deep", "sample=1/2"}) {
      drive("none", mode, script(GetParam(), api));
      const LksFile without = our_file();
      for (const char* mask : {"0", "0x2", "0x42", "0xffff"}) {
        const std::string what =
            "v" + std::to_string(api) + " in mode " + mode + ", the other's mask " + mask;
        // Up to v4 replays are not sampled for want of kernels, which the other may bring.
        if (api <= 4 && std::string(GetParam()) == "graph" && mode[0] == 's' &&
            std::string_view(mask) != "0x2")
          continue;
        drive(library("echo-plugin"), mode, script(GetParam(), api), {{"ECHO_MASK", mask}});
        const LksFile with = our_file();
        EXPECT_EQ(events_of(with), events_of(without)) << what;
        EXPECT_EQ(with.lost(), without.lost()) << what;
        EXPECT_EQ(with.header().event_mask, without.header().event_mask) << what;
      }
    }
  }
}

TEST_P(ChainScript, MasksAreEachOnesOwn) {
  for (int api : {3, 4, 6, 7}) {
    for (const char* mask :
         {"0", "0x1", "0x2", "0x40", "0x42", "0x10", "0x20", "0x800", "0x1000", "0x2107"}) {
      const Environment environment{{"ECHO_MASK", mask}};
      const Chained alone = drive(library("echo-plugin"), "", script(GetParam(), api), environment);
      for (const char* mode : {"lite", "deep"}) {
        const std::string what = "v" + std::to_string(api) + ", mask " + mask + " beside " + mode;
        const Chained behind = drive(library("echo-plugin"), mode, script(GetParam(), api), environment);
        EXPECT_EQ(without_null(comparable(behind.calls)), without_null(comparable(alone.calls))) << what;
      }
    }
  }
}

TEST_P(ChainScript, DeclinedEventsAreNone) {
  for (int api : {3, 4, 5, 7}) {
    for (const char* decline : {"0x1", "0x2", "0x8", "0x40", "0x100", "0x200", "0x1000", "0x3ff"}) {
      const std::string what = "v" + std::to_string(api) + ", declining " + decline;
      const Environment environment{{"ECHO_DECLINE", decline}};
      const Chained alone = drive(library("echo-plugin"), "", script(GetParam(), api), environment);
      const Chained behind = drive(library("echo-plugin"), "default", script(GetParam(), api), environment);
      EXPECT_EQ(without_null(comparable(behind.calls)), without_null(comparable(alone.calls))) << what;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(All, ChainScript, ::testing::ValuesIn(kScripts),
                         [](const auto& info) { return std::string(info.param); });

// The plugin may change its mind at any time, as NCCL lets it.
TEST_F(Chain, AMaskThatChangesIsFollowed) {
  for (int api : kThreadSanitizer ? std::vector{6} : std::vector{4, 6, 7}) {
    for (int after = 1 + api % 3; after <= 40; after += kSanitized ? 7 : 3) {
      for (const char* masks : {"0xffff>0", "0>0xffff", "0x2>0x42", "0x42>0x2", "0x18>0"}) {
        const std::string text = masks;
        const size_t at = text.find('>');
        const Environment environment{{"ECHO_MASK", text.substr(0, at)},
                                      {"ECHO_MASK_LATER", std::to_string(after) + ":" + text.substr(at + 1)}};
        const Chained alone = drive(library("echo-plugin"), "", script("net_allreduce", api), environment);
        const Chained behind =
            drive(library("echo-plugin"), "lite", script("net_allreduce", api), environment);
        ASSERT_EQ(comparable(behind.calls), comparable(alone.calls))
            << "v" << api << ", " << masks << " after " << after;
      }
    }
  }
}

TEST_F(Chain, OldCoresTellAllTheyKnow) {
  for (int api = 1; api <= 3; ++api) {
    const auto words = script("net_allreduce", api, {"--fault", "old_core"});
    const Chained alone = drive(echo_of(api), "", words);
    expect_same(comparable(drive(echo_of(api), "lite", words).calls), comparable(alone.calls),
                "v" + std::to_string(api));
  }
  // Versions 1 to 3 have the same states.
  const Chained newer = drive(echo_of(1), "deep", script("net_allreduce", 2, {"--fault", "old_core"}));
  EXPECT_GT(std::count_if(newer.calls.begin(), newer.calls.end(),
                          [](const Json& line) { return line["call"] == "state" && line["state"] < 8; }),
            0);
}

TEST_F(Chain, RecordingsSeeTheSame) {
  for (const std::string name : {"hang_torn", "copy_engine", "graph", "mix", "two_hosts"}) {
    for (int api : {4, 6}) {
      const Chained alone = drive(library("echo-plugin"), "", tape(name, api));
      const Chained behind = drive(library("echo-plugin"), "default", tape(name, api));
      expect_same(comparable(behind.calls), comparable(alone.calls), name + " v" + std::to_string(api));
    }
  }
}

// Operations of another process: its handles stay opaque, its communicators are unknown, and what hangs below
// is ours.
TEST_F(Chain, OperationsOfAnotherProcessAreToldAsSuch) {
  for (int api = 1; api <= 7; ++api) {
    const Chained alone = drive(library("echo-plugin"), "", script("pxn", api));
    for (const char* mode : {"off", "lite", "deep"}) {
      const Chained behind = drive(library("echo-plugin"), mode, script("pxn", api));
      const std::string what = "v" + std::to_string(api) + " in mode " + mode;
      expect_own(behind.calls, what, true);
      const auto outline = [](const Lines& lines) {
        std::vector<std::string> all;
        for (const Json& line : lines)
          all.push_back(line["call"].get<std::string>() + " " + line.value("h", Json()).dump() + " " +
                        line.value("type", Json()).dump() + " " + line.value("state", Json()).dump());
        return all;
      };
      EXPECT_EQ(outline(behind.calls), outline(alone.calls)) << what;
      if (std::string(mode) != "off") {
        EXPECT_GT(std::stoul("0" + note(our_file(), format::kNoteChainMissed)), 0u) << what;
      }
    }
  }
}

// Stale, repeated, forged and late calls: never a handle that the plugin did not give.
TEST_F(Chain, FaultsReachThePluginAsItsOwnEvents) {
  for (const char* name : {"net_allreduce", "graph", "shared_split", "netplugin", "group_sendrecv"}) {
    for (const char* fault :
         {"foreign_handle", "double_stop", "stale_kernelch", "duplicate_steps", "ring_overrun",
          "peer_wait_repeats", "events_after_finalize", "garbage_args", "poison"}) {
      for (int api : {3, 5, 7}) {
        for (const char* mode : {"lite", "deep"}) {
          const std::string what =
              std::string(name) + " v" + std::to_string(api) + " with " + fault + " beside " + mode;
          const Chained behind = drive(library("echo-plugin"), mode, script(name, api, {"--fault", fault}));
          expect_own(behind.calls, what);
          EXPECT_GT(behind.calls.size(), 10u) << what;
          EXPECT_EQ(behind.report["unwritten_handles"], 0) << what;
        }
      }
    }
  }
}

TEST_F(Chain, ManyThreads) {
  for (const char* name : {"threads", "many_comms", "load_cycle"}) {
    for (int api : kThreadSanitizer ? std::vector{6} : std::vector{4, 6, 7}) {
      const auto words = script(name, api, {"--events", kThreadSanitizer ? "10" : "50"});
      const Chained alone = drive(library("echo-plugin"), "", words);
      for (const char* mode : {"lite", "deep"}) {
        const std::string what = std::string(name) + " v" + std::to_string(api) + " beside " + mode;
        const Chained behind = drive(library("echo-plugin"), mode, words);
        expect_own(behind.calls, what);
        for (const char* call : {"init", "start", "state", "stop", "finalize"}) {
          const auto count = [&](const Lines& lines) {
            return std::count_if(lines.begin(), lines.end(),
                                 [&](const Json& line) { return line["call"] == call; });
          };
          EXPECT_EQ(count(behind.calls), count(alone.calls)) << what << ", " << call;
        }
      }
    }
  }
}

TEST_F(Chain, AFailedInitLeavesThePluginOutOfThatCommunicator) {
  const Chained none = drive(library("echo-plugin"), "deep", script("split", 6), {{"ECHO_FAIL_INIT", "1"}});
  EXPECT_EQ(none.calls.size(), 2u);
  for (const Json& line : none.calls) EXPECT_EQ(line["call"], "init");
  EXPECT_NE(none.finished.err.find("echo failed to start for a communicator (error 3)"), std::string::npos)
      << none.finished;
  EXPECT_GT(our_file().count(format::Kind::kColl), 5u);

  const Chained one = drive(library("echo-plugin"), "deep", script("split", 6), {{"ECHO_FAIL_RANK", "1"}});
  EXPECT_EQ(one.calls[1]["call"], "start");
  const Json child = one.calls[0]["ctx"];
  std::set<Json> contexts;
  for (const Json& line : one.calls)
    if (line["call"] == "start" || line["call"] == "finalize") contexts.insert(line["ctx"]);
  EXPECT_EQ(contexts, std::set<Json>{child}) << "only of the communicator in which it is rank 3";
  EXPECT_EQ(our_file().count(format::Def::kCommEnd), 2u);
}

TEST_F(Chain, WhatCannotBeChainedIsSaidOnceAndHarmless) {
  write_file(path("text.so"), "no library\n");
  std::string foreign_class = read_file(library("empty-plugin"));
  foreign_class[4] = 1;  // ELFCLASS32
  write_file(path("class.so"), foreign_class);
  std::filesystem::copy_file(library("lockstep-nccl"), path("copy.so"));
  const std::map<std::string, std::string> bad = {
      {path("missing.so"), "cannot be loaded"},  {path("text.so"), "cannot be loaded"},
      {path("class.so"), "cannot be loaded"},    {"nothing-of-this-name", "cannot be loaded"},
      {"libz.so.1", "is not a profiler plugin"}, {library("lockstep-nccl"), "is Lockstep itself"},
      {path("copy.so"), "is Lockstep itself"}};
  for (const auto& [plugin, why] : bad) {
    const Chained chained = drive(plugin, "deep", script("split", 6));
    const std::string& err = chained.finished.err;
    const size_t at = err.find("no profiler plugin is chained: " + plugin + " " + why);
    EXPECT_NE(at, std::string::npos) << chained.finished;
    EXPECT_EQ(err.find("no profiler plugin is chained", at + 1), std::string::npos)
        << "once: " << chained.finished;
    EXPECT_EQ(note(our_file(), format::kNoteChained).substr(0, 6), "none: ");
    EXPECT_GT(our_file().count(format::Kind::kColl), 5u) << plugin;
  }
}

TEST_F(Chain, NoneAndEmptySwitchItOff) {
  for (const char* off : {"none", "NONE", ""}) {
    const Chained chained = drive(off, "deep", script("split", 6));
    EXPECT_EQ(chained.finished.err.find("chained"), std::string::npos) << chained.finished;
    EXPECT_EQ(note(our_file(), format::kNoteChained), "");
  }
}

TEST_F(Chain, MissingFunctionsAreNotCalled) {
  const Chained newer = drive(library("hollow-plugin"), "lite", script("net_allreduce", 6));
  EXPECT_NE(newer.finished.err.find("chained the profiler plugin (unnamed) (v4)"), std::string::npos)
      << newer.finished;
  drive(library("hollow-plugin"), "lite", script("net_allreduce", 3));
  EXPECT_NE(note(our_file(), format::kNoteChained).find("has no init"), std::string::npos);
}

TEST_F(Chain, TheFileNamesThePlugin) {
  drive(echo_of(5), "default", script("allreduce", 6));
  const LksFile file = our_file();
  EXPECT_EQ(note(file, format::kNoteChained), "echo v5, " + echo_of(5));
  EXPECT_EQ(note(file, format::kNoteChainMissed), "");
}

}  // namespace
}  // namespace lockstep::test
