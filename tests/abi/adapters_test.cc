// SPDX-License-Identifier: Apache-2.0
// What each API version is told: events, fields, states and argument pointers, as NCCL's cores and adapters
// tell it.
#include <algorithm>

#include "tests/abi/host.h"

namespace lockstep::test {
namespace {

class Adapters : public Host {};

constexpr uint64_t kGarbage = 0xa5a5a5a5a5a5a5a5;
constexpr uint64_t kGroup = 1, kColl = 2, kP2p = 4, kProxyOp = 8, kProxyStep = 16, kProxyCtrl = 32,
                   kKernelCh = 64, kGroupApi = 256, kCollApi = 512, kKernelLaunch = 2048;

TEST_F(Adapters, ParentIsTheGroupUpToV4AndTheApiCallAfterwards) {
  for (int api = 1; api <= 7; ++api) {
    const Played played = echo(script("allreduce", api));
    const Json group = played.of("start", kGroup).at(0), coll = played.of("start", kColl).at(0);
    if (api <= 4) {
      EXPECT_EQ(coll["parent"], group["h"]) << api;
      EXPECT_FALSE(coll.contains("parentGroup"));
    } else {
      EXPECT_EQ(coll["parent"], played.of("start", kCollApi).at(0)["h"]) << api;
      EXPECT_EQ(coll["parentGroup"], group["h"]) << api;
    }
    EXPECT_EQ(coll["rank"], 3);
    // Only the newest core fills the rank of API events.
    if (api >= 5) {
      EXPECT_EQ(played.of("start", kGroupApi).at(0)["rank"], api == 7 ? 3 : 0);
    }
  }
}

TEST_F(Adapters, FieldsThatVersionsLose) {
  for (int api = 1; api <= 3; ++api) {
    const Json coll = echo(script("allreduce", api)).of("start", kColl).at(0);
    EXPECT_EQ(coll["name"], "(null)");
    EXPECT_EQ(coll["commHash"], 0);
    EXPECT_EQ(coll["nChannels"], 4);
    if (api <= 2) {
      EXPECT_EQ(coll["trafficBytes"], 0);
    }
    if (api == 1) {
      EXPECT_EQ(coll["func"], 4);
      EXPECT_EQ(coll["datatype"], 7);
      EXPECT_EQ(coll["algo"], 1);
      EXPECT_EQ(coll["proto"], 2);
    } else {
      EXPECT_EQ(coll["func"], "AllReduce");
      EXPECT_EQ(coll["datatype"], "ncclFloat32");
    }
  }
  for (int api = 4; api <= 7; ++api) {
    const int channels = echo(script("alltoall", api)).of("start", kP2p).at(0)["nChannels"];
    EXPECT_EQ(channels, api == 4 ? 0xa5 : 1) << "v4's adapter forgets p2p.nChannels";
  }
}

TEST_F(Adapters, V1CodesFallBackToTheAdaptersDefaults) {
  std::string text = "{\"call\":\"tape\",\"version\":1,\"pid\":7}\n";
  text += "{\"tid\":7,\"call\":\"init\",\"api\":5,\"ctx\":16,\"nranks\":2}\n";
  text += "{\"tid\":7,\"call\":\"start\",\"ctx\":16,\"h\":32,\"type\":1}\n";
  text +=
      "{\"tid\":7,\"call\":\"start\",\"ctx\":16,\"h\":48,\"type\":2,\"parentGroup\":32,\"func\":\"Strange\","
      "\"datatype\":\"Unknown\",\"algo\":\"Unknown\",\"proto\":\"Unknown\"}\n";
  text +=
      "{\"tid\":7,\"call\":\"start\",\"ctx\":16,\"h\":64,\"type\":4,\"parentGroup\":32,\"func\":\"Recv\","
      "\"datatype\":\"ncclFloat8e4m3\"}\n";
  write_file(path("codes.jsonl"), text);
  const Played played = echo({"--api", "1", path("codes.jsonl")});
  const Json coll = played.of("start", kColl).at(0), p2p = played.of("start", kP2p).at(0);
  EXPECT_EQ(coll["func"], 6);
  EXPECT_EQ(coll["datatype"], 8);
  EXPECT_EQ(coll["algo"], 6);
  EXPECT_EQ(coll["proto"], 2);
  EXPECT_EQ(p2p["func"], 7);
  EXPECT_EQ(p2p["datatype"], 8);
}

TEST_F(Adapters, StatesAndTheirArguments) {
  for (int api = 1; api <= 7; ++api) {
    const Played played = echo(script("net_allreduce", api));
    const auto first = [&](int state) {
      return played.states(state).empty() ? Json() : played.states(state)[0];
    };
    // Step states: no sizes up to v3, and no peer wait.
    EXPECT_EQ(first(9)["raw"], api <= 3 ? 0 : 1 << 20) << api;
    EXPECT_EQ(first(11)["raw"], api <= 3 ? 0 : 1 << 20) << api;
    EXPECT_EQ(played.states(20).empty(), api <= 3) << api;
    EXPECT_EQ(first(18)["raw"], 6) << api;
    EXPECT_EQ(played.states(19).empty(), api <= 3) << api;
    if (api >= 4) {
      EXPECT_EQ(first(19)["raw"], api == 4 ? kGarbage : 0) << api;
    }
    EXPECT_EQ(played.states(22).empty(), api <= 3) << api;
    if (api >= 4) {
      EXPECT_GT(first(22)["raw"], 1'700'000'000'000'000'000u);
    }
    EXPECT_EQ(played.states(23).empty(), api <= 4) << api;
    if (api == 5 || api == 6) {
      EXPECT_EQ(first(23)["args"], "null");
      EXPECT_EQ(first(24)["args"], "null");
    }
    if (api == 7) {
      EXPECT_EQ(first(23)["raw"], 0);
    }
    for (int state = 0; state <= 7; ++state) EXPECT_TRUE(played.states(state).empty()) << api;
    if (api >= 3) {
      EXPECT_EQ(played.of("start", kKernelCh).at(0).contains("pTimer"), api >= 4);
    }
  }
}

TEST_F(Adapters, V5OnANewerCore) {
  const Played played = echo(script("ce", 5));
  EXPECT_EQ(played.report["mask"].get<int>() & 0x7000, 0);
  EXPECT_EQ(played.report["events"]["CeColl"], 0);
  EXPECT_EQ(played.states(23).at(0)["raw"], kGarbage);
  EXPECT_EQ(played.states(24).at(0)["raw"], kGarbage);
  EXPECT_EQ(echo(script("ce", 6)).report["events"]["CeSync"], 8);
}

TEST_F(Adapters, OldCoreKeepsProgressOnTheProxyOp) {
  const Played played = echo(script("net_allreduce", 3, {"--fault", "old_core"}));
  EXPECT_EQ(played.states(9).at(0)["args"], "null");
  EXPECT_EQ(played.of("start", kColl).at(0)["name"], "old");
  const Lines sent = played.states(2);
  ASSERT_EQ(sent.size(), 4u * 2 * 12);
  EXPECT_EQ(sent[0]["transSize"], 1 << 20);
  EXPECT_EQ(sent[1]["transSize"], 2 << 20) << "bytes of the operation so far";
  EXPECT_EQ(played.states(7).size(), sent.size());
  EXPECT_EQ(played.states(3).size(), sent.size());
}

TEST_F(Adapters, MaskIsWidenedToParents) {
  const Played only_coll = echo(script("net_allreduce", 5), {{"ECHO_MASK", "2"}});
  const Json& events = only_coll.report["events"];
  EXPECT_EQ(events["Coll"], 4);
  EXPECT_EQ(events["Group"], 4);
  EXPECT_EQ(events["CollApi"], 4);
  EXPECT_EQ(events["GroupApi"], 4);
  for (const char* kind : {"KernelLaunch", "KernelCh", "ProxyOp", "ProxyStep", "ProxyCtrl"})
    EXPECT_EQ(events[kind], 0);
  const Played only_steps = echo(script("net_allreduce", 5), {{"ECHO_MASK", "16"}});
  EXPECT_EQ(only_steps.report["events"]["ProxyOp"], 16);
  EXPECT_EQ(only_steps.report["events"]["ProxyStep"], 192);
  EXPECT_EQ(only_steps.report["events"]["KernelCh"], 0);
  const Played nothing = echo(script("net_allreduce", 5), {{"ECHO_MASK", "0"}});
  EXPECT_EQ(nothing.calls.size(), 2u) << "init and finalize";
}

TEST_F(Adapters, MaskIsTakenAtTheGroupAndLiveForProxyCtrl) {
  // The first group's 1st start is its GroupApi: everything under it is still played, the next group is not.
  const Played played = echo(script("allreduce", 5), {{"ECHO_MASK_LATER", "5:0"}});
  EXPECT_EQ(played.report["events"]["GroupApi"], 1);
  EXPECT_EQ(played.report["events"]["KernelCh"], 4);
  EXPECT_EQ(played.report["events"]["ProxyCtrl"], 1);
}

TEST_F(Adapters, DeclinedHandles) {
  for (const int api : {3, 4, 5, 7}) {
    const Played played = echo(script("net_allreduce", api), {{"ECHO_DECLINE", "9"}});  // Group and ProxyOp
    const Json& events = played.report["events"];
    EXPECT_EQ(events["Coll"], api <= 4 ? 0 : 4) << "older cores start no child of a NULL parent";
    EXPECT_EQ(events["ProxyStep"], api <= 4 ? 0 : 192);
    EXPECT_EQ(played.report["null_handles"], 4 + 16);
    for (const Json& line : played.of("start", kProxyStep)) EXPECT_EQ(line["parent"], 0);
    for (const int state : {8, 9, 10, 19}) EXPECT_TRUE(played.states(state).empty()) << api << " " << state;
    for (const Json& line : played.of("stop")) EXPECT_NE(line["h"], 0);
  }
  // Network code stops what was declined.
  const Played net = echo(script("netplugin", 5), {{"ECHO_DECLINE", "128"}});
  const Lines stops = net.of("stop");
  EXPECT_EQ(std::count_if(stops.begin(), stops.end(), [](const Json& line) { return line["h"] == 0; }), 12);
  EXPECT_EQ(net.states(21).at(0)["h"], 0);
}

TEST_F(Adapters, BrokenPluginsAreStatus3) {
  for (int api = 1; api <= 7; ++api) {
    const bool is_native = api >= 5;  // adapters hand out zeroed handles
    const Played unwritten = echo(script("allreduce", api), {{"ECHO_UNWRITTEN", "2"}});
    EXPECT_EQ(unwritten.code, is_native ? 3 : 0) << api;
    EXPECT_EQ(unwritten.report["unwritten_handles"], is_native ? 16 : 0) << api;
    EXPECT_EQ(echo(script("allreduce", api, {"--fault", "poison"}), {{"ECHO_UNWRITTEN", "2"}}).code, 3)
        << api;
  }
  const Played failed = echo(script("allreduce", 5), {{"ECHO_FAIL_INIT", "1"}});
  EXPECT_EQ(failed.code, 3);
  EXPECT_EQ(failed.report["failed_inits"], 1);
  EXPECT_TRUE(failed.of("finalize").empty());
  for (const Json& line : failed.of("start")) EXPECT_EQ(line["ctx"], 0);
}

TEST_F(Adapters, CountsOfIdenticalCollectives) {
  const Played played = echo(script("allreduce", 6));
  const Json& events = played.report["events"];
  for (const char* kind : {"GroupApi", "CollApi", "KernelLaunch", "Group", "Coll"})
    EXPECT_EQ(events[kind], 16) << kind;
  EXPECT_EQ(events["KernelCh"], 16 * 4);
  EXPECT_EQ(played.states(23).size(), 16u);
  EXPECT_EQ(played.states(24).size(), 16u);
  EXPECT_EQ(played.states(22).size(), 16u * 4);
  const Played net = echo(script("net_allreduce", 6));
  EXPECT_EQ(net.report["events"]["ProxyOp"], 4 * 2 * 2);
  EXPECT_EQ(net.report["events"]["ProxyStep"], 4 * 2 * 2 * 12);
  for (const int state : {8, 20, 9, 10, 11, 12}) EXPECT_EQ(net.states(state).size(), 4u * 2 * 12) << state;
  EXPECT_EQ(net.states(19).size(), 4u * 2 * 2);
}

TEST_F(Adapters, NewestEvents) {
  EXPECT_EQ(echo(script("phases", 6)).report["events"]["KernelPhase"], 0);
  const Played played = echo(script("phases", 7));
  EXPECT_EQ(played.report["events"]["KernelPhase"], 4 * 2 * 3);
  EXPECT_EQ(played.of("start", 0x8000).at(1)["phaseName"], "compute");
  EXPECT_EQ(played.of("start", kColl).at(0)["kernelVariant"], "LSA_LL");
  EXPECT_EQ(played.of("start", kColl).at(0)["isSymColl"], 1);
  EXPECT_EQ(played.of("start", kColl).at(0)["userTag"], 42);
}

TEST_F(Adapters, ForeignPointersArriveAsTheyAre) {
  const Played played = echo(script("pxn", 5));
  const Lines ops = played.of("start", kProxyOp);
  ASSERT_EQ(ops.size(), 4u);
  EXPECT_EQ(ops[0]["ctx"], 0x6fdead00001000);
  EXPECT_EQ(ops[0]["parent"], 0x100000001);
  EXPECT_EQ(ops[0]["pid"], 4'000'001);
}

TEST_F(Adapters, FaultsDoWhatTheySay) {
  const auto with = [&](const std::string& name, const std::string& fault) {
    return echo(script(name, 5, {"--fault", fault}));
  };
  const Played plain = echo(script("net_allreduce", 5));
  const size_t stops = plain.of("stop").size(), states = plain.of("state").size();
  EXPECT_EQ(with("net_allreduce", "double_stop").of("stop").size(), 2 * stops + 4 * 5)
      << "a third time on the thread that finalizes";
  EXPECT_EQ(with("net_allreduce", "peer_wait_repeats").states(20).size(), 4 * plain.states(20).size());
  EXPECT_EQ(with("net_allreduce", "duplicate_steps").of("start", kProxyStep).size(), 96u + 4 * 96u);
  const Played nulls = with("net_allreduce", "null_handles");
  EXPECT_EQ(nulls.of("stop").size() + nulls.of("state").size(), stops + states + (stops + states) / 5);
  EXPECT_LT(with("allreduce", "stale_kernelch").of("start", kKernelCh).size(), 64u);
  EXPECT_EQ(with("allreduce", "garbage_args").states(23).at(0)["raw"], kGarbage);
  const Played late = with("allreduce", "events_after_finalize");
  EXPECT_EQ(late.of("init").size(), 2u);
  const auto is_finalize = [](const Json& line) { return line["call"] == "finalize"; };
  const auto first = std::find_if(late.calls.begin(), late.calls.end(), is_finalize);
  EXPECT_GT(std::count_if(first, late.calls.end(), [](const Json& line) { return line["call"] == "stop"; }),
            3);
  EXPECT_EQ(with("allreduce", "init_race").of("init").size(), 1u + 4 * 64);
  const Lines all = with("allreduce", "foreign_handle").calls;
  EXPECT_EQ(std::count_if(all.begin(), all.end(),
                          [](const Json& line) { return line.value("h", uint64_t{0}) == 0x7f00dead0010u; }),
            (193 + 193) / 5);
}

TEST_F(Adapters, LibraryIsClosedAfterTheLastCommAndLoadedAgain) {
  const Played played = echo(script("load_cycle", 5, {"--events", "4"}));
  EXPECT_EQ(played.report["loads"], 4);
  EXPECT_EQ(played.of("init").size(), 4u);
  EXPECT_EQ(echo(script("shared_split", 5)).report["loads"], 1);
}

}  // namespace
}  // namespace lockstep::test
