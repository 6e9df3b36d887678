// SPDX-License-Identifier: Apache-2.0
#include "capture/core/host/gpu_model.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "tests/support/temporary_folder.h"

namespace lockstep::capture {
namespace {

class GpuModelTest : public ::testing::Test {
 protected:
  void write(const std::string& path, const std::string& text) const {
    const std::filesystem::path file = root_ + path;
    std::filesystem::create_directories(file.parent_path());
    std::ofstream(file) << text;
  }
  std::string model(const char* pci) const { return read_gpu_model(pci, root_.c_str()).text; }

 private:
  const test::TemporaryFolder folder_;
  const std::string root_ = folder_.path();
};

TEST_F(GpuModelTest, TheDriverNamesIt) {
  write("/proc/driver/nvidia/gpus/0000:1b:00.0/information",
        "Model: \t\t NVIDIA H200\nIRQ:   \t\t 41\nGPU UUID: \t GPU-eb2227de\n");
  EXPECT_EQ(model("0000:1b:00.0"), "NVIDIA H200");
  EXPECT_EQ(model("0000:1B:00.0"), "NVIDIA H200");
  EXPECT_EQ(model("0000:1c:00.0"), "");
}

TEST_F(GpuModelTest, ElseItsNumbersDo) {
  write("/sys/bus/pci/devices/0000:c1:00.0/vendor", "0x1002\n");
  write("/sys/bus/pci/devices/0000:c1:00.0/device", "0x74a1\n");
  write("/proc/driver/nvidia/gpus/0000:c1:00.0/information", "IRQ: 41\n");
  EXPECT_EQ(model("0000:c1:00.0"), "PCI 1002:74a1");
}

TEST_F(GpuModelTest, WhatIsNotThereIsUnknown) {
  write("/sys/bus/pci/devices/0000:c1:00.0/vendor", "0x1002\n");
  for (const char* pci : {"", "0000:c1:00.0", "../../../etc", "0000:c1:00.0:0000:c1", "ffff"})
    EXPECT_EQ(model(pci), "") << pci;
}

TEST_F(GpuModelTest, LongNamesAreCut) {
  write("/proc/driver/nvidia/gpus/0000:1b:00.0/information", "Model: " + std::string(5000, 'x'));
  EXPECT_EQ(model("0000:1b:00.0"), std::string(63, 'x'));
}

}  // namespace
}  // namespace lockstep::capture
