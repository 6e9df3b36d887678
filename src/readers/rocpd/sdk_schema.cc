// SPDX-License-Identifier: Apache-2.0
// The schema of rocprofiler's SDK: tables with a suffix for each session, which name process and agent by
// rows of their own. Tables are read without an index, since the index of a foreign file may contradict its
// table.
#include <algorithm>
#include <map>
#include <unordered_map>

#include "base/foreign_sqlite.h"
#include "readers/rocpd/schema.h"

namespace lockstep::readers::rocpd {
namespace {

constexpr std::string_view kDispatches = "rocpd_kernel_dispatch", kCopies = "rocpd_memory_copy";
constexpr size_t kMostProcesses = 1 << 16, kMostRows = size_t{1} << 24;

class Sdk : public Schema {
 public:
  Sdk(common::SqliteFile& database, std::vector<std::string> suffixes)
      : database_(database), suffixes_(std::move(suffixes)) {}

  Result<std::vector<Process>> processes(std::vector<Loss>& losses) override {
    std::vector<Process> processes;
    for (const std::string& suffix : suffixes_) {
      const size_t before = processes.size();
      // A session that is damaged loses what lies behind the damage; the others are whole.
      auto found = find(suffix, processes);
      if (!found) losses.push_back({"cut_file", 1, found.error().message()});
      std::unordered_map<int64_t, Process*> by_id;
      for (size_t i = before; i < processes.size(); ++i) {
        processes[i].shares_texts = processes.size() - before > 1;
        by_id[processes[i].process_id] = &processes[i];
      }
      // Only begin, end and number of rows: what planning the run needs of each process.
      for (const std::string_view table : {kDispatches, kCopies}) {
        auto looked = look_at(suffix, table, by_id);
        if (!looked) losses.push_back({"cut_file", 1, looked.error().message()});
      }
    }
    std::erase_if(processes, [](const Process& process) { return process.last_ns == 0; });
    return processes;
  }

  Contents read(const Process& process, SharedTexts& shared, model::StringPool& strings) override {
    Contents out;
    if (auto read = read_kernels(process, shared, strings, out); !read) out.damage = read.error().message();
    if (auto read = read_copies(process, shared, strings, out); !read) out.damage = read.error().message();
    return out;
  }

 private:
  static std::string table(std::string_view name, const std::string& suffix) {
    return sqlite_quoted(std::string(name) + suffix) + " NOT INDEXED";
  }
  bool has(std::string_view name, const std::string& suffix,
           std::initializer_list<std::string_view> columns) const {
    return database_.has(std::string(name) + suffix, columns);
  }

  // Texts by id.
  Result<std::map<int64_t, std::string>> texts(std::string_view name, const std::string& suffix,
                                               const std::string& what) const {
    std::map<int64_t, std::string> out;
    LOCKSTEP_ASSIGN(common::Query query,
                    database_.query("SELECT id, " + what + " FROM " + table(name, suffix)));
    for (;;) {
      LOCKSTEP_ASSIGN(const bool more, query.next());
      if (!more || out.size() == kMostProcesses) return out;
      out[query.integer(0)] = query.text(1);
    }
  }

  Result<void> find(const std::string& suffix, std::vector<Process>& processes) const {
    std::map<int64_t, std::string> hosts, machines;
    if (has("rocpd_info_node", suffix, {"id", "hostname", "machine_id"})) {
      LOCKSTEP_ASSIGN(machines, texts("rocpd_info_node", suffix, "machine_id"));
      LOCKSTEP_ASSIGN(hosts, texts("rocpd_info_node", suffix, "coalesce(nullif(hostname, ''), machine_id)"));
    }
    if (!has("rocpd_info_process", suffix, {"id", "nid", "pid", "command"})) return {};
    LOCKSTEP_ASSIGN(common::Query query, database_.query("SELECT id, nid, pid, command FROM " +
                                                         table("rocpd_info_process", suffix)));
    for (;;) {
      LOCKSTEP_ASSIGN(const bool more, query.next());
      if (!more || processes.size() == kMostProcesses) break;
      Process process;
      process.suffix = suffix;
      process.process_id = query.integer(0);
      process.host = hosts[query.integer(1)];
      process.machine = machines[query.integer(1)];
      process.node = std::to_string(query.integer(1));
      process.pid = query.integer(2);
      process.command = query.text(3);
      processes.push_back(std::move(process));
    }
    return add_gpus(suffix, processes);
  }

  Result<void> add_gpus(const std::string& suffix, std::vector<Process>& processes) const {
    if (!has("rocpd_info_agent", suffix,
             {"id", "pid", "type", "absolute_index", "logical_index", "product_name"}))
      return {};
    // The column may be missing, or hold 0 for none.
    const std::string uuid = has("rocpd_info_agent", suffix, {"uuid"}) ? "nullif(uuid, 0)" : "NULL";
    LOCKSTEP_ASSIGN(common::Query query,
                    database_.query("SELECT id, pid, absolute_index, logical_index, product_name, " + uuid +
                                    " FROM " + table("rocpd_info_agent", suffix) + " WHERE type = 'GPU'"));
    std::map<int64_t, Process*> by_id;
    for (Process& process : processes) {
      if (process.suffix == suffix) by_id[process.process_id] = &process;
    }
    for (size_t rows = 0; rows < kMostRows; ++rows) {
      LOCKSTEP_ASSIGN(const bool more, query.next());
      if (!more) break;
      const auto process = by_id.find(query.integer(1));
      if (process == by_id.end()) continue;
      const int64_t device = query.integer(3);
      process->second->gpus.push_back(
          {.number = query.integer(0),
           .device = device >= 0 && device <= INT32_MAX ? static_cast<int32_t>(device) : -1,
           .physical = query.is_null(2) ? std::string() : std::to_string(query.integer(2)),
           .model = std::string(query.text(4)),
           .uuid = std::string(query.text(5))});
    }
    return {};
  }

