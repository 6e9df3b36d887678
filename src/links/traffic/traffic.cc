// SPDX-License-Identifier: Apache-2.0
// Measures pair by pair first, so that each cell stands for one link, and then in rounds of disjoint pairs,
// which show what a switch or a bridge shares. What stands out is measured a second time before anybody calls
// it slow.
#include "links/traffic/traffic.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <map>
#include <set>
#include <stop_token>
#include <thread>

#include "base/start_thread.h"
#include "links/judge/siblings.h"

namespace lockstep::links {
namespace {

class Measurement {
 public:
  Measurement(GpuRuntime& runtime, const Machine& machine, const TrafficOptions& options)
      : runtime_(runtime), machine_(machine), options_(options) {}

  Traffic run() {
    const auto start = std::chrono::steady_clock::now();
    find_pairs();
    for (const auto& [from, to] : pairs_) pair(from, to);
    for (const auto& [from, to] : pairs_)
      // Each pair once, as one measurement fills the cells of both directions.
      if (from < to && reaches_.contains({to, from})) both_ways(from, to);
    host();
    rounds();
    again();
    traffic_.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    return std::move(traffic_);
  }

 private:
  std::string name(Place place) const {
    if (place.gpu >= 0) return runtime_.pci(place.gpu);
    return place.node < 0 ? "host" : "host:" + std::to_string(place.node);
  }
  void note(std::string text) { traffic_.notes.push_back(std::move(text)); }

  Transfer transfer(Place from, Place to, int by, Engine engine = Engine::kCopy) const {
    return {from, to, by, engine, options_.bytes, options_.repeats};
  }

  Result<std::vector<double>> timed(const std::vector<Transfer>& transfers) {
    for (const Transfer& of : transfers) {
      if (of.from.gpu < 0 || of.to.gpu < 0) continue;
      const uint64_t bytes = static_cast<uint64_t>(of.bytes) * static_cast<uint64_t>(of.repeats);
      traffic_.sent[runtime_.pci(of.from.gpu)] += bytes;
      traffic_.received[runtime_.pci(of.to.gpu)] += bytes;
    }
    return runtime_.time(transfers);
  }

  // Of each transfer, GB/s: all of them at once, `samples` times.
  std::vector<std::vector<double>> rates(const std::vector<Transfer>& transfers) {
    std::vector<std::vector<double>> rates(transfers.size());
    for (int sample = 0; sample < options_.samples; ++sample) {
      const auto seconds = timed(transfers);
      if (!seconds) {
        note(name(transfers[0].from) + " to " + name(transfers[0].to) + ": " + seconds.error().message());
        return {};
      }
      for (size_t i = 0; i < transfers.size(); ++i)
        if ((*seconds)[i] > 0)
          rates[i].push_back(static_cast<double>(transfers[i].bytes) * transfers[i].repeats / (*seconds)[i] /
                             1e9);
    }
    return rates;
  }

  void add(CellKind kind, const std::vector<Transfer>& transfers, int round = -1) {
    auto found = rates(transfers);
    for (size_t i = 0; i < found.size(); ++i) {
      plans_[traffic_.cells.size()] = {transfers, i};
      traffic_.cells.push_back({kind,
                                name(transfers[i].from),
                                name(transfers[i].to),
                                std::move(found[i]),
                                {},
                                transfers[i].bytes,
                                round});
    }
  }

  void find_pairs() {
    for (int from = 0; from < runtime_.count(); ++from)
      for (int to = 0; to < runtime_.count(); ++to) {
        if (from == to) continue;
        // Asked for all pairs before any copy: asking switches peer access on, and copies without it take
        // another way.
        const auto reaches = runtime_.reaches(from, to);
        if (!reaches) {
          note(runtime_.pci(from) + " to " + runtime_.pci(to) + ": " + reaches.error().message());
          continue;
        }
        if (*reaches) reaches_.insert({from, to});
        pairs_.emplace_back(from, to);
      }
  }

