// SPDX-License-Identifier: Apache-2.0
// Recordings and a simulated job as OTF2 archives, read back by libotf2's reader and by otf2-print: every
// operation that has ended is there with its times and bytes, and every message has its two ends.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <filesystem>
#include <map>
#include <memory>
#include <set>
#include <tuple>

#include "exporters/exporter.h"
#include "exporters/otf2/testing/read_archive.h"
#include "golden/tape_run.h"
#include "job/assemble/assembled_source.h"
#include "job/job.h"
#include "model/event_kind.h"
#include "readers/reader.h"
#include "tests/support/places.h"
#include "tests/support/temporary_folder.h"

namespace lockstep::golden {
namespace {

namespace fs = std::filesystem;
using exporters::otf2::testing::ReadArchive;
using model::Trace;

// The times of an operation that has ended; nothing else is a record.
std::pair<int64_t, int64_t> times_of(const Trace& trace, uint32_t op) {
  if (trace.ops.gpu_start_ns[op] != 0) return {trace.ops.gpu_start_ns[op], trace.ops.gpu_end_ns[op]};
  const uint32_t call = trace.ops.call[op], task = trace.ops.task[op];
  const bool is_replay =
      (trace.ops.flags[op] & model::kFlagGraphCaptured) != 0 && trace.ops.enqueued_ns[op] != 0;
  if (is_replay) {
    const bool is_own = task < trace.tasks.size() && trace.tasks.start_ns[task] == trace.ops.enqueued_ns[op];
    return {trace.ops.enqueued_ns[op], is_own ? trace.tasks.end_ns[task] : trace.ops.enqueued_ns[op]};
  }
  if (call < trace.calls.size()) return {trace.calls.start_ns[call], trace.calls.end_ns[call]};
  if (task < trace.tasks.size()) return {trace.tasks.start_ns[task], trace.tasks.end_ns[task]};
  return {};
}

struct Expected {
  std::map<std::string, uint64_t> collectives, messages;  // by communicator
  std::multiset<uint64_t> ends;                           // of collectives
  uint64_t handed_in = 0, got = 0, sent = 0, received = 0;

  void add(const Trace& trace, uint32_t op) {
    const auto [start, end] = times_of(trace, op);
    const uint32_t comm = trace.ops.comm[op];
    if (start == 0 || end == 0 || comm >= trace.comms.size()) return;
    const std::string_view func = trace.strings[trace.shapes.func[trace.ops.shape[op]]];
    const std::string_view named = trace.strings[trace.comms.name[comm]];
    char id[32];
    std::snprintf(id, sizeof(id), "comm %016llx", static_cast<unsigned long long>(trace.comms.comm_id[comm]));
    const std::string name(named.empty() ? id : named);
    const uint64_t bytes = trace.ops.bytes[op],
                   ranks = static_cast<uint64_t>(std::max(trace.comms.ranks[comm], 1));
    if (trace.ops.peer[op] >= 0) {
      ++messages[name];
      (func == "Send" ? sent : received) += bytes;
      return;
    }
    ++collectives[name];
    ends.insert(static_cast<uint64_t>(end));
    const bool is_root = trace.shapes.root[trace.ops.shape[op]] == trace.comms.rank[comm];
    if (func == "AllReduce" || func == "AllGather" || func == "Reduce") handed_in += bytes;
    if (func == "ReduceScatter" || func == "AlltoAll") handed_in += ranks * bytes;
    if (func == "Broadcast" && is_root) handed_in += bytes;
    if (func == "AllReduce" || func == "ReduceScatter" || func == "Broadcast") got += bytes;
    if (func == "AllGather" || func == "AlltoAll") got += ranks * bytes;
    if (func == "Reduce" && is_root) got += bytes;
  }
};

Expected expected_of(model::TraceSource& source) {
  Expected expected;
  for (size_t i = 0; i < source.processes(); ++i) {
    Trace trace;
    EXPECT_TRUE(source.load(i, trace));
    for (uint32_t op = 0; op < trace.ops.size(); ++op) expected.add(trace, op);
  }
  return expected;
}

class Otf2GoldenTest : public ::testing::Test {
 protected:
  static std::vector<std::string> output_of(const std::string& command) {
    std::vector<std::string> lines;
    std::FILE* pipe = ::popen((command + " 2>&1").c_str(), "r");
    std::array<char, 1 << 16> line;
    while (std::fgets(line.data(), line.size(), pipe)) lines.emplace_back(line.data());
    EXPECT_EQ(::pclose(pipe), 0) << command;
    return lines;
  }
  // Lines that otf2-print begins with each word.
  static std::map<std::string, uint64_t> printed(const std::string& archive,
                                                 const std::string& options = "") {
    std::map<std::string, uint64_t> counts;
    for (const std::string& line : output_of("otf2-print " + options + " " + archive + "/traces.otf2"))
      ++counts[line.substr(0, line.find_first_of(" \n"))];
    return counts;
  }

