// SPDX-License-Identifier: Apache-2.0
#include "job/gather/pageable_copies.h"

#include <gtest/gtest.h>

namespace lockstep::job::gather {
namespace {

using model::KernelKind;
using model::kNoRow;

struct Recorded {
  model::Trace trace;
  void work(KernelKind kind, const char* name, int64_t start, int64_t end, int32_t gpu = 0,
            uint64_t bytes = 0) {
    trace.kernels.append({0, kNoRow, trace.strings.intern(name), static_cast<uint8_t>(kind), gpu, 7, 0, 0,
                          start, end, kNoRow, 0, 0, bytes});
  }
  model::PageableCopies run() {
    model::JobProcess process;
    add_pageable_copies(trace, trace.strings, process);
    return process.pageable;
  }
};

constexpr const char* kPageable = "Memcpy HtoD (Pageable -> Device)";

TEST(PageableCopies, CountAloneBetweenTheFirstAndTheLastCommunication) {
  Recorded made;
  made.work(KernelKind::kCopy, kPageable, 0, 900, 0, 1 << 20);  // loads weights: ends before all
  made.work(KernelKind::kCommunication, "ncclKernel", 1000, 1100);
  made.work(KernelKind::kCopy, kPageable, 1050, 1250, 0, 500);
  made.work(KernelKind::kCopy, kPageable, 1200, 1300, 0, 300);  // overlaps with the copy before
  made.work(KernelKind::kCopy, "Memcpy HtoD (Pinned -> Device)", 1400, 1500, 0, 7);
  made.work(KernelKind::kCompute, "gemm", 1280, 1390);
  made.work(KernelKind::kCopy, "Memcpy DtoH (Device -> Pageable)", 1600, 1650, 0, 200);
  made.work(KernelKind::kCommunication, "ncclKernel", 1900, 2000);
  made.work(KernelKind::kCopy, kPageable, 1990, 9000, 0, 9);  // saves them: all but 10 ns comes behind all
  const model::PageableCopies sum = made.run();
  EXPECT_EQ(sum.copies, 4u);
  EXPECT_EQ(sum.bytes, 1009u);
  EXPECT_EQ(sum.busy_ns, 250 + 50 + 10);
  EXPECT_EQ(sum.alone_ns, 1280 - 1100 + 50);
  EXPECT_EQ(sum.length_ns, 1000);
}

TEST(PageableCopies, WhatIsLoadedOrSavedOnceIsNotUsual) {
  Recorded made;
  for (int64_t step = 0; step <= 8; ++step)
    made.work(KernelKind::kCommunication, "ncclKernel", 1000 * step, 1000 * step + 10);
  made.work(KernelKind::kCopy, kPageable, 20, 2500);    // weights, behind the first communication
  made.work(KernelKind::kCopy, kPageable, 5100, 5900);  // a checkpoint
  model::PageableCopies sum = made.run();
  EXPECT_EQ(sum.alone_ns, 2480 - 2 * 10 + 800);
  EXPECT_EQ(sum.usual_ns, 0);
  for (int64_t step = 0; step < 8; ++step)
    made.work(KernelKind::kCopy, kPageable, 1000 * step + 200, 1000 * step + 300);
  sum = made.run();
  EXPECT_EQ(sum.usual_ns, 8 * 100);
}

TEST(PageableCopies, EachDeviceCountsForItself) {
  Recorded made;
  for (const int32_t gpu : {3, 5}) {
    made.work(KernelKind::kCommunication, "ncclKernel", 0, 10, gpu);
    made.work(KernelKind::kCopy, kPageable, 20, 60, gpu, 8);
    made.work(KernelKind::kCommunication, "ncclKernel", 90, 100, gpu);
  }
  const model::PageableCopies sum = made.run();
  EXPECT_EQ(sum.copies, 2u);
  EXPECT_EQ(sum.busy_ns, 80);
  EXPECT_EQ(sum.alone_ns, 80);
  EXPECT_EQ(sum.length_ns, 200);
}

TEST(PageableCopies, AreNoneWithoutCommunicationOrOfOtherMemory) {
  Recorded alone;
  alone.work(KernelKind::kCopy, kPageable, 0, 900);
  EXPECT_EQ(alone.run().copies, 0u);
  Recorded pinned;
  pinned.work(KernelKind::kCommunication, "ncclKernel", 0, 10);
  pinned.work(KernelKind::kCopy, "Memcpy DtoH (Device -> Pinned)", 20, 60);
  pinned.work(KernelKind::kCommunication, "ncclKernel", 90, 100);
  EXPECT_EQ(pinned.run().copies, 0u);
  EXPECT_EQ(pinned.run().length_ns, 0);
}

}  // namespace
}  // namespace lockstep::job::gather
