// SPDX-License-Identifier: Apache-2.0
// Joins files to processes by what their headers say, and not by their names, which people change. One offset
// between monotonic and real time is made for each boot, so that processes of one host compare exactly
// whatever NTP did between their starts. Devices are numbered over the run by PCI address and UUID, as every
// rank may call its own "device 0".
#include "readers/native/run.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <map>
#include <set>
#include <tuple>

#include "base/input_file.h"
#include "base/parallel.h"
#include "format/file_name.h"
#include "readers/native/file/definitions.h"
#include "readers/native/file/gpu_agents.h"
#include "readers/native/file/group_definitions.h"
#include "readers/native/file/hex.h"
#include "segment/process_stat.h"

namespace lockstep::readers::native {

using format::FileHeader;

// Whether the process that a file's name names lives here.
static bool has_living_process(const std::string& path) {
  const std::string name = std::filesystem::path(path).filename();
  const format::FileName parts = format::split_file_name(name);
  segment::ProcessStat stat;
  return !parts.pid.empty() && parts.pid.find_first_not_of("0123456789") == std::string_view::npos &&
         segment::read_process_stat(("/proc/" + std::string(parts.pid) + "/stat").c_str(), &stat) &&
         !stat.has_ended() && std::to_string(stat.start_ticks) == parts.start;
}

// A process makes its file, and writes the header a moment later: until then nothing is missing.
static bool is_beginning(const std::string& path) {
  // Capture first writes a header of zeros, and an empty file does not have even those yet.
  auto file = InputFile::open(path);
  std::array<std::byte, format::kHeaderBytes> first{};
  if (!file || file->size() > first.size() || file->read_at(0, first) != file->size()) return false;
  return std::all_of(first.begin(), first.end(), [](std::byte b) { return b == std::byte{}; }) &&
         has_living_process(path);
}

// Gathers what `Run::open` needs over all files.
class Run::Opener {
 public:
  explicit Opener(Run& run) : run_(run) {}

  void add(const std::string& path) {
    auto view = FileView::open(path);
    if (!view) {
      if (is_beginning(path))
        is_starting_ = true;
      else
        errors_.push_back(view.error());
      return;
    }
    // A directory and a file in it, or two names of one file.
    // A file given twice would make every operation of its process happen twice.
    if (!seen_.insert({view->file().device(), view->file().inode()}).second) return;
    add_header(path, view->header());
  }

  Result<void> finish() {
    if (run_.processes_.empty()) {
      if (errors_.empty())
        return Error{ErrorCode::kNotFound,
                     is_starting_ ? "its processes are just starting to record: try again in a second"
                                  : "no process files",
                     {}};
      return errors_.size() == 1 ? errors_.front() : all_bad();
    }
    for (const Error& error : errors_) run_.bad_files_.push_back(error.message());
    make_boot_clocks();
    std::sort(run_.processes_.begin(), run_.processes_.end(),
              [](const ProcessFiles& a, const ProcessFiles& b) { return order(a) < order(b); });
    look_at_comms();
    return {};
  }

 private:
  struct Device {
    int32_t ordinal;
    std::string pci, uuid;
    auto operator<=>(const Device&) const = default;
    DeviceIdentity identity() const { return {.ordinal = ordinal, .pci = pci, .uuid = uuid}; }
  };

  // Processes are numbered in this order, whatever the order of the arguments.
  static std::tuple<int32_t, std::string, int32_t, uint64_t> order(const ProcessFiles& process) {
    const FileHeader& h = process.header;
    return {h.rank, field_text(h.host), h.pid, h.start_ticks};
  }

  // All headers of a boot are kept, of every library: each has an anchor, and two of them give a rate.
  void add_header(const std::string& path, const FileHeader& header) {
    auto [at, is_new] = by_key_.try_emplace(process_key(header), run_.processes_.size());
    if (is_new) run_.processes_.push_back({.paths = {}, .header = header, .boot = 0});
    ProcessFiles& process = run_.processes_[at->second];
    process.paths.push_back(path);
    // A rank that one library could not tell may be known to another.
    if (process.header.rank < 0 && header.rank >= 0) process.header = header;
    headers_[boot_key(header)].push_back(header);
  }

  Error all_bad() const {
    Error error = errors_.front();
    error.text += "; and " + std::to_string(errors_.size() - 1) + " more files cannot be read";
    return error;
  }

  // Files of one process have one boot key, since its process key holds it.
  void make_boot_clocks() {
    std::map<std::string, size_t> boots;
    for (const auto& [boot, headers] : headers_) {
      std::vector<const FileHeader*> pointers;
      for (const FileHeader& header : headers) pointers.push_back(&header);
      boots[boot] = run_.boots_.size();
      run_.boots_.push_back(make_boot_clock(pointers));
    }
    for (ProcessFiles& process : run_.processes_) process.boot = boots[boot_key(process.header)];
  }

