// SPDX-License-Identifier: Apache-2.0
// One process may have left several files, one of each capture library. They are read one after the other
// into one trace: the header that knows more wins (mode, retention, NCCL's version), and the process is
// closed only if each of its files is. Text of the losses comes from format/losses.def, so a counter of a
// newer library is still counted, under its number.
#include "readers/native/process_loader.h"

#include <algorithm>
#include <array>
#include <map>
#include <vector>

#include "format/losses.h"
#include "readers/native/event_builder.h"
#include "readers/native/file/definitions.h"
#include "readers/native/file/hex.h"
#include "readers/native/file/plausible.h"
#include "readers/native/histograms.h"
#include "readers/native/kernel_links.h"
#include "readers/native/thread_rows.h"

namespace lockstep::readers::native {
namespace {

using format::FileHeader;
using model::Trace;

struct LossText {
  std::string_view name, text;
};
// By number, with holes for kinds that this version does not know yet.
constexpr std::array<LossText, format::kAllLossKinds> kLossTexts = [] {
  std::array<LossText, format::kAllLossKinds> texts{};
#define LOSS(index, name, text) texts[index] = {#name, text};
#include "format/losses.def"
#undef LOSS
  return texts;
}();

void lose_captured(Trace& trace, uint32_t process, std::span<const uint64_t, format::kAllLossKinds> counts) {
  for (size_t i = 0; i < counts.size(); ++i) {
    bool known = !kLossTexts[i].name.empty();
    trace.lose(process, "capture", known ? std::string(kLossTexts[i].name) : "loss_" + std::to_string(i),
               counts[i], known ? kLossTexts[i].text : "counted by a newer capture library");
  }
}

// Arguments joined by blanks, cut as capture cut them. Both lengths come from the file, so the
// field's own size bounds them.
std::string argv_text(const FileHeader& header) {
  size_t bytes = std::min<size_t>(header.argv_bytes, sizeof header.argv);
  std::string text(header.argv, bytes);
  while (!text.empty() && text.back() == '\0') text.pop_back();
  std::replace(text.begin(), text.end(), '\0', ' ');
  if (header.argv_total_bytes > bytes) text += " ...";
  return field_text(text);
}

// From the header that knows the rank. What differs from file to file is filled in by merge_header.
uint32_t append_process(const FileHeader& header, Trace& trace) {
  model::StringPool& strings = trace.strings;
  return trace.processes.append({.host = strings.intern(field_text(header.host)),
                                 .host_id = strings.intern(field_text(header.host_id)),
                                 .boot_id = strings.intern(uuid_text(header.boot_id)),
                                 .pid = header.pid,
                                 .start_ns = header.start_realtime_ns,
                                 .rank = header.rank,
                                 .local_rank = header.local_rank,
                                 .world = header.world,
                                 .node_rank = header.node_rank,
                                 .launcher = strings.intern(field_text(header.launcher)),
                                 .job = strings.intern(field_text(header.job_id)),
                                 .argv = strings.intern(argv_text(header)),
                                 .visible_devices = strings.intern(field_text(header.visible_devices)),
                                 .pci = 0,
                                 .uuid = 0,
                                 .gpu_model = 0,
                                 .device = -1,
                                 .gpu = -1,
                                 .nccl_version = 0,
                                 .nccl_library = 0,
                                 .nccl_build_id = 0,
                                 .other_nccl = 0,
                                 .mode = 0,
                                 .modes = 0,
                                 .retention = 0,
                                 .gpu_clock = 0,
                                 .closed = 1,
                                 .first_ns = 0,
                                 .last_ns = 0,
                                 .heartbeat_ns = 0});
}

// What each further file may know better.
void merge_header(const FileHeader& header, int64_t heartbeat_ns, uint32_t row, Trace& trace) {
  model::ProcessTable& p = trace.processes;
  if (header.nccl_version != 0) p.nccl_version[row] = static_cast<int32_t>(header.nccl_version);
  raise_mode(header.mode, row, trace);
  p.retention[row] = std::max(p.retention[row], static_cast<uint8_t>(header.retention));
  if (header.gpu_clock != format::GpuClock::kUnknown)
    p.gpu_clock[row] = static_cast<uint8_t>(header.gpu_clock);
  // It begins as closed, and every file that is not takes that back.
  if (header.state != static_cast<uint32_t>(format::FileState::kClosed)) p.closed[row] = 0;
  p.heartbeat_ns[row] = std::max(p.heartbeat_ns[row], heartbeat_ns);
}

void widen(uint32_t row, int64_t first_ns, int64_t last_ns, Trace& trace) {
  model::ProcessTable& p = trace.processes;
  if (first_ns != 0 && (p.first_ns[row] == 0 || first_ns < p.first_ns[row])) p.first_ns[row] = first_ns;
  p.last_ns[row] = std::max(p.last_ns[row], last_ns);
}

void append_anchors(std::span<const format::ClockAnchor> anchors, uint32_t process, Trace& trace) {
  for (const format::ClockAnchor& a : anchors) {
    trace.clock_anchors.append({.process = process,
                                .ticks = static_cast<int64_t>(a.ticks),
                                .monotonic_ns = a.monotonic_ns,
                                .boottime_ns = a.boottime_ns,
                                .realtime_ns = a.realtime_ns,
                                .width_ns = static_cast<int32_t>(std::min<uint32_t>(a.width_ns, INT32_MAX))});
  }
}

void load_file(FileView& view, const BootClock& boot, uint32_t process, ThreadRows& threads, Trace& trace,
               std::vector<GpuAgents::Agent>& gpus) {
  ReadLosses losses;
  view.scan(losses);
  // Twice over the records: the first pass knows their numbers, so that tables of millions of rows are
  // allocated once.
  RecordCensus census = take_census(view, losses);
  // The census comes before anchors and definitions: in a file that grows, whatever a counted record names is
  // there by now.
  std::vector<format::ClockAnchor> anchors = read_anchors(view, losses);
  append_anchors(anchors, process, trace);
  TickClock clock = TickClock::make(view.header(), anchors, boot, view.path(), losses);
  const uint64_t heartbeat = heartbeat_ticks(view.header());
  merge_header(view.header(), heartbeat == 0 ? 0 : clock.to_ns(heartbeat), process, trace);
  CommRows comms = read_comms(view, clock, process, trace, losses);
  const GpuAgents agents = GpuAgents::read(view, clock, process, trace, losses);
  // Only the HSA library's file lists agents, and a process has one of it.
  if (gpus.empty()) gpus = agents.agents();
  EventBuilder builder(view, clock, comms, agents, threads, process, trace, losses);
  builder.reserve(census);
  const size_t first_kernel = trace.kernels.size(), first_launch = trace.launches.size();
  HistogramReader histograms(view, clock, comms, process, trace);
  std::array<uint64_t, format::kAllLossKinds> captured;
  auto rest = std::copy(std::begin(view.header().losses), std::end(view.header().losses), captured.begin());
  std::copy(std::begin(view.header().more_losses), std::end(view.header().more_losses), rest);
  // The census has its logs in the order of view.logs().
  auto log = census.logs.begin();
  for (uint16_t number : view.logs()) {
    LogDefinitions definitions = LogDefinitions::read(view, number, trace, losses);
    for (size_t i = 0; i < format::kLossKinds; ++i) captured[i] += definitions.losses()[i];
    if (log != census.logs.end() && log->log == number) builder.add_log(*log++, definitions);
    histograms.add_shapes_of(number, definitions);
  }
  builder.finish();
  link_kernels(trace, first_kernel, first_launch, view.path(), losses);
  histograms.finish(losses);
  widen(process, builder.first_ns(), builder.last_ns(), trace);
  lose_captured(trace, process, captured);
  // Last, as every step before may have found damage. Where capture itself had no room for a definition, a
  // number without one is no damage.
  count_gaps(view, census, captured[format::kLoss_shape_table_full] + captured[format::kLoss_meta_full] == 0,
             losses);
  losses.move_into(trace, process);
}

DeviceIdentity device_of(const Trace& trace, size_t comm) {
  return {.ordinal = trace.comms.device[comm],
          .pci = trace.strings[trace.comms.pci[comm]],
          .uuid = trace.strings[trace.comms.uuid[comm]]};
}

// What the communicators, else the only GPU of AMD's runtime, say of the process's device.
// The numbers have to be those that Run::Opener planned, so the main device is chosen by the same rule: the
// first communicator that knows one.
void number_devices(const FileHeader& header, uint32_t process, std::span<const GpuAgents::Agent> gpus,
                    DeviceNumbers& devices, Trace& trace) {
  DeviceNumbers::Process names = device_process(header);
  model::CommTable& comms = trace.comms;
  for (size_t comm = 0; comm < comms.size() && !names.main.known(); ++comm) {
    names.main = device_of(trace, comm);
    if (!names.main.known()) continue;
    trace.processes.device[process] = comms.device[comm];
    trace.processes.pci[process] = comms.pci[comm];
    trace.processes.uuid[process] = comms.uuid[comm];
  }
  if (!names.main.known() && gpus.size() == 1) {
    names.main = identity_of(gpus, 0);
    trace.processes.pci[process] = trace.strings.intern(gpus[0].pci);
  }
  trace.processes.gpu[process] = devices.of_process(names);
  for (size_t comm = 0; comm < comms.size(); ++comm)
    comms.gpu[comm] = devices.of_comm(names, device_of(trace, comm));
}

// From ordinals in the process to numbers in the run. Where no communicator names its device, the process has
// one.
void number_kernels(const FileHeader& header, std::span<const GpuAgents::Agent> gpus, DeviceNumbers& devices,
                    Trace& trace) {
  model::KernelTable& kernels = trace.kernels;
  const model::CommTable& comms = trace.comms;
  DeviceNumbers::Process names = device_process(header);
  std::map<int32_t, DeviceIdentity> known;
  for (size_t comm = 0; comm < comms.size(); ++comm) {
    const DeviceIdentity device = device_of(trace, comm);
    if (!names.main.known()) names.main = device;
    if (device.ordinal >= 0) known.try_emplace(device.ordinal, device);
  }
  for (size_t gpu = 0; gpu < gpus.size(); ++gpu)
    known.try_emplace(kFirstAgent + static_cast<int32_t>(gpu), identity_of(gpus, gpu));
  if (!names.main.known() && gpus.size() == 1) names.main = identity_of(gpus, 0);
  // Each ordinal is asked for once: kernels may be millions, and asking takes a lock.
  std::map<int32_t, int32_t> numbers;  // by ordinal
  for (const int32_t ordinal : kernels.all(&model::KernelTable::gpu)) numbers.try_emplace(ordinal, -1);
  // One ordinal, and nobody says which device it is: it is the process's own.
  const bool is_only = numbers.size() == 1 && known.empty();
  for (auto& [ordinal, number] : numbers) {
    const auto device = known.find(ordinal);
    number = is_only
                 ? devices.of_process(names)
                 : devices.of_comm(names, device != known.end()
                                              ? device->second
                                              : DeviceIdentity{.ordinal = ordinal, .pci = {}, .uuid = {}});
  }
  for (int32_t& gpu : kernels.all(&model::KernelTable::gpu)) gpu = numbers.at(gpu);
}

void name_callers(const ThreadRows& threads, Trace& trace) {
  model::LaunchTable& launches = trace.launches;
  for (const uint32_t row : threads.launches_by_tid()) {
    // A tid is used again after its thread has ended, so the time decides whose it was.
    const uint32_t thread = threads.of_tid(launches.caller[row], launches.start_ns[row]);
    launches.caller[row] = thread == model::kNoRow ? 0 : static_cast<uint32_t>(trace.threads.pthread[thread]);
  }
  // AMD's launches are recorded on their own thread, which may have said no pthread.
  for (size_t i = 0; i < launches.size(); ++i) {
    const uint32_t thread = threads.of_caller(launches.caller[i], launches.start_ns[i]);
    if (thread != model::kNoRow || launches.caller[i] != 0) launches.thread[i] = thread;
  }
}

}  // namespace

std::string boot_key(const FileHeader& header) {
  std::string boot = uuid_text(header.boot_id);
  return boot.empty() ? "host " + field_text(header.host) : boot;
}

std::string process_key(const FileHeader& header) {
  return boot_key(header) + ' ' + std::to_string(header.pid_namespace) + ' ' + std::to_string(header.pid) +
         ' ' + std::to_string(header.start_ticks);
}

DeviceNumbers::Process device_process(const FileHeader& header) {
  return {.process = process_key(header),
          .boot = boot_key(header),
          .host = field_text(header.host),
          .host_id = field_text(header.host_id),
          .visible = field_text(header.visible_devices),
          .local_rank = header.local_rank,
          .node_rank = header.node_rank,
          .main = {}};
}

Result<void> load_process(std::span<const std::string> paths, const BootClock& boot, DeviceNumbers& devices,
                          Trace& trace) {
  std::vector<FileView> views;
  std::vector<Error> errors;
  for (const std::string& path : paths) {
    auto view = FileView::open(path);
    if (view) {
      views.push_back(std::move(*view));
    } else {
      errors.push_back(view.error());
    }
  }
  if (views.empty())
    return errors.empty() ? Error{ErrorCode::kInvalidInput, "a process without files", {}} : errors.front();
  // A rank that one library could not tell may be known to another.
  auto known =
      std::find_if(views.begin(), views.end(), [](const FileView& v) { return v.header().rank >= 0; });
  const FileHeader& header = (known == views.end() ? views.begin() : known)->header();
  uint32_t process = append_process(header, trace);
  for (const Error& error : errors) trace.lose(process, "read", "unreadable_file", 1, error.message());
  ThreadRows threads(process, trace);
  std::vector<GpuAgents::Agent> gpus;
  for (FileView& view : views) load_file(view, boot, process, threads, trace, gpus);
  name_callers(threads, trace);
  number_devices(header, process, gpus, devices, trace);
  number_kernels(header, gpus, devices, trace);
  return {};
}

}  // namespace lockstep::readers::native
