// SPDX-License-Identifier: Apache-2.0
// Prints what `show` found: the list of operations, or one operation with a table of ranks and a tree of
// events for each. Text counts times from the first call, so that ranks compare at a glance. JSON has each
// rank's times in ns of its own host and the offset between the clocks, since programs can subtract.
#include "cli/show/report.h"

#include <algorithm>
#include <cctype>
#include <map>
#include <optional>
#include <set>

#include "analysis/operation_name.h"
#include "base/text/units.h"
#include "base/text/wording.h"
#include "base/text/wrap.h"
#include "cli/kit/table.h"

namespace lockstep::cli::show {
namespace {

// Columns of the tree behind what happened: its thread, when, how long.
constexpr size_t kThreadColumns = 10, kTimeColumns = 14;
constexpr size_t kLeastColumns = 72;  // of all; a narrower terminal breaks them
constexpr size_t kMostTableRows = 64;

// Widths are columns of a terminal and not bytes, as names may hold UTF-8.
std::string left(const std::string& text, size_t width) {
  return text + std::string(width - std::min(width, columns(text)), ' ');
}
std::string right(const std::string& text, size_t width) {
  return std::string(width - std::min(width, columns(text)), ' ') + text;
}
std::string signed_duration(int64_t ns) {
  return ns < 0 ? "-" + format_duration(-static_cast<double>(ns)) : format_duration(static_cast<double>(ns));
}
// "-1,234.5": with the same last digit everywhere, so that what is far from the first call can be told apart.
// The amount is taken unsigned, because -INT64_MIN is no int64_t.
std::string microseconds(int64_t ns) {
  const uint64_t tenths = (ns < 0 ? 0 - static_cast<uint64_t>(ns) : static_cast<uint64_t>(ns)) / 100;
  return (ns < 0 ? "-" : "") + format_count(tenths / 10) + "." + std::to_string(tenths % 10);
}
// The end of a host's name often says more than its middle.
std::string shortened(const std::string& text, bool all) {
  constexpr size_t kMost = 20;
  if (all || text.size() <= kMost) return text;
  return text.substr(0, 9) + ".." + text.substr(text.size() - 9);
}

// Times after the first call of an operation. A rank of a host whose clock is not aligned has its own zero:
// the first call on that host.
class Timeline {
 public:
  Timeline(const model::Job& job, const Operation& operation) : job_(job) {
    for (const RankOperation& rank : operation.ranks) {
      const int64_t entered_ns = rank.called_ns != 0 ? rank.called_ns : rank.enqueued_ns;
      if (entered_ns == 0) continue;
      const auto common = job.common_ns(rank.process, entered_ns);
      std::optional<int64_t>& zero = common ? zero_ : own_zeros_[job.processes[rank.process].host];
      const int64_t ns = common ? common->ns : entered_ns;
      if (!zero || ns < *zero) zero = ns;
      if (common) half_width_ns_ = std::max(half_width_ns_, common->half_width_ns);
    }
  }
  // Nothing for a time that is not known.
  std::optional<int64_t> after(uint32_t process, int64_t ns) const {
    if (ns == 0) return std::nullopt;
    // Offsets between clocks change over the run, so every time is converted by itself.
    if (const auto common = job_.common_ns(process, ns)) {
      if (zero_) return common->ns - *zero_;
      return std::nullopt;
    }
    const auto own = own_zeros_.find(job_.processes[process].host);
    if (own == own_zeros_.end() || !own->second) return std::nullopt;
    return ns - *own->second;
  }
  std::string text(uint32_t process, int64_t ns) const {
    const std::optional<int64_t> at = after(process, ns);
    return at ? microseconds(*at) : "-";
  }
  bool is_aligned(uint32_t process) const { return !own_zeros_.contains(job_.processes[process].host); }
  std::optional<int64_t> zero() const { return zero_; }
  int64_t half_width_ns() const { return half_width_ns_; }
  bool has_own_zeros() const { return !own_zeros_.empty(); }

