// SPDX-License-Identifier: Apache-2.0
#include "links/host_files.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>

#include "base/temporary_directory.h"
#include "links/machine.h"

namespace lockstep::links {
namespace {
namespace fs = std::filesystem;

void put(const fs::path& path, const std::string& text) {
  fs::create_directories(path.parent_path());
  std::ofstream(path) << text;
}

class Tree : public ::testing::Test {
 protected:
  TemporaryDirectory folder_ = std::move(*TemporaryDirectory::make());
  fs::path root_ = folder_.path();

  void device(const std::string& below, const std::string& name) {
    put(root_ / "sys/devices" / below / name / "class", "0x020700\n");
    fs::create_directories(root_ / "sys/bus/pci/devices");
    fs::create_symlink("../../../devices/" + below + "/" + name, root_ / "sys/bus/pci/devices" / name);
  }
  HostFiles read() { return std::move(*HostFiles::read(root_)); }
};

TEST_F(Tree, ReadsTheChainOfBridges) {
  device("pci0000:10/0000:10:01.0/0000:11:00.0", "0000:12:00.0");
  const Machine machine = machine_of(read(), {});
  ASSERT_TRUE(machine.pci.contains("0000:12:00.0"));
  const PciDevice& device = machine.pci.at("0000:12:00.0");
  EXPECT_EQ(device.root, "pci0000:10");
  EXPECT_EQ(device.bridges, (std::vector<std::string>{"0000:10:01.0", "0000:11:00.0"}));
}

TEST_F(Tree, HostileContentsAreBoundedAndHarmless) {
  device("pci0000:10", "0000:10:02.0");
  put(root_ / "sys/bus/pci/devices/0000:10:02.0/max_link_width", std::string(1 << 20, 'x'));
  put(root_ / "sys/bus/pci/devices/0000:10:02.0/numa_node", std::string("\0\xff\n", 3));
  fs::create_symlink("loop", root_ / "sys/bus/pci/devices/loop");
  fs::create_symlink("/etc/passwd", root_ / "sys/bus/pci/devices/0000:10:03.0");
  ASSERT_EQ(mkfifo((root_ / "sys/bus/pci/devices/0000:10:02.0/current_link_width").c_str(), 0600), 0);
  put(root_ / "sys/class/infiniband/name with blanks/ports/1/rate", "400 Gb/sec (4X NDR)\n");
  const HostFiles files = read();
  const Machine machine = machine_of(files, {});
  ASSERT_TRUE(machine.pci.contains("0000:10:02.0"));
  EXPECT_FALSE(machine.pci.at("0000:10:02.0").most.width);
  EXPECT_FALSE(machine.pci.at("0000:10:02.0").now.width);
  EXPECT_LE(files.text("/sys/bus/pci/devices/0000:10:02.0/max_link_width")->size(), size_t{64} << 10);
  EXPECT_TRUE(machine.pci.contains("0000:10:03.0") == false ||
              machine.pci.at("0000:10:03.0").bridges.empty());
  ASSERT_EQ(machine.nics.size(), 1u);
  EXPECT_EQ(machine.nics[0].ports[0].gigabits, 400);
}

TEST_F(Tree, AnEmptyRootIsAMachineOfWhichNothingIsKnown) {
  const Machine machine = machine_of(read(), {});
  EXPECT_TRUE(machine.pci.empty());
  EXPECT_EQ(machine.host.iommu, Iommu::kUnknown);
}

TEST(HostFiles, ARootThatIsNoFolderIsAnError) { EXPECT_FALSE(HostFiles::read("/dev/null")); }

}  // namespace
}  // namespace lockstep::links
