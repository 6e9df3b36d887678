// SPDX-License-Identifier: Apache-2.0
// The library as a program uses it, beside the command that says the same.
#include <gtest/gtest.h>

#include <fstream>
#include <thread>

#include "lockstep/diagnose.h"
#include "tests/e2e/workplace.h"

namespace lockstep {
namespace {

class Library : public test::Workplace {
 protected:
  void simulate(const std::string& fault, const std::string& name) {
    const auto made = do_here({LOCKSTEP_BIN_DIR "/lockstep-sim-job", "--ranks", "8", "--steps", "20",
                               "--seed", "3", "--fault", fault, "-o", name});
    ASSERT_EQ(made.code, 0) << made;
  }
  struct Answer {
    int code = -1;
    std::string text, error;
  };
  static Answer take(int code, char* text, char* error) {
    Answer answer{code, text == nullptr ? "" : text, error == nullptr ? "" : error};
    lockstep_free(text);
    lockstep_free(error);
    return answer;
  }
  static Answer diagnose(lockstep_run* run) {
    char *json = nullptr, *error = nullptr;
    const int code = lockstep_diagnose(run, &json, &error);
    return take(code, json, error);
  }
  static lockstep_run* open(const std::string& path) {
    const char* paths[] = {path.c_str()};
    return lockstep_open(paths, 1, nullptr);
  }
  static ArrowArrayStream table(lockstep_run* run, const char* name) {
    ArrowArrayStream stream{};
    char* error = nullptr;
    EXPECT_EQ(lockstep_table(run, name, &stream, &error), 0) << error;
    return stream;
  }
};

TEST_F(Library, SaysWhatTheCommandPrints) {
  for (const char* fault : {"none", "never-joined", "host-late"}) {
    simulate(fault, fault);
    const auto printed = do_here(lockstep({"diagnose", "--json", path(fault)}));
    lockstep_run* run = open(path(fault));
    const Answer answer = diagnose(run);
    EXPECT_EQ(answer.code, printed.code) << fault;
    EXPECT_EQ(answer.text, printed.out) << fault;
    EXPECT_EQ(answer.error, "");
    lockstep_close(run);
  }
}

TEST_F(Library, TellsFailuresInWords) {
  char* error = nullptr;
  EXPECT_EQ(lockstep_open(nullptr, 0, &error), nullptr);
  EXPECT_EQ(take(0, nullptr, error).error, "name at least one path");
  lockstep_run* run = open(path("absent"));
  ASSERT_NE(run, nullptr);
  const Answer answer = diagnose(run);
  EXPECT_EQ(answer.code, LOCKSTEP_FAILED);
  EXPECT_EQ(answer.text, "");
  EXPECT_TRUE(has(answer.error, "absent")) << answer.error;
  EXPECT_EQ(diagnose(nullptr).code, LOCKSTEP_FAILED);
  EXPECT_EQ(lockstep_diagnose(run, nullptr, nullptr), LOCKSTEP_FAILED);
  ArrowArrayStream stream{};
  EXPECT_EQ(lockstep_table(run, "nothing", &stream, &error), LOCKSTEP_FAILED);
  EXPECT_TRUE(has(take(0, nullptr, error).error, "processes, comms, ops"));
  EXPECT_EQ(stream.release, nullptr);
  lockstep_close(run);
  lockstep_close(nullptr);
  lockstep_free(nullptr);
}

TEST_F(Library, ColumnsOutliveBatchStreamAndRun) {
  simulate("none", "run");
  lockstep_run* run = open(path("run"));
  ArrowArrayStream stream = table(run, "ops");
  lockstep_close(run);
  ArrowSchema schema{};
  ASSERT_EQ(stream.get_schema(&stream, &schema), 0);
  ASSERT_STREQ(schema.format, "+s");
  int64_t func = -1;
  for (int64_t i = 0; i < schema.n_children; ++i) {
    if (std::string(schema.children[i]->name) == "func") func = i;
  }
  ASSERT_GE(func, 0);
  EXPECT_STREQ(schema.children[func]->format, "U");
  ArrowArray batch{};
  ASSERT_EQ(stream.get_next(&stream, &batch), 0);
  ASSERT_NE(batch.release, nullptr);
  // Taken out, as the interface allows: copied, and marked released in its parent.
  ArrowArray taken = *batch.children[func];
  batch.children[func]->release = nullptr;
  batch.release(&batch);
  stream.release(&stream);
  schema.release(&schema);
  EXPECT_EQ(stream.release, nullptr);
  ASSERT_GT(taken.length, 0);
  const auto* begins = static_cast<const int64_t*>(taken.buffers[1]);
  EXPECT_EQ(
      std::string(static_cast<const char*>(taken.buffers[2]) + begins[0], static_cast<size_t>(begins[1])),
      "Broadcast");
  taken.release(&taken);
  EXPECT_EQ(taken.release, nullptr);
}

TEST_F(Library, EndsWithAReleasedBatch) {
  simulate("none", "run");
  lockstep_run* run = open(path("run"));
  ArrowArrayStream stream = table(run, "processes");
  int64_t rows = 0;
  for (;;) {
    ArrowArray batch{};
    ASSERT_EQ(stream.get_next(&stream, &batch), 0);
    if (batch.release == nullptr) break;
    rows += batch.length;
    batch.release(&batch);
  }
  EXPECT_EQ(rows, 8);
  stream.release(&stream);
  stream = table(run, "losses");  // one that nobody reads to its end
  stream.release(&stream);
  lockstep_close(run);
}

TEST_F(Library, ATableOfNothingReadableIsAnError) {
  std::ofstream(path("cut.lks")) << "not a process file";
  lockstep_run* run = open(path("cut.lks"));
  ArrowArrayStream stream{};
  char* error = nullptr;
  int code = lockstep_table(run, "ops", &stream, &error);
  if (code == 0) {
    ArrowArray batch{};
    code = stream.get_next(&stream, &batch) != 0 ? LOCKSTEP_FAILED : 0;
    EXPECT_NE(stream.get_last_error(&stream), nullptr);
    stream.release(&stream);
  }
  EXPECT_EQ(code, LOCKSTEP_FAILED);
  lockstep_free(error);
  lockstep_close(run);
}

TEST_F(Library, RunsOnTwoThreadsAtOnce) {
  simulate("never-joined", "a");
  simulate("none", "b");
  Answer a, b;
  const auto look = [&](const char* name, Answer* out) {
    lockstep_run* run = open(path(name));
    *out = diagnose(run);
    lockstep_close(run);
  };
  std::thread one(look, "a", &a), other(look, "b", &b);
  one.join();
  other.join();
  EXPECT_EQ(a.code, LOCKSTEP_PROBLEM) << a.error;
  EXPECT_EQ(b.code, LOCKSTEP_HEALTHY) << b.error;
}

}  // namespace
}  // namespace lockstep
