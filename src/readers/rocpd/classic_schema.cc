// SPDX-License-Identifier: Apache-2.0
// The schema of RPD and rocm-trace-lite: one table of GPU work for all processes of a file, and no column
// that says whose a row is. RPD numbers the rows of each process from its ordinal times 2^32 on, so the id
// tells. rocm-trace-lite's merge appends the rows of one process behind another's; there the largest jumps
// back in time are taken for the borders, if there are as many as processes need and all are clearly larger
// than the next, and the division is counted as a guess.
#include <algorithm>
#include <optional>
#include <set>
#include <unordered_map>

#include "readers/rocpd/schema.h"

namespace lockstep::readers::rocpd {
namespace {

// Bounds against forged files; no real one comes near.
constexpr size_t kMostProcesses = 1 << 16, kMostGpus = 1 << 10;
// RPD: each process that writes into a file numbers its rows from its ordinal times this on.
constexpr int kOrdinalBits = 32;
constexpr int64_t kLastId = INT64_MAX;

bool has(std::string_view text, std::string_view part) { return text.find(part) != std::string_view::npos; }

enum class Type : uint8_t { kKernel, kCopy, kMarker, kOther };

// By parts of the runtime's names, which differ by version. What is none of these counts as a kernel, so that
// a name that is not known here hides no work.
Type type_of(std::string_view text) {
  if (text == "UserMarker") return Type::kMarker;
  for (const std::string_view part : {"Copy", "copy", "Memcpy", "Memset", "Fill"}) {
    if (has(text, part)) return Type::kCopy;
  }
  for (const std::string_view part : {"Barrier", "Marker", "HostEnqueue"}) {
    if (has(text, part)) return Type::kOther;
  }
  return Type::kKernel;
}

class Classic : public Schema {
 public:
  explicit Classic(common::SqliteFile& database) : database_(database) {}

  // Ids decide before metadata: only a file with one session and several pids has to be split by a guess.
  Result<std::vector<Process>> processes(std::vector<Loss>& losses) override {
    std::vector<Process> processes = find_sessions();
    const std::vector<int64_t> pids = metadata("pid");
    if (processes.size() == 1 && pids.size() > 1) {
      split(processes, pids, losses);
    } else if (processes.size() == 1 && pids.size() == 1) {
      processes.front().pid = pids.front();
    }
    gpu_stride_ = first_positive(metadata("gpu_stride"));
    pid_stride_ = first_positive(metadata("pid_stride"));
    for (Process& process : processes) look_at(process, losses);
    // A session without one row of good times has nothing to show.
    std::erase_if(processes, [](const Process& process) { return process.last_ns == 0; });
    for (Process& process : processes) process.shares_texts = processes.size() > 1;
    return processes;
  }

  Contents read(const Process& process, SharedTexts& shared, model::StringPool& strings) override {
    Contents out;
    types_.clear();
    const auto texts = database_.has("rocpd_string", {"id", "string"})
                           ? texts_of(database_, "rocpd_string", "string", process, shared)
                           : nullptr;
    if (texts) out.damage = texts->damage;
    Names names(texts, strings);
    if (auto read = read_kernel_names(process); !read) out.damage = read.error().message();
    if (auto read = read_rows(process, names, out); !read) out.damage = read.error().message();
    return out;
  }

 private:
  // Without a stride the divisor is larger than any number, so that nothing is divided off.
  static int64_t first_positive(const std::vector<int64_t>& values) {
    return values.empty() || values.front() <= 0 ? INT64_MAX : values.front();
  }

  // Values of a tag, as numbers, in the order of the file. A file without the table has none.
  std::vector<int64_t> metadata(std::string_view tag) const {
    std::vector<int64_t> values;
    if (!database_.has("rocpd_metadata", {"id", "tag", "value"})) return values;
    auto query =
        database_.query("SELECT CAST(value AS INTEGER) FROM rocpd_metadata NOT INDEXED WHERE tag = '" +
                        std::string(tag) + "' ORDER BY id");
    if (!query) return values;
    for (auto row = query->next(); row && *row && values.size() < kMostProcesses; row = query->next())
      values.push_back(query->integer(0));
    return values;
  }

  // Where the file is damaged, what follows belongs to the session before.
  std::vector<Process> find_sessions() const {
    std::vector<Process> sessions;
    for (int64_t from = INT64_MIN; sessions.size() < kMostProcesses;) {
      // One seek by id for each session, whatever the number of rows.
      const auto first = first_id(from);
      if (first && !*first) break;
      Process process;
      process.from = first ? **first : from;
      process.until = kLastId;
      const int64_t ordinal = process.from >> kOrdinalBits;
      process.pid = first ? pid_of_session(ordinal) : -1;
      if (first && ordinal < kLastId >> kOrdinalBits) process.until = ((ordinal + 1) << kOrdinalBits) - 1;
      from = process.until + (process.until < kLastId ? 1 : 0);
      const bool is_last = process.until == kLastId;
      if (first || sessions.empty()) sessions.push_back(std::move(process));
      if (is_last) break;
    }
    return sessions;
  }

