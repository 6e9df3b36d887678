// SPDX-License-Identifier: Apache-2.0
#include "readers/common/identities.h"

#include <gtest/gtest.h>

namespace lockstep::readers::common {
namespace {

TEST(Identities, OneNameIsOneThingAsLongAsNothingContradicts) {
  Identities hosts;
  EXPECT_TRUE(hosts.place("node", {{"machine", {"a"}}}).is_new);
  EXPECT_EQ(hosts.place("node", {{"machine", {"a"}}, {"gpu 0", {"x"}}}).number, 0u);
  EXPECT_EQ(hosts.place("node", {}).number, 0u) << "knows nothing";
  EXPECT_EQ(hosts.place("node", {{"machine", {}}}).number, 0u) << "nor this";
  const auto other = hosts.place("node", {{"gpu 0", {"y"}}});
  EXPECT_TRUE(other.is_new) << "the GPU that was told by the second";
  EXPECT_EQ(other.number, 1u);
  EXPECT_EQ(other.alike, 1u);
  EXPECT_EQ(hosts.kept_apart(), 1u);
  EXPECT_EQ(hosts.place("another", {{"gpu 0", {"y"}}}).number, 2u);
  EXPECT_EQ(hosts.kept_apart(), 1u);
}

TEST(Identities, WhatAgreesComesBeforeWhatOnlyDoesNotContradict) {
  Identities processes;
  processes.place("host 1", {{"world", {"0"}}});
  processes.place("host 1", {{"world", {"1"}}, {"pair", {"0"}}});
  EXPECT_EQ(processes.place("host 1", {{"pair", {"0"}}}).number, 1u);
  EXPECT_EQ(processes.place("host 1", {{"pair", {"1"}}}).number, 0u);
  EXPECT_EQ(processes.place("host 1", {{"world", {"0", "5"}}}).number, 0u) << "one of several is enough";
}

}  // namespace
}  // namespace lockstep::readers::common
