// SPDX-License-Identifier: Apache-2.0
// Finds which captured operations a kernel in a CUDA graph runs. Neither NCCL nor CUPTI says it. Graphs are
// numbered in the order in which they were made, and each captured stretch must hold as many launches, of the
// same kinds, as the graph has kernels. A graph is joined only if that leaves a single way; otherwise its
// kernels are counted as not joined.
#include "job/assemble/graph_replays.h"

#include <algorithm>
#include <map>
#include <tuple>

#include "job/assemble/loss.h"
#include "model/event_kind.h"

namespace lockstep::job::assemble {

using model::EventKind;
using model::kNoRow;

GraphReplays::GraphReplays(model::Trace& trace, const DeviceComms& device_comms, KernelWorks& works)
    : trace_(trace), works_(works) {
  list_graphs();
  if (graphs_.empty() && device_comms.replays().empty()) return;
  list_captured_calls();
  list_nodes();
  count_epochs();
  sort_nodes();
  for (size_t first = 0, end = 0; first < graphs_.size(); first = end) {
    while (end < graphs_.size() && graphs_[end].gpu == graphs_[first].gpu) ++end;
    match_device(std::span(graphs_).subspan(first, end - first));
  }
  list_tasks();
  for (const Graph& graph : graphs_) add_runs(graph);
  for (const DeviceComms::Replays& replays : device_comms.replays()) add_runs(replays);
  add_operations();
  lose(trace_, "graph_kernel", unjoined_,
       "NCCL kernels in replays of graphs whose captured operations are ambiguous: not joined");
}

int64_t GraphReplays::launch_ns(uint32_t kernel) const {
  const uint32_t launch = trace_.kernels.launch[kernel];
  return launch == kNoRow ? 0 : trace_.launches.start_ns[launch];
}

void GraphReplays::list_graphs() {
  const model::KernelTable& kernels = trace_.kernels;
  for (uint32_t row = 0; row < kernels.size(); ++row) {
    if (kernels.graph[row] != 0 && works_.is_nccl(row)) graph_kernels_.push_back(row);
  }
  std::sort(graph_kernels_.begin(), graph_kernels_.end(), [&](uint32_t a, uint32_t b) {
    return std::tie(kernels.gpu[a], kernels.graph[a], kernels.graph_node[a], kernels.start_ns[a], a) <
           std::tie(kernels.gpu[b], kernels.graph[b], kernels.graph_node[b], kernels.start_ns[b], b);
  });
  for (size_t i = 0; i < graph_kernels_.size(); ++i) {
    const uint32_t kernel = graph_kernels_[i];
    const bool is_new = graphs_.empty() || graphs_.back().gpu != kernels.gpu[kernel] ||
                        graphs_.back().number != kernels.graph[kernel];
    if (is_new) {
      graphs_.push_back({.gpu = kernels.gpu[kernel],
                         .number = kernels.graph[kernel],
                         .first_launch_ns = 0,
                         .kernels = {},
                         .first = i,
                         .count = 0});
    }
    Graph& graph = graphs_.back();
    ++graph.count;
    // Nodes are numbered in the order of the capture: one kernel of each stands for it.
    if (is_new || kernels.graph_node[kernel] != kernels.graph_node[graph.kernels.back()])
      graph.kernels.push_back(kernel);
    const int64_t launched = launch_ns(kernel);
    if (launched != 0 && (graph.first_launch_ns == 0 || launched < graph.first_launch_ns))
      graph.first_launch_ns = launched;
  }
}

uint64_t GraphReplays::key_of(uint32_t launch) const {
  return uint64_t{trace_.calls.parent[launch]} << 32 | trace_.calls.comm[launch];
}

void GraphReplays::list_captured_calls() {
  const model::CallTable& calls = trace_.calls;
  for (uint32_t row = 0; row < calls.size(); ++row) {
    const bool is_api =
        calls.kind[row] == number(EventKind::kCollApi) || calls.kind[row] == number(EventKind::kP2pApi);
    if (is_api && (calls.flags[row] & model::kFlagGraphCaptured) != 0 && calls.parent[row] != kNoRow)
      captured_calls_.push_back({key_of(row), row});
  }
  std::sort(captured_calls_.begin(), captured_calls_.end(),
            [](const OfCall& a, const OfCall& b) { return std::tie(a.key, a.row) < std::tie(b.key, b.row); });
}

std::span<const GraphReplays::OfCall> GraphReplays::calls_of(uint32_t launch) const {
  const uint64_t key = key_of(launch);
  const auto [first, end] = std::equal_range(captured_calls_.begin(), captured_calls_.end(), OfCall{key, 0},
                                             [](const OfCall& a, const OfCall& b) { return a.key < b.key; });
  return {first, end};
}

void GraphReplays::list_nodes() {
  const model::CallTable& calls = trace_.calls;
  const int32_t process_gpu = trace_.processes.size() > 0 ? trace_.processes.gpu[0] : -1;
  for (uint32_t row = 0; row < calls.size(); ++row) {
    if (calls.kind[row] != number(EventKind::kKernelLaunch) || calls_of(row).empty()) continue;
    const uint32_t comm = calls.comm[row];
    const bool is_known = comm < trace_.comms.size() && trace_.comms.gpu[comm] >= 0;
    nodes_.push_back({row, 0, is_known ? trace_.comms.gpu[comm] : process_gpu});
  }
}

// What a thread runs itself lies between its captures, not inside.
void GraphReplays::count_epochs() {
  struct Place {
    uint32_t caller;
    int64_t start_ns;
    size_t node;
    bool operator<(const Place& other) const {
      return std::tie(caller, start_ns, node) < std::tie(other.caller, other.start_ns, other.node);
    }
  };
  const model::LaunchTable& launches = trace_.launches;
  std::vector<Place> places;
  for (size_t i = 0; i < nodes_.size(); ++i) {
    const uint32_t thread = trace_.calls.thread[nodes_[i].launch];
    const uint64_t pthread = thread < trace_.threads.size() ? trace_.threads.pthread[thread] : 0;
    places.push_back({static_cast<uint32_t>(pthread), trace_.calls.start_ns[nodes_[i].launch], i});
  }
  std::sort(places.begin(), places.end());
  std::vector<bool> is_border(places.size());
  const auto mark = [&](uint32_t launch) {
    const auto next = std::upper_bound(places.begin(), places.end(),
                                       Place{launches.caller[launch], launches.start_ns[launch], 0});
    if (next != places.end() && next->caller == launches.caller[launch])
      is_border[static_cast<size_t>(next - places.begin())] = true;
  };
  for (uint32_t row = 0; row < launches.size(); ++row) {
    if (launches.kind[row] == static_cast<uint8_t>(model::LaunchKind::kGraph)) mark(row);
  }
  for (uint32_t row = 0; row < trace_.kernels.size(); ++row) {
    if (trace_.kernels.launch[row] != kNoRow && trace_.kernels.graph[row] == 0)
      mark(trace_.kernels.launch[row]);
  }
  uint32_t epoch = 0;
  for (size_t i = 0; i < places.size(); ++i) {
    epoch += is_border[i] || (i > 0 && places[i].caller != places[i - 1].caller);
    nodes_[places[i].node].epoch = epoch;
  }
}

// A graph is made when its capture ends.
void GraphReplays::sort_nodes() {
  const model::CallTable& calls = trace_.calls;
  std::map<uint32_t, int64_t> ends;  // by epoch
  for (const Node& node : nodes_) {
    int64_t& end = ends[node.epoch];
    end = std::max(end, calls.start_ns[node.launch]);
  }
  std::sort(nodes_.begin(), nodes_.end(), [&](const Node& a, const Node& b) {
    return std::tuple(a.gpu, ends.at(a.epoch), a.epoch, calls.start_ns[a.launch], a.launch) <
           std::tuple(b.gpu, ends.at(b.epoch), b.epoch, calls.start_ns[b.launch], b.launch);
  });
}

std::vector<GraphReplays::Stretch> GraphReplays::stretches_of(int32_t gpu) const {
  std::vector<Stretch> stretches;
  const auto begin = std::lower_bound(nodes_.begin(), nodes_.end(), gpu,
                                      [](const Node& node, int32_t wanted) { return node.gpu < wanted; });
  for (auto i = static_cast<size_t>(begin - nodes_.begin()); i < nodes_.size() && nodes_[i].gpu == gpu; ++i) {
    if (stretches.empty() || nodes_[i].epoch != nodes_[i - 1].epoch) stretches.push_back({i, 0});
    ++stretches.back().count;
  }
  return stretches;
}

bool GraphReplays::fits(const Graph& graph, const Stretch& stretch) {
  if (graph.kernels.size() != stretch.count) return false;
  const uint32_t last = nodes_[stretch.first + stretch.count - 1].launch;
  // A graph cannot run before its capture has ended.
  if (graph.first_launch_ns != 0 && graph.first_launch_ns < trace_.calls.end_ns[last]) return false;
  for (size_t i = 0; i < stretch.count; ++i) {
    const auto calls = calls_of(nodes_[stretch.first + i].launch);
    const auto may_run = [&](const OfCall& call) {
      return works_.may_run(graph.kernels[i], trace_.calls.shape[call.row]);
    };
    if (std::none_of(calls.begin(), calls.end(), may_run)) return false;
  }
  return true;
}

void GraphReplays::match_device(std::span<Graph> graphs) {
  const std::vector<Stretch> stretches = stretches_of(graphs.front().gpu);
  if (!match_in_order(graphs, stretches)) match_pieces(graphs, stretches);
  for (Graph& graph : graphs) {
    if (graph.first_node != SIZE_MAX && has_rival(graph, stretches)) graph.first_node = SIZE_MAX;
  }
}

// Which thread's capture became a graph first is not known.
bool GraphReplays::has_rival(const Graph& graph, const std::vector<Stretch>& stretches) {
  const auto thread_of = [&](size_t node) { return trace_.calls.thread[nodes_[node].launch]; };
  return std::any_of(stretches.begin(), stretches.end(), [&](const Stretch& stretch) {
    return thread_of(stretch.first) != thread_of(graph.first_node) && fits(graph, stretch);
  });
}

// Graphs are numbered as they were made. Each takes the first stretch that it fits, then the last: where both
// are one, there is no other way.
bool GraphReplays::match_in_order(std::span<Graph> graphs, const std::vector<Stretch>& stretches) {
  std::vector<size_t> first(graphs.size());
  size_t at = 0;
  for (size_t i = 0; i < graphs.size(); ++i, ++at) {
    while (at < stretches.size() && !fits(graphs[i], stretches[at])) ++at;
    if (at == stretches.size()) return false;
    first[i] = at;
  }
  at = stretches.size();
  for (size_t i = graphs.size(); i-- > 0;) {
    do --at;
    while (!fits(graphs[i], stretches[at]));
    // The earliest and the latest way agree on this graph, so every way does.
    if (at == first[i]) graphs[i].first_node = stretches[at].first;
  }
  return true;
}

// Graphs that were captured one after the other, with nothing between them: if all of them were replayed,
// their numbers of nodes say where one ends.
bool GraphReplays::match_pieces(std::span<Graph> graphs, const std::vector<Stretch>& stretches) {
  std::vector<size_t> first(graphs.size());
  size_t graph = 0;
  for (const Stretch& stretch : stretches) {
    size_t left = stretch.count, at = stretch.first;
    while (left > 0) {
      if (graph == graphs.size()) return false;
      const size_t count = graphs[graph].kernels.size();
      if (count > left || !fits(graphs[graph], {at, count})) return false;
      first[graph++] = at;
      at += count;
      left -= count;
    }
  }
  if (graph != graphs.size()) return false;
  for (size_t i = 0; i < graphs.size(); ++i) graphs[i].first_node = first[i];
  return true;
}

void GraphReplays::add_runs(const Graph& graph) {
  const model::KernelTable& kernels = trace_.kernels;
  const auto of_graph = std::span(graph_kernels_).subspan(graph.first, graph.count);
  if (graph.first_node == SIZE_MAX) {
    unjoined_ += graph.count;
    return;
  }
  // Replays of a graph run one after the other.
  struct Times {
    int64_t start_ns = INT64_MAX, end_ns = 0;
  };
  std::map<uint32_t, Times> replays;  // by correlation
  for (const uint32_t kernel : of_graph) {
    Times& times = replays[kernels.correlation[kernel]];
    times.start_ns = std::min(times.start_ns, kernels.start_ns[kernel]);
    times.end_ns = std::max(times.end_ns, kernels.end_ns[kernel]);
  }
  std::vector<std::pair<int64_t, uint32_t>> order;
  for (const auto& [correlation, times] : replays) order.emplace_back(times.start_ns, correlation);
  std::sort(order.begin(), order.end());
  int64_t over_ns = 0;
  for (const auto& [start, correlation] : order) {
    Times& times = replays.at(correlation);
    times.start_ns = over_ns;  // from here on: when the replay before was over
    over_ns = std::max(over_ns, times.end_ns);
  }
  size_t node = 0;
  uint32_t last = kNoRow;
  for (const uint32_t kernel : of_graph) {
    while (kernels.graph_node[kernel] != kernels.graph_node[graph.kernels[node]]) ++node;
    const bool is_repeated = last != kNoRow && kernels.graph_node[last] == kernels.graph_node[kernel] &&
                             kernels.correlation[last] == kernels.correlation[kernel];
    last = kernel;
    // Two kernels of one node in one replay: the records contradict each other.
    if (is_repeated) {
      ++unjoined_;
      continue;
    }
    runs_.push_back({graph.first_node + node, kernel,
                     std::max(replays.at(kernels.correlation[kernel]).start_ns, launch_ns(kernel))});
  }
}

// 0: not known, or several operations share the launch.
uint32_t GraphReplays::channels_of(uint32_t launch) const {
  const std::span<const OfCall> calls = calls_of(launch);
  if (calls.size() != 1) return 0;
  const auto task = std::lower_bound(tasks_.begin(), tasks_.end(), OfCall{calls[0].row, 0},
                                     [](const OfCall& a, const OfCall& b) { return a.key < b.key; });
  return task != tasks_.end() && task->key == calls[0].row ? trace_.tasks.channels[task->row] : 0;
}

bool GraphReplays::are_alike(uint32_t launch, uint32_t other) const {
  const model::CallTable& calls = trace_.calls;
  if (calls.comm[launch] != calls.comm[other]) return false;
  const std::span<const OfCall> a = calls_of(launch), b = calls_of(other);
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [&](const OfCall& one, const OfCall& two) {
    // Calls of sends do not name the peer.
    const bool is_same = one.row == two.row || calls.kind[one.row] == number(EventKind::kCollApi);
    return is_same && calls.shape[one.row] == calls.shape[two.row] &&
           calls.count[one.row] == calls.count[two.row];
  });
}