  // Nothing: there is none from there on.
  Result<std::optional<int64_t>> first_id(int64_t from) const {
    LOCKSTEP_ASSIGN(
        common::Query query,
        database_.query("SELECT id FROM rocpd_op NOT INDEXED WHERE id >= ?1 ORDER BY id LIMIT 1"));
    query.bind(1, from);
    LOCKSTEP_ASSIGN(const bool found, query.next());
    if (!found) return std::optional<int64_t>();
    return std::optional<int64_t>(query.integer(0));
  }

  int64_t pid_of_session(int64_t ordinal) const {
    if (!database_.has("rocpd_api", {"id", "pid"})) return -1;
    auto query = database_.query(
        "SELECT pid FROM rocpd_api NOT INDEXED WHERE id BETWEEN ?1 AND ?2 ORDER BY id LIMIT 1");
    if (!query) return -1;
    query->bind(1, ordinal << kOrdinalBits);
    query->bind(2, ordinal >= kLastId >> kOrdinalBits ? kLastId : ((ordinal + 1) << kOrdinalBits) - 1);
    const auto row = query->next();
    return row && *row ? query->integer(0) : -1;
  }

  // rocm-trace-lite's merge appends the rows of one process behind those of another and does not say whose
  // they are. Within a process rows come as they ended, so where one process begins time jumps back.
  void split(std::vector<Process>& processes, const std::vector<int64_t>& pids,
             std::vector<Loss>& losses) const {
    struct Jump {
      int64_t back_ns, id;
      bool operator<(const Jump& other) const { return back_ns > other.back_ns; }
    };
    std::multiset<Jump> jumps;  // the largest, one more than there are borders
    auto query = database_.query("SELECT id, \"end\", gpuId FROM rocpd_op NOT INDEXED ORDER BY id");
    if (!query) return;
    int64_t before = 0;
    for (auto row = query->next(); row && *row; row = query->next()) {
      if (query->integer(2) < 0) continue;  // markers, on a clock of their own
      const int64_t end = query->integer(1);
      // One damaged time would be the largest jump of all.
      if (end <= 0 || end >= int64_t{1} << 61) continue;
      if (before - end > 0) jumps.insert({before - end, query->integer(0)});
      if (jumps.size() > pids.size()) jumps.erase(std::prev(jumps.end()));
      before = end;
    }
    // Rows of one process end out of order, too. So the smallest border has to be four times the largest jump
    // that is none, and at least 1 ms.
    const size_t borders = pids.size() - 1;
    const int64_t next = jumps.size() > borders ? std::prev(jumps.end())->back_ns : 0;
    if (jumps.size() > borders) jumps.erase(std::prev(jumps.end()));
    constexpr int64_t kClearly = 4, kLeastNs = 1'000'000;
    if (jumps.size() < borders || std::prev(jumps.end())->back_ns < std::max(kLeastNs, next * kClearly)) {
      losses.push_back(
          {"merged_processes", pids.size(),
           "processes whose rows the file mixes: what one GPU or queue did is not known of any"});
      return;
    }
    std::vector<int64_t> firsts = {processes.front().from};
    for (const Jump& jump : jumps) firsts.push_back(jump.id);
    std::sort(firsts.begin(), firsts.end());
    const Process whole = processes.front();
    processes.clear();
    for (size_t i = 0; i < firsts.size(); ++i) {
      Process process = whole;
      // Pids are taken to stand in the order in which the files were merged, as the rows do.
      process.pid = pids[i];
      process.from = firsts[i];
      process.until = i + 1 < firsts.size() ? firsts[i + 1] - 1 : whole.until;
      processes.push_back(std::move(process));
    }
    losses.push_back({"guessed_process", pids.size(),
                      "processes that the file tells apart by jumps of time alone: it was merged without "
                      "saying whose rows are whose"});
  }

