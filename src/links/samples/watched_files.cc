// SPDX-License-Identifier: Apache-2.0
// Finds the files once and keeps those of sysfs open: a reading is then one pread without a walk through
// directories. Only sysfs makes a file's contents anew at each pread from its begin; files elsewhere may have
// been replaced, and are opened each time. A quarter of the process's descriptors at most is used, as the
// job's launcher needs the others.
#include "links/samples/watched_files.h"

#include <dirent.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <climits>
#include <cmath>
#include <cstdlib>
#include <set>
#include <string_view>

#include "links/machine.h"

namespace lockstep::links {
namespace {

constexpr size_t kMostWatched = 4096, kMostEntriesOfFolder = 512, kMostFileBytes = 4096;

struct Sampled {
  DeviceKind kind;
  std::string_view folder, name;
  int seconds;
};
using enum DeviceKind;
constexpr Sampled kSampled[] = {
#define SAMPLED(kind, folder, name, seconds) {kind, folder, name, seconds},
#include "links/samples/sampled.def"
#undef SAMPLED
};

// Behind the name of a link: a file of amdgpu has two counts.
constexpr std::string_view kCorrected = "_corrected", kUncorrected = "_uncorrected";

bool is_printable(std::string_view text) {
  return std::all_of(text.begin(), text.end(), [](char c) { return c > ' ' && c < 0x7f; });
}

// A name that can stand in a line of the log.
bool is_plain(std::string_view name) { return !name.empty() && name.size() <= 128 && is_printable(name); }

std::vector<std::string> plain_names_in(const std::string& folder) {
  std::vector<std::string> names;
  DIR* const stream = opendir(folder.c_str());
  if (stream == nullptr) return names;
  while (const dirent* const entry = readdir(stream)) {
    const std::string_view name = entry->d_name;
    if (name == "." || name == ".." || !is_plain(name)) continue;
    if (names.size() == kMostEntriesOfFolder) break;
    names.emplace_back(name);
  }
  closedir(stream);
  std::sort(names.begin(), names.end());
  return names;
}

bool is_pci_address(std::string_view part) {
  return part.size() >= 12 && part.find(':') != std::string_view::npos &&
         part.find('.') != std::string_view::npos &&
         part.find_first_not_of("0123456789abcdef:.") == std::string_view::npos;
}

// From the root bus down to the last device of PCI in it; empty where there is none.
std::string pci_path(const std::string& link) {
  char resolved[PATH_MAX];
  if (realpath(link.c_str(), resolved) == nullptr) return {};
  std::string path;
  size_t end = 0;
  std::string_view rest = resolved;
  while (!rest.empty()) {
    const std::string_view part = rest.substr(0, rest.find('/'));
    rest.remove_prefix(std::min(rest.size(), part.size() + 1));
    if (path.empty()) {
      // The real path begins with /sys/devices; what counts begins at the root bus.
      if (part.starts_with("pci") && part.find(':') != std::string_view::npos) path = part;
      continue;
    }
    path.append("/").append(part);
    if (is_pci_address(part)) end = path.size();
  }
  path.resize(end);
  return path.size() <= 512 && is_printable(path) ? path : std::string();
}

std::string_view last_part(std::string_view path) { return path.substr(path.rfind('/') + 1); }

std::optional<uint64_t> value_of(const CounterKey& key, std::string_view text) {
  // AER files have a line for each kind of error, and sometimes a total.
  if (key.kind == kPci) return text.empty() ? std::nullopt : std::optional(error_total(text));
  if (key.name.ends_with(kUncorrected)) return ras_errors(text, false);
  if (key.name.ends_with(kCorrected)) return ras_errors(text, true);
  if (key.name == "rate") {
    double gigabits = 0;
    // "400 Gb/sec (4X NDR)": in Mb/s it is a whole number, as all values of a log are.
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), gigabits);
    if (error != std::errc() || !(gigabits >= 0 && gigabits < 1e9)) return std::nullopt;
    return static_cast<uint64_t>(std::llround(gigabits * 1000));
  }
  uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc()) return std::nullopt;
  return value;
}

bool is_of_the_kernel(int fd) {
  struct statfs info {};
  return fstatfs(fd, &info) == 0 && info.f_type == SYSFS_MAGIC;
}

// A file in a made-up tree may be a pipe, which is not waited for. -1, and errno: not to be had.
int open_regular(const std::string& path) {
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0) return -1;
  struct stat info {};
  if (fstat(fd, &info) == 0 && S_ISREG(info.st_mode)) return fd;
  close(fd);
  errno = EINVAL;
  return -1;
}

}  // namespace

WatchedFiles::WatchedFiles(const std::string& root) : root_(root) {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) == 0)
    most_open_ = static_cast<size_t>(std::min<rlim_t>(limit.rlim_cur / 4, kMostWatched));
  find_ports();
  find_interfaces();
  find_pci();
}

