// SPDX-License-Identifier: Apache-2.0
// What every command says of a folder of PyTorch profiler traces: those of eight H200s in tests/data/kineto.
#include <zlib.h>

#include "tests/e2e/workplace.h"
#include "tests/support/places.h"

namespace lockstep::test {
namespace {

std::string unpacked(const std::string& path) {
  std::string text;
  gzFile file = gzopen(path.c_str(), "rb");
  char buffer[1 << 16];
  for (int read; file != nullptr && (read = gzread(file, buffer, sizeof buffer)) > 0;)
    text.append(buffer, static_cast<size_t>(read));
  gzclose(file);
  return text;
}

class ProfilerTraces : public Workplace {
 protected:
  ProfilerTraces() {
    std::filesystem::create_directories(path("traces"));
    for (int rank = 0; rank < 8; ++rank) {
      const std::string name = "rank" + std::to_string(rank) + ".json";
      write_file(path("traces/" + name), unpacked(LOCKSTEP_SOURCE_DIR "/tests/data/kineto/" + name + ".gz"));
    }
    write_file(path("traces/notes.txt"), "not a trace");
  }
  nlohmann::json json_of(const Argv& words, int code) const {
    Finished finished = do_here(lockstep(words));
    EXPECT_EQ(finished.code, code) << finished;
    auto document = nlohmann::json::parse(finished.out, nullptr, false);
    EXPECT_TRUE(document.is_object()) << finished;
    return document;
  }
};

TEST_F(ProfilerTraces, InfoCountsWhatIsThere) {
  const auto document = info("traces");
  EXPECT_EQ(document["files"], 8);
  EXPECT_EQ(document["processes"], 8);
  EXPECT_EQ(document["ops"], 112);
  EXPECT_EQ(document["comms"], 7);
  EXPECT_TRUE(document["losses"].empty()) << document["losses"];
  EXPECT_EQ(document["process_list"][3]["rank"], 3);
  EXPECT_EQ(document["process_list"][3]["gpu_model"], "NVIDIA H200");
}

TEST_F(ProfilerTraces, SummarySplitsTheStepsOfEveryRank) {
  const auto document = json_of({"summary", "--json", "traces"}, 0);
  EXPECT_EQ(document["matched_ops"], 26) << "2 of all, 8 of pairs, 16 of fours";
  EXPECT_EQ(document["matched_ops_without_gpu_times"], 0);
  ASSERT_EQ(document["overlap_list"].size(), 8u);
  for (const auto& rank : document["overlap_list"]) {
    EXPECT_EQ(rank["steps"], 1) << "the second step is not seen to its end";
    const double parts = rank["computing_ns"].get<double>() + rank["exposed_ns"].get<double>() +
                         rank["copying_ns"].get<double>() + rank["idle_ns"].get<double>();
    EXPECT_NEAR(parts, rank["length_ns"].get<double>(), 2);
    EXPECT_LE(rank["hidden_ns"], rank["computing_ns"]);
  }
  EXPECT_LT(document["overlap_list"][4]["exposed_ns"], 1e6) << "rank 4 came last: it waits for nobody";
  EXPECT_GT(document["overlap_list"][6]["exposed_ns"], 10e6);
  const Finished text = do_here(lockstep({"summary", "traces"}));
  EXPECT_TRUE(has(text.out, "GPU time of an average step")) << text;
  EXPECT_TRUE(has(text.out, "dp0 (group 5)")) << text;
}

TEST_F(ProfilerTraces, DiagnoseJudgesThem) {
  const auto document = json_of({"diagnose", "--json", "traces"}, 1);
  for (const auto& finding : document["findings"]) EXPECT_EQ(finding["id"], "imbalance.once") << finding;
  const auto alone = json_of({"diagnose", "--json", "traces/rank0.json"}, 3);
  EXPECT_EQ(alone["findings"][0]["id"], "evidence-missing.files") << alone;
}

TEST_F(ProfilerTraces, MergeKeepsAllOfThem) {
  EXPECT_EQ(do_here(lockstep({"merge", "-o", "trace.db", "traces"})).code, 0);
  auto from_files = json_of({"summary", "--json", "traces"}, 0);
  EXPECT_EQ(json_of({"summary", "--json", "trace.db"}, 0), from_files);
  const Finished kernels =
      do_here({"sqlite3", path("trace.db"),
               "SELECT kind, count(*) FROM kernels GROUP BY kind; SELECT count(*) FROM rocpd_op"});
  EXPECT_EQ(kernels.out, "communication|112\ncompute|1248\ncopy|304\n1664\n") << kernels;
}

TEST_F(ProfilerTraces, ConvertDrawsEveryKernel) {
  EXPECT_EQ(do_here(lockstep({"convert", "-o", "timeline.json", "traces"})).code, 0);
  const Finished rules = do_here(
      {"python3", LOCKSTEP_SOURCE_DIR "/src/exporters/chrome_json/timeline_rules.py", path("timeline.json")});
  EXPECT_EQ(rules.code, 0) << rules;
  EXPECT_TRUE(has(rules.out, "X kernel: 1360")) << rules;
  EXPECT_TRUE(has(rules.out, "X gpu_memcpy: 304")) << rules;
  EXPECT_TRUE(has(rules.out, "C operations in flight: 224")) << rules;
}

TEST_F(ProfilerTraces, ATornOneIsReadAsFarAsItGoes) {
  std::filesystem::resize_file(path("traces/rank2.json"), 8'000);
  const auto document = info("traces");
  EXPECT_EQ(document["processes"], 8);
  EXPECT_LT(document["ops"], 112);
  ASSERT_FALSE(document["losses"].empty());
  EXPECT_EQ(document["losses"][0]["kind"], "cut_file") << document["losses"];
  const Finished verdict = do_here(lockstep({"diagnose", "traces"}));
  EXPECT_FALSE(has(verdict.out, "never called")) << verdict;
}

}  // namespace
}  // namespace lockstep::test
