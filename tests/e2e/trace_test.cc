// SPDX-License-Identifier: Apache-2.0
// `lockstep trace` is invisible to the command and leaves one trace.db.
#include "tests/e2e/workplace.h"
#include "tests/support/places.h"

namespace lockstep::test {
namespace {

class Trace : public Workplace {};

TEST_F(Trace, ArgumentsAreExact) {
  Finished finished = do_here(trace({}, {"argv", "a b", "", "--", "-o", "x", "--", "--help", "$HOME", "*"}));
  EXPECT_EQ(finished.out, "[a b]\n[]\n[--]\n[-o]\n[x]\n[--]\n[--help]\n[$HOME]\n[*]\n") << finished;
  finished = do_here(lockstep({"trace", LOCKSTEP_E2E_JOB, "argv", "--", "--json"}));
  EXPECT_EQ(finished.out, "[--]\n[--json]\n") << finished;
}

TEST_F(Trace, InputAndOutputAreTheCommands) {
  write_file(path("input"), "one\ntwo\n");
  Surroundings around = here();
  around.input = path("input");
  Finished finished = run(trace({}, {"stdin", "ops", "1"}), around);
  EXPECT_EQ(finished.out, "one\ntwo\n") << finished;
}

TEST_F(Trace, ExitCodesAreTheCommands) {
  EXPECT_EQ(do_here(trace({}, {"ops", "1"})).code, 0);
  EXPECT_EQ(do_here(trace({}, {"ops", "1", "exit", "7"})).code, 7);
  EXPECT_EQ(do_here(trace({}, {"exit", "3"})).code, 3);  // nothing captured
  EXPECT_EQ(do_here(trace({}, {"ops", "1", "signal", std::to_string(SIGSEGV)})).code, 128 + SIGSEGV);
  EXPECT_EQ(do_here(trace({}, {"ops", "1", "signal", std::to_string(SIGTERM)})).code, 128 + SIGTERM);
  EXPECT_EQ(do_here(trace({}, {"ops", "1", "signal", std::to_string(SIGKILL)})).code, 128 + SIGKILL);
}

TEST_F(Trace, LeavesOneFile) {
  Finished finished = do_here(trace({"-o", "t.db"}, {"ops", "20"}));
  EXPECT_EQ(finished.code, 0);
  EXPECT_EQ(names(), Argv{"t.db"}) << finished;
  auto document = info("t.db");
  EXPECT_EQ(document["ops"], 20);
  EXPECT_EQ(document["processes"], 1);
  EXPECT_EQ(document["comms"], 1);
  EXPECT_EQ(document["events"]["ApiOp"], 20);
  EXPECT_EQ(document["events"]["KernelCh"], 0);
  EXPECT_TRUE(document["losses"].empty()) << document["losses"];
}

// What NCCL and PyTorch would do with the variables that they are given.
std::string other_tools(const std::string& job) {
  return job + R"(; cp )" LOCKSTEP_SOURCE_DIR
               R"(/tests/data/flight_recorder/hang/fr_1 "${TORCH_FR_DUMP_TEMP_FILE}1"
cp )" LOCKSTEP_SOURCE_DIR R"(/tests/data/flight_recorder/hang/fr_5 "${TORCH_NCCL_DEBUG_INFO_TEMP_FILE}5"
log=$(printf %s "$NCCL_DEBUG_FILE" | sed 's/%h/vm/; s/%p/7/')
cp )" LOCKSTEP_SOURCE_DIR R"(/tests/data/logs/hang/rank5.log "$log"
echo "$NCCL_DEBUG $NCCL_DEBUG_SUBSYS $TORCH_FR_BUFFER_SIZE $TORCH_NCCL_TRACE_BUFFER_SIZE $TORCH_FR_DUMP_ON_TIMEOUT")";
}

TEST_F(Trace, TakesAlongWhatOtherToolsWrite) {
  Finished finished =
      do_here(lockstep({"trace", "-o", "t.db", "--", "sh", "-c", other_tools(LOCKSTEP_E2E_JOB " ops 5")}));
  EXPECT_EQ(finished.code, 0) << finished;
  EXPECT_EQ(finished.out, "INFO INIT,BOOTSTRAP,ENV,GRAPH,NET 2000 2000 1\n");
  EXPECT_EQ(names(), Argv{"t.db"}) << finished;
  EXPECT_TRUE(has(finished.err, "copied 3 files of other tools")) << finished;
  Finished diagnosed = do_here(lockstep({"diagnose", "--json", "t.db"}));
  auto document = nlohmann::json::parse(diagnosed.out, nullptr, false);
  ASSERT_TRUE(document.is_object()) << diagnosed;
  EXPECT_EQ(document["verdict"]["id"], "never-joined") << diagnosed;
  EXPECT_EQ(document["verdict"]["ranks"], nlohmann::json({5}));
  std::set<std::string> sources;
  for (const auto& input : document["inputs"]) sources.insert(input["source"]);
  EXPECT_EQ(sources, (std::set<std::string>{"trace.db", "Flight Recorder dumps", "logs"}));
  EXPECT_FALSE(has(diagnosed.out, "lockstep-files")) << "names of unpacked files are not the user's";
}

TEST_F(Trace, WithoutCaptureTheOtherToolsFilesStay) {
  Finished finished = do_here(lockstep({"trace", "-o", "t.db", "--", "sh", "-c", other_tools("true")}));
  EXPECT_TRUE(has(finished.err, "`lockstep diagnose` reads them")) << finished;
  ASSERT_EQ(names().size(), 1u) << finished;
  EXPECT_EQ(do_here(lockstep({"diagnose", names()[0]})).code, 1);
}

TEST_F(Trace, VariablesThatTheUserSetStay) {
  Finished finished =
      do_here(lockstep({"trace", "sh", "-c",
                        "echo \"$NCCL_DEBUG,$NCCL_DEBUG_SUBSYS,$NCCL_DEBUG_FILE,$TORCH_FR_BUFFER_SIZE,"
                        "$TORCH_NCCL_TRACE_BUFFER_SIZE,$TORCH_FR_DUMP_ON_TIMEOUT\""}),
              {{"NCCL_DEBUG", "WARN"}, {"TORCH_NCCL_TRACE_BUFFER_SIZE", "77"}});
  EXPECT_EQ(finished.out, "WARN,,,,77,1\n") << finished;
}

TEST_F(Trace, TheLogTellsOfTuningInTheDeepModeAlone) {
  const Argv echo = {"sh", "-c", "echo $NCCL_DEBUG_SUBSYS"};
  const auto subsystems = [&](const Argv& options, const std::map<std::string, std::string>& environment) {
    Argv words = {"trace", "--no-merge"};
    words.insert(words.end(), options.begin(), options.end());
    words.insert(words.end(), echo.begin(), echo.end());
    return do_here(lockstep(words), environment).out;
  };
  EXPECT_EQ(subsystems({"-m", "deep"}, {}), "INIT,BOOTSTRAP,ENV,GRAPH,NET,TUNING\n");
  EXPECT_EQ(subsystems({"-m", "lite"}, {}), "INIT,BOOTSTRAP,ENV,GRAPH,NET\n");
  EXPECT_EQ(subsystems({}, {{"NCCL_DEBUG_SUBSYS", "COLL"}}), "COLL\n");
}

TEST_F(Trace, TheUsersVariablesStandForOptions) {
  const auto run_of = [&](const Argv& options, const std::map<std::string, std::string>& environment) {
    Argv words = {"trace", "--no-merge"};
    words.insert(words.end(), options.begin(), options.end());
    for (const char* word : {"sh", "-c", "echo $LOCKSTEP_MODE $LOCKSTEP_RETAIN ${LOCKSTEP_DIR##*/}"})
      words.emplace_back(word);
    return do_here(lockstep(words), environment);
  };
  const std::map<std::string, std::string> set = {
      {"LOCKSTEP_MODE", "lite"}, {"LOCKSTEP_RETAIN", "ring:8M"}, {"LOCKSTEP_DIR", path("mine.%j")}};
  EXPECT_EQ(run_of({}, set).out, "lite ring:8M mine.nojob\n");
  EXPECT_EQ(run_of({"-m", "deep", "--retain", "stream", "--dir", "other"}, set).out, "deep stream other\n");
  EXPECT_EQ(run_of({"-o", "x.db"}, {}).out, "default stream x.run\n");
  EXPECT_EQ(run_of({"-o", "y.db"}, {{"LOCKSTEP_MODE", "full"}}).out, "deep stream y.run\n");
  EXPECT_EQ(run_of({"-o", "z.db", "-m", "standard"}, {{"LOCKSTEP_MODE", ""}}).out, "default stream z.run\n");
  for (const auto& [variable, word, allowed] :
       {std::tuple{"LOCKSTEP_MODE", "banana",
                   "takes lite, default (standard), deep (full), sample=K/N or off"},
        {"LOCKSTEP_MODE", "sample=9/3", "K at most N"},
        {"LOCKSTEP_RETAIN", "loop", "takes stream, stream:CAP or ring:SIZE"}}) {
    const Finished refused = run_of({}, {{variable, word}});
    EXPECT_EQ(refused.code, 2) << refused;
    EXPECT_TRUE(refused.err.starts_with(std::string("lockstep: ") + variable + " takes ")) << refused;
    EXPECT_TRUE(has(refused.err, allowed)) << refused;
    EXPECT_EQ(std::count(refused.err.begin(), refused.err.end(), '\n'), 1) << refused;
    EXPECT_EQ(refused.out, "") << "nothing was run";
  }
}

// What the outer one has set for its processes is no wish of the user's.
TEST_F(Trace, OneInAnotherHasADirectoryOfItsOwn) {
  const std::string inner =
      LOCKSTEP_BIN_DIR "/lockstep trace --no-merge -o inner.db sh -c 'echo ${LOCKSTEP_DIR##*/}'";
  EXPECT_EQ(do_here(lockstep({"trace", "--no-merge", "-o", "outer.db", "sh", "-c", inner})).out,
            "inner.run\n");
}

TEST_F(Trace, AKilledProcessKeepsItsEvents) {
  for (const char* word : {"signal", "_exit"}) {
    Finished finished = do_here(trace({"-o", "t.db"}, {"ops", "5000", word, "9"}));
    auto document = info("t.db");
    EXPECT_EQ(document["ops"], 5000) << finished;
    EXPECT_EQ(document["process_list"][0]["state"], "not closed");
  }
}

TEST_F(Trace, AMissingProgramIsOneLineAndNoFiles) {
  Finished finished = do_here(lockstep({"trace", "./nowhere"}));
  EXPECT_EQ(finished.code, 127);
  EXPECT_EQ(
      finished.err,
      "lockstep: ./nowhere: command not found; check the command behind the options of lockstep trace\n");
  write_file(path("plain"), "text");
  finished = do_here(lockstep({"trace", "./plain"}));
  EXPECT_EQ(finished.code, 126);
  EXPECT_EQ(std::count(finished.err.begin(), finished.err.end(), '\n'), 1) << finished;
  EXPECT_EQ(names(), Argv{"plain"});
}

TEST_F(Trace, NothingCapturedIsExplained) {
  Finished finished = do_here(trace({"-o", "t.db"}, {"exit", "5"}));
  EXPECT_EQ(finished.code, 5);
  EXPECT_EQ(finished.out, "");
  EXPECT_TRUE(has(finished.err, "nothing was captured")) << finished;
  EXPECT_TRUE(has(finished.err, "NCCL_PROFILER_PLUGIN")) << finished;
  EXPECT_TRUE(names().empty());
}

TEST_F(Trace, ForeignFilesStay) {
  std::filesystem::create_directories(path("trace.run"));
  for (const char* name : {"trace_123.db", "trace.run/canary.lks", "trace.run/notes", "canary.run"})
    write_file(path(name), "canary");
  Finished finished = do_here(trace({}, {"ops", "3"}));
  EXPECT_EQ(finished.code, 0);
  EXPECT_EQ(info("trace.db")["ops"], 3) << finished;
  for (const char* name : {"trace_123.db", "trace.run/canary.lks", "trace.run/notes", "canary.run"}) {
    EXPECT_EQ(read_file(path(name)), "canary") << name;
  }
  EXPECT_FALSE(exists("trace.run.2"));
}

TEST_F(Trace, AnotherFileInThePlaceOfOutIsRefusedBeforeTheCommandRuns) {
  write_file(path("t.db"), "precious");
  Finished finished = do_here(trace({"-o", "t.db"}, {"touch", "ran"}));
  EXPECT_EQ(finished.code, 2);
  EXPECT_TRUE(has(finished.err, "--output")) << finished;
  EXPECT_EQ(names(), Argv{"t.db"});
  EXPECT_EQ(read_file(path("t.db")), "precious");
}

TEST_F(Trace, AnOlderTraceIsReplaced) {
  EXPECT_EQ(do_here(trace({"-o", "t.db"}, {"ops", "3"})).code, 0);
  EXPECT_EQ(do_here(trace({"-o", "t.db"}, {"ops", "4"})).code, 0);
  EXPECT_EQ(info("t.db")["ops"], 4);
}

TEST_F(Trace, AnUnusablePlaceIsRefusedBeforeTheCommandRuns) {
  write_file(path("file"), "");
  for (const Argv& options :
       {Argv{"--require", "-o", "file/t.db"}, Argv{"--require", "--dir", "file/run"},
        Argv{"--retain", "loop"}, Argv{"-m", "deeper"}, Argv{"--no-merge", "--timeline", "x.json"}}) {
    Finished finished = do_here(trace(options, {"touch", "ran"}));
    EXPECT_EQ(finished.code, 2) << finished;
    EXPECT_EQ(finished.err.rfind("lockstep: ", 0), 0u) << finished;
    EXPECT_EQ(std::count(finished.err.begin(), finished.err.end(), '\n'), 1) << finished;
    EXPECT_FALSE(exists("ran"));
  }
}

TEST_F(Trace, NamesTakeTokens) {
  std::map<std::string, std::string> environment = {
      {"RANK", "3"}, {"GROUP_RANK", "1"}, {"TORCHELASTIC_RUN_ID", "job"}};
  Finished finished = do_here(trace({"-o", "out/t.%r.%n.%j.%%.db"}, {"ops", "1"}), environment);
  EXPECT_EQ(finished.code, 0);
  EXPECT_TRUE(exists("out/t.3.1.job.%.db")) << finished;
  char host[256] = {};
  gethostname(host, sizeof host - 1);
  Process process(trace({"-o", "p%p.db", "--dir", "raw.%h"}, {"ops", "1"}), here());
  finished = process.wait();
  EXPECT_TRUE(exists("p" + std::to_string(process.pid()) + ".db")) << finished;
  EXPECT_TRUE(exists(std::string("raw.") + host));
}

TEST_F(Trace, APercentSignInTheDirectoryIsNoToken) {
  EXPECT_EQ(do_here(trace({"-o", "100%%p.db", "--keep"}, {"ops", "2"})).code, 0);
  EXPECT_TRUE(exists("100%p.db"));
  EXPECT_EQ(info("100%p.run")["ops"], 2);
}

TEST_F(Trace, KeepsTheRunDirectoryWhenAsked) {
  EXPECT_EQ(do_here(trace({"--dir", "raw", "-o", "t.db"}, {"ops", "6"})).code, 0);
  auto raw = info("raw"), merged = info("t.db");
  for (const char* key : {"ops", "processes", "comms", "events", "first_ns", "last_ns"})
    EXPECT_EQ(raw[key], merged[key]) << key;
  EXPECT_EQ(do_here(trace({"--no-merge", "-o", "u.db"}, {"ops", "6"})).code, 0);
  EXPECT_FALSE(exists("u.db"));
  EXPECT_EQ(info("u.run")["ops"], 6);
  auto manifest = nlohmann::json::parse(read_file(path("u.run/manifest.json")), nullptr, false);
  EXPECT_EQ(manifest["state"], "complete");
  EXPECT_EQ(manifest["argv"].back(), "6");
}

TEST_F(Trace, OffCapturesNothing) {
  Finished finished = do_here(trace({"-m", "off"}, {"ops", "6", "exit", "4"}));
  EXPECT_EQ(finished.code, 4);
  EXPECT_EQ(finished.err, "");
  EXPECT_TRUE(names().empty());
}

TEST_F(Trace, AnotherProfilerPluginIsKept) {
  const auto chain_of = [&](std::map<std::string, std::string> environment) {
    Finished finished = do_here(
        lockstep({"trace", "--no-merge", "--", "sh", "-c", "echo chain=$LOCKSTEP_CHAIN"}), environment);
    EXPECT_EQ(finished.code, 0) << finished;
    return finished;
  };
  Finished kept = chain_of({{"NCCL_PROFILER_PLUGIN", "inspector"}});
  EXPECT_EQ(kept.out, "chain=inspector\n");
  EXPECT_TRUE(has(kept.err, "your profiler plugin inspector is chained behind ours")) << kept;

  for (const char* off : {"none", ""}) {
    Finished left_out = chain_of({{"NCCL_PROFILER_PLUGIN", "inspector"}, {"LOCKSTEP_CHAIN", off}});
    EXPECT_EQ(left_out.out, std::string("chain=") + off + "\n");
    EXPECT_TRUE(has(left_out.err, "instead of inspector")) << left_out;
  }
  Finished in_program = chain_of({{"NCCL_PROFILER_PLUGIN", "STATIC_PLUGIN"}});
  EXPECT_EQ(in_program.out, "chain=\n");
  EXPECT_TRUE(has(in_program.err, "instead of STATIC_PLUGIN")) << in_program;

  for (const char* nothing : {"none", "", LOCKSTEP_LIB_DIR "/liblockstep-nccl.so"}) {
    Finished finished = chain_of({{"NCCL_PROFILER_PLUGIN", nothing}});
    EXPECT_EQ(finished.out, "chain=\n");
    EXPECT_FALSE(has(finished.err, "profiler plugin")) << finished;
  }
}

TEST_F(Trace, InfoNamesTheChainedPlugin) {
  const std::string plugin = LOCKSTEP_LIB_DIR "/libecho-plugin.so", log = path("echo.jsonl");
  const Argv host = {LOCKSTEP_BIN_DIR "/lockstep-nccl-host",
                     "--plugin",
                     LOCKSTEP_LIB_DIR "/liblockstep-nccl.so",
                     "--api",
                     "6",
                     "--script",
                     "allreduce"};
  Argv words = lockstep({"trace", "-o", "job.db", "--keep", "--"});
  words.insert(words.end(), host.begin(), host.end());
  Finished finished = do_here(words, {{"NCCL_PROFILER_PLUGIN", plugin}, {"ECHO_LOG", log}});
  EXPECT_EQ(finished.code, 0) << finished;
  EXPECT_TRUE(has(read_file(log), "\"finalize\"")) << finished;
  for (const char* input : {"job.db", "job.run"}) {
    EXPECT_EQ(info(input)["process_list"][0]["chained_plugin"], "echo v6, " + plugin) << input;
    EXPECT_TRUE(has(do_here(lockstep({"info", input})).out,
                    "Chained profiler plugin, in 1 process: echo v6, " + plugin));
  }

  words = lockstep({"trace", "-o", "other.db", "--"});
  words.insert(words.end(), host.begin(), host.end());
  finished = do_here(words, {{"LOCKSTEP_CHAIN", path("missing.so")}});
  EXPECT_EQ(finished.code, 0) << finished;
  const auto losses = info("other.db")["losses"];
  EXPECT_TRUE(has(losses.dump(), "chain_absent")) << losses;
  EXPECT_TRUE(has(losses.dump(), "missing.so")) << losses;
}

// /proc takes no directories, from root neither.
TEST_F(Trace, WhereNothingCanBeWrittenTheCommandRunsUntraced) {
  for (const Argv& place : {Argv{"--dir", "/proc/none/run"}, {"-o", "/proc/none/t.db"}}) {
    Argv words = {"trace"};
    words.insert(words.end(), place.begin(), place.end());
    Argv required = words;
    required.push_back("--require");
    for (Argv* of : {&words, &required})
      of->insert(of->end(), {"--", "sh", "-c", "echo ran with $LOCKSTEP_MODE; exit 7"});
    Finished finished = do_here(lockstep(words));
    EXPECT_EQ(finished.code, 7) << finished;
    EXPECT_EQ(finished.out, "ran with off\n");
    EXPECT_TRUE(has(finished.err, "NOT TRACED: /proc/none")) << finished;
    finished = do_here(lockstep(required));
    EXPECT_EQ(finished.code, 2) << finished;
    EXPECT_EQ(finished.out, "");
  }
  EXPECT_FALSE(exists("trace.run"));
}

// What is written at the end is larger than the limit allows: that is the trace's trouble, not the command's.
TEST_F(Trace, AFileSizeLimitLeavesTheCommandItsExitCode) {
  const std::string host = LOCKSTEP_BIN_DIR "/lockstep-nccl-host --plugin " LOCKSTEP_LIB_DIR
                                            "/liblockstep-nccl.so --script allreduce >&2; exit 7";
  Finished finished =
      do_here({"sh", "-c",
               "ulimit -f 200; exec " LOCKSTEP_BIN_DIR "/lockstep trace -o t.db -- sh -c '" + host + "'"});
  EXPECT_EQ(finished.code, 7) << finished;
  EXPECT_TRUE(has(finished.err, "not merged")) << finished;
  EXPECT_FALSE(exists("t.db"));
  finished = do_here({"sh", "-c",
                      "ulimit -f 1; exec " LOCKSTEP_BIN_DIR
                      "/lockstep trace --no-merge -- sh -c 'head -c 9999 /dev/zero > large; echo $?'"});
  EXPECT_EQ(finished.out, std::to_string(128 + SIGXFSZ) + "\n") << "the command has it as before";
}

// As some launchers leave it: then nobody is told of the end of a child.
TEST_F(Trace, AnIgnoredChildSignalIsTheCommandsAlone) {
  const Argv traced = {"env",   "--ignore-signal=CHLD", LOCKSTEP_BIN_DIR "/lockstep",
                       "trace", "--no-merge",           "--"};
  const auto run = [&](const Argv& command) {
    Argv all = traced;
    all.insert(all.end(), command.begin(), command.end());
    return do_here(all);
  };
  EXPECT_EQ(run({"sh", "-c", "exit 7"}).code, 7);
  const Finished finished = run({"grep", "SigIgn", "/proc/self/status"});
  ASSERT_EQ(finished.code, 0) << finished;
  const std::string ignored = finished.out.substr(finished.out.find_first_of("0123456789abcdef", 7));
  EXPECT_NE(std::stoull(ignored, nullptr, 16) & 1ULL << (SIGCHLD - 1), 0u) << finished;
}

TEST_F(Trace, SecretsOfTheCommandLineAreNotKept) {
  const Argv with_secret =
      trace({"-o", "t.db", "--dir", "run"}, {"ops", "3", "argv", "--hf-token", "hf_SECRET"});
  const auto keeps = [&](const std::string& name) { return has(read_file(path(name)), "hf_SECRET"); };
  Finished finished = do_here(with_secret);
  for (const auto& entry : std::filesystem::recursive_directory_iterator(path("run")))
    EXPECT_FALSE(entry.is_regular_file() && has(read_file(entry.path()), "hf_SECRET")) << entry.path();
  EXPECT_FALSE(keeps("t.db")) << finished;
  finished = do_here(with_secret, {{"LOCKSTEP_ARGV", "all"}});
  EXPECT_TRUE(keeps("t.db")) << finished;
}

TEST_F(Trace, TheReportIsAlsoForPrograms) {
  Finished finished = do_here(trace({"--json"}, {"ops", "7", "exit", "2"}));
  auto report = nlohmann::json::parse(finished.err, nullptr, false);
  ASSERT_TRUE(report.is_object()) << finished;
  EXPECT_EQ(report["ops"], 7);
  EXPECT_EQ(report["exit_code"], 2);
  EXPECT_EQ(report["run_kept"], false);
  EXPECT_EQ(report["output"], path("trace.db"));
}

TEST_F(Trace, WaitsForWorkersThatTheCommandLeftBehind) {
  Finished finished = do_here(trace({"-o", "t.db"}, {"ops", "1", "orphan", "sleep", "5000", "ops", "30"}));
  EXPECT_EQ(finished.code, 0);
  EXPECT_TRUE(has(finished.err, "waiting for 1 process that it left behind")) << finished;
  auto document = info("t.db");
  EXPECT_EQ(document["processes"], 2) << finished;
  EXPECT_EQ(document["ops"], 31);
}

TEST_F(Trace, ARankWhoseFileIsGoneHadLoadedTheLibrary) {
  // Both live long enough to be looked at more than once on a busy machine.
  const std::string script = std::string("RANK=1 " LOCKSTEP_E2E_JOB " ops 1 sleep 3000 & RANK=0 ") +
                             LOCKSTEP_E2E_JOB + " ops 1 sleep 3000; wait";
  Finished finished =
      do_here(lockstep({"trace", "--no-merge", "--dir", "run", "sh", "-c", script}), {{"WORLD_SIZE", "2"}});
  EXPECT_EQ(finished.code, 0) << finished;
  const auto before = info("run");
  for (const auto& process : before["process_list"]) {
    if (process["rank"] != 1) continue;
    for (const auto& entry : std::filesystem::directory_iterator(path("run"))) {
      const std::string name = entry.path().filename();
      if (has(name, "." + std::to_string(process["pid"].get<int>()) + ".") && name.ends_with(".lks"))
        std::filesystem::remove(entry.path());
    }
  }
  const auto losses = info("run")["losses"];
  ASSERT_EQ(losses.size(), 1u) << losses;
  EXPECT_EQ(losses[0]["kind"], "file_gone") << losses;
  EXPECT_TRUE(has(losses[0]["detail"].get<std::string>(), "its file is gone")) << losses;
}

TEST_F(Trace, ASilentRankIsMissed) {
  // Rank 1 runs without the library, long enough to be seen on a busy machine.
  std::string script = std::string("RANK=1 LOCKSTEP_LIBRARY= ") + LOCKSTEP_E2E_JOB +
                       " ops 1 sleep 5000 & RANK=0 " + LOCKSTEP_E2E_JOB + " ops 1; wait";
  Finished finished = do_here(lockstep({"trace", "-o", "t.db", "sh", "-c", script}), {{"WORLD_SIZE", "3"}});
  EXPECT_TRUE(has(finished.err, "rank 1 on host")) << finished;
  EXPECT_TRUE(has(finished.err, "missing file: rank 2 of 3")) << finished;
  std::set<std::string> kinds;
  auto document = info("t.db");
  for (const auto& loss : document["losses"]) kinds.insert(loss["kind"]);
  EXPECT_EQ(kinds, (std::set<std::string>{"never_loaded", "missing_rank"}));
}

}  // namespace
}  // namespace lockstep::test
