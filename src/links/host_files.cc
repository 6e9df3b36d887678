// SPDX-License-Identifier: Apache-2.0
// Copies /sys and /proc within bounds, whatever a driver has put there: files that never end, folders of a
// million entries. A file that may not be read is kept as such, since "no rights" and "not there" ask for
// different advice.
#include "links/host_files.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <climits>
#include <cstdlib>

#include "base/hex.h"

namespace lockstep::links {

namespace {
// Bounds of one file, of configuration space, of all entries, of one folder and of a path (host_files.h).
constexpr size_t kMostBytes = 64 << 10;
constexpr size_t kMostConfiguration = 4096;
constexpr size_t kMostEntries = 40'000;
constexpr size_t kMostChildren = 512;
constexpr size_t kMostPath = 1024;
}  // namespace

class HostFileReader {
 public:
  HostFileReader(std::string root, HostFiles& files) : root_(std::move(root)), files_(files) {
    char resolved[PATH_MAX];
    real_root_ = realpath(root_.empty() ? "/" : root_.c_str(), resolved) ? resolved : root_;
    // Paths in the copy begin with '/', so the live host's root must not add another.
    if (real_root_ == "/") real_root_.clear();
  }

  void file(const std::string& path, size_t most = kMostBytes, bool binary = false) {
    if (full()) {
      files_.cut_ = true;
      return;
    }
    // A file in /sys may block or be a pipe in a made-up tree: neither is waited for.
    const int fd = open((root_ + path).c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0) {
      if (errno != ENOENT && errno != ENOTDIR) put(path, {HostFile::Kind::kUnreadable, "", errno});
      return;
    }
    struct stat info {};
    if (fstat(fd, &info) != 0 || !S_ISREG(info.st_mode)) {
      close(fd);
      return;
    }
    std::string text(most, '\0');
    size_t size = 0;
    int error = 0;
    while (size < most) {
      const ssize_t got = ::read(fd, text.data() + size, most - size);
      if (got < 0 && errno == EINTR) continue;
      if (got < 0) error = errno;
      if (got <= 0) break;
      size += static_cast<size_t>(got);
    }
    close(fd);
    // Drivers may fail in the middle of a file: what was read before still says something.
    if (error != 0 && size == 0) return put(path, {HostFile::Kind::kUnreadable, "", error});
    text.resize(size);
    // Texts of a record are JSON, which cannot hold all bytes.
    if (binary) text = hex_of_bytes(text);
    while (!text.empty() && (text.back() == '\n' || text.back() == '\0')) text.pop_back();
    put(path, {HostFile::Kind::kText, std::move(text), 0});
  }

  void files_in(const std::string& folder) {
    for (const std::string& name : names(folder)) file(folder + "/" + name);
  }

  // Where a link leads, from the root on; a link out of the tree or in a circle is unreadable. False if it is
  // not there.
  bool link(const std::string& path) {
    char resolved[PATH_MAX];
    if (realpath((root_ + path).c_str(), resolved) == nullptr) {
      if (errno == ENOENT || errno == ENOTDIR) return false;
      put(path, {HostFile::Kind::kUnreadable, "", errno});
      return false;
    }
    std::string target = resolved;
    if (!target.starts_with(real_root_ + "/")) {
      put(path, {HostFile::Kind::kUnreadable, "", EXDEV});
      return false;
    }
    put(path, {HostFile::Kind::kLink, target.substr(real_root_.size()), 0});
    return true;
  }

  std::vector<std::string> names(const std::string& folder) {
    std::vector<std::string> names;
    DIR* const stream = opendir((root_ + folder).c_str());
    if (stream == nullptr) {
      if (errno != ENOENT && errno != ENOTDIR) put(folder, {HostFile::Kind::kUnreadable, "", errno});
      return names;
    }
    while (const dirent* const entry = readdir(stream)) {
      const std::string_view name = entry->d_name;
      if (name == "." || name == "..") continue;
      if (names.size() == kMostChildren) {
        files_.cut_ = true;
        break;
      }
      names.emplace_back(name);
    }
    closedir(stream);
    // The kernel lists folders in any order: sorted, two readings of one host are the same.
    std::sort(names.begin(), names.end());
    return names;
  }

