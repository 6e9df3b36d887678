// SPDX-License-Identifier: Apache-2.0
// What launchers, collectors and people put around a line of NCCL leaves it readable: every wrapping, head
// and ending together.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <string_view>

#include "readers/nccl_log/testing/parse.h"

namespace lockstep::readers::nccl_log {
namespace {

// '%' stands for the line.
constexpr std::string_view kWrappings[] = {
    "%",
    "0: %",
    "12: %",
    " 3: %",
    "[1,9]<stdout>:%",
    "[1,9]<stderr>:%",
    "Mon Mar  3 04:05:06 2031[1,9]<stdout>:%",
    "[rank3]:%",
    "[rank3]: %",
    "[default0]:%",
    "[default0]: %",
    "[trainer/3]:%",
    "worker/0 %",
    "node-7: %",
    "(node-7) %",
    "node-7 | %",
    "trainer_1  | %",
    "trainer-1  | 2031-03-03T04:05:06.123Z %",
    "2031-03-03T04:05:06.123456789Z stdout F %",
    "2031-03-03T04:05:06.123456789Z stderr P %",
    "2031-03-03T04:05:06Z %",
    "2031-03-03 04:05:06 %",
    "2031-03-03 04:05:06,123 INFO %",
    "2031-03-03 04:05:06.123 | INFO     | train:main:12 - %",
    "[2031-03-03 04:05:06] %",
    "[2031-03-03 04:05:06,123] [INFO] %",
    "[NeMo I 2031-03-03 04:05:06 train:12] %",
    "INFO:train:%",
    "I0303 04:05:06.123456 77 train.cc:12] %",
    "Mar  3 04:05:06 node-7 train[77]: %",
    "Mar 03 04:05:06 node-7 systemd[1]: %",
    "<6>Mar  3 04:05:06 node-7 train: %",
    "(TrainWorker pid=77) %",
    "(TrainWorker pid=77, ip=192.0.2.7) %",
    "\x1b[36m(TrainWorker pid=77)\x1b[0m %",
    "(EngineCore_DP0 pid=7) (RayWorkerWrapper pid=77, ip=192.0.2.7) %",
    "(VllmWorkerProcess pid=77) %",
    "(Worker_TP1 pid=77) %",
    "pod/train-0 %",
    "train-0 train %",
    "[pod/train-0/train] %",
    "train-0.log:%",
    "train-0.log:12:%",
    "12:%",
    "12  %",
    "> %",
    "> > %",
    "    %",
    "\t%",
    "- %",
    "`%`",
    "|%|",
    "\"%\"",
    "'%',",
    "{\"log\":\"%\\n\",\"stream\":\"stdout\",\"time\":\"2031-03-03T04:05:06.123456789Z\"}",
    "{\"severity\":\"INFO\",\"textPayload\":\"%\",\"timestamp\":\"2031-03-03T04:05:06Z\"}",
    "1930000000123,\"%\"",
};
constexpr std::string_view kHeads[] = {
    "gpu-3:512:640 [7] NCCL INFO ",
    "gpu-3.cluster.example:512:640 [0] NCCL INFO ",
    "192.0.2.44:512:640 [15] NCCL INFO ",
    "GPU_3:512:640 [7] NCCL INFO ",
    "[2031-03-03 04:05:06] gpu-3:512:640 [7] NCCL INFO ",
};
constexpr std::string_view kEndings[] = {"\n", "\r\n", " \n", "\x1b[0m\n", "\n\n", ""};

TEST(Wrappings, LeaveEveryHeadAndEndingReadable) {
  for (const std::string_view wrapping : kWrappings) {
    const size_t hole = wrapping.find('%');
    for (const std::string_view head : kHeads) {
      for (const std::string_view ending : kEndings) {
        std::string text(wrapping.substr(0, hole));
        text.append(head).append("Bootstrap: Using eth0:198.51.100.9<0>").append(wrapping.substr(hole + 1));
        SCOPED_TRACE(text);
        text += ending;
        const LogModel model = parse(text);
        const Fact* fact = only(model, LineKind::kBootstrap);
        ASSERT_NE(fact, nullptr);
        EXPECT_EQ(fact->value(0), "eth0");
        EXPECT_EQ(fact->value(1), "198.51.100.9");
        ASSERT_NE(fact->process, kNobody);
        const LogProcess& process = model.processes[fact->process];
        EXPECT_EQ(process.pid, 512);
        EXPECT_NE(head.find(process.host + ":512"), std::string_view::npos) << process.host;
        EXPECT_EQ(model.coverage.torn, 0u);
      }
    }
  }
}

}  // namespace
}  // namespace lockstep::readers::nccl_log