// Whether the n-th replayed kernel can be of the n-th captured launch alone, as far as what it does goes.
bool GraphReplays::is_in_order(const DeviceComms::Replays& replays, std::span<const size_t> nodes) {
  if (nodes.empty() || replays.kernels.size() % nodes.size() != 0) return false;
  const auto launch = [&](size_t i) { return nodes_[nodes[i]].launch; };
  for (const size_t node : nodes) {
    if (nodes_[node].epoch != nodes_[nodes[0]].epoch || calls_of(nodes_[node].launch).empty()) return false;
  }
  std::map<uint32_t, uint32_t> by_channels;  // to one of the launches
  bool all_alike = true, are_distinct = true;
  for (size_t i = 0; i < nodes.size(); ++i) {
    const uint32_t channels = channels_of(launch(i));
    const uint32_t first = by_channels.try_emplace(channels, launch(i)).first->second;
    all_alike &= are_alike(launch(0), launch(i));
    are_distinct &= channels != 0 && are_alike(first, launch(i));
  }
  if (!all_alike && !are_distinct) return false;
  for (size_t i = 0; i < replays.kernels.size(); ++i) {
    const uint32_t kernel = replays.kernels[i], of = launch(i % nodes.size());
    if (kernel == kNoRow) continue;
    const auto may_run = [&](const OfCall& call) {
      return works_.may_run(kernel, trace_.calls.shape[call.row]);
    };
    const auto calls = calls_of(of);
    if (std::none_of(calls.begin(), calls.end(), may_run)) return false;
    if (!all_alike && trace_.kernels.blocks[kernel] != channels_of(of)) return false;
  }
  return true;
}

