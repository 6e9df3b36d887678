// SPDX-License-Identifier: Apache-2.0
// What the sampler of links costs a host: `link_sampler_bench [PORTS]` makes a host with that many ports
// (16), an interface and a card on PCI each, and prints the CPU time of a second of sampling, as it is by
// itself and as it is while the run is watched: with files of the kernel's own file system, which are kept
// open, and with plain ones, which are opened anew. What a card's firmware takes for an answer is not in it.
#include <time.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

#include "base/temporary_directory.h"
#include "links/samples/sampler.h"

namespace {

namespace fs = std::filesystem;
namespace links = lockstep::links;
using enum links::DeviceKind;

constexpr const char* kKernelsFile = "/sys/class/net/lo/statistics/rx_errors";

struct File {
  links::DeviceKind kind;
  const char *folder, *name;
};
constexpr File kFiles[] = {
#define SAMPLED(kind, folder, name, seconds) {kind, folder, name},
#include "links/samples/sampled.def"
#undef SAMPLED
};

void put(const fs::path& path, bool kernels) {
  fs::create_directories(path.parent_path());
  if (kernels)
    fs::create_symlink(kKernelsFile, path);
  else
    std::ofstream(path) << "123456\n";
}

size_t make_host(const fs::path& root, int ports, bool kernels) {
  const auto put_all = [&](links::DeviceKind kind, const fs::path& folder) {
    size_t count = 0;
    for (const File& file : kFiles) {
      if (file.kind != kind) continue;
      put(folder / file.folder / file.name, kernels);
      ++count;
    }
    return count;
  };
  size_t count = 0;
  fs::create_directories(root / "sys/bus/pci/devices");
  for (int i = 0; i < ports; ++i) {
    const std::string bus = std::to_string(10 + 2 * i), below = std::to_string(11 + 2 * i);
    const std::string port = "0000:" + bus + ":01.0", card = "0000:" + below + ":00.0";
    const fs::path bridge = root / "sys/devices" / ("pci0000:" + bus) / port, device = bridge / card;
    for (const fs::path& end : {bridge, device}) {
      count += put_all(kPci, end);
      fs::create_directory_symlink(end, root / "sys/bus/pci/devices" / end.filename());
    }
    const fs::path nic = root / "sys/class/infiniband" / ("mlx5_" + std::to_string(i)),
                   net = root / "sys/class/net" / ("ib" + std::to_string(i));
    count += put_all(kPort, nic / "ports/1") + put_all(kNetDevice, net);
    fs::create_directory_symlink(device, nic / "device");
    fs::create_directory_symlink(device, net / "device");
  }
  return count;
}

int64_t cpu_ns() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec;
}

void measure(int ports, bool kernels) {
  constexpr int kSeconds = 600;
  auto folder = lockstep::TemporaryDirectory::make();
  if (!folder) std::exit(1);
  const size_t files = make_host(folder->path(), ports, kernels);
  const int64_t begin = cpu_ns();
  links::SampleLines lines(folder->path());
  const int64_t found = cpu_ns();
  std::printf("%-29s %d ports, %zu files, found in %.1f ms\n",
              kernels ? "the kernel's files, kept open:" : "plain files, opened anew:", ports, files,
              static_cast<double>(found - begin) / 1e6);
  lines.sample(0, links::Pace::kTenMinutes, true);
  // As links/samples/sampler.cc has it: each second, and ten times as often while somebody watches.
  for (const int a_second : {1, 10}) {
    const int64_t start = cpu_ns();
    for (int reading = 1; reading <= kSeconds * a_second; ++reading)
      lines.sample(reading * 1000 / a_second,
                   reading % 10 == 0 ? links::Pace::kTenSeconds : links::Pace::kSecond, reading % 10 == 0);
    const double each = static_cast<double>(cpu_ns() - start) / kSeconds;
    std::printf("  %-9s %.0f us a second, %.3f %% of a core\n", a_second == 1 ? "usual" : "watched",
                each / 1e3, each / 1e7);
  }
}

}  // namespace

int main(int argc, char** argv) {
  const int ports = argc > 1 ? std::atoi(argv[1]) : 16;
  if (ports < 1 || ports > 40) return 2;
  measure(ports, true);
  measure(ports, false);
  return 0;
}
