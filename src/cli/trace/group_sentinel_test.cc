// SPDX-License-Identifier: Apache-2.0
#include "cli/trace/group_sentinel.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>

namespace lockstep::cli::trace {
namespace {

// Whoever reads what the command writes waits until all that could write have closed it.
TEST(GroupSentinel, KeepsNoFileOpen) {
  constexpr int kHigh = 2000;
  rlimit files{};
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &files), 0);
  if (files.rlim_max <= kHigh) GTEST_SKIP() << "the system allows fewer files";
  const rlimit more{.rlim_cur = std::max<rlim_t>(files.rlim_cur, kHigh + 1), .rlim_max = files.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &more), 0);
  int ends[2];
  ASSERT_EQ(pipe2(ends, O_CLOEXEC), 0);
  const int high = fcntl(ends[1], F_DUPFD_CLOEXEC, kHigh);
  ASSERT_GE(high, kHigh);
  {
    const GroupSentinel sentinel;
    close(high);
    close(ends[1]);
    pollfd reading{.fd = ends[0], .events = POLLIN, .revents = 0};
    EXPECT_EQ(poll(&reading, 1, 10'000), 1);
    EXPECT_TRUE(reading.revents & POLLHUP);
  }
  close(ends[0]);
  setrlimit(RLIMIT_NOFILE, &files);
}

}  // namespace
}  // namespace lockstep::cli::trace
