// SPDX-License-Identifier: Apache-2.0
// `info` lists what a run holds and judges nothing. It reads every process once, for counts and losses show
// only then. Losses come first, then processes, communicators, events, kernels. The exit code is 0 also where
// something was lost, and 2 if there is no process at all.
#include <algorithm>
#include <map>

#include "base/text/json_text.h"
#include "base/text/style.h"
#include "base/text/units.h"
#include "base/text/wrap.h"
#include "base/utf8.h"
#include "cli/command.h"
#include "cli/kit/columns.h"
#include "cli/kit/console.h"
#include "cli/kit/loss_report.h"
#include "cli/kit/progress.h"
#include "cli/kit/table.h"
#include "input/input.h"
#include "input/run_json.h"
#include "model/event_counts.h"
#include "model/hsa_counters.h"
#include "model/torch/process_group.h"
#include "run/process_files.h"

namespace lockstep::cli {
namespace {

constexpr Option kInfoOptions[] = {{0, "json", "", "print one JSON object"}};

std::string number_text(int64_t number) { return number < 0 ? "-" : std::to_string(number); }

// Events of NCCL's profiler, and beside them records of the GPU driver's tools and of NVTX. Of a run or a
// process.
template <class Overview>
Json records_json(const Overview& seen) {
  Json document = input::events_json(seen.events);
  // Beside NCCL's events under names of their own, so that one object has all records.
  document["Kernel"] = seen.kernels.kernels;
  document["LaunchCall"] = seen.kernels.launches;
  document["Copy"] = seen.kernels.copies;
  document["Range"] = seen.ranges;
  return document;
}

Json kernels_json(const model::KernelCounts& kernels) {
  return {{"kernels", kernels.kernels},
          {"copies", kernels.copies},
          {"launches", kernels.launches},
          {"communication", kernels.communication},
          {"joined", kernels.joined}};
}

void show_process(const input::ProcessOverview& process, Columns& out) {
  const auto or_dash = [](const std::string& text) { return text.empty() ? "-" : text; };
  out.number("rank", "rank", process.rank);
  out.add_json("local_rank", known(process.local_rank));
  out.add_json("world", known(process.world));
  out.add_json("node_rank", known(process.node_rank));
  out.name("host", "<host", process.host);
  out.add_json("boot_id", process.boot_id);
  out.add("pid", "pid", std::to_string(process.pid), process.pid);
  out.add_json("start_ns", process.start_ns);
  out.add_json("command", process.argv);
  out.add_json("launcher", process.launcher);
  out.add_json("job", process.job);
  out.add_json("device", known(process.device));
  out.number("host_device", "GPU", process.host_device);
  out.add_json("gpu", known(process.gpu));
  out.add_json("pci", process.pci);
  out.add_json("uuid", process.uuid);
  out.add_text("~<device", or_dash(process.device_name));
  out.add("gpu_model", "~~<model", or_dash(process.gpu_model), process.gpu_model);
  out.add_json("chained_plugin", process.chained_plugin);
  out.add_json("visible_devices", process.visible_devices);
  out.name("nccl_version", "<nccl", model::nccl_version_text(process.nccl_version));
  out.add_json("nccl_library", process.nccl_library);
  out.add_json("nccl_build_id", process.nccl_build_id);
  out.add_json("other_nccl", process.other_nccl);
  out.name("mode", "<mode", process.mode);
  out.name("retention", "~~<retention", process.retention);
  out.name("state", "<state", process.closed ? "closed" : "not closed");
  out.add_json("gpu_clock", process.gpu_clock);
  out.add_json("clock_reading_ns", known(process.anchor_width_ns));
  out.add_json("first_ns", process.first_ns);
  out.add_json("last_ns", process.last_ns);
  out.add_json("heartbeat_ns", process.heartbeat_ns);
  out.count("ops", "ops", process.ops);
  out.add("comms", "~comms", std::to_string(process.comms.size()), process.comms.size());
  out.add_text("~~~<command", shown_name(process.argv, 60));
  Json modes = Json::array(), counters = Json::object();
  for (const auto& [mode, since_ns] : process.modes)
    modes.push_back({{"mode", mode}, {"since_ns", since_ns}});
  for (const auto& [label, count] : process.counters) counters[label] = count;
  out.add_json("modes", std::move(modes));
  out.add_json("events", records_json(process));
  out.add_json("kernels", kernels_json(process.kernels));
  out.add_json("counters", std::move(counters));
}

void show_members(const std::vector<input::CommMember>& members, Columns& out) {
  const input::CommMember& first = members.front();
  const Json id = id_json(first.comm_id);
  Json list = Json::array();
  size_t ended = 0;
  for (const input::CommMember& member : members) {
    ended += member.ended ? 1 : 0;
    list.push_back({{"process", member.process}, {"rank", known(member.rank)}, {"ended", member.ended}});
  }
  out.add("id", "~<communicator", id.is_null() ? "?" : id.get<std::string>(), id);
  out.add("name", "<name", first.name.empty() ? "-" : shown_name(first.name, 40), first.name);
  out.number("ranks", "ranks", first.ranks);
  out.add_text("present", std::to_string(members.size()));
  out.number("nodes", "nodes", first.nodes);
  out.add_text("ended", std::to_string(ended));
  out.add_json("api_version", first.api_version);
  out.add_json("members", std::move(list));
}

Json info_json(const input::Input& input, const input::RunOverview& run) {
  Json document = {{"schema", "lockstep.info.v1"},
                   {"input", input.source->name()},
                   {"format", input.kind},
                   {"files", input.files},
                   {"bytes", input.bytes},
                   {"first_ns", run.first_ns},
                   {"last_ns", run.last_ns},
                   {"losses", input::losses_json(run)},
                   {"events", records_json(run)},
                   {"kernels", kernels_json(run.kernels)},
                   {"ops", run.ops},
                   {"processes", run.processes.size()},
                   {"hosts", run.hosts},
                   {"comms", run.comms.size()}};
  document["process_list"] = json_rows(run.processes, show_process);
  document["comm_list"] = json_rows(run.comms, show_members);
  return document;
}

// Whose GPU ran less than half of what another process' ran. A launcher is no rank and has no work on a GPU.
std::string asymmetry_text(const input::RunOverview& run) {
  const bool any_rank =
      std::any_of(run.processes.begin(), run.processes.end(), [](const auto& of) { return of.rank >= 0; });
  std::vector<size_t> places;
  std::vector<uint64_t> kernels;
  for (size_t i = 0; i < run.processes.size(); ++i) {
    const input::ProcessOverview& process = run.processes[i];
    if (any_rank && process.rank < 0 && process.kernels.kernels == 0) continue;
    places.push_back(i);
    kernels.push_back(process.kernels.kernels);
  }
  Table table({"rank", "<host", "pid", "kernels", "most"});
  // Equal work is usual in a job; half as many kernels may mean lost records.
  for (const size_t i : model::uneven_places(kernels)) {
    const input::ProcessOverview& process = run.processes[places[i]];
    table.add({number_text(process.rank), process.host, std::to_string(process.pid), format_count(kernels[i]),
               format_count(*std::max_element(kernels.begin(), kernels.end()))});
  }
  return table.empty() ? ""
                       : "\nAsymmetry: processes with less than half of another's kernels\n" + table.text();
}

// Of processes with AMD GPUs, by rocm-trace-lite's labels: what is 0 in all of them is left out.
std::string amd_text(const input::RunOverview& run) {
  struct Sum {
    uint64_t sum = 0, least = UINT64_MAX, most = 0;
  };
  std::vector<std::pair<std::string, Sum>> sums;
  for (const input::ProcessOverview& process : run.processes) {
    for (size_t i = 0; i < process.counters.size(); ++i) {
      const auto& [label, count] = process.counters[i];
      // By place: every process has the counters of format/hsa_counters.def in that order.
      if (i >= sums.size()) sums.emplace_back(label, Sum{});
      Sum& sum = sums[i].second;
      sum.sum += count;
      sum.least = std::min(sum.least, count);
      sum.most = std::max(sum.most, count);
    }
  }
  if (sums.empty()) return {};
  Table table({"<counter", "sum", "least", "most"});
  uint64_t error_ns = 0;
  for (const auto& [label, sum] : sums) {
    if (label == model::kClockErrorCounter)
      error_ns = sum.most;
    else if (sum.most != 0)
      table.add({label, format_count(sum.sum), format_count(sum.least), format_count(sum.most)});
  }
  return "\nAMD kernels, counted in each process\n" + table.text() +
         "GPU clocks are mapped to host time within " + format_duration(static_cast<double>(error_ns)) +
         ". Tested with ROCr and HIP 5.2.3 on a software device; not on an AMD GPU.\n";
}

// Of processes whose mode was changed while they ran.
std::string mode_table(const input::RunOverview& run) {
  Table table({"rank", "<host", "~pid", "<recorded", "<since", "for"});
  for (const input::ProcessOverview& process : run.processes) {
    for (size_t i = 0; process.modes.size() > 1 && i < process.modes.size(); ++i) {
      const int64_t begin = process.modes[i].since_ns;
      const int64_t end = i + 1 < process.modes.size() ? process.modes[i + 1].since_ns : process.last_ns;
      table.add({number_text(process.rank), process.host, std::to_string(process.pid), process.modes[i].mode,
                 format_time(begin), end > begin ? format_duration(static_cast<double>(end - begin)) : "-"});
    }
  }
  return table.empty() ? "" : "\nMode changes during the run\n" + table.text();
}

// Their time is in the times of the processes.
std::string chained_text(const input::RunOverview& run) {
  std::map<std::string, size_t> plugins;
  for (const input::ProcessOverview& process : run.processes)
    if (!process.chained_plugin.empty()) ++plugins[process.chained_plugin];
  std::string text;
  for (const auto& [plugin, processes] : plugins)
    text += "\nChained profiler plugin, in " + plural(processes, "process") + ": " + plugin + "\n";
  return text;
}

std::string comm_table(const input::RunOverview& run) {
  constexpr size_t kMost = 40;
  if (run.comms.empty()) return {};
  std::string text = "\nCommunicators\n" + table_of(run.comms, kMost, show_members).text();
  if (run.comms.size() > kMost)
    text += "  ... and " + format_count(run.comms.size() - kMost) + " more; --json has all\n";
  return text;
}

std::string event_table(const input::RunOverview& run) {
  Table table({"<event", "count"});
  // Kind 0 is none.
  for (size_t i = 1; i < run.events.size(); ++i) {
    const auto kind = static_cast<uint8_t>(i);
    if (run.events[kind] > 0)
      table.add({std::string(model::event_name(kind)), format_count(run.events[kind])});
  }
  return table.empty() ? "\nEvents: none.\n" : "\nEvents\n" + table.text();
}

std::string info_text(const input::Input& input, const input::RunOverview& run) {
  std::string text = loss_report(run) + "\n" + input.source->name() + ": " + input.kind + ", " +
                     plural(input.files, "file") + ", " + format_bytes(input.bytes) + "\n";
  text += input::processes_text(run) + ", " + plural(run.comms.size(), "communicator") + ", " +
          plural(run.ops, "operation") + "\n";
  if (run.first_ns != 0) {
    text += format_time(run.first_ns) + ", for " +
            format_duration(static_cast<double>(run.last_ns - run.first_ns)) + "\n";
  }
  return text + "\nProcesses\n" + table_of(run.processes, SIZE_MAX, show_process).text() + mode_table(run) +
         chained_text(run) + comm_table(run) + event_table(run) + input::kernels_text(run) + amd_text(run) +
         asymmetry_text(run) +
         (run.ranges != 0 ? "\nRanges of NVTX: " + format_count(run.ranges) + "\n" : "");
}

// Every process once, for what the source observes.
void read_all(input::ObservedSource& source) {
  Progress progress("reading");
  for (size_t i = 0; i < source.processes(); ++i) {
    model::Trace trace;
    (void)source.load(i, trace);  // a failure is a loss of the overview
    progress.update(static_cast<double>(i + 1) / static_cast<double>(source.processes()));
  }
}

int run_info(const Arguments& arguments) {
  auto input = input::open_input(arguments.operands());
  if (!input) return fail(input.error());
  read_all(*input->source);
  input::RunOverview overview = input->source->overview();
  if (overview.processes.empty())
    return fail(overview.losses.empty() ? "no process in it" : overview.losses[0].detail);
  return print(arguments.has("json") ? json_text(info_json(*input, overview))
                                     : within(info_text(*input, overview), Style::of_stdout().room()));
}

}  // namespace

const Command info_command = {
    .name = "info",
    .summary = "list what was captured, and what was lost",
    .description =
        "Says what a run holds: losses first, then processes, communicators and how many events of each "
        "kind. A process is `not closed` while it runs, or when it ended without closing its file (killed, "
        "or _exit); everything that it recorded is still there.",
    .operands = {.name = "RUN|TRACE.DB|FILE",
                 .help = "run directories, trace.dbs and process files, or other tools' files of one format",
                 .least = 1,
                 .most = SIZE_MAX},
    .options = kInfoOptions,
    .run = run_info,
};

}  // namespace lockstep::cli