  void put(const std::string& path, HostFile file) {
    if (full() || path.size() > kMostPath) {
      files_.cut_ = true;
      return;
    }
    files_.entries_.insert_or_assign(path, std::move(file));
  }

  bool full() const { return files_.entries_.size() >= kMostEntries; }
  bool is_live() const { return root_.empty(); }

 private:
  std::string root_, real_root_;
  HostFiles& files_;
};

namespace {

void read_pci(HostFileReader& reader, const HostFiles& files) {
  const std::string folder = "/sys/bus/pci/devices";
  for (const std::string& name : reader.names(folder)) {
    const std::string device = folder + "/" + name;
    if (!reader.link(device)) continue;
    for (const char* const file :
         {"class", "vendor", "device", "numa_node", "current_link_speed", "current_link_width",
          "max_link_speed", "max_link_width", "aer_dev_correctable", "aer_dev_nonfatal", "aer_dev_fatal"})
      reader.file(device + "/" + file);
    // Configuration space costs a virtual machine milliseconds: only bridges can have the ACS control that is
    // looked for.
    const std::string* const kind = files.text(device + "/class");
    if (kind != nullptr && kind->starts_with("0x0604"))
      reader.file(device + "/config", kMostConfiguration, true);
  }
}

void read_network(HostFileReader& reader) {
  for (const std::string& name : reader.names("/sys/class/net")) {
    const std::string net = "/sys/class/net/" + name;
    if (!reader.link(net + "/device")) continue;  // a virtual interface
    for (const char* const file : {"mtu", "operstate", "carrier", "carrier_changes", "speed", "address"})
      reader.file(net + "/" + file);
    reader.files_in(net + "/statistics");
  }
  for (const std::string& name : reader.names("/sys/class/infiniband")) {
    const std::string nic = "/sys/class/infiniband/" + name;
    reader.link(nic + "/device");
    for (const char* const file : {"fw_ver", "hca_type", "board_id", "node_guid"})
      reader.file(nic + "/" + file);
    reader.files_in(nic + "/hw_counters");  // EFA has counters of the device, too
    for (const std::string& net : reader.names(nic + "/device/net"))
      reader.file(nic + "/device/net/" + net + "/operstate");
    for (const std::string& number : reader.names(nic + "/ports")) {
      const std::string port = nic + "/ports/" + number;
      for (const char* const file : {"state", "phys_state", "rate", "link_layer", "lid", "sm_lid"})
        reader.file(port + "/" + file);
      reader.files_in(port + "/counters");
      reader.files_in(port + "/hw_counters");
    }
  }
  for (const std::string& name : reader.names("/sys/class/cxi")) {
    reader.link("/sys/class/cxi/" + name + "/device");
    reader.files_in("/sys/class/cxi/" + name + "/device/telemetry");
  }
}

void read_amd(HostFileReader& reader, const HostFiles& files) {
  for (const std::string& name : reader.names("/sys/class/drm")) {
    if (!name.starts_with("card") || name.find('-') != std::string::npos) continue;
    const std::string device = "/sys/class/drm/" + name + "/device";
    reader.file(device + "/vendor");
    const std::string* const vendor = files.text(device + "/vendor");
    // AMD's number. Cards of others are asked through their libraries.
    if (vendor == nullptr || *vendor != "0x1002" || !reader.link(device)) continue;
    for (const char* const file : {"unique_id", "pcie_replay_count", "ras/xgmi_wafl_err_count",
                                   "ras/pcie_bif_err_count", "gpu_busy_percent", "xgmi_physical_id"})
      reader.file(device + "/" + file);
  }
}

void read_settings(HostFileReader& reader) {
  for (const char* const path :
       {"/proc/sys/kernel/hostname", "/proc/sys/kernel/random/boot_id", "/proc/sys/kernel/osrelease",
        "/proc/cmdline", "/proc/meminfo", "/proc/driver/nvidia/version", "/proc/driver/nvidia/params",
        "/sys/module/nvidia/version", "/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor",
        "/sys/class/dmi/id/sys_vendor", "/sys/class/dmi/id/product_name", "/proc/self/limits",
        "/proc/cpuinfo"})
    reader.file(path);
  for (const char* const module :
       {"nvidia_peermem", "nv_peer_mem", "ib_peer_mem", "mlx5_core", "efa", "amdgpu"})
    reader.link(std::string("/sys/module/") + module);
  for (const std::string& name : reader.names("/sys/class/iommu")) reader.link("/sys/class/iommu/" + name);
  for (const std::string& name : reader.names("/sys/kernel/iommu_groups"))
    reader.file("/sys/kernel/iommu_groups/" + name + "/type");
  for (const std::string& name : reader.names("/sys/devices/system/node"))
    if (name.starts_with("node")) reader.file("/sys/devices/system/node/" + name + "/cpulist");
  // The sizes of a file system are no file, so a recorded tree holds one that this reader has made.
  if (!reader.is_live()) return reader.file("/dev/shm.bytes");
  // What no file says of /dev/shm stands in the copy as if one did.
  struct statvfs info {};
  if (statvfs("/dev/shm", &info) == 0)
    reader.put("/dev/shm.bytes",
               {HostFile::Kind::kText, std::to_string(uint64_t{info.f_blocks} * info.f_frsize), 0});
}

}  // namespace

Result<HostFiles> HostFiles::read(const std::string& root) {
  struct stat info {};
  if (!root.empty() && (stat(root.c_str(), &info) != 0 || !S_ISDIR(info.st_mode)))
    return Error{ErrorCode::kNotFound, "is not a folder; name the one that holds the host's sys and proc",
                 root};
  HostFiles files;
  HostFileReader reader(root, files);
  read_settings(reader);
  read_pci(reader, files);
  read_network(reader);
  read_amd(reader, files);
  return files;
}

const HostFile* HostFiles::find(std::string_view path) const {
  const auto found = entries_.find(path);
  return found == entries_.end() ? nullptr : &found->second;
}

const std::string* HostFiles::text(std::string_view path) const {
  const HostFile* const file = find(path);
  return file != nullptr && file->kind == HostFile::Kind::kText ? &file->text : nullptr;
}

std::optional<uint64_t> HostFiles::number(std::string_view path) const {
  const std::string* const found = text(path);
  if (found == nullptr) return std::nullopt;
  std::string_view digits = *found;
  const bool hexadecimal = digits.starts_with("0x");
  if (hexadecimal) digits.remove_prefix(2);
  uint64_t value = 0;
  const auto [end, error] =
      std::from_chars(digits.data(), digits.data() + digits.size(), value, hexadecimal ? 16 : 10);
  if (error != std::errc() || end != digits.data() + digits.size()) return std::nullopt;
  return value;
}

std::vector<std::string> HostFiles::children(std::string_view folder) const {
  std::vector<std::string> names;
  const std::string prefix = std::string(folder) + "/";
  for (auto entry = entries_.lower_bound(prefix); entry != entries_.end() && entry->first.starts_with(prefix);
       ++entry) {
    const std::string_view rest = std::string_view(entry->first).substr(prefix.size());
    const std::string_view name = rest.substr(0, rest.find('/'));
    if (names.empty() || names.back() != name) names.emplace_back(name);
  }
  // "a", "a.b" and "a/c" lie in another order than their first parts.
  std::sort(names.begin(), names.end());
  names.erase(std::unique(names.begin(), names.end()), names.end());
  return names;
}

bool HostFiles::has_below(std::string_view folder) const {
  const std::string prefix = std::string(folder) + "/";
  const auto entry = entries_.lower_bound(prefix);
  return entry != entries_.end() && entry->first.starts_with(prefix);
}

void HostFiles::add(std::string path, HostFile file) {
  entries_.insert_or_assign(std::move(path), std::move(file));
}

}  // namespace lockstep::links