  // What otf2-estimator expects records to take at most, told how many definitions the archive has, is not
  // exceeded.
  void compare_size(const std::string& archive, const std::map<std::string, uint64_t>& events) {
    std::map<std::string, uint64_t> definitions = printed(archive, "-G");
    std::string questions;
    for (const auto& [printed_as, name] :
         {std::pair("STRING", "String"), {"REGION", "Region"}, {"COMM", "Comm"}, {"ATTRIBUTE", "Attribute"}})
      questions += std::string("set ") + name + " " + std::to_string(definitions[printed_as]) + "\\n";
    questions += "get Timestamp\\nget AttributeList UINT64 UINT64 UINT64 STRING STRING STRING STRING\\n";
    const std::pair<const char*, const char*> kinds[] = {{"ENTER", "Enter"},
                                                         {"LEAVE", "Leave"},
                                                         {"MPI_SEND", "MpiSend"},
                                                         {"MPI_RECV", "MpiRecv"},
                                                         {"MPI_COLLECTIVE_BEGIN", "MpiCollectiveBegin"},
                                                         {"MPI_COLLECTIVE_END", "MpiCollectiveEnd"}};
    for (const auto& [printed_as, name] : kinds) questions += std::string("get ") + name + "\\n";
    std::map<std::string, uint64_t> bytes;  // the number at a line's end, by its first word
    for (const std::string& line : output_of("printf '" + questions + "exit\\n' | otf2-estimator"))
      bytes[line.substr(0, line.find(' '))] = std::stoull(line.substr(line.rfind(' ') + 1));
    uint64_t most = 0, locations = 0, written = 0;
    for (const auto& [printed_as, name] : kinds) {
      ASSERT_NE(bytes[name], 0u) << name;
      const auto count = events.find(printed_as);
      if (count != events.end())
        most += count->second * (bytes["Timestamp"] + bytes[name] + bytes["AttributeList"]);
    }
    for (const auto& entry : fs::directory_iterator(archive + "/traces")) {
      if (entry.path().extension() != ".evt") continue;
      ++locations;
      written += entry.file_size();
    }
    EXPECT_GT(locations, 0u);
    EXPECT_LE(written, most + 100 * locations);
  }

  // `whole`: all ranks were recorded, to the end.
  void compare(model::TraceSource& source, bool whole) {
    const std::string path = folder + "/run.otf2";
    auto result = exporters::find("otf2")->write(source, path, nullptr);
    ASSERT_TRUE(result) << result.error().message();
    auto archive = exporters::otf2::testing::read_archive(path);
    ASSERT_TRUE(archive) << archive.error().message();
    EXPECT_EQ(archive->problems, std::vector<std::string>{});
    const Expected expected = expected_of(source);
    compare_operations(*archive, expected);
    compare_messages(*archive, expected, whole);
    std::map<std::string, uint64_t> lines = printed(path);
    EXPECT_EQ(lines["MPI_COLLECTIVE_END"], archive->collectives.size());
    EXPECT_EQ(lines["MPI_COLLECTIVE_BEGIN"], archive->collectives.size());
    EXPECT_EQ(lines["MPI_SEND"] + lines["MPI_RECV"], archive->messages.size());
    EXPECT_EQ(lines["ENTER"], lines["LEAVE"]);
    compare_size(path, lines);
    EXPECT_GT(archive->collectives.size() + archive->messages.size(), 0u);
  }

  static void compare_operations(const ReadArchive& archive, const Expected& expected) {
    std::map<std::string, uint64_t> counts;
    std::multiset<uint64_t> ends;
    uint64_t handed_in = 0, got = 0;
    for (const auto& collective : archive.collectives) {
      ++counts[archive.comms.at(collective.comm).name];
      ends.insert(collective.end);
      handed_in += collective.sent;
      got += collective.received;
    }
    EXPECT_EQ(counts, expected.collectives);
    EXPECT_TRUE(ends == expected.ends) << "times differ";
    EXPECT_EQ(handed_in, expected.handed_in);
    EXPECT_EQ(got, expected.got);
  }

