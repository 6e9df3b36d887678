// SPDX-License-Identifier: Apache-2.0
#include "capture/core/log/key_table.h"

#include <gtest/gtest.h>

namespace lockstep::capture {
namespace {

uint64_t mixed(uint64_t key) { return key * 0x9e3779b97f4a7c15; }
KeyTable<uint64_t, uint32_t> g_table;  // all zero, as in a thread log
KeyTable<uint64_t, uint32_t> g_crowded;

TEST(KeyTable, RemembersWhatItWasGivenWhileItGrows) {
  EXPECT_EQ(g_table.find(1, mixed(1)), nullptr);
  for (uint64_t key = 0; key < 70'000; ++key) {
    ASSERT_EQ(g_table.find(key, mixed(key)), nullptr);
    g_table.add(key, mixed(key), static_cast<uint32_t>(key + 5));
  }
  for (uint64_t key = 0; key < 70'000; ++key) {
    const uint32_t* value = g_table.find(key, mixed(key));
    ASSERT_NE(value, nullptr) << key;
    EXPECT_EQ(*value, key + 5);
  }
  EXPECT_EQ(g_table.find(70'000, mixed(70'000)), nullptr);
}

TEST(KeyTable, TellsKeysWithOneHashApart) {
  for (uint64_t key = 0; key < 100; ++key) g_crowded.add(key, 7, static_cast<uint32_t>(key));
  for (uint64_t key = 0; key < 100; ++key) EXPECT_EQ(*g_crowded.find(key, 7), key);
  EXPECT_EQ(g_crowded.find(100, 7), nullptr);
}

}  // namespace
}  // namespace lockstep::capture