  // When its work was, and on which GPUs. Numbers of several nodes are told apart by strides.
  void look_at(Process& process, std::vector<Loss>& losses) const {
    auto query =
        database_.query("SELECT gpuId, start, \"end\" FROM rocpd_op NOT INDEXED WHERE id BETWEEN ?1 AND ?2");
    if (!query) return;
    query->bind(1, process.from);
    query->bind(2, process.until);
    std::set<int64_t> gpus;
    auto row = query->next();
    for (; row && *row; row = query->next()) {
      const int64_t start = query->integer(1), end = query->integer(2);
      if (!is_time(start, end)) continue;
      ++process.rows;
      if (query->integer(0) < 0) continue;  // markers, on a clock of their own
      if (gpus.size() < kMostGpus) gpus.insert(query->integer(0));
      process.first_ns = process.first_ns == 0 ? start : std::min(process.first_ns, start);
      process.last_ns = std::max(process.last_ns, end);
    }
    if (!row) losses.push_back({"cut_file", 1, row.error().message()});
    for (const int64_t gpu : gpus) {
      process.gpus.push_back({.number = gpu,
                              .device = static_cast<int32_t>(std::min<int64_t>(gpu % gpu_stride_, INT32_MAX)),
                              .physical = {},
                              .model = {},
                              .uuid = {}});
    }
    const int64_t node = gpus.empty() ? 0 : *gpus.begin() / gpu_stride_;
    if (node > 0) process.node = std::to_string(node);
    if (process.pid >= pid_stride_) process.pid %= pid_stride_;
  }

  // RPD's first version names kernels beside their operations.
  Result<void> read_kernel_names(const Process& process) {
    kernel_names_.clear();
    if (!database_.has("rocpd_kernelop", {"op_ptr_id", "kernelName_id"})) return {};
    // op_ptr_id is the operation's id, so the process's range bounds these rows as well.
    LOCKSTEP_ASSIGN(common::Query query,
                    database_.query("SELECT op_ptr_id, kernelName_id FROM rocpd_kernelop NOT INDEXED "
                                    "WHERE op_ptr_id BETWEEN ?1 AND ?2"));
    query.bind(1, process.from);
    query.bind(2, process.until);
    for (;;) {
      LOCKSTEP_ASSIGN(const bool more, query.next());
      if (!more || kernel_names_.size() == kMostTexts) return {};
      kernel_names_[query.integer(0)] = query.integer(1);
    }
  }

  Result<void> read_rows(const Process& process, Names& names, Contents& out) {
    LOCKSTEP_ASSIGN(common::Query query,
                    database_.query("SELECT id, gpuId, queueId, start, \"end\", description_id, opType_id "
                                    "FROM rocpd_op NOT INDEXED WHERE id BETWEEN ?1 AND ?2"));
    query.bind(1, process.from);
    query.bind(2, process.until);
    for (;;) {
      LOCKSTEP_ASSIGN(const bool more, query.next());
      if (!more) return {};
      add_row(query, names, out);
    }
  }

  Type type_at(int64_t id, const Names& names) {
    const auto [at, is_new] = types_.try_emplace(id);
    if (is_new) at->second = type_of(names.text(id));
    return at->second;
  }

  void add_row(const common::Query& row, Names& names, Contents& out) {
    const Type type = type_at(row.integer(6), names);
    Work work;
    work.start_ns = row.integer(3);
    work.end_ns = row.integer(4);
    work.gpu = row.integer(1);
    work.queue = static_cast<uint64_t>(row.integer(2));
    work.name = name_of(row, names);
    // Time first, then the kind: a row of impossible times is damage, whatever it says it is.
    if (!is_time(work.start_ns, work.end_ns)) {
      ++out.bad;
    } else if (type == Type::kMarker) {
      if (out.markers.size() < kMostMarkers)
        out.markers.push_back({work.start_ns, work.name});
      else
        ++out.left_out;
    } else if (type == Type::kOther) {
      ++out.other;
    } else if (work.gpu < 0) {
      ++out.bad;
    } else if (out.work.size() == kMostWork) {
      ++out.left_out;
    } else {
      work.kind = type == Type::kCopy ? model::KernelKind::kCopy : model::KernelKind::kCompute;
      out.work.push_back(work);
    }
  }

  // Its description, else the kernel's name, else its type.
  model::StringId name_of(const common::Query& row, Names& names) const {
    if (const model::StringId name = names[row.integer(5)]; name != 0) return name;
    if (const auto kernel = kernel_names_.find(row.integer(0)); kernel != kernel_names_.end()) {
      if (const model::StringId name = names[kernel->second]; name != 0) return name;
    }
    return names[row.integer(6)];
  }

  common::SqliteFile& database_;
  int64_t gpu_stride_ = INT64_MAX, pid_stride_ = INT64_MAX;
  std::unordered_map<int64_t, Type> types_;
  std::unordered_map<int64_t, int64_t> kernel_names_;
};

}  // namespace

std::unique_ptr<Schema> classic_schema(common::SqliteFile& database) {
  if (!database.has("rocpd_op", {"id", "gpuId", "queueId", "start", "end", "description_id", "opType_id"}))
    return nullptr;
  return std::make_unique<Classic>(database);
}

}  // namespace lockstep::readers::rocpd