  void pair(int from, int to) {
    // The first copy of a pair is slower: page tables, clocks. The driver stages through the host where peers
    // may not.
    const std::vector<Transfer> write = {transfer({from}, {to}, from)};
    if (!timed(write)) return note(runtime_.pci(from) + " to " + runtime_.pci(to) + ": cannot copy");
    add(CellKind::kWrite, write);
    add(CellKind::kRead, {transfer({from}, {to}, to)});
    if (!runtime_.has_kernels() || !reaches_.contains({from, to})) return;
    if (options_.deep) add(CellKind::kCoreWrite, {transfer({from}, {to}, from, Engine::kCores)});
    Cell cell{CellKind::kLatency, runtime_.pci(from), runtime_.pci(to), {}, {}, 8, -1};
    for (int sample = 0; sample < options_.samples; ++sample) {
      const auto latency = runtime_.load_latency(from, to);
      if (!latency)
        return note(runtime_.pci(from) + " to " + runtime_.pci(to) + ": " + latency.error().message());
      cell.samples.push_back(*latency);
    }
    traffic_.cells.push_back(std::move(cell));
  }

  void both_ways(int a, int b) { add(CellKind::kBothWays, {transfer({a}, {b}, a), transfer({b}, {a}, b)}); }

  std::vector<int> nodes() const {
    std::set<int> nodes;
    for (const auto& [address, device] : machine_.pci)
      if (device.numa_node) nodes.insert(*device.numa_node);
    // Without NUMA nodes the host's memory is one place, wherever it lies.
    if (nodes.empty()) return {-1};
    return {nodes.begin(), nodes.end()};
  }
  int node_of(int gpu) const {
    const auto device = machine_.pci.find(runtime_.pci(gpu));
    return device == machine_.pci.end() ? -1 : device->second.numa_node.value_or(-1);
  }

  void host() {
    const std::vector<int> all = nodes();
    std::vector<Transfer> to_gpus, to_host;
    for (int gpu = 0; gpu < runtime_.count(); ++gpu) {
      for (const int node : all) {
        add(CellKind::kToGpu, {transfer({-1, node}, {gpu}, gpu)});
        add(CellKind::kToHost, {transfer({gpu}, {-1, node}, gpu)});
      }
      // All at once only with near memory: far memory would measure the link between the sockets.
      const int near = node_of(gpu);
      to_gpus.push_back(transfer({-1, near}, {gpu}, gpu));
      to_host.push_back(transfer({gpu}, {-1, near}, gpu));
    }
    // With one GPU all at once is what was measured already.
    if (runtime_.count() < 2) return;
    add(CellKind::kToGpuAll, to_gpus);
    add(CellKind::kToHostAll, to_host);
  }

  void rounds() {
    if (runtime_.count() < 4) return;  // of two or three GPUs no two pairs are disjoint
    int number = 0;
    for (const auto& round : tournament(runtime_.count())) {
      std::vector<Transfer> transfers;
      for (const auto& [a, b] : round)
        for (const auto& [from, to] : {std::pair(a, b), std::pair(b, a)})
          if (reaches_.contains({from, to})) transfers.push_back(transfer({from}, {to}, from));
      // One pair alone is what was measured already.
      if (transfers.size() > 2) add(CellKind::kRound, transfers, number);
      ++number;
    }
  }

