// SPDX-License-Identifier: Apache-2.0
// `lockstep control` on processes that run: the plugin as a job calls it, and lockstep.h.
#include "format/file_layout.h"
#include "tests/e2e/workplace.h"
#include "tests/support/places.h"

namespace lockstep::test {
namespace {

class ControlJob : public Workplace {
 protected:
  // A job of two processes that goes on until it is told to end.
  std::unique_ptr<Process> live_job(const char* mode = "default") const {
    auto job = std::make_unique<Process>(Argv{LOCKSTEP_BIN_DIR "/lockstep-sim-job", "--live", "--ranks", "2",
                                              "--steps", "1000000", "--mode", mode, "-o", "run"},
                                         here());
    EXPECT_TRUE(wait_until([&] {
      if (!exists("run")) return false;
      Finished info = do_here(lockstep({"info", "--json", "run"}));
      auto document = nlohmann::json::parse(info.out, nullptr, false);
      return document.is_object() && document["process_list"].size() == 2 && document["ops"] > 20;
    }));
    return job;
  }
  Finished control(Argv words) const {
    words.insert(words.begin(), "control");
    words.push_back("run");
    return do_here(lockstep(words));
  }
  uint64_t events(const char* kind) const {
    auto document = info("run");
    return document["events"].contains(kind) ? document["events"][kind].get<uint64_t>() : 0;
  }
  static void end(Process& job) {
    kill(job.pid(), SIGTERM);
    job.wait();
  }
};

TEST_F(ControlJob, ADeepWindowInALiveJobAndWhatInfoSaysOfIt) {
  if (!std::filesystem::exists(LOCKSTEP_BIN_DIR "/lockstep-sim-job")) GTEST_SKIP() << "no simulator";
  auto job = live_job();
  EXPECT_EQ(events("KernelCh"), 0u);
  Finished asked = control({"--mode", "deep", "--for", "4s"});
  EXPECT_EQ(asked.code, 0) << asked;
  EXPECT_TRUE(asked.out.starts_with("2 processes: deep for 4s\nrank ")) << asked;
  for (const char* rank : {"rank 0 (", "rank 1 ("}) EXPECT_TRUE(has(asked.out, rank)) << asked;
  Finished shown = control({"--show"});
  EXPECT_EQ(shown.code, 0) << shown;
  EXPECT_TRUE(has(shown.out, "deep")) << shown;
  EXPECT_TRUE(has(shown.out, "then default")) << shown;
  EXPECT_TRUE(wait_until([&] { return events("KernelCh") > 0; }));
  EXPECT_TRUE(wait_until([&] {
    Finished now = control({"--show"});
    return !has(now.out, "deep") && has(now.out, "default");
  }));
  auto document = info("run");
  for (const auto& process : document["process_list"]) {
    ASSERT_EQ(process["modes"].size(), 3u) << process;
    EXPECT_EQ(process["modes"][0]["mode"], "default");
    EXPECT_EQ(process["modes"][1]["mode"], "deep");
    EXPECT_EQ(process["modes"][2]["mode"], "default");
    const int64_t window =
        process["modes"][2]["since_ns"].get<int64_t>() - process["modes"][1]["since_ns"].get<int64_t>();
    EXPECT_GT(window, 2'000'000'000) << process;
    EXPECT_EQ(process["mode"], "deep") << "the most that was recorded";
  }
  EXPECT_TRUE(has(do_here(lockstep({"info", "run"})).out, "Mode changes during the run"));
  end(*job);
}

TEST_F(ControlJob, MarksSamplesAndMistakes) {
  if (!std::filesystem::exists(LOCKSTEP_BIN_DIR "/lockstep-sim-job")) GTEST_SKIP() << "no simulator";
  auto job = live_job("lite");
  Finished marked = control({"--mark", "node 7 rebooted"});
  EXPECT_EQ(marked.code, 0) << marked;
  EXPECT_TRUE(marked.out.starts_with("2 processes: marked 'node 7 rebooted'\n")) << marked;
  EXPECT_EQ(std::count(marked.out.begin(), marked.out.end(), '\n'), 3) << "a line for each process" << marked;
  EXPECT_TRUE(wait_until([&] { return events("Mark") == 2; }));
  EXPECT_EQ(control({"--mode", "sample=1/10"}).code, 0);
  EXPECT_TRUE(has(control({"--show"}).out, "sample=1/10"));
  for (const Argv& words : {Argv{"--mode", "sample=3/2"},
                            {"--mode", "sample=x"},
                            {"--mode", "very"},
                            {"--for", "3s"},
                            {"--mode", "deep", "--for", "soon"},
                            {"--mode", "lite", "--comm", "world"},
                            {"--mode", "deep", "--comm", "no such"},
                            {"--mode", "deep", "--min-bytes", "much"},
                            {"--mark", ""},
                            {"--mark", std::string(40, 'x')},
                            {"--show", "--mode", "deep"},
                            {}}) {
    Finished finished = control(words);
    EXPECT_EQ(finished.code, 2) << (words.empty() ? "" : words.back()) << finished;
    EXPECT_EQ(finished.out, "");
    EXPECT_EQ(std::count(finished.err.begin(), finished.err.end(), '\n'), 1) << finished;
  }
  EXPECT_TRUE(has(control({"--show"}).out, "sample=1/10")) << "a mistake changes nothing";
  end(*job);
  Finished ended = control({"--mode", "deep"});
  EXPECT_EQ(ended.code, 2) << ended;
}

TEST_F(ControlJob, SaysWhoIsElsewhereAndWhoIsStopped) {
  auto environment = rank(0, 1);
  environment["LOCKSTEP_LIBRARY"] = LOCKSTEP_LIB_DIR "/liblockstep.so";
  environment["LOCKSTEP_DIR"] = path("run");
  Process process(
      job({"ops", "5", "touch", "ready", "await", "go", "ops", "7", "touch", "done", "await", "end"}),
      here(environment));
  EXPECT_TRUE(wait_until([&] { return exists("ready"); }));
  // The same file, as if another machine had written it.
  std::string original;
  for (const auto& entry : std::filesystem::directory_iterator(path("run"))) original = entry.path();
  std::string bytes = read_file(original);
  const size_t boot = offsetof(format::FileHeader, boot_id);
  for (size_t i = 0; i < 16; ++i) bytes[boot + i] = static_cast<char>(~bytes[boot + i]);
  write_file(path("run/elsewhere.1.1.api.lks"), bytes);
  Finished off = control({"--mode", "off"});
  EXPECT_EQ(off.code, 1) << off;
  EXPECT_TRUE(off.out.starts_with("1 process: off\nrank 0 (")) << off;
  EXPECT_TRUE(has(off.out, ": done\n")) << off;
  EXPECT_TRUE(has(off.err, "on another host")) << off;
  std::filesystem::remove(path("run/elsewhere.1.1.api.lks"));
  write_file(path("go"), "");
  EXPECT_TRUE(wait_until([&] { return exists("done"); }));
  EXPECT_EQ(info("run")["ops"], 5) << "nothing is recorded while it is off";
  kill(process.pid(), SIGSTOP);
  Finished stopped = control({"--mode", "default"});
  EXPECT_EQ(stopped.code, 1) << stopped;
  EXPECT_TRUE(has(stopped.err, "stopped")) << stopped;
  EXPECT_EQ(stopped.out, "none of 1 process has answered: default\n");
  kill(process.pid(), SIGCONT);
  EXPECT_TRUE(wait_until([&] { return !has(control({"--show"}).out, "off"); }));
  write_file(path("end"), "");
  EXPECT_EQ(process.wait().code, 0);
}

}  // namespace
}  // namespace lockstep::test
