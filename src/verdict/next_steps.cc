// SPDX-License-Identifier: Apache-2.0
// Commands are put together from names in files, and people paste them into shells as root. So each word is
// quoted unless it holds nothing but plain characters, and a command whose words cannot be shown safely is
// left out: no advice is better than one that runs something else.
#include "verdict/next_steps.h"

#include <algorithm>

#include "base/text/json_text.h"
#include "base/text/wording.h"

namespace lockstep::verdict {
namespace {

using analysis::Finding;
using analysis::FindingClass;
using analysis::FindingId;
using model::Who;

constexpr size_t kMostProcesses = 2;  // looked at of those that a finding blames
constexpr size_t kMostPaths = 8;      // on one command line

bool is_plain(std::string_view text, std::string_view more) {
  // A word that begins with a dash would be an option of the command.
  return !text.empty() && text.front() != '-' && std::all_of(text.begin(), text.end(), [more](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           more.find(c) != std::string_view::npos;
  });
}

std::string hex_digits(std::string_view text) {
  std::string digits(text);
  std::erase(digits, '-');
  return digits;
}

// What to run on the host of a process.
enum class Look { kNothing, kStack, kHostTime, kContinue, kState, kGpu, kKernelLog };

Look look_of(const Finding& finding) {
  switch (class_of(finding.id)) {
    case FindingClass::kNeverJoined:
      if (finding.id == FindingId::kNeverJoinedStopped) return Look::kContinue;
      return finding.id == FindingId::kNeverJoined || finding.id == FindingId::kNeverJoinedSnapshot ||
                     finding.id == FindingId::kNeverJoinedStacks
                 ? Look::kStack
                 : Look::kNothing;
    case FindingClass::kInitStuck:
    case FindingClass::kJoinedOtherOp:
    case FindingClass::kCrossCommDeadlock:
      return Look::kStack;
    case FindingClass::kEvidenceMissing:
      return finding.id == FindingId::kEvidenceMissingGpuTimes ? Look::kStack : Look::kNothing;
    case FindingClass::kHostLate:
      return Look::kHostTime;
    case FindingClass::kGpuLate:
    case FindingClass::kStuckInGpu:
      return Look::kGpu;
    case FindingClass::kStuckInNetwork:
      return finding.id == FindingId::kStuckInNetworkGpu ? Look::kGpu : Look::kNothing;
    case FindingClass::kRankUnreachable:
      return finding.id == FindingId::kRankUnreachableSnapshot ? Look::kState : Look::kNothing;
    case FindingClass::kRankDead:
      return Look::kKernelLog;
    case FindingClass::kAborted:
      return finding.id == FindingId::kAbortedError ? Look::kKernelLog : Look::kNothing;
    default:
      return Look::kNothing;
  }
}

// Empty: it cannot be looked at.
std::string command_of(Look look, const Who& who) {
  const std::string pid = std::to_string(who.pid);
  switch (look) {
    case Look::kStack:
      return "py-spy dump --pid " + pid;
    case Look::kHostTime:
      return "py-spy record --duration 10 --output rank-" + std::to_string(who.rank) + ".svg --pid " + pid;
    case Look::kContinue:
      return "kill -CONT " + pid;
    case Look::kState:
      return "ps -o pid,stat,etime,args -p " + pid;
    case Look::kGpu:
      // An address names the GPU, however devices are numbered; AMD's tools count them their own way.
      if (who.is_amd) return is_plain(who.pci, ".:") ? "amd-smi metric -g " + who.pci : "amd-smi metric";
      if (is_plain(who.pci, ".:")) return "nvidia-smi -q -i " + who.pci;
      return who.device >= 0 ? "nvidia-smi -q -i " + std::to_string(who.device) : "";
    case Look::kKernelLog:
      return std::string("dmesg -T | grep -iE 'out of memory|killed process|") +
             (who.is_amd ? "amdgpu'" : "xid'");
    case Look::kNothing:
      break;
  }
  return "";
}

bool needs_process(Look look) {
  return look == Look::kStack || look == Look::kHostTime || look == Look::kContinue || look == Look::kState;
}

std::optional<std::string> words(const std::vector<std::string>& texts) {
  std::string line;
  for (const std::string& text : texts) {
    const auto word = shell_word(text);
    if (!word) return std::nullopt;
    line += ' ' + *word;
  }
  return line;
}

// By its name, if no other has it, else by its id.
std::optional<std::string> comm_word(const model::Job& job, uint32_t row) {
  const model::JobComm& comm = job.comms[row];
  const auto same = [&](const model::JobComm& other) { return other.name == comm.name; };
  const std::string_view name = job.text(comm.name);
  if (comm.name != 0 && name.front() != '-' && std::count_if(job.comms.begin(), job.comms.end(), same) == 1) {
    if (auto word = shell_word(name)) return word;
  }
  // Without an id a name that several share names none of them.
  if (comm.comm_id == 0) return std::nullopt;
  return id_json(comm.comm_id).get<std::string>();
}

class Steps {
 public:
  Steps(const std::vector<std::string>& paths, std::string_view boot_id, const DiagnosedRun& run)
      : paths_(paths), boot_id_(hex_digits(boot_id)), run_(run) {}