  static void compare_messages(const ReadArchive& archive, const Expected& expected, bool whole) {
    std::map<std::string, uint64_t> counts;
    uint64_t sent = 0, received = 0;
    struct Ends {
      int sends = 0, receives = 0;
      std::set<uint64_t> bytes;
    };
    std::map<std::tuple<OTF2_CommRef, uint64_t, uint64_t, uint32_t>, Ends> messages;
    for (const auto& message : archive.messages) {
      const auto& comm = archive.comms.at(message.comm);
      ++counts[comm.name];
      (message.is_send ? sent : received) += message.bytes;
      // A rank is a process here, so the process says who it is, whichever of its locations the message is
      // on.
      uint64_t own = comm.members.size();
      for (uint64_t rank = 0; rank < comm.members.size(); ++rank) {
        if (archive.locations.at(comm.members[rank]).group == archive.locations.at(message.location).group)
          own = rank;
      }
      ASSERT_LT(own, comm.members.size());
      Ends& ends = messages[{message.comm, message.is_send ? own : message.peer,
                             message.is_send ? message.peer : own, message.tag}];
      ++(message.is_send ? ends.sends : ends.receives);
      ends.bytes.insert(message.bytes);
    }
    EXPECT_EQ(counts, expected.messages);
    EXPECT_EQ(sent, expected.sent);
    EXPECT_EQ(received, expected.received);
    for (const auto& [message, ends] : messages) {
      EXPECT_LE(ends.sends, 1);
      EXPECT_LE(ends.receives, 1);
      EXPECT_EQ(ends.bytes.size(), 1u);
      if (whole) {
        EXPECT_EQ(ends.sends + ends.receives, 2)
            << archive.comms.at(std::get<0>(message)).name << ": " << std::get<1>(message) << " to "
            << std::get<2>(message) << ", number " << std::get<3>(message);
      }
    }
  }
  const test::TemporaryFolder temporary;
  const std::string folder = temporary.path();
};

std::vector<std::string> files(const std::string& data, const std::string& ending,
                               const std::string& begin = "") {
  std::vector<std::string> paths;
  for (const auto& entry : fs::directory_iterator(LOCKSTEP_SOURCE_DIR "/tests/data/" + data)) {
    const std::string name = entry.path().filename();
    if (name.ends_with(ending) && name.starts_with(begin)) paths.push_back(entry.path());
  }
  std::sort(paths.begin(), paths.end());
  return paths;
}

TEST_F(Otf2GoldenTest, TracesOfPyTorch) {
  auto source = readers::open(files("kineto", ".json.gz", "rank"));
  ASSERT_TRUE(source) << source.error().message();
  compare(**source, true);
}

TEST_F(Otf2GoldenTest, Tapes) {
  for (const std::string& tape : files("tapes", ".jsonl.gz")) {
    SCOPED_TRACE(tape);
    auto run = TapeRun::open({tape}, true);
    ASSERT_TRUE(run) << run.error().message();
    compare(**run, false);
    fs::remove_all(folder + "/run.otf2");
  }
}

TEST_F(Otf2GoldenTest, StragglerWithAndWithoutGpuTimes) {
  for (const bool gpu_times : {true, false}) {  // the recording ends between a message and its receipt
    auto run = TapeRun::open(files("straggler", ".jsonl.gz"), gpu_times);
    ASSERT_TRUE(run) << run.error().message();
    compare(**run, false);
    fs::remove_all(folder + "/run.otf2");
  }
}

TEST_F(Otf2GoldenTest, Hang) {
  auto run = TapeRun::open(files("runs/hang", ".jsonl.gz"), true);
  ASSERT_TRUE(run) << run.error().message();
  compare(**run, false);
}

TEST_F(Otf2GoldenTest, SimulatedJobOf64Ranks) {
  sim::job::JobOptions options;
  options.layout.ranks = 64;
  options.layout.dp = options.layout.tp = options.layout.pp = 4;
  options.steps = 3;
  options.program.ops_per_step = 40;
  auto job = sim::job::Job::make(options);
  ASSERT_TRUE(job) << job.error().message();
  ASSERT_TRUE(sim::job::write_run(*job, folder + "/job", 2));
  auto source = readers::open({folder + "/job"});
  ASSERT_TRUE(source) << source.error().message();
  compare(*job::assemble::assembled(std::move(*source)), true);
}

}  // namespace
}  // namespace lockstep::golden