// Of several graphs: each kernel's launch is the only captured one with as many channels as it has blocks, if
// the kernels of each stretch then come in its order, again and again.
std::vector<size_t> GraphReplays::nodes_by_channels(const DeviceComms::Replays& replays,
                                                    std::span<const size_t> nodes) {
  struct Place {
    uint32_t epoch, position;  // of the stretch; in it
    size_t node;
  };
  std::map<uint32_t, Place> places;            // by channels
  std::map<uint32_t, uint32_t> lengths, next;  // by epoch
  for (const size_t node : nodes) {
    const uint32_t channels = channels_of(nodes_[node].launch), epoch = nodes_[node].epoch;
    if (channels == 0 || !places.emplace(channels, Place{epoch, lengths[epoch]++, node}).second) return {};
  }
  std::vector<size_t> found;
  for (const uint32_t kernel : replays.kernels) {
    const auto place = kernel == kNoRow ? places.end() : places.find(trace_.kernels.blocks[kernel]);
    if (place == places.end()) return {};
    const auto [epoch, position, node] = place->second;
    const uint32_t call = calls_of(nodes_[node].launch)[0].row;
    if (next[epoch] != position || !works_.may_run(kernel, trace_.calls.shape[call])) return {};
    next[epoch] = (position + 1) % lengths[epoch];
    found.push_back(node);
  }
  const auto is_whole = [](const auto& of_epoch) { return of_epoch.second == 0; };
  return std::all_of(next.begin(), next.end(), is_whole) ? found : std::vector<size_t>{};
}