 private:
  const model::Job& job_;
  std::optional<int64_t> zero_;                           // on the reference host's clock
  std::map<uint32_t, std::optional<int64_t>> own_zeros_;  // by host
  int64_t half_width_ns_ = 0;
};

std::string host_of(const model::Job& job, uint32_t process) {
  return std::string(job.text(job.hosts[job.processes[process].host].name));
}

std::string rank_text(int32_t rank) { return rank < 0 ? "-" : std::to_string(rank); }

// By the host's number, else by where it is.
std::string gpu_text(const model::Who& who) {
  return who.device >= 0 ? std::to_string(who.device) : who.pci.empty() ? "-" : wording::name(who.pci);
}

// Of a rank of the communicator; -1 unknown.
int32_t job_rank_of(const model::Job& job, uint32_t comm, int32_t rank) {
  const std::vector<uint32_t>& members = job.comms[comm].members;
  if (rank < 0 || static_cast<size_t>(rank) >= members.size()) return -1;
  const uint32_t member = members[static_cast<size_t>(rank)];
  return member == model::kNoRow ? -1 : job.processes[job.members[member].process].row.rank;
}

const RankOperation* first_there(const Operation& operation) {
  const auto found = std::find_if(operation.ranks.begin(), operation.ranks.end(),
                                  [](const RankOperation& rank) { return rank.is_there; });
  return found == operation.ranks.end() ? nullptr : &*found;
}

// As findings name it. A member's place in its own operations says more than the number alone.
std::string operation_name(const model::Job& job, const Operation& operation) {
  const uint32_t index = operation.name.index;
  for (const RankOperation& rank : operation.ranks) {
    for (const uint32_t row : job.processes[rank.process].members) {
      const model::Member& member = job.members[row];
      if (!rank.is_there || member.comm != operation.comm || member.rank != rank.rank) continue;
      std::optional<uint32_t> op;
      // A transfer is numbered within its lane and not among the collectives.
      if (!operation.name.pair) {
        op = job.op_at(member, index);
      } else {
        const int32_t peer = rank.sends ? operation.name.pair->target : operation.name.pair->source;
        for (const model::Lane& lane : member.lanes) {
          if (lane.peer == peer && lane.is_send == rank.sends) op = job.op_at(member, lane, index);
        }
      }
      if (op) return analysis::operation_name(job, rank.process, *op).text();
    }
  }
  // A file that grows may have it by now, where the job that was gathered from it has not.
  analysis::OperationName name{.comm = analysis::comm_text(job, operation.comm), .index = index};
  if (operation.name.pair) {
    name.source = "member " + std::to_string(operation.name.pair->source);
    name.target = "member " + std::to_string(operation.name.pair->target);
  }
  return name.text();
}

std::string title(const model::Job& job, const Operation& operation) {
  const model::JobComm& comm = job.comms[operation.comm];
  const std::string number = std::to_string(operation.name.index);
  std::string text =
      operation.name.is_p2p && !operation.name.pair
          ? "Send or receive " + number + " of each rank of " + analysis::comm_text(job, operation.comm)
          : operation_name(job, operation);
  text[0] = static_cast<char>(std::toupper(static_cast<unsigned char>(text[0])));
  if (comm.name != 0 && comm.comm_id != 0)
    text += ", communicator " + id_json(comm.comm_id).get<std::string>();
  return text;
}

std::string heading(const model::Job& job, const Operation& operation) {
  const model::JobComm& comm = job.comms[operation.comm];
  std::set<std::string> hosts;
  size_t there = 0;
  for (const RankOperation& rank : operation.ranks) {
    hosts.insert(host_of(job, rank.process));
    there += rank.is_there;
  }
  const bool is_pair = operation.name.pair.has_value();
  std::string text = title(job, operation) + "\n";
  if (const RankOperation* first = first_there(operation);
      first != nullptr && (is_pair || !operation.name.is_p2p)) {
    text += plural(first->count, "element") + " of " + wording::name(first->datatype) + ", " +
            format_bytes(first->bytes) + "; ";
  }
  const std::string ranks = is_pair ? "2" : comm.ranks < 0 ? "?" : std::to_string(comm.ranks);
  return text + std::to_string(there) + " of " + ranks +
         (is_pair ? " ranks called their end of it" : " ranks called it") + ", on " +
         plural(hosts.size(), "host") + "\n";
}

std::string clock_lines(const Timeline& times) {
  std::string text;
  if (times.zero()) text += "Times are in us after the first call, " + format_time(*times.zero());
  if (times.half_width_ns() > 0)
    text += ", +- " + format_duration(static_cast<double>(times.half_width_ns())) + " between hosts";
  if (!text.empty()) text += "\n";
  if (times.has_own_zeros())
    text +=
        "Hosts marked * have clocks that cannot be aligned: their times count from their own first "
        "call.\n";
  return text;
}

std::string rank_table(const model::Job& job, const Operation& operation, const Timeline& times, bool all) {
  std::vector<std::string> headings = {"rank",     "<host",     "~~GPU",   "called",  "~~enqueued",
                                       "launched", "GPU start", "GPU end", "~~~<from"};
  if (operation.name.is_p2p) headings.insert(headings.begin() + 3, {"<operation", "peer", "~size"});
  // The rank in the communicator needs a column only where it differs from that in the job.
  const bool has_own_ranks = std::any_of(operation.ranks.begin(), operation.ranks.end(),
                                         [](const auto& rank) { return rank.rank != rank.job_rank; });
  if (has_own_ranks) headings.insert(headings.begin() + 1, "~in comm");
  Table table(headings);
  size_t rows = 0;
  for (const RankOperation& rank : operation.ranks) {
    if (!all && ++rows > kMostTableRows) break;
    std::string host = shortened(host_of(job, rank.process), all);
    if (!times.is_aligned(rank.process)) host += " *";
    std::vector<std::string> cells = {rank_text(rank.job_rank), host, gpu_text(job.who(rank.process))};
    if (has_own_ranks) cells.insert(cells.begin() + 1, rank_text(rank.rank));
    if (operation.name.is_p2p) {
      cells.insert(cells.end(),
                   {rank.is_there ? rank.func : "-", rank_text(job_rank_of(job, operation.comm, rank.peer)),
                    rank.is_there ? format_bytes(rank.bytes) : "-"});
    }
    if (!rank.is_there) {
      cells.push_back("not called");
    } else {
      for (int64_t ns :
           {rank.called_ns, rank.enqueued_ns, rank.launched_ns, rank.gpu_start_ns, rank.gpu_end_ns})
        cells.push_back(times.text(rank.process, ns));
      cells.push_back(rank.gpu_source == "none" ? "" : rank.gpu_source);
    }
    table.add(std::move(cells));
  }
  std::string text = "\nRanks\n" + table.text();
  if (!all && operation.ranks.size() > kMostTableRows)
    text +=
        "  ... and " + format_count(operation.ranks.size() - kMostTableRows) + " more; --all shows them\n";
  return text;
}

class TreeText {
 public:
  TreeText(const model::Job& job, const Timeline& times, uint32_t process, bool all, size_t width)
      : job_(job),
        times_(times),
        process_(process),
        all_(all),
        width_(width),
        event_columns_(std::max(width, kLeastColumns) - kThreadColumns - 2 * kTimeColumns - 2) {}

