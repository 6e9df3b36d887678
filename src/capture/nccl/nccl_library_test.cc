// SPDX-License-Identifier: Apache-2.0
#include "capture/nccl/nccl_library.h"

#include <gnu/libc-version.h>
#include <gtest/gtest.h>

#include <string>

namespace lockstep::capture::nccl {
namespace {

// libc stands for NCCL's library: it is an object with a build id, and its path is known to the loader.
TEST(NcclLibrary, IsTheObjectThatHoldsTheCode) {
  NcclLibrary found{};
  ASSERT_TRUE(find_nccl_library(reinterpret_cast<const void*>(&gnu_get_libc_version), &found));
  const std::string text = found.text;
  EXPECT_NE(text.find("/libc.so"), std::string::npos) << text;
  EXPECT_EQ(found.version, 0u) << "it has no ncclGetVersion";
  const std::string id = text.substr(0, text.find(' '));
  EXPECT_TRUE(id == "-" || (id.size() >= 16 && id.find_first_not_of("0123456789abcdef") == std::string::npos))
      << text;
  NcclLibrary again{};
  ASSERT_TRUE(find_nccl_library(reinterpret_cast<const void*>(&gnu_get_libc_release), &again));
  EXPECT_STREQ(found.text, again.text) << "another address of the same object";
}

int own_code() { return 1; }

TEST(NcclLibrary, MayBeTheProgramItself) {
  NcclLibrary found{};
  ASSERT_TRUE(find_nccl_library(reinterpret_cast<const void*>(&own_code), &found));
  EXPECT_NE(std::string(found.text).find("/proc/self/exe"), std::string::npos) << found.text;
}

TEST(NcclLibrary, IsNoneWhereNothingTells) {
  NcclLibrary found{};
  EXPECT_FALSE(find_nccl_library(nullptr, &found)) << "no library of that name is mapped";
  const int on_the_stack = 0;
  EXPECT_FALSE(find_nccl_library(&on_the_stack, &found));
}

}  // namespace
}  // namespace lockstep::capture::nccl
