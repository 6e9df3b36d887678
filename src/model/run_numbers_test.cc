// SPDX-License-Identifier: Apache-2.0
#include "model/run_numbers.h"

#include <gtest/gtest.h>

namespace lockstep::model {
namespace {

constexpr int64_t kFromBegin = OperationNumbers::kFromBegin;

// Two communicators, of which the second is numbered by its source.
Trace trace_of(Window window = Window::kNone, std::optional<int64_t> first_step = {}) {
  Trace trace;
  Process process{};
  process.window = static_cast<uint8_t>(window);
  trace.processes.append(process);
  for (const uint8_t numbered : {uint8_t{0}, uint8_t{1}}) {
    Comm comm{};
    comm.numbered = numbered;
    trace.comms.append(comm);
  }
  if (first_step) {
    Mark mark{};
    trace.marks.append(mark);
    mark.is_step = 1;
    mark.value = *first_step;
    trace.marks.append(mark);
    ++mark.value;
    trace.marks.append(mark);
  }
  return trace;
}

TEST(OperationNumbers, OfAWholeRecordingCompare) {
  const Trace trace = trace_of();
  const OperationNumbers numbers(trace);
  EXPECT_EQ(numbers.collectives_from(0), kFromBegin);
  EXPECT_EQ(numbers.messages_from(), kFromBegin);
  EXPECT_TRUE(numbers.has_same_index(0, -1));
}

TEST(OperationNumbers, OfARingThatHasForgottenDoNot) {
  for (const char* const kind : {"overwritten", "missing_chunk", "no_chunk"}) {
    Trace trace = trace_of();
    trace.lose(0, "capture", kind, 1, "older events");
    const OperationNumbers numbers(trace);
    EXPECT_FALSE(numbers.collectives_from(0)) << kind;
    EXPECT_EQ(numbers.collectives_from(1), kFromBegin) << "its source numbered it";
    EXPECT_FALSE(numbers.messages_from());
    EXPECT_FALSE(numbers.has_same_index(0, -1));
    EXPECT_TRUE(numbers.has_same_index(1, -1));
    EXPECT_TRUE(numbers.has_same_index(0, 3)) << "of a message it is the process' own";
  }
  Trace trace = trace_of();
  trace.lose(0, "capture", "clamped", 1, "values too large for their field");
  EXPECT_TRUE(OperationNumbers(trace).messages_from()) << "nothing is missing";
  trace.processes.modes[0] = trace.strings.intern("default 1, off 5");
  EXPECT_FALSE(OperationNumbers(trace).messages_from()) << "switched off for a while";
}

TEST(OperationNumbers, OfWindowsCompareWhereTheyBeganWithOneStep) {
  const Trace counted = trace_of(Window::kCounted, 7), unknown = trace_of(Window::kCounted),
              numbered = trace_of(Window::kNumbered, 7), begun = trace_of(Window::kNumbered);
  EXPECT_EQ(OperationNumbers(counted).collectives_from(0), 7);
  EXPECT_EQ(OperationNumbers(counted).messages_from(), 7);
  EXPECT_FALSE(OperationNumbers(counted).has_same_index(0, -1)) << "that of another window may be another";
  EXPECT_FALSE(OperationNumbers(unknown).collectives_from(0));
  EXPECT_FALSE(OperationNumbers(unknown).messages_from());
  EXPECT_EQ(OperationNumbers(numbered).collectives_from(0), kFromBegin);
  EXPECT_EQ(OperationNumbers(numbered).messages_from(), 7);
  EXPECT_EQ(OperationNumbers(begun).messages_from(), kFromBegin);
}

}  // namespace
}  // namespace lockstep::model