  std::string text(const std::vector<EventNode>& events) {
    out_ = "  " + left("event", event_columns_) + right("thread", kThreadColumns) +
           right("start, us", kTimeColumns) + right("took", kTimeColumns) + "\n";
    for (const EventNode& event : events) add(event, 2);
    return out_;
  }

 private:
  void line(size_t indent, const std::string& what, const std::string& thread, int64_t begin_ns,
            const std::string& took) {
    std::string row = left(std::string(indent, ' ') + what, event_columns_ + 2) +
                      right(thread, kThreadColumns) + right(times_.text(process_, begin_ns), kTimeColumns) +
                      right(took, kTimeColumns);
    out_ += row.erase(row.find_last_not_of(' ') + 1) + "\n";
  }
  void add(const EventNode& event, size_t indent) {
    // Names of kernels may take a page.
    std::string what = event.event, detail = wording::name(event.detail, all_ ? 4096 : 240);
    if (event.process != model::kNoRow) detail += ", by " + job_.who(event.process).text();
    if (event.count > 1) what += " x " + format_count(event.count);
    if (event.count > 1 && event.open > 0) detail += "; " + format_count(event.open) + " never ended";
    // A detail that does not fit goes to lines of its own, so that the columns of times stay straight.
    const bool fits = indent + columns(what) + 1 + columns(detail) < event_columns_ + 2;
    if (fits && !detail.empty()) what += " " + detail;
    std::string took = "never ended";
    if (event.end_ns != 0 && event.begin_ns != 0) took = signed_duration(event.end_ns - event.begin_ns);
    line(indent, what, event.tid < 0 ? "" : std::to_string(event.tid), event.begin_ns, took);
    if (!fits) out_ += std::string(indent + 4, ' ') + wrap(detail, indent + 4, width_) + "\n";
    for (const EventState& state : event.states) line(indent + 2, "- " + state.name, "", state.ns, "");
    for (const EventNode& child : event.children) add(child, indent + 2);
  }