  // What stands out once may be a disturbance: what of it stays is a finding.
  void again() {
    // Found before anything is added: indexes of cells, and the siblings that they are compared with, stay.
    const std::vector<size_t> suspects = standing_out(traffic_.cells, machine_);
    for (const size_t i : suspects) {
      const auto plan = plans_.find(i);
      if (plan == plans_.end()) {  // a latency
        const int from = number_of(traffic_.cells[i].from), to = number_of(traffic_.cells[i].to);
        for (int sample = 0; sample < options_.samples && from >= 0 && to >= 0; ++sample)
          if (const auto latency = runtime_.load_latency(from, to))
            traffic_.cells[i].again.push_back(*latency);
        continue;
      }
      const auto& [transfers, position] = plan->second;
      auto found = rates(transfers);
      if (found.size() > position) traffic_.cells[i].again = std::move(found[position]);
      const Transfer& transfer = transfers[position];
      if (traffic_.cells[i].kind == CellKind::kWrite && runtime_.has_kernels() && !options_.deep &&
          reaches_.contains({transfer.from.gpu, transfer.to.gpu})) {
        // A copy engine may be slow where the link is not.
        Transfer by_cores = transfer;
        by_cores.engine = Engine::kCores;
        add(CellKind::kCoreWrite, {by_cores});
      }
    }
  }

  int number_of(const std::string& pci) const {
    for (int gpu = 0; gpu < runtime_.count(); ++gpu)
      if (runtime_.pci(gpu) == pci) return gpu;
    return -1;
  }

  GpuRuntime& runtime_;
  const Machine& machine_;
  const TrafficOptions& options_;
  std::vector<std::pair<int, int>> pairs_;
  std::set<std::pair<int, int>> reaches_;
  std::map<size_t, std::pair<std::vector<Transfer>, size_t>> plans_;  // by cell: what ran, and which of it
  Traffic traffic_;
};

}  // namespace

std::string_view kind_text(CellKind kind) {
  switch (kind) {
    case CellKind::kWrite:
      return "write";
    case CellKind::kRead:
      return "read";
    case CellKind::kBothWays:
      return "both-ways";
    case CellKind::kRound:
      return "all-pairs";
    case CellKind::kCoreWrite:
      return "kernel-write";
    case CellKind::kLatency:
      return "load-latency";
    case CellKind::kToGpu:
      return "host-to-gpu";
    case CellKind::kToHost:
      return "gpu-to-host";
    case CellKind::kToGpuAll:
      return "host-to-all-gpus";
    case CellKind::kToHostAll:
      return "all-gpus-to-host";
  }
  return "?";
}

bool is_latency(CellKind kind) { return kind == CellKind::kLatency; }

double Cell::value() const { return median(samples); }

std::vector<std::vector<std::pair<int, int>>> tournament(int n) {
  // The circle method: one place stays, the others move on by one each round; an odd count adds a place that
  // rests.
  const int places = n + n % 2;
  std::vector<std::vector<std::pair<int, int>>> rounds;
  for (int round = 0; round + 1 < places; ++round) {
    std::vector<std::pair<int, int>> pairs;
    const auto at = [&](int place) { return place == 0 ? 0 : 1 + (place - 1 + round) % (places - 1); };
    for (int place = 0; place < places / 2; ++place) {
      const int a = at(place), b = at(places - 1 - place);
      if (a < n && b < n) pairs.emplace_back(std::min(a, b), std::max(a, b));
    }
    rounds.push_back(std::move(pairs));
  }
  return rounds;
}

Result<Traffic> measure(GpuRuntime& runtime, const Machine& machine, const TrafficOptions& options) {
  if (runtime.count() == 0) return Error{ErrorCode::kNotFound, "no GPU is visible to this process", ""};
  return Measurement(runtime, machine, options).run();
}

void keep_busy(GpuRuntime& runtime, const TrafficOptions& options, const std::function<void()>& meanwhile) {
  std::vector<Transfer> transfers;
  for (int gpu = 0; gpu < runtime.count(); ++gpu)
    transfers.push_back({{-1, -1}, {gpu}, gpu, Engine::kCopy, options.bytes, 64});
  // Negative once the copies have ended or failed, so that the wait below ends as well.
  std::atomic<int> rounds = 0;
  const std::jthread worker([&](const std::stop_token& stop) {
    attempt([&] {
      while (!stop.stop_requested() && runtime.time(transfers)) ++rounds;
    });
    rounds = -1;
  });
  while (rounds == 0) std::this_thread::yield();  // clocks and links have risen behind the first round
  meanwhile();
}

}  // namespace lockstep::links
