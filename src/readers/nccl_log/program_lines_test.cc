// SPDX-License-Identifier: Apache-2.0
// Failures that no line of NCCL mentions, and lines of NCCL that lost their heads.
#include "readers/nccl_log/program_lines.h"

#include <gtest/gtest.h>

#include "readers/nccl_log/testing/parse.h"
#include "readers/nccl_log/word_filter.h"

namespace lockstep::readers::nccl_log {
namespace {

TEST(ProgramLines, EveryRowPassesTheFilter) {
#define SAYS(kind, text) EXPECT_TRUE(may_speak(text)) << (text);
#define WARNS(text) EXPECT_TRUE(may_speak(text)) << (text);
#include "readers/nccl_log/program_lines.def"
#undef WARNS
#undef SAYS
  EXPECT_TRUE(may_speak("Traceback (most recent call last):"));
  EXPECT_TRUE(may_speak("Last error:"));
  EXPECT_FALSE(may_speak("step 12, loss 2.5, lr 3e-4, tokens/s 81234"));
}

TEST(ProgramLines, WhatFollowsLastErrorIsAWarning) {
  for (const std::string prefix : {"", "[rank3]: ", "(Worker pid=7) "}) {
    const LogModel model =
        parse(prefix +
              "torch.distributed.DistBackendError: NCCL error in: NCCLUtils.cpp:77, unhandled "
              "cuda error, NCCL version 2.26.2\n" +
              prefix + "ncclUnhandledCudaError: Call to CUDA function failed.\n" + prefix + "Last error:\n" +
              prefix + "Cuda failure 802 'system not yet initialized'\n");
    const Fact* fact = only(model, LineKind::kCudaFailure);
    ASSERT_NE(fact, nullptr) << prefix;
    EXPECT_TRUE(fact->is_warning);
    EXPECT_EQ(fact->value(0), "802 'system not yet initialized'");
    EXPECT_EQ(model.processes[fact->process].rank, prefix == "[rank3]: " ? 3 : -1);
    EXPECT_EQ(fact->first.line, 4u);
  }
  const LogModel mixed =
      parse("(a) Last error:\n(b) Last error:\n(a) Cuda failure 2 'x'\n(b) Cuda failure 3 'y'\n");
  EXPECT_EQ(mixed.of(LineKind::kCudaFailure).size(), 2u);
  const LogModel none = parse("ncclSystemError: System call failed.\nLast error:\n\nRuntimeError: x\n");
  EXPECT_EQ(none.processes[0].warnings, 0u);
}

TEST(ProgramLines, AFunctionBeforeTheWordsIsNoKindOfError) {
  const LogModel model =
      parse("[t0|0]:Last error:\n[t0|0]:ncclSocketInit: connecting to address  with family 59936\n");
  EXPECT_EQ(model.processes[0].warnings, 1u);
}

// As where a viewer of logs shows the newest line first.
TEST(ProgramLines, TheKindOfAnErrorIsNoWarning) {
  const LogModel model = parse(
      "Duplicate GPU detected : rank 9 and rank 1 both on CUDA device 34000\n Last error:\n"
      "ncclInvalidUsage: This usually reflects invalid usage of NCCL library.\n");
  EXPECT_EQ(model.processes[0].warnings, 0u);
  EXPECT_NE(only(model, LineKind::kLibraryRaised), nullptr);
  const Fact* fact = only(model, LineKind::kSharedGpu);
  ASSERT_NE(fact, nullptr);
  EXPECT_EQ(fact->value(2), "34000");
}

TEST(ProgramLines, SourceTextOfATracebackIsNoError) {
  const LogModel model = parse(
      "raise RuntimeError(f\"NCCL error: {error_str}\") ERROR x.py:9] RuntimeError: NCCL error: unhandled cuda "
      "error\n    raise RuntimeError(f\"NCCL error: {error_str}\")\n");
  const Fact* fact = only(model, LineKind::kLibraryRaised);
  ASSERT_NE(fact, nullptr);
  EXPECT_EQ(fact->first.line, 1u);
  const LogModel paste = parse(std::string(400, 'x') + " RuntimeError: NCCL error: unhandled cuda error\n");
  EXPECT_EQ(only(paste, LineKind::kLibraryRaised)->value(0), "NCCL error: unhandled cuda error");
}

TEST(ProgramLines, AServersWorkerTellsThatItFailedAndItsTracebackWhy) {
  const std::string head =
      "[2031-02-03 04:05:06 TP2] Scheduler hit an exception: Traceback (most recent call last):\n";
  const std::string frames = "  File \"/srv/scheduler.py\", line 1816, in run\n";
  const LogModel cut = parse(head + frames);
  EXPECT_NE(only(cut, LineKind::kWorkerFailed), nullptr);
  EXPECT_EQ(only(cut, LineKind::kProgramRaised), nullptr);
  const LogModel whole = parse(head + frames + "ValueError: no such layer\n");
  EXPECT_NE(only(whole, LineKind::kWorkerFailed), nullptr);
  ASSERT_NE(only(whole, LineKind::kProgramRaised), nullptr);
  EXPECT_EQ(only(whole, LineKind::kProgramRaised)->value(0), "ValueError: no such layer");
  const LogModel other = parse("[TP2] Scheduler hit an exception handler\n" + frames);
  EXPECT_EQ(only(other, LineKind::kWorkerFailed), nullptr);
}

TEST(ProgramLines, WhatNamesACauseIsSaidOfAFailedCall) {
  const LogModel model = parse(
      "NCCL operation ncclGetUniqueId(&id) failed: Unable to load NCCL library. Multi-GPU collectives will not "
      "work.\n");
  EXPECT_NE(only(model, LineKind::kLibraryAbsent), nullptr);
}

// Horovod's coordinator prints a rank a line, whatever mark its launcher puts before it.
TEST(ProgramLines, RanksThatHorovodWaitsForStandBelow) {
  const LogModel model = parse(
      "[1,0]<stderr>:[2031-02-03 04:05:06.7: W stall_inspector.cc:107] words. \n"
      "[1,0]<stderr>:Missing ranks:\n"
      "[1,0]<stderr>:3: [grad.a, grad.b ...]\n"
      "[1,0]<stderr>:12!: [grad.a]\n"
      "[1,0]<stderr>:done\n"
      "[1,0]<stderr>:7: [grad.a]\n");
  ASSERT_EQ(model.of(LineKind::kRanksAbsent).size(), 2u);
  EXPECT_EQ(model.facts[model.of(LineKind::kRanksAbsent)[0]].value(0), "3");
  EXPECT_EQ(model.facts[model.of(LineKind::kRanksAbsent)[1]].value(0), "12");
  const Fact* fact = nullptr;
  const LogModel inlined = parse("W operations.cc:588] Broadcast_dense_0 [missing ranks: 1, 4]\n");
  fact = only(inlined, LineKind::kRanksAbsent);
  ASSERT_NE(fact, nullptr);
  EXPECT_EQ(fact->value(0), "1, 4");
  for (const char* other :
       {"Missing ranks:\nnone: [a]\n", "Missing ranks:\n1234567890123: [a]\n", "Missing ranks:\n",
        "Missing ranks:\n: [a]\n", "3: [a]\n", "Missing ranks:\n[W next] 3: [a]\n"})
    EXPECT_TRUE(parse(other).of(LineKind::kRanksAbsent).empty()) << other;
}

TEST(ProgramLines, AWarningMayHaveLostItsHead) {
  for (const std::string before : {"", "[rank3]: ", "2026-11-26 02:03:04 worker | "}) {
    const LogModel model = parse(before +
                                 "ncclSocketInit: connecting to address  with family 0 is neither AF_INET(2) "
                                 "nor AF_INET6(10)\n");
    const Fact* fact = only(model, LineKind::kAddressBad);
    ASSERT_NE(fact, nullptr) << before;
    EXPECT_TRUE(fact->is_warning);
    EXPECT_EQ(model.processes[fact->process].rank, before == "[rank3]: " ? 3 : -1);
  }
  const LogModel informs =
      parse("[0] NCCL INFO socketPollConnect: connect to 198.51.100.3<3> returned 111, retrying\n");
  EXPECT_TRUE(informs.facts.empty() || !informs.facts[0].is_warning);
  EXPECT_TRUE(parse("a socketPool connects\n").is_silent());
}

// All ranks of the analyser's line, and how many there are at all.
TEST(ProgramLines, CulpritsOfTheAnalyserAreOneList) {
  std::string line = "error msg: ";
  for (int rank = 1; rank < 8; ++rank)
    line += (rank > 1 ? ", Culprit rank " : "Culprit rank ") + std::to_string(rank) +
            "; Error type: X, words, more";
  const LogModel model = parse("world size: 8\ncollective: nccl:all_reduce\n" + line + '\n');
  const Fact* fact = only(model, LineKind::kRanksDiffer);
  ASSERT_NE(fact, nullptr);
  EXPECT_EQ(fact->values, (std::vector<std::string>{"1, 2, 3, 4, 5, 6, 7", "7", "8", "X", "words, more"}));
  const LogModel bare = parse("error msg: Culprit rank 3; Error type: X\n");
  ASSERT_NE(only(bare, LineKind::kRanksDiffer), nullptr);
  EXPECT_EQ(only(bare, LineKind::kRanksDiffer)->values, (std::vector<std::string>{"3", "1", "0", "X", ""}));
  EXPECT_TRUE(parse("world size: 8\nCulprit rank none; Error type: X\n").is_silent());
}

TEST(ProgramLines, ASignalToTheLauncherIsNoExceptionOfTheProgram) {
  const LogModel model = parse(
      "Traceback (most recent call last):\n"
      "torch.distributed.elastic.multiprocessing.api.SignalException: Process 77 got signal: 1\n");
  EXPECT_NE(only(model, LineKind::kEndRequested), nullptr);
  EXPECT_TRUE(model.of(LineKind::kProgramRaised).empty());
}

// Beside the failure itself, since it may be unrelated.
TEST(ProgramLines, XlasLastEntryIsAWarning) {
  const LogModel model = parse(
      "INTERNAL: NCCL operation ncclGroupEnd() failed: unhandled cuda error. Last NCCL warning(error) log "
      "entry (may be unrelated) 'Cuda failure 802 'system not yet initialized''.\n");
  const Fact* fact = only(model, LineKind::kCudaFailure);
  ASSERT_NE(fact, nullptr);
  EXPECT_TRUE(fact->is_warning);
  EXPECT_NE(only(model, LineKind::kLibraryRaised), nullptr);
  const LogModel none = parse(
      "NCCL operation ncclGroupEnd() failed: unhandled cuda error. Last NCCL warning(error) log entry (may "
      "be unrelated) ''.\n");
  EXPECT_NE(only(none, LineKind::kLibraryRaised), nullptr);
  EXPECT_EQ(none.processes[0].warnings, 0u);
}

TEST(ProgramLines, AProgramsOwnExceptionIsOfItsRank) {
  const LogModel model = parse(
      "[rank3]: Traceback (most recent call last):\n"
      "[rank1]: Traceback (most recent call last):\n"
      "[rank3]:   File \"train.py\", line 9, in main\n"
      "[rank1]:   File \"train.py\", line 7, in main\n"
      "[rank3]: ValueError: 3 is no shape\n"
      "[rank1]: torch.distributed.DistBackendError: something ended\n");
  ASSERT_EQ(model.torch.size(), 1u);
  EXPECT_EQ(model.torch[0].remark, TorchRemark::kRaised);
  EXPECT_EQ(model.torch[0].rank, 3);
  EXPECT_EQ(model.torch[0].text, "ValueError: 3 is no shape");
}

TEST(ProgramLines, ATracebackBehindWordsOfTheProgram) {
  const std::string rest = "Traceback (most recent call last):\n  File \"a.py\", line 9, in main\n";
  const LogModel model =
      parse("[04:05:06 TP0] Scheduler hit an exception: " + rest + "ValueError: 3 is no shape\n");
  const Fact* fact = only(model, LineKind::kProgramRaised);
  ASSERT_NE(fact, nullptr);
  EXPECT_EQ(fact->value(0), "ValueError: 3 is no shape");
  EXPECT_TRUE(parse("[worker 7] " + rest + "ValueError: 3\n").of(LineKind::kProgramRaised).empty());
}

TEST(ProgramLines, WithoutATracebackAnErrorIsAWordOnly) {
  EXPECT_TRUE(
      parse("ValueError: a word in a log\nNCCL version 2.21.5\n").of(LineKind::kProgramRaised).empty());
}

// Where nothing else is understood, it tells what happened.
TEST(ProgramLines, AnExceptionAloneIsTheFirstThatIsNoConsequence) {
  const LogModel model = parse(
      "a line\n"
      "[rank3]: torch.distributed.DistBackendError: a peer was lost\n"
      "[rank3]: ValueError: expected 8 experts\n"
      "KeyError: 'x'\n");
  const Fact* fact = only(model, LineKind::kProgramRaised);
  ASSERT_NE(fact, nullptr);
  EXPECT_EQ(fact->value(0), "ValueError: expected 8 experts");
  EXPECT_EQ(fact->first.line, 3u);
  EXPECT_EQ(model.processes[fact->process].rank, 3);
  for (const char* line :
       {"except ValueError: return", "Error: x", "ValueError:", "an error: x", "valueError: x"})
    EXPECT_TRUE(parse(line + std::string("\n")).of(LineKind::kProgramRaised).empty()) << line;
}

TEST(WeakHeads, TroubleOfLinesThatNameNoProcessCounts) {
  for (const char* line :
       {"[0] misc/socket.cc:71 NCCL WARN socketProgress: Connection closed by remote peer "
        "198.51.100.3<36138>",
        "misc/socket.cc:71 NCCL WARN socketProgress: Connection closed by remote peer 198.51.100.3<36138>",
        "NCCL WARN socketProgress: Connection closed by remote peer 198.51.100.3<36138>",
        "node [0] /app/socket.cc:71 NCCL WARN socketProgress: Connection closed by remote peer "
        "198.51.100.3<36138>",
        "<host>:924:924 [0] misc/socket.cc:71 NCCL WARN socketProgress: Connection closed by remote peer "
        "198.51.100.3<36138>",
        "(redacted):924:924 [0] NCCL WARN socketProgress: Connection closed by remote peer "
        "198.51.100.3<36138>",
        "***:924:924 [0] NCCL ERROR socketProgress: Connection closed by remote peer 198.51.100.3<36138>",
        "[2026-08-23 09:56:58] ${HOST}:924:924 [0] NCCL WARN socketProgress: Connection closed by remote "
        "peer 198.51.100.3<36138>"}) {
    const LogModel model = parse(line + std::string("\n"));
    const Fact* fact = only(model, LineKind::kPeerClosed);
    ASSERT_NE(fact, nullptr) << line;
    EXPECT_TRUE(fact->is_warning) << line;
    EXPECT_EQ(fact->value(0), "198.51.100.3<36138>") << line;
    EXPECT_EQ(model.coverage.torn, 0u) << line;
  }
}

// Of releases whose heads lack the word NCCL, and of NCCL's sources alone.
TEST(WeakHeads, APlaceInNcclsSourcesIsOne) {
  for (const char* line :
       {"include/socket.h:344 WARN Socket creation failed : Address family not supported by protocol",
        "  [3] include/socket.h:344 WARN Socket creation failed : Address family not supported"}) {
    const LogModel model = parse(line + std::string("\n"));
    const Fact* fact = only(model, LineKind::kAddressBad);
    ASSERT_NE(fact, nullptr) << line;
    EXPECT_TRUE(fact->is_warning) << line;
  }
  for (const char* line :
       {"server/socket.h:344 WARN Socket creation failed : Address family not supported",
        "include/socket.h WARN Socket creation failed : Address family not supported",
        "include/socket.h:344 INFO Socket creation failed : Address family not supported",
        "include/socket.h:344 WARNING Socket creation failed : Address family not supported"})
    EXPECT_TRUE(parse(line + std::string("\n")).is_silent()) << line;
}

TEST(WeakHeads, WhatInformsIsOfNobody) {
  const LogModel model = parse(
      "[0] NCCL INFO comm 0x7f00 rank 3 nranks 8 cudaDev 3 busId 8d000 - Init COMPLETE\n"
      "[0] NCCL INFO misc/socket.cc:80 -> 6\n"
      "NCCL INFO words that nobody knows\n");
  EXPECT_TRUE(model.comms.empty());
  EXPECT_EQ(model.of(LineKind::kErrorTrace).size(), 1u);
  EXPECT_EQ(model.coverage.headed, 2u);
}

TEST(WeakHeads, RowsOfNcclTestsAreNoPartOfAName) {
  const LogModel model = parse(
      "mew0:64904:64904 [1] NCCL INFO Using network IB\n"
      "    16777216       4194304     float     sum      -1mew0:64904:64904 [1] NCCL INFO cudaDriverVersion "
      "12080\n");
  ASSERT_EQ(model.processes.size(), 1u);
  EXPECT_EQ(model.processes[0].lines, 2u);
  EXPECT_EQ(model.coverage.torn, 1u);
}

}  // namespace
}  // namespace lockstep::readers::nccl_log