void GraphReplays::add_runs(const DeviceComms::Replays& replays) {
  std::vector<size_t> nodes;
  for (size_t i = 0; i < nodes_.size(); ++i) {
    if (trace_.calls.comm[nodes_[i].launch] == replays.comm) nodes.push_back(i);
  }
  std::vector<size_t> node_of;  // by kernel of the replays
  if (is_in_order(replays, nodes)) {
    for (size_t i = 0; i < replays.kernels.size(); ++i) node_of.push_back(nodes[i % nodes.size()]);
  } else if (node_of = nodes_by_channels(replays, nodes); node_of.empty()) {
    unjoined_ += replays.kernels.size();
    return;
  }
  std::map<size_t, std::vector<Run>> runs;  // by node
  for (size_t i = 0; i < replays.kernels.size(); ++i) {
    const uint32_t kernel = replays.kernels[i];
    if (kernel == kNoRow) continue;
    std::vector<Run>& of_node = runs[node_of[i]];
    const int64_t over_ns = of_node.empty() ? 0 : trace_.kernels.end_ns[of_node.back().kernel];
    of_node.push_back({node_of[i], kernel, std::max(over_ns, launch_ns(kernel))});
  }
  for (const auto& [node, of_node] : runs) runs_.insert(runs_.end(), of_node.begin(), of_node.end());
}

