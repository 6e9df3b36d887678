// SPDX-License-Identifier: Apache-2.0
#include "links/printed/rdma_statistic.h"

#include <gtest/gtest.h>

#include "links/judge/facts.h"
#include "links/judge/judge.h"
#include "links/printed/printed.h"

namespace lockstep::links {
namespace {

const char* const kRdmaText =
    "link mlx5_0/1 rx_write_requests 12 out_of_buffer 0 out_of_sequence 7 local_ack_timeout_err 0 "
    "req_transport_retries_exceeded 0 \n"
    "link mlx5_1/1 rx_write_requests 99 out_of_buffer 0 out_of_sequence 0 local_ack_timeout_err 1203 "
    "req_transport_retries_exceeded 2 \n";
const char* const kRdmaJson =
    R"([{"ifindex":0,"ifname":"mlx5_0","port":1,"rx_write_requests":12,"out_of_sequence":7},)"
    R"({"ifindex":1,"ifname":"mlx5_1","port":1,"rx_write_requests":99,"local_ack_timeout_err":1203}])";

LinkFacts rdma_facts(const std::string& text) {
  EXPECT_TRUE(is_rdma_statistic(text));
  const auto record = parse_any(text, "rdma.txt");
  EXPECT_TRUE(record) << record.error().message();
  return record ? facts_of(*record) : LinkFacts();
}

TEST(RdmaStatistic, CountersOfPortsSayNothingOfTheirStates) {
  const LinkFacts all = rdma_facts(kRdmaText);
  ASSERT_EQ(all.facts.size(), 2u);
  EXPECT_EQ(all.facts[0].device, "mlx5_0/1");
  EXPECT_EQ(all.facts[0].says, "has counted no errors") << "reordering is none";
  EXPECT_FALSE(all.facts[0].is_trouble() || all.facts[0].has_state);
  EXPECT_EQ(all.facts[1].says,
            "has counted, at an unknown time: 1,203 local_ack_timeout_err, 2 req_transport_retries_exceeded");
  EXPECT_TRUE(all.facts[1].is_trouble());
  const auto record = parse_any(kRdmaText, "rdma.txt");
  for (const analysis::Finding& finding : judge(*record, nullptr))
    EXPECT_EQ(finding.severity, analysis::Severity::kNote) << finding.statement;
}

TEST(RdmaStatistic, JsonIsTheSame) {
  const LinkFacts all = rdma_facts(kRdmaJson);
  ASSERT_EQ(all.facts.size(), 2u);
  EXPECT_EQ(all.facts[1].says, "has counted, at an unknown time: 1,203 local_ack_timeout_err");
  EXPECT_FALSE(all.facts[1].is_trouble()) << "healthy links have some";
  EXPECT_EQ(
      rdma_facts("[ {\n        \"ifindex\": 0,\n \"ifname\": \"mlx5_0\",\n \"port\": 1,\n \"a\": 1\n} ]\n")
          .facts.size(),
      1u);
}

TEST(RdmaStatistic, WhatIsCutOrForeignIsRefused) {
  const std::string text = kRdmaText, json = kRdmaJson;
  EXPECT_FALSE(parse_rdma_statistic(text.substr(0, text.size() - 1), "f"));
  EXPECT_FALSE(parse_rdma_statistic(text.substr(0, 60) + "\n", "f"));
  EXPECT_FALSE(parse_rdma_statistic(text + text, "f")) << "of two moments";
  EXPECT_FALSE(parse_rdma_statistic("link mlx5_0/1 a 1 b x\n", "f"));
  EXPECT_FALSE(parse_rdma_statistic("link ../x/1 a 1 b 2\n", "f"));
  EXPECT_FALSE(parse_rdma_statistic("link mlx5_0/1 ../../a 1\n", "f"));
  EXPECT_FALSE(parse_rdma_statistic(json.substr(0, json.size() - 9), "f"));
  EXPECT_FALSE(is_rdma_statistic("link mlx5_0/1 state ACTIVE physical_state LINK_UP netdev eth0\n"));
  EXPECT_FALSE(is_rdma_statistic(R"([{"ifindex":0,"ifname":"mlx5_0","port":1,"state":"ACTIVE"}])"));
  EXPECT_FALSE(is_rdma_statistic(R"([{"name":"ncclKernel","ph":"X","ts":1}])"));
}

}  // namespace
}  // namespace lockstep::links