  void add(Finding& finding, bool is_verdict) const {
    const Look look = look_of(finding);
    for (const Who& who : finding.who) {
      if (finding.next.size() == kMostProcesses || look == Look::kNothing) break;
      auto command = at_host(look, who);
      // Ranks of one process, or of one host, are looked at once.
      if (command && std::find(finding.next.begin(), finding.next.end(), *command) == finding.next.end())
        finding.next.push_back(*std::move(command));
    }
    if (auto command = show(finding)) finding.next.push_back(*std::move(command));
    // A store's URL may hold a key, and it has no more to show.
    const bool of_store = std::any_of(paths_.begin(), paths_.end(), [](const std::string& path) {
      return path.find("://") != std::string::npos;
    });
    // Without operations a page shows what has been printed already.
    const bool has_pages = std::any_of(run_.evidence.begin(), run_.evidence.end(),
                                       [](const Evidence& evidence) { return evidence.job.has_value(); });
    if (!is_verdict || of_store || !has_pages || paths_.size() > kMostPaths) return;
    if (const auto input = words(paths_)) finding.next.push_back("lockstep report" + *input);
  }

 private:
  std::optional<std::string> at_host(Look look, const Who& who) const {
    // A command about a process that has ended finds nothing, or another process that has its pid by now.
    if (needs_process(look) && (who.pid <= 0 || who.gone)) return std::nullopt;
    const std::string command = command_of(look, who);
    if (command.empty()) return std::nullopt;
    // The boot tells whether this is the host: names may be aliases, and containers have names of their own.
    if (!boot_id_.empty() && hex_digits(who.boot_id) == boot_id_) return command;
    if (!is_plain(who.host, "._-")) return std::nullopt;
    return "ssh " + who.host + ' ' + command;
  }

  std::optional<std::string> show(const Finding& finding) const {
    if (finding.op_address.empty() || !finding.comm_row || finding.sources.empty()) return std::nullopt;
    const auto of = std::find_if(run_.evidence.begin(), run_.evidence.end(), [&](const Evidence& evidence) {
      // The row of the communicator is one of the job that states the finding, the first of its sources.
      return evidence.job && evidence.source == finding.sources.front();
    });
    const auto command = of == run_.evidence.end() ? std::nullopt : show_command(*of, *finding.comm_row);
    return command ? std::optional(*command + finding.op_address) : std::nullopt;
  }

  const std::vector<std::string>& paths_;
  const std::string boot_id_;
  const DiagnosedRun& run_;
};

}  // namespace

std::optional<std::string> shell_word(std::string_view text) {
  if (is_plain(text, "._-/:=@%+,")) return std::string(text);
  if (text.empty() || wording::name(text, text.size()) != text) return std::nullopt;
  // A name that begins with a dash would be taken for an option, quoted or not.
  std::string word = text.front() == '-' ? "'./" : "'";
  for (const char c : text) word += c == '\'' ? "'\\''" : std::string(1, c);
  return word + '\'';
}

std::optional<std::string> show_command(const Evidence& evidence, uint32_t comm) {
  if (!evidence.job || comm >= evidence.job->comms.size() || evidence.paths.empty() ||
      evidence.paths.size() > kMostPaths)
    return std::nullopt;
  const auto input = words(evidence.paths), word = comm_word(*evidence.job, comm);
  if (!input || !word) return std::nullopt;
  return "lockstep show" + *input + " --comm " + *word + " --op ";
}

void add_next_steps(const std::vector<std::string>& paths, std::string_view boot_id, DiagnosedRun& run) {
  const Steps steps(paths, boot_id, run);
  for (size_t i = 0; i < run.diagnosis.findings.size(); ++i)
    steps.add(run.diagnosis.findings[i], run.diagnosis.verdict == i);
}

}  // namespace lockstep::verdict
