// SPDX-License-Identifier: Apache-2.0
// Turns lines into a model of the job as NCCL describes it. A line is known by the catalogue of NCCL's own
// messages; lines of no known message are counted by the shape of their first words, so that the reader's
// gaps show in its own report. Ranks are taken from communicators; a line without one is of the only rank
// that its file mentions, if there is one, and of nobody otherwise.
#include "readers/nccl_log/log_parser.h"

#include <algorithm>
#include <utility>

#include "base/ascii.h"
#include "base/utf8.h"

namespace lockstep::readers::nccl_log {
namespace {

constexpr size_t kNo = std::string_view::npos;

// The first words of a line, without what differs from line to line.
std::string shape_of(std::string_view body) {
  std::string shape;
  size_t words = 0;
  for (const char c : body.substr(0, 120)) {
    if (c == ' ' && ++words == 4) break;
    if (is_digit(c)) {
      if (shape.empty() || shape.back() != 'N') shape += 'N';
    } else {
      shape += c;
    }
  }
  return printable(shape);
}

// What only informs of how things are: at level WARN the same words report trouble with them.
bool is_description(LineKind kind) {
  switch (kind) {
    case LineKind::kCollective:
    case LineKind::kConnection:
    case LineKind::kAlgorithm:
    case LineKind::kAlgorithmNoFunc:
    case LineKind::kKernelUse:
    case LineKind::kCommLife:
    case LineKind::kCommTopology:
    case LineKind::kRingOrder:
    case LineKind::kRingOrderOld:
    case LineKind::kRingPosition:
    case LineKind::kTreePosition:
    case LineKind::kTrees:
    case LineKind::kChannelCount:
    case LineKind::kInitTime:
    case LineKind::kCostAlgorithms:
    case LineKind::kCostRow:
    case LineKind::kTopologyBegin:
    case LineKind::kTopologyCpu:
    case LineKind::kOtherPaths:
    case LineKind::kPaths:
    case LineKind::kPciLink:
    case LineKind::kNvLink:
    case LineKind::kXgmiLink:
    case LineKind::kNetLink:
    case LineKind::kLatencySpread:
      return true;
    default:
      return false;
  }
}

}  // namespace

std::string printable(std::string_view text) {
  std::string out = valid_utf8(text);
  for (size_t i = 0; i < out.size(); ++i) {
    const auto c = static_cast<unsigned char>(out[i]);
    const auto next = static_cast<unsigned char>(i + 1 < out.size() ? out[i + 1] : 0);
    if ((c < 0x20 && c != '\t') || c == 0x7F) out[i] = '?';
    if (c == 0xC2 && next < 0xA0) out[i] = out[i + 1] = '?';  // the second set of control characters
  }
  return out;
}

std::string_view transport_text(Transport transport) {
  switch (transport) {
    case Transport::kP2p:
      return "P2P";
    case Transport::kShm:
      return "SHM";
    case Transport::kNet:
      return "NET";
    case Transport::kOther:
      break;
  }
  return "other";
}

// Lines without a rank are of the only one that the file mentions, if there is one.
void LogParser::resolve_ranks() {
  std::vector<int32_t> most(model_.processes.size(), 0);
  for (const CommPart& part : model_.comms) {
    // A rank in a part of the job is no rank of the job.
    if (part.ranks <= most[part.process] || part.is_orphan) continue;
    most[part.process] = part.ranks;
    model_.processes[part.process].rank = part.rank;
  }
  // Launchers often give each rank a file of its own, which then mentions one rank.
  constexpr int32_t kNone = -1, kSeveral = -2;
  std::vector<int32_t> rank_of_file(model_.files.size(), kNone);
  const auto add = [&](uint32_t file, int32_t rank) {
    if (rank < 0) return;
    int32_t& of = rank_of_file[file];
    of = of == kNone || of == rank ? rank : kSeveral;
  };
  for (const LogProcess& process : model_.processes) add(process.file, process.rank);
  for (const TorchLine& line : model_.torch) add(line.first.file, line.rank);
  for (TorchLine& line : model_.torch) {
    if (line.rank < 0) line.rank = std::max(rank_of_file[line.first.file], kNone);
  }
}

LogModel LogParser::take() {
  model_.torch = torch_.take();
  model_.coverage.beyond += torch_.beyond();
  // A log may end within a list of links.
  for (uint32_t process = 0; process < contexts_.size(); ++process) close_device(process);
  resolve_ranks();
  resolve_connections();
  LogModel model = std::move(model_);
  *this = LogParser();
  return model;
}

// Many lines that were pasted as one: blanks stand where they ended. Two writers tear a line once or twice.
bool LogParser::holds_many_heads(std::string_view body) {
  constexpr size_t kMany = 3;
  size_t heads = 1, blanks = 0;
  Head next;
  for (size_t at = find_torn_head(body, next); at != kNo && heads <= kMany; at = find_torn_head(body, next)) {
    ++heads;
    blanks += at > 0 && body[at - 1] == ' ' ? 1 : 0;
    body = next.body;
  }
  return heads >= kMany && blanks + 1 == heads;
}

// A torn line holds several heads; each rules what stands up to the next. What another line was written into
// lacks its end: of what it informs of, only the end of a creation is believed, which says so itself.
void LogParser::headed(Head head) {
  // Bounds what one hostile line costs. A paste holds as many heads as the log had lines.
  constexpr size_t kHeadsMost = 64;
  bool is_paste = false;
  for (size_t heads = 0; heads < kHeadsMost || is_paste; ++heads) {
    Head next;
    const size_t torn = find_torn_head(head.body, next);
    is_paste = is_paste || (heads == 0 && torn != kNo && holds_many_heads(head.body));
    ++model_.coverage.headed;
    std::string_view body = head.body.substr(0, torn);
    const bool is_whole = torn == kNo || (is_paste && body.ends_with(' '));
    while (body.ends_with(' ')) body.remove_suffix(1);
    is_behind_tear_ = heads > 0 && !is_paste;
    if (is_whole || head.level != Level::kInfo || body.ends_with("COMPLETE")) stated(head, body);
    is_behind_tear_ = false;
    if (torn == kNo) return;
    if (is_whole) {
      head = next;
      continue;
    }
    ++model_.coverage.torn;
    ++model_.states.back().torn;
    head = next;
    cut_glued_text(head);
  }
}

// A row of nccl-tests, which ends without a newline: "  1024  256  float  sum  -1node2:7:7 [0] NCCL"; or a
// part of a head.
bool LogParser::may_be_glued(const Head& head) {
  if (!head.prefix.empty() && head.prefix.back() == ':') return true;
  const size_t begin = head.prefix.find_first_not_of(' ');
  if (begin == kNo || head.prefix.find_first_of(":[") != kNo) return false;
  const std::string_view first = head.prefix.substr(begin, head.prefix.find(' ', begin) - begin);
  return std::all_of(first.begin(), first.end(), is_digit);
}

// "Using netnode2:7": what stands before a known process' name belongs to the line that was torn.
void LogParser::cut_glued_text(Head& head) const {
  for (size_t cut = 0; cut < head.host.size(); ++cut) {
    if (!process_by_name_.contains(std::string(head.host_pid.substr(cut)))) continue;
    head.host.remove_prefix(cut);
    head.host_pid.remove_prefix(cut);
    return;
  }
}

uint32_t LogParser::process_of(const Head& head) {
  // Of lines that name no process, those with the mark of one rank are of one.
  if (head.host_pid.empty()) return process_without_name(rank_of_prefix(head.prefix));
  // Lines of one process follow each other.
  if (head.host_pid == last_name_ && last_process_ != kNobody) return last_process_;
  last_name_ = head.host_pid;
  auto found = process_by_name_.find(last_name_);
  if (found == process_by_name_.end()) {
    Head cut = head;
    if (may_be_glued(head)) cut_glued_text(cut);
    found = process_by_name_.find(std::string(cut.host_pid));
    if (found != process_by_name_.end()) {
      ++model_.coverage.torn;
      ++model_.states.back().torn;
    }
  }
  if (found == process_by_name_.end()) {
    if (model_.processes.size() >= LogModel::kProcessesMost) {
      ++model_.coverage.beyond;
      return last_process_ = kNobody;
    }
    LogProcess process;
    process.host = std::string(head.host);
    process.pid = head.pid;
    process.file = static_cast<uint32_t>(model_.files.size() - 1);
    process.rank = rank_of_prefix(head.prefix);
    model_.processes.push_back(std::move(process));
    contexts_.emplace_back();
    found = process_by_name_.emplace(last_name_, static_cast<uint32_t>(model_.processes.size() - 1)).first;
  }
  return last_process_ = found->second;
}

uint32_t LogParser::process_without_name(int32_t rank) {
  last_process_ = kNobody;
  const std::string name = "rank " + std::to_string(rank);  // no host has a blank in its name
  auto found = process_by_name_.find(name);
  if (found != process_by_name_.end()) return found->second;
  if (model_.processes.size() >= LogModel::kProcessesMost) {
    ++model_.coverage.beyond;
    return kNobody;
  }
  LogProcess process;
  process.file = static_cast<uint32_t>(model_.files.size() - 1);
  process.rank = rank;
  const auto row = static_cast<uint32_t>(model_.processes.size());
  model_.processes.push_back(std::move(process));
  contexts_.emplace_back();
  process_by_name_.emplace(name, row);
  return row;
}

Evidence LogParser::here() const {
  Evidence evidence;
  evidence.file = static_cast<uint32_t>(model_.files.size() - 1);
  evidence.line = line_;
  evidence.text = printable(line_text_.substr(0, Evidence::kEvidenceMost));
  return evidence;
}

void LogParser::stated(const Head& head, std::string_view body) {
  const uint32_t process = process_of(head);
  if (process == kNobody) return;
  const bool is_warning = head.level == Level::kWarn || head.level == Level::kAbort;
  ++model_.processes[process].lines;
  if (is_warning) ++model_.processes[process].warnings;
  model_.coverage.repeated += cut_repeat_mark(body);
  // A trace line carries its time and place before the words; calls are arguments only.
  if (head.level == Level::kCall || head.level == Level::kTrace || body.empty()) {
    ++model_.coverage.known;
    return;
  }
  Captures captures;
  LineKind kind = classify(body, captures);
  // What is of no use where NCCL informs is trouble where it warns.
  if (is_warning && (kind == LineKind::kUnknown || kind == LineKind::kKnown || is_description(kind))) {
    kind = classify_words(body);
    captures.text[0] = body;
    captures.count = 1;
  }
  if (kind == LineKind::kUnknown) return unknown(head, process, body);
  ++model_.coverage.known;
  switch (kind) {
    case LineKind::kKnown:
      return;
    case LineKind::kCollective:
      return call(process, captures);
    case LineKind::kConnection:
      return connection(head, process, captures);
    case LineKind::kAlgorithm:
      return algorithm(captures[0], captures[1], captures[2], captures[3]);
    case LineKind::kAlgorithmNoFunc:
      return algorithm("(any)", captures[0], captures[1], captures[2]);
    case LineKind::kKernelUse:
      return algorithm(captures[0], captures[2], captures[1], captures[3]);
    case LineKind::kLatencySpread:
      return latency(captures);
    case LineKind::kCommLife:
      return comm_life(head, process, captures);
    case LineKind::kRingOrder:
    case LineKind::kRingOrderOld:
    case LineKind::kRingPosition:
    case LineKind::kTreePosition:
    case LineKind::kTrees:
    case LineKind::kChannelCount:
    case LineKind::kCommTopology:
    case LineKind::kInitTime:
      return comm_remark(kind, head, process, captures);
    case LineKind::kCostAlgorithms:
    case LineKind::kCostRow:
      return costs(kind, process, captures);
    default:
      if (topology(kind, process, captures)) return;
      return keep(kind, process, is_warning, captures);
  }
}

void LogParser::keep(LineKind kind, uint32_t process, bool is_warning, const Captures& captures) {
  // Who said what: the same words of one process only count.
  key_.assign(1, static_cast<char>(kind));
  key_.append(reinterpret_cast<const char*>(&process), sizeof(process));
  for (size_t i = 0; i < captures.count; ++i) {
    key_.append(captures[i].substr(0, LogModel::kValueMost)).push_back('\n');
  }
  auto found = fact_by_text_.find(key_);
  if (found != fact_by_text_.end()) {
    Fact& fact = model_.facts[found->second];
    ++fact.count;
    fact.is_warning = fact.is_warning || is_warning;
    fact.is_torn = fact.is_torn && is_behind_tear_;
    return;
  }
  // By process and kind, so that a remark that is made without end leaves room for the others.
  size_t& of_kind = facts_of_process_kind_[static_cast<uint64_t>(process) << 8 | static_cast<uint64_t>(kind)];
  if (of_kind >= LogModel::kFactsOfKindMost || model_.facts.size() >= LogModel::kFactsMost) {
    ++model_.coverage.beyond;
    return;
  }
  ++of_kind;
  Fact fact;
  fact.kind = kind;
  fact.process = process;
  fact.is_warning = is_warning;
  fact.is_torn = is_behind_tear_;
  for (size_t i = 0; i < captures.count; ++i)
    fact.values.push_back(printable(captures[i].substr(0, LogModel::kValueMost)));
  // The release prints a full stop behind numeric settings.
  if (kind == LineKind::kEnvironment && fact.values.size() == 2 && fact.values[1].size() > 1 &&
      fact.values[1].back() == '.')
    fact.values[1].pop_back();
  fact.first = here();
  fact.count = 1;
  const auto row = static_cast<uint32_t>(model_.facts.size());
  model_.facts_of_kind[static_cast<size_t>(kind)].push_back(row);
  model_.facts.push_back(std::move(fact));
  fact_by_text_.emplace(key_, row);
}

void LogParser::unknown(const Head& head, uint32_t process, std::string_view body) {
  std::string shape = shape_of(body);
  if (head.level == Level::kWarn) {
    Captures first_words;
    first_words.text[0] = shape;
    first_words.count = 1;
    keep(LineKind::kUnknownWarning, process, true, first_words);
  }
  auto found = model_.unknown.find(shape);
  if (found == model_.unknown.end()) {
    if (model_.unknown.size() >= LogModel::kShapesMost) {
      // Counted all the same: the report tells how much of a log was not understood.
      shape = "(others)";
    }
    UnknownShape first;
    first.first = here();
    found = model_.unknown.emplace(std::move(shape), std::move(first)).first;
  }
  ++found->second.count;
  if (head.level == Level::kWarn) found->second.is_warning = true;
}

void LogParser::algorithm(std::string_view func, std::string_view size, std::string_view algo,
                          std::string_view proto) {
  // Releases before 2.24 print numbers.
  static constexpr std::string_view kAlgorithms[] = {
      "TREE", "RING", "COLLNET_DIRECT", "COLLNET_CHAIN", "NVLS", "NVLS_TREE", "PAT"};
  static constexpr std::string_view kProtocols[] = {"LL", "LL128", "SIMPLE"};
  const auto name = [](std::string_view text, const auto& names) {
    const auto number = static_cast<size_t>(to_int(text));
    return std::string(is_digit(text[0]) && number < std::size(names) ? names[number] : text);
  };
  const std::string use = printable(func.substr(0, 40)) + ' ' +
                          printable(name(algo.substr(0, 40), kAlgorithms)) + ' ' +
                          printable(name(proto.substr(0, 40), kProtocols));
  auto found = model_.algorithms.find(use);
  if (found == model_.algorithms.end()) {
    if (model_.algorithms.size() >= LogModel::kShapesMost) {
      ++model_.coverage.beyond;
      return;
    }
    found =
        model_.algorithms.emplace(use, AlgorithmUse{.count = 0, .least_bytes = UINT64_MAX, .most_bytes = 0})
            .first;
  }
  const auto bytes = static_cast<uint64_t>(std::max<int64_t>(to_int(size), 0));
  AlgorithmUse& figures = found->second;
  ++figures.count;
  figures.least_bytes = std::min(figures.least_bytes, bytes);
  figures.most_bytes = std::max(figures.most_bytes, bytes);
}

void LogParser::latency(const Captures& captures) {
  const std::string func = printable(captures[4].substr(0, 40));
  if (!model_.latencies.contains(func) && model_.latencies.size() >= LogModel::kShapesMost) {
    ++model_.coverage.beyond;
    return;
  }
  LatencySpread& spread = model_.latencies[func];
  const double least = to_double(captures[2]), most = to_double(captures[3]);
  ++spread.count;
  if (most >= least * LatencySpread::kUnevenFactor && most - least >= LatencySpread::kUnevenUs)
    ++spread.uneven;
  if (most - least <= spread.most_us - spread.least_us) return;
  spread.least_us = least;
  spread.most_us = most;
  spread.widest = here();
}

// Rows of latencies and bandwidths, three algorithms in three protocols each; which algorithms, a line before
// them says.
void LogParser::costs(LineKind kind, uint32_t process, const Captures& captures) {
  constexpr size_t kColumnsMost = 8, kProtocols = 3;
  static constexpr std::string_view kProtocolNames[kProtocols] = {"LL", "LL128", "Simple"};
  auto& algorithms = contexts_[process].cost_algorithms;
  std::string_view row = captures[captures.count - 1];
  if (kind == LineKind::kCostAlgorithms) algorithms.clear();
  for (size_t column = 0; !row.empty() && column < kColumnsMost * kProtocols; ++column) {
    const size_t bar = std::min(row.find('|'), row.size());
    std::string_view cell = row.substr(0, bar);
    row.remove_prefix(std::min(bar + 1, row.size()));
    while (cell.starts_with(' ')) cell.remove_prefix(1);
    while (cell.ends_with(' ')) cell.remove_suffix(1);
    if (cell.empty()) continue;
    if (kind == LineKind::kCostAlgorithms) {
      algorithms.push_back(printable(cell.substr(0, 40)));
      continue;
    }
    const size_t slash = cell.find('/');
    // The line that names the algorithms is missing, or has fewer.
    if (column / kProtocols >= algorithms.size() || slash == kNo) return;
    std::string_view bandwidth = cell.substr(slash + 1);
    while (bandwidth.starts_with(' ')) bandwidth.remove_prefix(1);
    Captures cost;
    cost.text = {algorithms[column / kProtocols], kProtocolNames[column % kProtocols], bandwidth};
    cost.count = 3;
    keep(LineKind::kCostRow, process, false, cost);
  }
}

}  // namespace lockstep::readers::nccl_log