  Result<void> look_at(const std::string& suffix, std::string_view name,
                       const std::unordered_map<int64_t, Process*>& by_id) const {
    if (!has(name, suffix, {"pid", "start", "end"})) return {};
    LOCKSTEP_ASSIGN(common::Query query,
                    database_.query("SELECT start, \"end\", pid FROM " + table(name, suffix)));
    for (;;) {
      LOCKSTEP_ASSIGN(const bool more, query.next());
      if (!more) return {};
      const int64_t start = query.integer(0), end = query.integer(1);
      const auto at = by_id.find(query.integer(2));
      if (at == by_id.end() || !is_time(start, end)) continue;
      Process& process = *at->second;
      ++process.rows;
      process.first_ns = process.first_ns == 0 ? start : std::min(process.first_ns, start);
      process.last_ns = std::max(process.last_ns, end);
    }
  }

  Result<void> read_kernels(const Process& process, SharedTexts& shared, model::StringPool& strings,
                            Contents& out) const {
    const std::string& suffix = process.suffix;
    const auto texts = has("rocpd_info_kernel_symbol", suffix, {"id", "display_name", "kernel_name"})
                           ? texts_of(database_, "rocpd_info_kernel_symbol" + suffix,
                                      "coalesce(nullif(display_name, ''), kernel_name)", process, shared)
                           : nullptr;
    if (texts) out.damage = texts->damage;
    Names symbols(texts, strings);
    LOCKSTEP_ASSIGN(common::Query query,
                    database_.query("SELECT agent_id, queue_id, start, \"end\", kernel_id FROM " +
                                    table(kDispatches, suffix) + " WHERE pid = ?1"));
    query.bind(1, process.process_id);
    for (;;) {
      LOCKSTEP_ASSIGN(const bool more, query.next());
      if (!more) return {};
      add(query, symbols[query.integer(4)], model::KernelKind::kCompute, out);
    }
  }

  // On the GPU that is at one end: that which it is for, else that which it is from.
  Result<void> read_copies(const Process& process, SharedTexts& shared, model::StringPool& strings,
                           Contents& out) const {
    const std::string& suffix = process.suffix;
    if (!has(kCopies, suffix,
             {"pid", "start", "end", "dst_agent_id", "src_agent_id", "queue_id", "name_id"}) ||
        !has("rocpd_string", suffix, {"id", "string"}))
      return {};
    const auto texts = texts_of(database_, "rocpd_string" + suffix, "string", process, shared);
    if (texts && !texts->damage.empty()) out.damage = texts->damage;
    Names names(texts, strings);
    LOCKSTEP_ASSIGN(
        common::Query query,
        database_.query("SELECT dst_agent_id, queue_id, start, \"end\", name_id, src_agent_id FROM " +
                        table(kCopies, suffix) + " WHERE pid = ?1"));
    query.bind(1, process.process_id);
    const auto is_gpu = [&](int64_t agent) {
      return std::any_of(process.gpus.begin(), process.gpus.end(),
                         [&](const Process::Gpu& gpu) { return gpu.number == agent; });
    };
    for (;;) {
      LOCKSTEP_ASSIGN(const bool more, query.next());
      if (!more) return {};
      const size_t before = out.work.size();
      add(query, names[query.integer(4)], model::KernelKind::kCopy, out);
      // A copy to the host has a CPU as its target, and would be on no GPU.
      if (out.work.size() > before && !is_gpu(query.integer(0)) && is_gpu(query.integer(5)))
        out.work.back().gpu = query.integer(5);
    }
  }

  static void add(const common::Query& row, model::StringId name, model::KernelKind kind, Contents& out) {
    const Work work{.start_ns = row.integer(2),
                    .end_ns = row.integer(3),
                    .gpu = row.integer(0),
                    .queue = static_cast<uint64_t>(row.integer(1)),
                    .name = name,
                    .kind = kind};
    if (!is_time(work.start_ns, work.end_ns)) {
      ++out.bad;
    } else if (out.work.size() == kMostWork) {
      ++out.left_out;
    } else {
      out.work.push_back(work);
    }
  }

  common::SqliteFile& database_;
  const std::vector<std::string> suffixes_;
};

}  // namespace

std::unique_ptr<Schema> sdk_schema(common::SqliteFile& database) {
  std::vector<std::string> suffixes;
  // A table without these columns is of a schema that is not known here.
  for (const std::string& name : database.tables()) {
    if (!name.starts_with(kDispatches)) continue;
    if (database.has(name, {"pid", "agent_id", "kernel_id", "queue_id", "start", "end"}))
      suffixes.push_back(name.substr(kDispatches.size()));
  }
  if (suffixes.empty()) return nullptr;
  return std::make_unique<Sdk>(database, std::move(suffixes));
}

}  // namespace lockstep::readers::rocpd