  // What the communicators of a process report.
  struct Comms {
    struct Place {
      uint64_t comm_id;
      int32_t ranks, rank;
    };
    std::vector<Device> devices;  // in order of first use
    std::vector<GpuAgents::Agent> gpus;
    std::vector<Place> places;  // of every communicator
    std::vector<model::GroupNames::Comm> of_nccl;
    std::vector<model::GroupNames::Group> declared;
  };

  // Of those that communicate with nobody nothing is expected on a GPU: a launcher, a helper.
  void look_at_comms() {
    std::vector<Comms> comms(run_.processes_.size());
    // A first look at every file, before any is loaded: devices and members have to be numbered over the
    // whole run.
    for_each_parallel(comms.size(), parallel_threads(),
                      [&](size_t i) { comms[i] = comms_of(run_.processes_[i]); });
    for (size_t i = 0; i < comms.size(); ++i) {
      const FileHeader& header = run_.processes_[i].header;
      DeviceNumbers::Process names = device_process(header);
      const std::vector<GpuAgents::Agent>& gpus = comms[i].gpus;
      if (!comms[i].devices.empty())
        names.main = comms[i].devices.front().identity();
      else if (gpus.size() == 1)
        names.main = identity_of(gpus, 0);
      run_.devices_.add_process(names, !comms[i].places.empty());
      for (size_t gpu = 0; gpu < gpus.size(); ++gpu) run_.devices_.add_device(names, identity_of(gpus, gpu));
      for (const Device& device : comms[i].devices) run_.devices_.add_device(names, device.identity());
      for (const Comms::Place& place : comms[i].places)
        run_.members_.add(place.comm_id, place.ranks, place.rank, header.rank);
      run_.group_names_.add(header.rank, std::move(comms[i].of_nccl), comms[i].declared);
    }
    run_.devices_.finish();
    run_.members_.finish();
    run_.group_names_.finish();
  }

  static Comms comms_of(const ProcessFiles& process) {
    Comms comms;
    std::set<Device> known;
    for (const std::string& path : process.paths) {
      auto view = FileView::open(path);
      if (!view) continue;
      // Damage is counted when the process is loaded; counted here as well it would show twice.
      ReadLosses counted_at_load;
      view->scan(counted_at_load);
      if (comms.gpus.empty()) comms.gpus = read_agents(*view, counted_at_load);
      GroupsOfFile groups;
      for_each_definition(*view, format::Purpose::kMeta, 0, counted_at_load,
                          [&](const Definition& definition) {
                            groups.take(definition);
                            if (definition.head().kind != static_cast<uint16_t>(format::Def::kComm)) return;
                            auto def = definition.as<format::CommDef>();
                            comms.places.push_back({def.comm_id, def.ranks, def.rank});
                            Device device{def.device, field_text(def.pci), uuid_text(def.uuid)};
                            if (device.identity().known() && known.insert(device).second)
                              comms.devices.push_back(std::move(device));
                          });
      groups.give(comms.of_nccl, comms.declared);
    }
    return comms;
  }

  Run& run_;
  std::vector<Error> errors_;
  bool is_starting_ = false;
  std::set<std::pair<uint64_t, uint64_t>> seen_;
  std::map<std::string, size_t> by_key_;
  std::map<std::string, std::vector<FileHeader>> headers_;
};

Result<std::unique_ptr<model::TraceSource>> Run::open(std::vector<std::string> paths) {
  auto run = std::make_unique<Run>();
  Opener opener(*run);
  for (const std::string& path : paths) opener.add(path);
  LOCKSTEP_TRY(opener.finish());
  run->name_ = paths.size() == 1 ? paths.front() : std::to_string(paths.size()) + " process files";
  return std::unique_ptr<model::TraceSource>(std::move(run));
}

// PyTorch's groups are named last: that takes what the whole run knows of their members.
Result<void> Run::load(size_t i, model::Trace& trace) {
  LOCKSTEP_CHECK(i < processes_.size());
  LOCKSTEP_TRY(load_process(processes_[i].paths, boots_[processes_[i].boot], devices_, trace));
  model::name_torch_groups(trace, members_);
  // Behind it, as such a name is no proof that NCCL's calls are those that PyTorch counts.
  model::name_unnamed_comms(trace, group_names_);
  return {};
}

void Run::run_losses(model::Trace& trace) {
  for (const std::string& file : bad_files_) trace.lose(model::kNoRow, "read", "unreadable_file", 1, file);
}

}  // namespace lockstep::readers::native
