// SPDX-License-Identifier: Apache-2.0
// The commands that read: merge, info, summary, convert, and the texts.
#include "tests/e2e/workplace.h"
#include "tests/support/places.h"

namespace lockstep::test {
namespace {

class Tools : public Workplace {
 protected:
  // RUN with a file of each rank.
  void capture(const std::string& run, int ranks, const std::string& ops) const {
    for (int i = 0; i < ranks; ++i) {
      auto environment = rank(i, ranks);
      environment["LOCKSTEP_LIBRARY"] = LOCKSTEP_LIB_DIR "/liblockstep.so";
      environment["LOCKSTEP_DIR"] = path(run);
      EXPECT_EQ(do_here(job({"ops", ops}), environment).code, 0);
    }
  }
  std::vector<std::string> files(const std::string& run) const {
    std::vector<std::string> files;
    for (const auto& entry : std::filesystem::directory_iterator(path(run))) {
      if (entry.path().extension() == ".lks") files.push_back(entry.path());
    }
    std::sort(files.begin(), files.end());
    return files;
  }
};

TEST_F(Tools, MergeIsRepeatableAndLeavesItsInputs) {
  capture("run", 3, "50");
  std::map<std::string, std::string> before;
  for (const std::string& file : files("run")) before[file] = read_file(file);
  ASSERT_EQ(before.size(), 3u);
  EXPECT_EQ(do_here(lockstep({"merge", "-o", "a.db", "run"})).code, 0);
  auto first = info("a.db");
  Finished again = do_here(lockstep({"merge", "--json", "-o", "a.db", "run"}));
  EXPECT_EQ(again.code, 0) << again;
  EXPECT_EQ(nlohmann::json::parse(again.out, nullptr, false)["ops"], 150) << again;
  auto second = info("a.db");
  first.erase("bytes");
  second.erase("bytes");
  EXPECT_EQ(first, second);
  Argv by_file = {"merge", "-o", "b.db"};
  for (const auto& [file, text] : before) by_file.push_back(file);
  EXPECT_EQ(do_here(lockstep(by_file)).code, 0);
  EXPECT_EQ(info("b.db")["events"], first["events"]);
  for (const auto& [file, text] : before) EXPECT_EQ(read_file(file), text);
}

// Of a simulated host, whose clocks all processes read alike: real ones differ by some ns, and so do times
// that were placed by the files of one merge from those placed by another's.
TEST_F(Tools, MergeTakesDatabasesAndProcessFilesTogether) {
  if (!std::filesystem::exists(LOCKSTEP_BIN_DIR "/lockstep-sim-job")) GTEST_SKIP() << "no simulator";
  EXPECT_EQ(do_here({LOCKSTEP_BIN_DIR "/lockstep-sim-job", "--ranks", "3", "--steps", "4", "-o", "run"}).code,
            0);
  const std::vector<std::string> parts = files("run");
  EXPECT_EQ(do_here(lockstep({"merge", "-o", "a.db", parts[0]})).code, 0);
  EXPECT_EQ(do_here(lockstep({"merge", "-o", "b.db", parts[1]})).code, 0);
  EXPECT_EQ(do_here(lockstep({"merge", "-o", "whole.db", "run"})).code, 0);
  Finished merged = do_here(lockstep({"merge", "-o", "c.db", "a.db", "b.db", parts[2]}));
  EXPECT_EQ(merged.code, 0) << merged;
  const auto whole = info("whole.db"), again = info("c.db");
  for (const char* key : {"ops", "processes", "events", "first_ns", "last_ns", "losses"})
    EXPECT_EQ(again[key], whole[key]) << key;
  EXPECT_EQ(do_here(lockstep({"diagnose", "c.db"})).code, do_here(lockstep({"diagnose", "whole.db"})).code);
  for (const Argv& words :
       {Argv{"summary", "a.db", "b.db"}, Argv{"convert", "-o", "t.json", "a.db", "b.db"}}) {
    const Finished finished = do_here(lockstep(words));
    EXPECT_EQ(finished.code, 0) << finished;
  }
}

TEST_F(Tools, AProcessThatIsThereTwiceCountsOnceAndIsSaid) {
  capture("run", 2, "50");
  EXPECT_EQ(do_here(lockstep({"merge", "-o", "a.db", "run"})).code, 0);
  const Finished merged = do_here(lockstep({"merge", "-o", "c.db", "a.db", "run"}));
  EXPECT_EQ(merged.code, 3) << merged;
  EXPECT_TRUE(has(merged.out, "that is in a.db too was left out")) << merged;
  EXPECT_EQ(info("c.db")["ops"], 100);
  for (const std::string& part : files("run")) {
    EXPECT_EQ(do_here(lockstep({"merge", "-o", "part.db", part})).code, 0);
    EXPECT_EQ(do_here(lockstep({"merge", "-o", "d.db", "part.db", "run"})).code, 3) << part;
    EXPECT_EQ(info("d.db")["ops"], 100)
        << part << ", merged alone, has times of its own reading of the clock";
  }
}

TEST_F(Tools, WhatIsLeftOutIsNamedAndChangesTheExitCode) {
  capture("run", 1, "50");
  EXPECT_EQ(do_here(lockstep({"merge", "-o", "a.db", "run"})).code, 0);
  write_file(path("notes"), "text");
  const std::string trace = LOCKSTEP_SOURCE_DIR "/tests/data/kineto/rank0.json.gz";
  for (const Argv& words : {Argv{"merge", "-o", "x.db"}, Argv{"summary"}, Argv{"show"},
                            Argv{"show", "--op", "0"}, Argv{"convert", "--force", "-o", "t.json"}}) {
    for (const std::string run : {"a.db", "run"}) {
      Argv with_text = words, with_other = words;
      for (Argv* all : {&with_text, &with_other}) all->push_back(run);
      with_text.push_back("notes");
      with_other.push_back(trace);
      const Finished part = do_here(lockstep(with_text));
      EXPECT_EQ(part.code, 3) << part;
      EXPECT_TRUE(has(part.out, "notes: not a file of a known format")) << part;
      const Finished none = do_here(lockstep(with_other));
      EXPECT_EQ(none.code, 2) << none;
      EXPECT_TRUE(has(none.err, "has another format (kineto)")) << none;
      EXPECT_TRUE(has(none.err, "`lockstep diagnose` takes any mix")) << none;
    }
  }
}

TEST_F(Tools, ADamagedFileIsSalvagedAndReported) {
  capture("run", 2, "5000");
  std::string victim = files("run")[0];
  std::filesystem::resize_file(victim, std::filesystem::file_size(victim) / 2);
  Finished finished = do_here(lockstep({"merge", "-o", "a.db", "run"}));
  EXPECT_EQ(finished.code, 0) << finished;
  EXPECT_TRUE(has(finished.out, "lost: ")) << finished;
  auto document = info("a.db");
  EXPECT_EQ(document["processes"], 2);
  EXPECT_GT(document["ops"], 5000);
  EXPECT_LT(document["ops"], 10000);
  EXPECT_FALSE(document["losses"].empty());
}

TEST_F(Tools, AFileThatIsNoneIsALossOrAnError) {
  capture("run", 1, "5");
  write_file(path("run/odd.lks"), "nothing of ours");
  EXPECT_FALSE(info("run")["losses"].empty());
  Finished finished = do_here(lockstep({"info", "run/odd.lks"}));
  EXPECT_EQ(finished.code, 2);
  EXPECT_EQ(finished.out, "");
  EXPECT_TRUE(has(finished.err, "odd.lks")) << finished;
}

TEST_F(Tools, UnreadableInputIsOneLineOnStderr) {
  std::filesystem::create_directories(path("empty"));
  write_file(path("text"), "text");
  for (const char* input : {"nowhere", "empty", "text", "/dev/null"}) {
    for (const char* command : {"info", "summary", "show", "merge", "convert"}) {
      Finished finished = do_here(lockstep({command, input}));
      EXPECT_EQ(finished.code, 2) << command << ' ' << input << '\n' << finished;
      EXPECT_EQ(finished.out, "") << command << ' ' << input;
      EXPECT_EQ(finished.err.rfind("lockstep: ", 0), 0u) << command << ' ' << input << '\n' << finished;
      EXPECT_EQ(std::count(finished.err.begin(), finished.err.end(), '\n'), 1)
          << command << ' ' << input << '\n'
          << finished;
    }
  }
}

TEST_F(Tools, MergeDoesNotReplaceForeignFiles) {
  capture("run", 1, "5");
  write_file(path("x.db"), "precious");
  EXPECT_EQ(do_here(lockstep({"merge", "-o", "x.db", "run"})).code, 2);
  EXPECT_EQ(read_file(path("x.db")), "precious");
}

TEST_F(Tools, SummaryShowsOperationsAndRanks) {
  capture("run", 2, "50");
  Finished finished = do_here(lockstep({"summary", "run"}));
  EXPECT_EQ(finished.code, 0);
  EXPECT_EQ(finished.out.rfind("Losses: none.\n", 0), 0u) << finished;
  EXPECT_TRUE(has(finished.out, "allreduce")) << finished;
  auto document = nlohmann::json::parse(do_here(lockstep({"summary", "--json", "run"})).out, nullptr, false);
  ASSERT_TRUE(document.is_object());
  ASSERT_EQ(document["op_list"].size(), 1u);
  EXPECT_EQ(document["op_list"][0]["ops"], 100);
  EXPECT_EQ(document["op_list"][0]["bytes"], 100 * 4096);
  EXPECT_EQ(document["rank_list"].size(), 2u);
  EXPECT_EQ(document["comm_list"][0]["present"], 2);
  EXPECT_EQ(document["comm_list"][0]["missing"], "none");
}

TEST_F(Tools, InfoListsEveryEventKind) {
  capture("run", 1, "5");
  auto document = info("run");
  for (const char* kind : {"GroupApi", "CollApi", "P2pApi", "KernelLaunch", "Group", "Coll", "P2p", "ProxyOp",
                           "ProxyStep", "ProxyCtrl", "KernelCh", "NetPlugin", "CeColl", "CeSync", "CeBatch",
                           "KernelPhase", "ApiOp", "Mark"}) {
    EXPECT_TRUE(document["events"].contains(kind)) << kind;
  }
  for (const char* key : {"ops", "processes", "comms"})
    EXPECT_TRUE(document[key].is_number_unsigned()) << key;
  EXPECT_TRUE(document["losses"].is_array());
  EXPECT_EQ(do_here(lockstep({"info", "run"})).code, 0);
}

TEST_F(Tools, ConvertNeverOverwrites) {
  capture("run", 1, "5");
  std::string input = files("run")[0];
  std::filesystem::rename(input, path("odd.name"));  // an ending that no rule knows
  std::string before = read_file(path("odd.name"));
  Finished finished = do_here(lockstep({"convert", "odd.name"}));
  EXPECT_EQ(finished.code, 0) << finished;
  EXPECT_EQ(read_file(path("odd.name")), before);
  EXPECT_EQ(names().size(), 3u);  // run, odd.name, the timeline
  EXPECT_EQ(do_here(lockstep({"convert", "-o", "odd.name", "--force", "odd.name"})).code, 2);
  EXPECT_EQ(read_file(path("odd.name")), before);
  write_file(path("mine.json"), "precious");
  finished = do_here(lockstep({"convert", "-o", "mine.json", "odd.name"}));
  EXPECT_EQ(finished.code, 2);
  EXPECT_TRUE(has(finished.err, "--force")) << finished;
  EXPECT_EQ(read_file(path("mine.json")), "precious");
  EXPECT_EQ(do_here(lockstep({"convert", "-o", "mine.json", "--force", "odd.name"})).code, 0);
  EXPECT_EQ(nlohmann::json::parse(read_file(path("mine.json")), nullptr, false).is_discarded(), false);
}

TEST_F(Tools, NothingIsWrittenOverEvidence) {
  capture("run", 1, "5");
  const std::string input = files("run")[0], name = "run/" + std::filesystem::path(input).filename().string();
  const std::string before = read_file(input);
  write_file(path("run/manifest.json"), "precious");
  for (const std::string& output : {name, std::string("run/manifest.json")}) {
    for (const Argv& words : {Argv{"convert", "--force"}, Argv{"report", "--force"}, Argv{"merge"}}) {
      Argv argv = words;
      argv.insert(argv.end(), {"-o", output, "run"});
      const Finished finished = do_here(lockstep(argv));
      EXPECT_EQ(finished.code, 2) << words[0] << ' ' << output << '\n' << finished;
    }
  }
  EXPECT_EQ(read_file(input), before);
  EXPECT_EQ(read_file(path("run/manifest.json")), "precious");
  std::filesystem::remove(path("run/manifest.json"));
  EXPECT_EQ(do_here(lockstep({"merge", "-o", "run/trace.db", "run"})).code, 0);
  EXPECT_EQ(do_here(lockstep({"merge", "-o", "run/trace.db", "run"})).code, 0) << "a result is replaced";
  EXPECT_EQ(do_here(lockstep({"merge", "-o", "run/trace.db", "run/trace.db", name})).code, 2) << "an input";
}

// Names come from files, and files from anywhere.
TEST_F(Tools, NoNameReachesTheTerminalAsItIs) {
  capture("run", 2, "5");
  ASSERT_EQ(do_here(lockstep({"merge", "-o", "run.db", "run"})).code, 0);
  const std::string hostile =
      "UPDATE string SET text = char(27) || ']0;owned' || char(7, 10) || text || char(8238, 155) || "
      "replace(hex(zeroblob(500000)), '00', 'xy') WHERE text <> ''";
  ASSERT_EQ(do_here({"sqlite3", path("run.db"), hostile}).code, 0);
  for (const Argv& command : {Argv{"info"},
                              {"summary"},
                              {"show"},
                              {"show", "--op", "0"},
                              {"show", "--op", "0", "--all"},
                              {"diagnose"},
                              {"diagnose", "--verbose"},
                              {"top", "--once"},
                              {"compare", path("run.db")},
                              {"show", "--comm", "?"},
                              {"info", "x\u009b2J\033[8m\033[2K\177.lks"}}) {
    Argv words = lockstep(command);
    words.push_back(path("run.db"));
    const Finished finished = do_here(words);
    SCOPED_TRACE(command[0] + (command.size() > 1 ? command[1] : ""));
    for (const std::string& text : {finished.out, finished.err}) {
      EXPECT_EQ(text.find_first_of("\033\007\r\b\177"), std::string::npos);
      EXPECT_FALSE(has(text, "\u202e") || has(text, "\u009b"));
      EXPECT_LT(text.size(), 100000u);
      EXPECT_FALSE(has(text, "\n]0;owned")) << "a line that the name made";
    }
    EXPECT_GT(finished.out.size() + finished.err.size(), 0u);
  }
}

TEST_F(Tools, ConvertWritesEveryFormat) {
  capture("run", 2, "5");
  for (const char* format : {"chrome", "perfetto", "csv", "json"})
    EXPECT_EQ(do_here(lockstep({"convert", "-f", format, "run"})).code, 0) << format;
  EXPECT_EQ(read_file(path("run.json.gz")).substr(0, 2), "\x1f\x8b");
  EXPECT_EQ(read_file(path("run.pftrace")).substr(0, 1), "\n");
  EXPECT_TRUE(has(read_file(path("run.csv/ops.csv")), "id,process,rank,comm,")) << "a folder";
  EXPECT_TRUE(has(read_file(path("run.jsonl/ops.jsonl")), "{\"id\":"));
  EXPECT_EQ(do_here(lockstep({"convert", "-f", "csv", "-o", "run", "--force", "run"})).code, 2)
      << "the input";
  EXPECT_EQ(do_here(lockstep({"convert", "-f", "csv", "-o", "tables.gz", "run"})).code, 2);
  EXPECT_EQ(do_here(lockstep({"convert", "-f", "csv", "run"})).code, 2) << "is there";
  EXPECT_EQ(do_here(lockstep({"convert", "-f", "csv", "--force", "run"})).code, 0);
  write_file(path("run.csv/mine"), "precious");
  EXPECT_EQ(do_here(lockstep({"convert", "-f", "csv", "--force", "run"})).code, 2);
  EXPECT_EQ(read_file(path("run.csv/mine")), "precious");
  const Finished unknown = do_here(lockstep({"convert", "-f", "pdf", "run"}));
  EXPECT_TRUE(has(unknown.err, "chrome, perfetto, csv, json")) << unknown;
  const Finished refused = do_here(lockstep({"diagnose", "run.json.gz"}));
  EXPECT_EQ(refused.code, 2) << refused;
  EXPECT_TRUE(has(refused.err, "a timeline made by lockstep")) << refused;
}

TEST_F(Tools, TextsAreInStep) {
  Finished help = do_here(lockstep({"help"}));
  EXPECT_EQ(help.code, 0);
  EXPECT_EQ(do_here(lockstep({"--help"})).out, help.out);
  EXPECT_EQ(do_here(lockstep({})).code, 2);
  EXPECT_EQ(do_here(lockstep({"help", "trace"})).out, do_here(lockstep({"trace", "--help"})).out);
  EXPECT_EQ(do_here(lockstep({"help", "nothing"})).code, 2);
  EXPECT_EQ(do_here(lockstep({"version"})).out, do_here(lockstep({"--version"})).out);
  EXPECT_TRUE(nlohmann::json::parse(do_here(lockstep({"version", "--json"})).out, nullptr, false)
                  .contains("version"));
  write_file(path("lockstep.bash"), do_here(lockstep({"completion", "bash"})).out);
  EXPECT_EQ(do_here({"bash", "-n", "lockstep.bash"}).code, 0);
  EXPECT_EQ(do_here(lockstep({"completion", "tcsh"})).code, 2);
}

TEST_F(Tools, ShowListsTheNetworkThatAnotherProcessDroveForAnOperation) {
  Finished traced =
      do_here(lockstep({"trace", "-m", "deep", "-o", "t.db", "--dir", "run", "--", LOCKSTEP_E2E_PXN_JOB}));
  ASSERT_EQ(traced.code, 0) << traced;
  for (const char* input : {"run", "t.db"}) {
    Finished shown = do_here(lockstep({"show", "--json", "--all", "--op", "0", input}));
    auto document = nlohmann::json::parse(shown.out, nullptr, false);
    ASSERT_TRUE(document.is_object()) << shown;
    ASSERT_EQ(document["rank_list"].size(), 2u);
    EXPECT_EQ(document["losses"].size(), 0u) << document["losses"];
    const auto& coll = document["rank_list"][0]["event_list"][0];
    EXPECT_EQ(coll["event"], "Coll") << coll;
    ASSERT_EQ(coll["children"].size(), 2u) << coll;
    for (const auto& op : coll["children"]) {
      EXPECT_EQ(op["done_by"]["rank"], 1);
      EXPECT_EQ(op["done_by"]["pid"], document["rank_list"][1]["pid"]);
      EXPECT_EQ(op["children"].size(), 1u) << "its step";
    }
    EXPECT_EQ(document["rank_list"][1]["event_list"][0]["children"].size(), 0u) << "it is not its own";
    Finished text = do_here(lockstep({"show", "--op", "0", input}));
    EXPECT_TRUE(has(text.out, "by rank 1 (")) << text;
  }
}

// However short the job: what was seen of it while it ran may show no library.
TEST_F(Tools, InfoTellsARemovedFileFromOneThatNeverWas) {
  const std::string ranks =
      "for rank in 0 1; do RANK=$rank WORLD_SIZE=2 " LOCKSTEP_E2E_JOB " ops 5 & done; wait";
  ASSERT_EQ(do_here(lockstep({"trace", "--dir", "run", "-o", "t.db", "--", "sh", "-c", ranks})).code, 0);
  std::filesystem::remove(files("run").back());
  Finished output = do_here(lockstep({"info", "run"}));
  EXPECT_TRUE(has(output.out, "loaded the capture library, and its file is gone")) << output;
  EXPECT_FALSE(has(output.out, "never loaded")) << output;
}

TEST_F(Tools, BashCompletes) {
  write_file(path("lockstep.bash"), do_here(lockstep({"completion", "bash"})).out);
  auto complete = [&](const std::string& words, int at) {
    return do_here({"bash", "-c",
                    "source ./lockstep.bash; COMP_WORDS=(" + words + "); COMP_CWORD=" + std::to_string(at) +
                        "; _lockstep; echo ${COMPREPLY[*]}"})
        .out;
  };
  EXPECT_EQ(complete("lockstep me", 1), "merge\n");
  EXPECT_EQ(complete("lockstep merge --out", 2), "--output\n");
  EXPECT_EQ(complete("lockstep trace -m d", 3), "default deep\n");
  EXPECT_EQ(complete("lockstep help tr", 2), "trace\n");
  EXPECT_EQ(complete("lockstep info locks", 2), "lockstep.bash\n");
}

TEST_F(Tools, AFullStdoutIsAnError) {
  Finished finished = do_here({"sh", "-c", LOCKSTEP_BIN_DIR "/lockstep help > /dev/full"});
  EXPECT_EQ(finished.code, 2) << finished;
}

}  // namespace
}  // namespace lockstep::test