WatchedFiles::~WatchedFiles() {
  for (const File& file : files_)
    if (file.fd >= 0) close(file.fd);
}

void WatchedFiles::find_ports() {
  const std::string folder = "/sys/class/infiniband";
  for (const std::string& name : plain_names_in(root_ + folder)) {
    const std::string nic = folder + "/" + name;
    if (const std::string path = pci_path(root_ + nic + "/device"); !path.empty()) cards_[name] = path;
    add_all(kNic, name, nic);
    for (const std::string& number : plain_names_in(root_ + nic + "/ports"))
      add_all(kPort, name + "/" + number, nic + "/ports/" + number);
  }
}

void WatchedFiles::find_interfaces() {
  const std::string folder = "/sys/class/net";
  for (const std::string& name : plain_names_in(root_ + folder)) {
    if (access((root_ + folder + "/" + name + "/device").c_str(), F_OK) != 0) continue;  // a virtual one
    if (const std::string path = pci_path(root_ + folder + "/" + name + "/device"); !path.empty())
      cards_[name] = path;
    add_all(kNetDevice, name, folder + "/" + name);
  }
}

// GPUs and network cards, and the port of the bridge above each, which counts what the device itself cannot.
void WatchedFiles::find_pci() {
  const std::string folder = "/sys/bus/pci/devices";
  std::set<std::string> watched;
  const auto watch = [&](std::string_view path) {
    for (int level = 0; level < 2 && is_pci_address(last_part(path)); ++level) {
      watched.emplace(last_part(path));
      path = path.substr(0, path.rfind('/'));
    }
  };
  for (const std::string& name : plain_names_in(root_ + folder)) {
    if (!is_pci_address(name)) continue;
    const int fd = open_regular(root_ + folder + "/" + name + "/class");
    if (fd < 0) continue;
    char text[16];
    const ssize_t got = pread(fd, text, sizeof text, 0);
    close(fd);
    const std::string_view code(text, got > 0 ? static_cast<size_t>(got) : 0);
    // Display controllers and processing accelerators, as GPUs without a screen call themselves.
    if (!code.starts_with("0x03") && !code.starts_with("0x12")) continue;
    const std::string path = pci_path(root_ + folder + "/" + name);
    if (path.empty()) continue;
    gpus_[name] = path;
    watch(path);
    add_all(kGpu, name, folder + "/" + name);
  }
  for (const auto& [name, path] : cards_) watch(path);
  for (const std::string& name : watched) add_all(kPci, name, folder + "/" + name);
}

void WatchedFiles::add_all(DeviceKind kind, const std::string& device, const std::string& folder) {
  for (const Sampled& sampled : kSampled) {
    if (sampled.kind != kind) continue;
    std::string name(sampled.name);
    const std::string path =
        folder + "/" + (sampled.folder.empty() ? "" : std::string(sampled.folder) + "/") + name;
    const Pace pace = sampled.seconds > 1 ? Pace::kTenSeconds : Pace::kSecond;
    if (kind == kPci) name.replace(0, std::string_view("aer_dev").size(), "aer");
    if (kind == kGpu) name.resize(name.find('_'));  // "xgmi", "pcie"
    if (kind == kGpu && sampled.folder == "ras")
      for (const std::string_view count : {kUncorrected, kCorrected})
        add(kind, device, name + std::string(count), root_ + path, pace);
    else
      add(kind, device, kind == kGpu ? name + "_replay" : name, root_ + path, pace);
  }
}

void WatchedFiles::add(DeviceKind kind, const std::string& device, const std::string& name,
                       const std::string& path, Pace pace) {
  if (files_.size() >= kMostWatched) return;
  File file;
  file.key = {kind, device, name};
  file.path = path;
  file.pace = pace;
  file.fd = open_regular(path);
  // A counter that this device does not have. One that may not be read now is kept, and tried again.
  if (file.fd < 0 && (errno == ENOENT || errno == ENOTDIR)) return;
  if (file.fd >= 0) {
    if (open_ < most_open_ && is_of_the_kernel(file.fd)) {
      ++open_;
    } else {
      close(file.fd);
      file.fd = -1;
    }
  }
  files_.push_back(std::move(file));
}

std::optional<uint64_t> WatchedFiles::read(size_t i) {
  File& file = files_[i];
  const bool is_kept = file.fd >= 0;
  if (!is_kept && (file.fd = open_regular(file.path)) < 0) return std::nullopt;
  char text[kMostFileBytes];
  ssize_t got = 0;
  do got = pread(file.fd, text, sizeof text, 0);
  while (got < 0 && errno == EINTR);
  // A device that has gone and come back has a new file.
  const bool is_gone = is_kept && got <= 0;
  if (!is_kept || is_gone) {
    close(file.fd);
    file.fd = -1;
  }
  if (is_gone) --open_;
  return got > 0 ? value_of(file.key, {text, static_cast<size_t>(got)}) : std::nullopt;
}

}  // namespace lockstep::links
