// SPDX-License-Identifier: Apache-2.0
#include "links/testing/planted_tree.h"

#include <filesystem>
#include <fstream>

#include "links/testing/healthy_machine.h"

namespace lockstep::links::testing {
namespace {

namespace fs = std::filesystem;

HostFiles with_interfaces() {
  HostFiles files = healthy_files();
  for (int nic = 0; nic < 8; ++nic) {
    const HostFile* const device =
        files.find("/sys/class/infiniband/mlx5_" + std::to_string(nic) + "/device");
    files.add(interface_file(nic, "device"), *device);
    for (const char* const file :
         {"rx_bytes", "tx_bytes", "rx_errors", "tx_errors", "rx_crc_errors", "rx_dropped"})
      set(files, interface_file(nic, std::string("statistics/") + file), "0");
  }
  return files;
}

}  // namespace

PlantedTree::PlantedTree() : folder_(std::move(*TemporaryDirectory::make())) {
  const HostFiles files = with_interfaces();
  for (const auto& [path, file] : files.entries()) {
    if (file.kind != HostFile::Kind::kLink || file.text == path) continue;
    fs::create_directories(root() + file.text);
    fs::create_directories(fs::path(root() + path).parent_path());
    fs::create_directory_symlink(root() + file.text, root() + path);
  }
  for (const auto& [path, file] : files.entries())
    if (file.kind == HostFile::Kind::kText) write(path, file.text);
}

void PlantedTree::write(const std::string& path, const std::string& text) const {
  fs::create_directories(fs::path(root() + path).parent_path());
  std::ofstream(root() + path) << text << '\n';
}

void PlantedTree::remove(const std::string& path) const { fs::remove_all(root() + path); }

void PlantedTree::make_unreadable(const std::string& path) const {
  fs::remove_all(root() + path);
  fs::create_directories(root() + path);
}

std::string port_file(int nic, const std::string& file) {
  return "/sys/class/infiniband/mlx5_" + std::to_string(nic) + "/ports/1/" + file;
}

std::string interface_file(int nic, const std::string& file) {
  return "/sys/class/net/ib" + std::to_string(nic) + "/" + file;
}

}  // namespace lockstep::links::testing
