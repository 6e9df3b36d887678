// SPDX-License-Identifier: Apache-2.0
#include "nccl_host/tape.h"

#include <gtest/gtest.h>

#include "nccl_host/faults.h"
#include "nccl_host/json_line.h"
#include "nccl_host/options.h"
#include "nccl_host/scripts.h"

namespace lockstep::sim {
namespace {

const std::string kHeader = "{\"call\":\"tape\",\"version\":1,\"pid\":7}\n";
const std::string kInit =
    "{\"t\":5,\"tid\":7,\"thread\":\"u\",\"call\":\"init\",\"api\":6,\"ctx\":16,\"commId\":\"ff\",\"nranks\":"
    "2}\n";

TEST(JsonLine, TakesFlatObjects) {
  JsonLine line;
  ASSERT_TRUE(line.parse(R"( {"a":1, "b" : -2 ,"c":"x\"\\\u0041\u00e9","d":""} )"));
  EXPECT_EQ(line.number("a"), 1u);
  EXPECT_EQ(line.integer("b"), -2);
  EXPECT_EQ(line.text("c"), "x\"\\A?");
  EXPECT_TRUE(line.has("d"));
  EXPECT_FALSE(line.has("e"));
  EXPECT_TRUE(line.parse("{}"));
}

TEST(JsonLine, RefusesEveryCutAndOtherShapes) {
  JsonLine line;
  const std::string whole = R"({"t":12,"name":"a\u0041b\"","x":-3})";
  for (size_t size = 0; size < whole.size(); ++size) EXPECT_FALSE(line.parse(whole.substr(0, size))) << size;
  for (const char* text : {"[]", "{\"a\":[1]}", "{\"a\":{}}", "{\"a\":1}x", "{\"a\":1,}",
                           "{\"a\":99999999999999999999}", "{a:1}", "{\"a\" 1}", "{\"a\":tru}"})
    EXPECT_FALSE(line.parse(text)) << text;
}

TEST(Tape, TellsTheWallClockOfTheRecording) {
  auto read = [](const std::string& header) { return parse_tape(header + kInit, "t")->recorded_realtime_ns; };
  EXPECT_EQ(
      read("{\"call\":\"tape\",\"version\":1,\"pid\":7,\"realtime\":1795202514635,\"monotonic\":784664}\n"),
      1795202514635 - 784664);
  EXPECT_EQ(read(kHeader), 0);
}

TEST(Options, AShiftNeedsATapeAtItsOwnPace) {
  auto parse = [](std::vector<const char*> words) {
    words.insert(words.begin(), {"lockstep-nccl-host", "--plugin", "p"});
    return parse_options(static_cast<int>(words.size()), const_cast<char**>(words.data()));
  };
  EXPECT_EQ(parse({"--pace", "recorded", "--shift", "5", "tape"})->shift_ns, 5);
  EXPECT_EQ(parse({"--pace", "recorded", "--shift", "5", "--late", "file", "tape"})->late, "file");
  EXPECT_FALSE(parse({"--pace", "recorded", "--late", "file", "tape"}));
  EXPECT_FALSE(parse({"--shift", "5", "tape"}));
  EXPECT_FALSE(parse({"--pace", "recorded", "--shift", "-5", "tape"}));
  EXPECT_FALSE(parse({"--pace", "recorded", "--shift", "5", "--repeat", "2", "tape"}));
}

TEST(Tape, TornAtEveryByteIsATornTapeOrWhole) {
  const std::string start =
      "{\"t\":6,\"tid\":8,\"thread\":\"p\",\"call\":\"start\",\"ctx\":16,\"h\":32,\"type\":64,\"parent\":0,"
      "\"pTimer\":12345}";
  for (size_t size = 0; size <= start.size(); ++size) {
    auto program = parse_tape(kHeader + kInit + start.substr(0, size), "t");
    ASSERT_TRUE(program) << program.error().message();
    EXPECT_EQ(program->torn, size > 0 && size < start.size()) << size;
    EXPECT_EQ(program->calls.size(), size == start.size() ? 2u : 1u);
  }
}

TEST(Tape, ReusedNumbersAreNewSlotsAndUnknownOnesAreForeign) {
  std::string text = kHeader + kInit;
  for (int i = 0; i < 2; ++i) text += "{\"tid\":7,\"call\":\"start\",\"ctx\":16,\"h\":32,\"type\":1}\n";
  text += "{\"tid\":7,\"call\":\"start\",\"ctx\":48,\"h\":64,\"type\":8,\"parent\":80,\"pid\":9}\n";
  text += "{\"tid\":7,\"call\":\"stop\",\"h\":32}\n";
  auto program = parse_tape(text, "t");
  ASSERT_TRUE(program) << program.error().message();
  EXPECT_EQ(program->recorded_api, 6);
  EXPECT_EQ(program->comms.at(0).id, 0xffu);
  EXPECT_NE(program->calls[1].handle, program->calls[2].handle);
  EXPECT_EQ(program->calls[4].handle, program->calls[2].handle);
  ASSERT_EQ(program->foreign_handles.size(), 1u);
  EXPECT_EQ(program->foreign_handles[0].second, 80u);
  ASSERT_EQ(program->foreign_contexts.size(), 1u);
  EXPECT_EQ(program->foreign_contexts[0].second, 48u);
}

TEST(Tape, StringsAreOnePointerEach) {
  std::string text = kHeader + kInit;
  for (int i = 0; i < 2; ++i)
    text += "{\"tid\":7,\"call\":\"start\",\"ctx\":16,\"h\":32,\"type\":2,\"func\":\"AllReduce\"}\n";
  auto program = parse_tape(text, "t");
  ASSERT_TRUE(program);
  EXPECT_EQ(program->starts[0].descriptor.coll.func, program->starts[1].descriptor.coll.func);
}

TEST(Scripts, EveryScriptUnderEveryFaultRefersToWhatExists) {
  const char* const faults[] = {
#define FAULT(name, summary) #name,
#include "nccl_host/faults.def"
#undef FAULT
  };
  const char* const scripts[] = {
#define SCRIPT(name, summary) #name,
#include "nccl_host/scripts.def"
#undef SCRIPT
  };
  for (const char* script : scripts)
    for (const char* fault : faults) {
      Program program = find_script(script)->build(3);
      Behaviour behaviour;
      PlayOptions options;
      ASSERT_TRUE(is_fault(fault));
      apply_fault(fault, &program, &behaviour, &options);
      EXPECT_LE(program.loop_begin, program.loop_end);
      EXPECT_LE(program.loop_end, program.calls.size());
      for (const Call& call : program.calls) {
        EXPECT_LT(call.thread, program.threads.size()) << script << " " << fault;
        EXPECT_TRUE(call.handle == kNone || call.handle < program.handle_count) << script << " " << fault;
        EXPECT_TRUE(call.context == kNone || call.context < program.context_count) << script << " " << fault;
      }
    }
}

}  // namespace
}  // namespace lockstep::sim