  const model::Job& job_;
  const Timeline& times_;
  const uint32_t process_;
  const bool all_;
  const size_t width_, event_columns_;
  std::string out_;
};

// `whose`: of another process, " of rank 3".
void collect_threads(const model::Job& job, const std::vector<EventNode>& events, const std::string& whose,
                     std::map<int64_t, std::string>& threads) {
  for (const EventNode& event : events) {
    const std::string of = event.process == model::kNoRow ? whose : " of " + job.who(event.process).name();
    if (event.tid >= 0) threads.emplace(event.tid, wording::name(event.thread) + of);
    collect_threads(job, event.children, of, threads);
  }
}

std::string tree_text(const model::Job& job, const RankOperation& rank, const Timeline& times, bool all,
                      size_t width) {
  std::string text = job.who(rank.process).text();
  text[0] = static_cast<char>(std::toupper(static_cast<unsigned char>(text[0])));
  if (!rank.is_there) return "\n" + text + ": not called\n";
  std::map<int64_t, std::string> threads;
  collect_threads(job, rank.events, "", threads);
  std::string named;
  for (const auto& [tid, name] : threads)
    named += (named.empty() ? "; threads " : ", ") + std::to_string(tid) + " " + name;
  return "\n" + wrap(text + named, 4, width) + "\n" +
         TreeText(job, times, rank.process, all, width).text(rank.events);
}

Json time_json(int64_t ns) { return ns == 0 ? Json(nullptr) : Json(ns); }

Json event_json(const model::Job& job, const EventNode& event) {
  Json document = {{"event", event.event},
                   {"detail", event.detail},
                   {"thread", known(event.tid)},
                   {"thread_name", event.thread},
                   {"count", event.count},
                   {"open", event.open},
                   {"begin_ns", time_json(event.begin_ns)},
                   {"end_ns", time_json(event.end_ns)}};
  if (event.process != model::kNoRow) {
    const model::Who who = job.who(event.process);
    document["done_by"] = {{"rank", known(who.rank)}, {"pid", who.pid}};
  }
  document["states"] = Json::array();
  for (const EventState& state : event.states)
    document["states"].push_back({{"state", state.name}, {"ns", state.ns}});
  document["children"] = Json::array();
  for (const EventNode& child : event.children) document["children"].push_back(event_json(job, child));
  return document;
}

Json comm_json(const model::Job& job, uint32_t comm) {
  const model::JobComm& row = job.comms[comm];
  return {
      {"id", id_json(row.comm_id)}, {"name", std::string(job.text(row.name))}, {"ranks", known(row.ranks)}};
}

}  // namespace

std::string list_text(const model::Job& job, const std::vector<ListedOperation>& listed, uint64_t p2ps,
                      size_t limit, size_t width) {
  Table table(
      {"op", "<communicator", "<operation", "~~<type", "size", "~ranks", "first call", "spread", "GPU"});
  const int64_t zero_ns = listed.empty() ? 0 : listed.front().first_ns;
  for (size_t i = 0; i < listed.size() && i < limit; ++i) {
    const ListedOperation& row = listed[i];
    const model::Signature& what = job.signatures[row.signature];
    const int32_t ranks = job.comms[row.comm].ranks;
    table.add({std::to_string(row.index), job.comm_name(row.comm), std::string(job.text(what.func)),
               std::string(job.text(what.datatype)), format_bytes(what.bytes),
               std::to_string(row.ranks) + "/" + (ranks < 0 ? "?" : std::to_string(ranks)),
               row.first_ns == 0 ? "-" : signed_duration(row.first_ns - zero_ns),
               format_duration(static_cast<double>(row.spread_ns)),
               format_duration(static_cast<double>(row.gpu_ns))});
  }
  std::string text =
      "\n" +
      wrap(
          "Operations of all ranks, by first call (spread: from the first to the last call; GPU: the longest "
          "time of any rank)",
          0, width) +
      "\n" + table.text();
  if (listed.size() > limit)
    text += "  " +
            wrap("... and " + format_count(listed.size() - limit) +
                     " more; -n shows more rows, --comm selects a communicator",
                 2, width) +
            "\n";
  if (p2ps > 0)
    text +=
        "  " +
        wrap("and " + format_count(p2ps) + (p2ps == 1 ? " send or receive" : " sends and receives") +
                 ": --op p2p:A-B:N shows the N-th from rank A to rank B of the communicator, --op p2p:N the "
                 "N-th of each rank",
             2, width) +
        "\n";
  return text;
}

Json list_json(const model::Job& job, const std::vector<ListedOperation>& listed, uint64_t p2ps) {
  Json document = {{"schema", "lockstep.show-list.v1"}, {"sends_and_receives", p2ps}};
  document["op_list"] = Json::array();
  for (const ListedOperation& row : listed) {
    const model::Signature& what = job.signatures[row.signature];
    document["op_list"].push_back({{"op_index", row.index},
                                   {"comm", comm_json(job, row.comm)},
                                   {"func", std::string(job.text(what.func))},
                                   {"datatype", std::string(job.text(what.datatype))},
                                   {"bytes", what.bytes},
                                   {"ranks", row.ranks},
                                   {"first_ns", time_json(row.first_ns)},
                                   {"spread_ns", known(row.spread_ns)},
                                   {"gpu_ns", known(row.gpu_ns)}});
  }
  return document;
}

std::string operation_text(const model::Job& job, const Operation& operation, bool all, size_t width) {
  const Timeline times(job, operation);
  std::string text = "\n" + within(heading(job, operation) + clock_lines(times), width) +
                     rank_table(job, operation, times, all);
  size_t left_out = 0;
  for (const RankOperation& rank : operation.ranks) {
    if (rank.has_tree)
      text += tree_text(job, rank, times, all, width);
    else
      ++left_out;
  }
  if (left_out > 0)
    text += "\nEvents of " + plural(left_out, "more rank") + ": --rank R shows one, --all shows all\n";
  return text;
}

Json operation_json(const model::Job& job, const Operation& operation) {
  const Timeline times(job, operation);
  Json document = {{"schema", "lockstep.show-operation.v1"},
                   {"operation", title(job, operation)},
                   {"op_index", operation.name.index},
                   {"p2p", operation.name.is_p2p},
                   {"comm", comm_json(job, operation.comm)}};
  document["first_call_ns"] = times.zero() ? Json(*times.zero()) : Json(nullptr);
  document["rank_list"] = Json::array();
  for (const RankOperation& rank : operation.ranks) {
    const model::Process& process = job.processes[rank.process].row;
    const int64_t entered_ns = rank.called_ns != 0 ? rank.called_ns : rank.enqueued_ns;
    const auto common = entered_ns == 0 ? std::nullopt : job.common_ns(rank.process, entered_ns);
    const model::Who who = job.who(rank.process);
    Json row = {{"rank", known(rank.job_rank)},
                {"comm_rank", known(rank.rank)},
                {"device", known(who.device)},
                {"pci", who.pci.empty() ? Json(nullptr) : Json(who.pci)},
                {"host", host_of(job, rank.process)},
                {"pid", process.pid},
                {"called", rank.is_there},
                {"func", rank.func},
                {"datatype", rank.datatype},
                {"count", rank.count},
                {"bytes", rank.bytes},
                {"peer", known(rank.peer)},
                {"called_ns", time_json(rank.called_ns)},
                {"enqueued_ns", time_json(rank.enqueued_ns)},
                {"launched_ns", time_json(rank.launched_ns)},
                {"gpu_start_ns", time_json(rank.gpu_start_ns)},
                {"gpu_end_ns", time_json(rank.gpu_end_ns)},
                {"gpu_source", rank.gpu_source},
                {"gpu_error_ns", known(rank.gpu_error_ns)}};
    // What to subtract from the times of this rank to have them on the clock of first_call_ns.
    row["clock_offset_ns"] = common ? Json(entered_ns - common->ns) : Json(nullptr);
    row["clock_error_ns"] = common ? Json(common->half_width_ns) : Json(nullptr);
    row["event_list"] = Json::array();
    for (const EventNode& event : rank.events) row["event_list"].push_back(event_json(job, event));
    document["rank_list"].push_back(std::move(row));
  }
  return document;
}

}  // namespace lockstep::cli::show
