// SPDX-License-Identifier: Apache-2.0
// liblockstep-nccl.so under every script, API version and fault: no crash, no rule of the interface broken, a
// file left behind. What the files hold is tested where they are read.
#include "tests/abi/host.h"
#include "tests/support/places.h"
#include "tests/support/sanitizers.h"

namespace lockstep::test {
namespace {

const char* const kFaults[] = {
    "null_handles", "foreign_handle",    "double_stop",           "stale_kernelch", "duplicate_steps",
    "ring_overrun", "peer_wait_repeats", "events_after_finalize", "init_race",      "garbage_args",
    "poison",       "old_core"};

// Versions differ in what they translate, on the caller's thread: where races are looked for, one that tells
// communicators at their start and one that does not will do.
const std::vector<int> kVersions = kThreadSanitizer ? std::vector{3, 7} : std::vector{1, 2, 3, 4, 5, 6, 7};

class Lockstep : public Host {
 protected:
  void survives(std::vector<std::string> words, const std::string& mode = "deep") const {
    const std::string run = path("run");
    std::filesystem::remove_all(run);
    words.insert(words.end(), {"--report", "json"});
    const Finished finished = host(LOCKSTEP_LIB_DIR "/liblockstep-nccl.so", words,
                                   {{"LOCKSTEP_DIR", run}, {"LOCKSTEP_MODE", mode}});
    std::string shown;
    for (const std::string& word : words) shown += word + " ";
    ASSERT_EQ(finished.code, 0) << shown << finished;
    const Json report = Json::parse(finished.out, nullptr, false);
    ASSERT_TRUE(report.is_object()) << shown << finished;
    EXPECT_EQ(report["unwritten_handles"], 0) << shown;
    EXPECT_EQ(report["failed_calls"], 0) << shown;
    EXPECT_EQ(report["after_unload"], 0) << shown;
    size_t files = 0;
    for (const auto& entry : std::filesystem::directory_iterator(run))
      files += entry.path().extension() == ".lks";
    EXPECT_EQ(files, 1u) << shown;
  }
};

class LockstepScript : public Lockstep, public ::testing::WithParamInterface<const char*> {};

TEST_P(LockstepScript, SurvivesEveryVersionAndFault) {
  const std::vector<std::string> size = {"--events",
                                         std::string(GetParam()) == "million_comms" ? "500" : "4"};
  for (int api : kVersions) {
    survives(script(GetParam(), api, size));
    for (const char* fault : kFaults) {
      auto words = script(GetParam(), api, size);
      words.insert(words.end(), {"--fault", fault});
      survives(words);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(All, LockstepScript,
                         ::testing::Values("allreduce", "net_allreduce", "group_sendrecv", "alltoall",
                                           "graph", "split", "shared_split", "abort", "pxn", "ce", "phases",
                                           "netplugin", "many_comms", "threads", "load_cycle",
                                           "million_comms"),
                         [](const auto& info) { return std::string(info.param); });

TEST_F(Lockstep, SurvivesRecordingsInEveryMode) {
  for (const char* mode : {"lite", "default", "deep"})
    for (const char* name : {"hang_torn", "copy_engine", "graph", "mix", "two_hosts"})
      for (int api : kVersions) survives(tape(name, api), mode);
}

TEST_F(Lockstep, SurvivesAllFaultsAtOnce) {
  for (int api : kVersions) {
    std::vector<std::string> faults;
    for (const char* fault : kFaults) faults.insert(faults.end(), {"--fault", fault});
    survives(tape("two_hosts", api, faults));
  }
}

TEST_F(Lockstep, SurvivesAMillionComms) { survives(script("million_comms", 6)); }

}  // namespace
}  // namespace lockstep::test
