// SPDX-License-Identifier: Apache-2.0
#include "cli/show/operation.h"

#include <gtest/gtest.h>

#include <map>
#include <sstream>

#include "base/text/wrap.h"
#include "cli/kit/table.h"
#include "cli/show/report.h"
#include "job/clock/clock.h"
#include "job/gather/gather.h"
#include "job/match/match.h"
#include "model/testing/synthetic_run.h"
#include "model/torch/comms_id.h"

namespace lockstep::cli::show {
namespace {

class ShowReport : public ::testing::Test {
 protected:
  explicit ShowReport(uint32_t ranks_per_host = 4)
      : source_({.ranks = 4, .ranks_per_host = ranks_per_host, .ops = 20, .comm_name = "world"}) {}
  void SetUp() override {
    auto gathered = job::gather::gather(source_, {});
    ASSERT_TRUE(gathered);
    job_ = std::move(*gathered);
    job::match::align(job_);
    std::vector<analysis::Finding> findings;
    job::clock::align(job_, findings);
  }
  Operation load(const std::string& name, TreeLimits limits = {}) {
    return load_operation(job_, source_, 0, *parse_operation(name), limits);
  }

  model::testing::SyntheticRun source_;
  model::Job job_;
};

class ShowReportOfTwoHosts : public ShowReport {
 protected:
  ShowReportOfTwoHosts() : ShowReport(2) {}
};

TEST(OperationNames, AreNumbersWithAKind) {
  EXPECT_EQ(parse_operation("12")->index, 12u);
  EXPECT_FALSE(parse_operation("coll:12")->is_p2p);
  EXPECT_TRUE(parse_operation("p2p:3")->is_p2p);
  EXPECT_EQ(parse_operation("p2p:3")->index, 3u);
  EXPECT_FALSE(parse_operation("p2p:3")->pair);
  const auto pair = parse_operation("p2p:2-3:17");
  ASSERT_TRUE(pair && pair->pair);
  EXPECT_EQ(pair->index, 17u);
  EXPECT_EQ(pair->pair->source, 2);
  EXPECT_EQ(pair->pair->target, 3);
  for (const char* wrong : {"p2p:2-3", "p2p:-3:1", "p2p:2-:1", "p2p:2-3:", "p2p:2--3:1", "coll:2-3:1",
                            "2-3:1", "", "p2p:", "x", "-1", "1 ", "4294967296", "coll:p2p:1"})
    EXPECT_FALSE(parse_operation(wrong)) << wrong;
}

TEST_F(ShowReport, FindsCommunicatorsByNameAndId) {
  EXPECT_EQ(find_comms(job_, "world").size(), 1u);
  EXPECT_EQ(find_comms(job_, "0x8000000000000abc").size(), 1u);
  EXPECT_EQ(find_comms(job_, "8000000000000abc").size(), 1u);
  EXPECT_TRUE(find_comms(job_, "abc").empty());
  EXPECT_TRUE(find_comms(job_, "").empty());
  EXPECT_EQ(comms_with(job_, {0}, {false, 19}).size(), 1u);
  EXPECT_TRUE(comms_with(job_, {0}, {false, 20}).empty());
  EXPECT_EQ(comms_with(job_, {0}, {true, 1}).size(), 1u);
  EXPECT_TRUE(comms_with(job_, {0}, {true, 2}).empty());
}

TEST_F(ShowReport, FindsOperationsByTheirCommsId) {
  EXPECT_TRUE(find_comms_id(job_, 1).empty());
  model::testing::SyntheticRun named(
      {.ranks = 4, .ranks_per_host = 4, .ops = 6, .comm_name = "default_pg:0"});
  auto gathered = job::gather::gather(named, {});
  ASSERT_TRUE(gathered);
  model::Job& job = *gathered;
  job::match::align(job);
  const std::vector<FoundOperation> found = find_comms_id(job, model::comms_id({"0", 5, false, 0, 1, 4}));
  ASSERT_EQ(found.size(), 1u) << "the same on all ranks";
  EXPECT_EQ(found[0].name.index, 4u);
  EXPECT_EQ(address(found[0].name), "4");
  // The hash is weak: two operations may have one id, and a send is found by its pair.
  model::Member& member = job.members[1];
  member.lanes.push_back({.peer = 3, .is_send = false, .first = member.first, .ops = 1});
  job.processes[1].ops.torch_comms_id[member.first] = job.processes[1].ops.torch_comms_id[member.first + 1];
  const auto both = find_comms_id(job, job.processes[1].ops.torch_comms_id[member.first]);
  ASSERT_EQ(both.size(), 3u);
  EXPECT_EQ(address(both[2].name), "p2p:3-1:0");
}

TEST_F(ShowReport, ListsOperationsInTheOrderOfTheirCalls) {
  uint64_t p2ps = 0;
  const std::vector<ListedOperation> listed = list_operations(job_, {0}, p2ps);
  ASSERT_EQ(listed.size(), 20u);
  EXPECT_EQ(p2ps, 8u);
  for (uint32_t i = 0; i < listed.size(); ++i) {
    EXPECT_EQ(listed[i].index, i);
    EXPECT_EQ(listed[i].ranks, 4u);
    EXPECT_EQ(listed[i].gpu_ns, 100'000);
  }
  EXPECT_EQ(listed[1].spread_ns, 3'000) << "a rank calls 1 us after the one before";
  const std::string text = list_text(job_, listed, p2ps, 5);
  EXPECT_NE(text.find("... and 15 more"), std::string::npos) << text;
  EXPECT_NE(text.find("8 sends and receives"), std::string::npos) << text;
}

TEST_F(ShowReport, OperationsWithoutATimeComeLast) {
  for (model::JobProcess& process : job_.processes) {
    for (uint32_t op = 0; op < process.ops.size(); ++op) {
      if (process.ops.index[op] < 3) process.ops.called_ns[op] = process.ops.enqueued_ns[op] = 0;
      if (process.ops.index[op] < 3) process.ops.launched_ns[op] = 0;
    }
  }
  uint64_t p2ps = 0;
  const std::vector<ListedOperation> listed = list_operations(job_, {0}, p2ps);
  ASSERT_EQ(listed.size(), 20u);
  EXPECT_EQ(listed.front().index, 3u);
  EXPECT_EQ(listed[17].index, 0u);
  EXPECT_EQ(listed.back().index, 2u);
  EXPECT_EQ(listed.back().first_ns, 0);
}

TEST_F(ShowReport, TimesAreAfterTheFirstCall) {
  const std::string text = operation_text(job_, load("3"), false);
  EXPECT_NE(text.find("Operation 3 of world (its 4th AllReduce), communicator 0x8000000000000abc\n8,192 "
                      "elements of ncclFloat32, 32 KiB; 4 of 4 ranks called it, on 1 host\n"),
            std::string::npos)
      << text;
  // called, enqueued, launched, GPU begin and end of rank 2, which calls 2 us after rank 0
  EXPECT_NE(text.find("     2  id0     2     2.0       7.0      22.0       41.0    141.0  KernelCh\n"),
            std::string::npos)
      << text;
  EXPECT_EQ(text.find(" *"), std::string::npos);
}

TEST_F(ShowReport, FitsIntoAHundredColumns) {
  std::istringstream lines(operation_text(job_, load("9"), false));
  for (std::string line; std::getline(lines, line);) EXPECT_LE(columns(line), 100u) << line;
}

TEST_F(ShowReport, ShowsTheRanksThatAreAskedFor) {
  TreeLimits one;
  one.rank = 2;
  std::string text = operation_text(job_, load("3", one), false);
  EXPECT_NE(text.find("\nRank 2 ("), std::string::npos);
  EXPECT_EQ(text.find("\nRank 1 ("), std::string::npos);
  EXPECT_NE(text.find("Events of 3 more ranks"), std::string::npos);
  TreeLimits two;
  two.ranks = 2;
  text = operation_text(job_, load("3", two), false);
  EXPECT_NE(text.find("\nRank 1 ("), std::string::npos);
  EXPECT_EQ(text.find("\nRank 2 ("), std::string::npos);
}

TEST_F(ShowReport, ShowsSendsAndReceivesOfEachRank) {
  const Operation operation = load("p2p:1");
  for (const RankOperation& rank : operation.ranks) {
    EXPECT_EQ(rank.func, rank.rank % 2 ? "Recv" : "Send");
    EXPECT_EQ(rank.peer, rank.rank ^ 1);
  }
  EXPECT_NE(operation_text(job_, operation, false).find("Send or receive 1 of each rank of world"),
            std::string::npos);
}

TEST_F(ShowReport, ShowsBothEndsOfATransfer) {
  const Operation operation = load("p2p:2-3:1");
  ASSERT_EQ(operation.ranks.size(), 2u);
  EXPECT_EQ(operation.ranks[0].rank, 2);
  EXPECT_EQ(operation.ranks[0].func, "Send");
  EXPECT_EQ(operation.ranks[1].rank, 3);
  EXPECT_EQ(operation.ranks[1].func, "Recv");
  const std::string text = operation_text(job_, operation, false);
  EXPECT_NE(text.find("Transfer 1 from rank 2 to rank 3 on world (Send)"), std::string::npos) << text;
  EXPECT_NE(text.find("2 of 2 ranks called their end of it"), std::string::npos) << text;
  EXPECT_EQ(comms_with(job_, {0}, *parse_operation("p2p:2-3:1")).size(), 1u);
  EXPECT_TRUE(comms_with(job_, {0}, *parse_operation("p2p:2-3:2")).empty());
  EXPECT_TRUE(comms_with(job_, {0}, *parse_operation("p2p:3-2:0")).empty());
}

TEST_F(ShowReport, NamesATransferThatCameAfterTheJobWasGathered) {
  for (model::Member& member : job_.members) {
    for (model::Lane& lane : member.lanes) lane.ops = 1;
  }
  const std::string text = operation_text(job_, load("p2p:2-3:1"), false);
  EXPECT_NE(text.find("Transfer 1 from member 2 to member 3 on world"), std::string::npos) << text;
}

TEST_F(ShowReport, SaysWhoHasNotCalledIt) {
  job_.processes[1].ops.index[job_.members[job_.processes[1].members[0]].first + 19] =
      30;  // rank 1 has no operation 19
  const std::string text = operation_text(job_, load("19"), false);
  EXPECT_NE(text.find("3 of 4 ranks called it"), std::string::npos) << text;
  EXPECT_NE(text.find("     1  id0     1  not called\n"), std::string::npos) << text;
  EXPECT_NE(text.find("not called\n"), std::string::npos) << text;
}

TEST_F(ShowReport, JsonHasWhatTheTextHas) {
  const Json document = operation_json(job_, load("3"));
  EXPECT_EQ(document["op_index"], 3);
  EXPECT_EQ(document["comm"]["name"], "world");
  ASSERT_EQ(document["rank_list"].size(), 4u);
  const Json& rank = document["rank_list"][2];
  EXPECT_EQ(rank["called_ns"].get<int64_t>() - document["first_call_ns"].get<int64_t>(), 2'000);
  EXPECT_EQ(rank["clock_offset_ns"], 0);
  EXPECT_EQ(rank["event_list"][0]["event"], "GroupApi");
  EXPECT_EQ(rank["event_list"][1]["children"][0]["event"], "Coll");
}

// Each rank of a host drives the network of the next, the last that of the first.
struct PxnRun : model::testing::SyntheticRun {
  explicit PxnRun(bool other_boot)
      : SyntheticRun({.ranks = 4, .ranks_per_host = 4, .ops = 20, .comm_name = "world"}),
        other_boot_(other_boot) {}
  Result<void> load(size_t i, model::Trace& trace) override {
    LOCKSTEP_TRY(SyntheticRun::load(i, trace));
    const uint64_t origin = (i + 1) % 4;
    model::Trace theirs;
    LOCKSTEP_TRY(SyntheticRun::load(origin, theirs));
    for (uint32_t op = 0; op < trace.proxy_ops.size(); ++op) {
      // A proxy operation names the record that NCCL was given, which is of another kind than what the task
      // keeps.
      trace.proxy_ops.parent[op] = uint64_t{22} << 59 | theirs.tasks.handle[trace.proxy_ops.task[op]];
      trace.proxy_ops.context[op] = theirs.comms.context[trace.proxy_ops.comm[op]];
      trace.proxy_ops.originator_pid[op] = theirs.processes.pid[0];
      trace.proxy_ops.comm[op] = trace.proxy_ops.task[op] = model::kNoRow;
    }
    if (other_boot_ && i == 0) trace.processes.boot_id[0] = trace.strings.intern("another");
    return {};
  }
  bool other_boot_;
};

// The ProxyOps below, each with what the process that did it is called; and all ProxySteps.
void count_network(const Json& events, std::map<std::string, size_t>& ops, size_t& steps) {
  for (const Json& event : events) {
    if (event["event"] == "ProxyOp") ++ops[event.contains("done_by") ? event["done_by"].dump() : "itself"];
    if (event["event"] == "ProxyStep") steps += event["count"].get<size_t>();
    count_network(event["children"], ops, steps);
  }
}

TEST(ShowOfPxn, ListsWhatOtherProcessesDidUnderTheOperation) {
  for (const bool other_boot : {false, true}) {
    PxnRun run(other_boot);
    auto job = job::gather::gather(run, {});
    ASSERT_TRUE(job);
    job::match::align(*job);
    const Operation operation = load_operation(*job, run, 0, *parse_operation("3"), {});
    const Json document = operation_json(*job, operation);
    ASSERT_EQ(document["rank_list"].size(), 4u);
    for (int rank = 0; rank < 4; ++rank) {
      std::map<std::string, size_t> ops;
      size_t steps = 0;
      count_network(document["rank_list"][rank]["event_list"], ops, steps);
      const int driver = (rank + 3) % 4;
      const bool is_known = !other_boot || (rank != 0 && driver != 0);
      const std::string by = "{\"rank\":" + std::to_string(driver) +
                             ",\"pid\":" + std::to_string(job->processes[driver].row.pid) + "}";
      EXPECT_EQ(ops, is_known ? (std::map<std::string, size_t>{{by, 4}}) : (std::map<std::string, size_t>{}))
          << rank;
      EXPECT_EQ(steps, is_known ? 16u : 0u) << rank;
    }
    if (other_boot) continue;
    const std::string text = operation_text(*job, operation, false);
    EXPECT_NE(text.find("channel 0, 4 of 4 steps, by rank 0 (GPU 0 of node0,"), std::string::npos) << text;
    EXPECT_NE(text.find("NCCL Progress of rank 0"), std::string::npos) << "its thread, by name: " << text;
    std::istringstream lines(text);
    for (std::string line; std::getline(lines, line);) EXPECT_LE(columns(line), 100u) << line;
  }
}

TEST_F(ShowReportOfTwoHosts, TellsHowSureTheClocksAre) {
  const std::string text = operation_text(job_, load("3"), false);
  const bool aligned = job_.common_ns(2, model::testing::SyntheticRun::kStart).has_value();
  EXPECT_EQ(text.find(" between hosts") != std::string::npos, aligned) << text;
  EXPECT_EQ(text.find("id1 *") != std::string::npos, !aligned) << text;
}

}  // namespace
}  // namespace lockstep::cli::show
