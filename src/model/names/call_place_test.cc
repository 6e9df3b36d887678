// SPDX-License-Identifier: Apache-2.0
#include "model/names/call_place.h"

#include <gtest/gtest.h>

#include <initializer_list>

namespace lockstep::model {
namespace {

std::string place(std::initializer_list<Frame> frames) {
  CallPlace place;
  for (const Frame& frame : frames) place.add(frame);
  return place.text();
}

TEST(CallPlace, IsTheInnermostFramesOfTheUser) {
  EXPECT_EQ(place({{"all_reduce",
                    "/opt/venv/lib/python3.12/site-packages/torch/distributed/distributed_c10d.py", 3068},
                   {"wrapper", "/usr/lib/python3/dist-packages/torch/distributed/c10d_logger.py", 83},
                   {"step", "/srv/job/train.py", 95},
                   {"_call_impl", "/src/pytorch/torch/nn/modules/module.py", 1736},
                   {"fit", "/srv/job/fit.py", 40},
                   {"<module>", "/srv/job/main.py", 7},
                   {"outer", "/srv/job/more.py", 9},
                   {"_run_code", "<frozen runpy>", 88}}),
            "train.py:95 (step), from fit.py:40 (fit), from main.py:7");
}

TEST(CallPlace, OfLibrariesAloneIsTheInnermost) {
  EXPECT_EQ(place({{"wait", "/usr/lib/python3.12/threading.py", 355},
                   {"run", "/usr/lib/python3.12/threading.py", 982}}),
            "threading.py:355 (wait)");
  EXPECT_EQ(place({{"pthread_cond_wait", "", 0}, {"run", "??", 0}}), "pthread_cond_wait");
  EXPECT_EQ(place({}), "");
}

TEST(CallPlace, AFolderCalledTorchIsNotPyTorch) {
  EXPECT_FALSE(is_library("/srv/job/torch/train.py"));
  EXPECT_FALSE(is_library("train.py"));
  EXPECT_FALSE(is_library("<ipython-input-3-abc>"));
  for (const char* file :
       {"/srv/job/pytorch/torch/distributed/distributed_c10d.py", "/build/torch/_dynamo/eval_frame.py",
        "/src/x.cpp", "<frozen importlib._bootstrap>", "", "??"})
    EXPECT_TRUE(is_library(file)) << file;
}

TEST(CallPlace, ShowsNothingThatATerminalObeys) {
  EXPECT_EQ(place({{"s\x1b[2J", "/srv/t\n.py", -4}}), "t?.py (s?[2J)");
}

}  // namespace
}  // namespace lockstep::model
