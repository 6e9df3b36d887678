// SPDX-License-Identifier: Apache-2.0
#include "readers/kineto/event.h"

#include <gtest/gtest.h>

#include "readers/kineto/event_stream.h"

namespace lockstep::readers::kineto {
namespace {

TEST(Microseconds, AreReadWithoutLosingNanoseconds) {
  EXPECT_EQ(parse_microseconds("4345709178959.866"), 4'345'709'178'959'866);
  EXPECT_EQ(parse_microseconds("1700000000000000"), 1'700'000'000'000'000'000);
  EXPECT_EQ(parse_microseconds("0.001"), 1);
  EXPECT_EQ(parse_microseconds("7.5"), 7'500);
  EXPECT_EQ(parse_microseconds("7.123456789"), 7'123) << "cut, not rounded up into the next";
  EXPECT_EQ(parse_microseconds("-3.25"), -3'250);
  EXPECT_EQ(parse_microseconds("1.5e3"), 1'500'000);
  for (const char* bad : {"", "x", "nan", "inf", "1.5x", "99999999999999999999", "1e300", "-", "--1", "1e18"})
    EXPECT_FALSE(parse_microseconds(bad)) << bad;
}

EventKind kind(const std::string& text) { return head_of(text).kind; }

TEST(EventHead, KnowsTheKindsItNeeds) {
  EXPECT_EQ(kind(R"({"ph":"X","cat":"cpu_op","name":"record_param_comms"})"), EventKind::kComms);
  EXPECT_EQ(kind(R"({ "ph": "X", "cat": "cpu_op", "name": "aten::mm", "args": {} })"), EventKind::kOther);
  EXPECT_EQ(kind(R"({"args":{"a":"}","b":[{"c":"]"}]},"name":"gemm","ts":1.5,"cat":"kernel","ph":"X"})"),
            EventKind::kKernel);
  EXPECT_EQ(kind(R"({"ph":"X","cat":"Kernel","name":"k"})"), EventKind::kKernel);
  EXPECT_EQ(kind(R"({"ph":"X","cat":"gpu_memcpy","name":"k"})"), EventKind::kCopy);
  EXPECT_EQ(kind(R"({"ph":"X","cat":"cuda_runtime","name":"cudaLaunchKernel"})"), EventKind::kLaunch);
  EXPECT_EQ(kind(R"({"ph":"X","cat":"cuda_driver","name":"cuLaunchKernelEx"})"), EventKind::kLaunch);
  EXPECT_EQ(kind(R"({"ph":"X","cat":"cuda_runtime","name":"cudaMemcpyAsync"})"), EventKind::kOther);
  EXPECT_EQ(kind(R"({"ph":"s","id":7,"cat":"ac2g","name":"ac2g"})"), EventKind::kFlow);
  EXPECT_EQ(kind(R"({"ph":"f","id":7,"cat":"ac2g","name":"ac2g"})"), EventKind::kOther);
  EXPECT_EQ(kind(R"({"ph":"X","cat":"user_annotation","name":"ProfilerStep#12"})"), EventKind::kStep);
  EXPECT_EQ(kind(R"({"ph":"X","cat":"gpu_user_annotation","name":"ProfilerStep#12"})"), EventKind::kOther);
  EXPECT_EQ(kind(R"({"name":"process_labels","ph":"M","args":{"labels":"CPU"}})"), EventKind::kLabel);
  EXPECT_EQ(kind(R"({"name":"thread_name","ph":"M","args":{"name":"thread 7"
}
})"),
            EventKind::kThread);
  EXPECT_EQ(kind(R"({"name":"Record Window End","ph":"i","s":"g"})"), EventKind::kWindowEnd);
  EXPECT_EQ(kind(R"({"ph":"C","name":"counter"})"), EventKind::kOther);
}

TEST(EventHead, IsNotReadOfWhatIsNoEvent) {
  for (const char* text :
       {"{}", "{\"a\":1}", "{\"ph\"}", "{\"ph\":}", "{\"ph\":\"X", "{\"a\\\":1}", "{\"a\":[}"})
    EXPECT_FALSE(head_of(text).is_read) << text;
}

std::optional<Event> parse(std::string text, EventKind kind = EventKind::kComms) {
  static EventParser parser;
  static std::string padded;  // texts of the event lie in it
  padded = std::move(text);
  const size_t size = padded.size();
  padded.resize(size + EventStream::kPadding, ' ');
  return parser.event({padded.data(), size}, kind);
}

TEST(Event, KeepsAllBitsOfLargeNumbers) {
  const auto event = parse(
      R"({"ts":1,"args":{"Comms Id":18446744073709551615,"Seq":9223372036854775807,"correlation":-5,"In msg nelems":9007199254740993}})");
  ASSERT_TRUE(event);
  EXPECT_EQ(event->comms_id, UINT64_MAX);
  EXPECT_EQ(event->seq, INT64_MAX);
  EXPECT_EQ(event->correlation, -5);
  EXPECT_EQ(event->in, 9'007'199'254'740'993u);
}

TEST(Event, NumbersThatAreNoneAreAbsent) {
  const auto event = parse(
      R"({"ts":1,"dur":-7,"args":{"Seq":1e400,"Group size":99999999999999999999999,"In msg nelems":-3,"Comms Id":"x","Rank":null,"Src Rank":[1]}})");
  ASSERT_TRUE(event);
  EXPECT_EQ(event->dur_ns, 0);
  EXPECT_EQ(event->seq, -1);
  EXPECT_EQ(event->group_size, -1);
  EXPECT_EQ(event->in, 0u);
  EXPECT_FALSE(event->comms_id);
  EXPECT_EQ(event->rank, -1);
  EXPECT_EQ(event->source, -1);
}

TEST(Event, OfKeysThatComeTwiceTheLastCounts) {
  const auto event = parse(R"({"ts":1,"ts":2,"args":{"Seq":1,"Seq":2},"args":{"Seq":3}})");
  ASSERT_TRUE(event);
  EXPECT_EQ(event->ts_ns, 2'000);
  EXPECT_EQ(event->seq, 3);
}

TEST(Event, WhatIsNoJsonIsNone) {
  for (const char* text : {"{\"ts\":1,}x", "{\"ts\" 1}", "{\"name\":\"\\ud800\"}", "{\"name\":\"\xff\xfe\"}",
                           "[]", "{\"ts\":1,\"args\":{\"Seq\" 1}}"})
    EXPECT_FALSE(parse(text)) << "'" << text << "'";
}

TEST(DistributedInfo, IsReadInBothForms) {
  EventParser parser;
  std::string text =
      R"({"backend":"nccl","rank":3,"world_size":8,"pg_config":[{"pg_name":"0","pg_desc":"default_pg","pg_size":2,"ranks":[0,1]},{"pg_name":4,"ranks":"[0, ..., 7]"},7],"nccl_version":"2.28.9"})";
  const size_t size = text.size();
  text.resize(size + EventStream::kPadding, ' ');
  const auto info = parser.distributed_info({text.data(), size});
  ASSERT_TRUE(info);
  EXPECT_EQ(info->rank, 3);
  EXPECT_EQ(info->world, 8);
  ASSERT_GE(info->groups.size(), 2u);
  EXPECT_EQ(info->groups[0].ranks, "[0,1]");
  EXPECT_EQ(info->groups[1].name, "4");
  EXPECT_EQ(info->groups[1].ranks, "[0, ..., 7]");
  EXPECT_EQ(info->nccl_version, "2.28.9");
}

}  // namespace
}  // namespace lockstep::readers::kineto