void GraphReplays::list_tasks() {
  for (uint32_t task = 0; task < trace_.tasks.size(); ++task) {
    const uint32_t call = trace_.tasks.call[task];
    if (call != kNoRow && (trace_.calls.flags[call] & model::kFlagGraphCaptured) != 0)
      tasks_.push_back({call, task});
  }
  std::sort(tasks_.begin(), tasks_.end(), [&](const OfCall& a, const OfCall& b) {
    return std::tuple(a.key, trace_.tasks.start_ns[a.row], a.row) <
           std::tuple(b.key, trace_.tasks.start_ns[b.row], b.row);
  });
}

// One kernel may be many operations: a group of sends. How many, in all, is bounded by what was recorded, so
// that a file of megabytes cannot ask for terabytes.
static size_t most_operations(const model::Trace& trace) {
  constexpr size_t kEach = 16, kFew = size_t{1} << 22;
  return kFew + kEach * (trace.kernels.size() + trace.calls.size());
}

void GraphReplays::add_operations() {
  const size_t most = most_operations(trace_);
  is_capture_.resize(trace_.tasks.size());
  kernel_of_task_.assign(trace_.tasks.size(), kNoRow);
  std::map<uint64_t, uint32_t> launches;  // of a group and communicator
  for (const Node& node : nodes_) ++launches[key_of(node.launch)];
  for (size_t first = 0, end = 0; first < runs_.size(); first = end) {
    while (end < runs_.size() && runs_[end].node == runs_[first].node) ++end;
    const auto runs = std::span(runs_).subspan(first, end - first);
    const uint32_t launch = nodes_[runs.front().node].launch;
    const std::span<const OfCall> calls = calls_of(launch);
    // Which of several launches of one group did which of its operations is unknown.
    if (launches.at(key_of(launch)) > 1 || calls.size() * runs.size() > most - operations_.size()) {
      unjoined_ += runs.size();
      continue;
    }
    for (const OfCall& call : calls) add_operations(runs, call.row);
  }
}

void GraphReplays::add_operations(std::span<const Run> runs, uint32_t call) {
  const auto [first, end] = std::equal_range(tasks_.begin(), tasks_.end(), OfCall{call, 0},
                                             [](const OfCall& a, const OfCall& b) { return a.key < b.key; });
  // Replays are reported by a thread of the driver's; the capture, by the caller.
  const auto is_captured = [&](const OfCall& task) {
    return trace_.tasks.thread[task.row] == trace_.calls.thread[call];
  };
  std::vector<OfCall> replayed;
  uint32_t captured = kNoRow;
  for (auto task = first; task != end; ++task) {
    if (!is_captured(*task))
      replayed.push_back(*task);
    else if (captured == kNoRow)
      captured = task->row;
  }
  if (!replayed.empty()) return give_to_tasks(runs, replayed);
  for (auto task = first; task != end; ++task) is_capture_[task->row] = true;
  for (const Run& run : runs) {
    const int64_t launched = launch_ns(run.kernel);
    operations_.push_back(
        {call, captured, run.kernel, launched != 0 ? launched : trace_.kernels.start_ns[run.kernel]});
  }
}

// NCCL reports a replay after its launch and the replay before, and before its kernel begins.
void GraphReplays::give_to_tasks(std::span<const Run> runs, std::span<const OfCall> tasks) {
  size_t at = 0;
  for (const Run& run : runs) {
    const int64_t begun = trace_.kernels.start_ns[run.kernel];
    const auto start_ns = [&](size_t i) { return trace_.tasks.start_ns[tasks[i].row]; };
    while (at < tasks.size() && start_ns(at) < run.not_before_ns) ++at;
    const bool is_there = at < tasks.size() && start_ns(at) <= begun;
    const bool is_only = at + 1 >= tasks.size() || start_ns(at + 1) > begun;
    if (is_there && is_only)
      kernel_of_task_[tasks[at++].row] = run.kernel;
    else
      ++unjoined_;
  }
}

}  // namespace lockstep::job::assemble
