// SPDX-License-Identifier: Apache-2.0
// `show` answers in two passes. It gathers and aligns the job to know which operations there are. For one
// operation it then loads the traces of its ranks again, since a job keeps no single events. Without --op or
// --comms-id it prints the list after the first pass. A number that several communicators have is refused
// with their names: a guess would show the wrong operation. Exit code 3 says that something that was named is
// left out.
#include <algorithm>
#include <charconv>

#include "base/text/json_text.h"
#include "base/text/units.h"
#include "base/text/wording.h"
#include "cli/command.h"
#include "cli/kit/console.h"
#include "cli/kit/loss_report.h"
#include "cli/kit/memory_limit.h"
#include "cli/kit/progress.h"
#include "cli/show/operation.h"
#include "cli/show/report.h"
#include "input/input.h"
#include "input/run_json.h"
#include "job/clock/clock.h"
#include "job/gather/gather.h"
#include "job/match/match.h"

namespace lockstep::cli {
namespace {

constexpr Option kShowOptions[] = {
    {0, "op", "N",
     "the operation with this number on its communicator; p2p:A-B:N the N-th from rank A to rank B"},
    {0, "comm", "NAME|ID", "a communicator by its name, or its id in hex"},
    {0, "comms-id", "ID", "the operation with this Comms Id, as PyTorch's profiler and timelines show it"},
    {0, "rank", "R", "only the events of this rank"},
    {0, "all", "", "every rank, and each event separately"},
    {'n', "limit", "N", "rows of the list", "40"},
    {0, "json", "", "print one JSON object"},
    kMemoryOption,
};

// "world 0xabc of 8 ranks; 0xdef of 4 ranks"
std::string comm_list(const model::Job& job, const std::vector<uint32_t>& comms) {
  constexpr size_t kMost = 12;
  std::string text;
  for (size_t i = 0; i < comms.size() && i < kMost; ++i) {
    const model::JobComm& comm = job.comms[comms[i]];
    text += (i > 0 ? "; " : " ") + wording::name(job.comm_name(comms[i]));
    if (comm.name != 0 && comm.comm_id != 0) text += " " + id_json(comm.comm_id).get<std::string>();
    if (comm.ranks >= 0) text += " of " + plural(static_cast<uint64_t>(comm.ranks), "rank");
  }
  if (comms.size() > kMost) text += "; and " + std::to_string(comms.size() - kMost) + " more";
  return text;
}

std::vector<uint32_t> all_comms(const model::Job& job) {
  std::vector<uint32_t> comms(job.comms.size());
  for (uint32_t comm = 0; comm < comms.size(); ++comm) comms[comm] = comm;
  return comms;
}

Result<std::optional<int32_t>> wanted_rank(const Arguments& arguments) {
  if (!arguments.has("rank")) return std::optional<int32_t>();
  auto number = arguments.number("rank");
  if (!number) return number.error();
  // A rank is an int32_t; a larger number would wrap to another rank.
  if (*number > INT32_MAX) return Error{ErrorCode::kInvalidInput, "--rank: no rank has this number", {}};
  return std::optional(static_cast<int32_t>(*number));
}

Result<uint32_t> choose_comm(const model::Job& job, const std::vector<uint32_t>& comms,
                             const show::OperationName& name, const std::string& asked) {
  const std::vector<uint32_t> with = show::comms_with(job, comms, name);
  // Numbers count per communicator, so most exist on several of them.
  if (with.size() == 1) return with.front();
  if (with.empty())
    return Error{ErrorCode::kNotFound,
                 "--op " + asked + ": no such operation; `lockstep show` without --op lists what there is",
                 {}};
  return Error{
      ErrorCode::kInvalidInput,
      "--op " + asked + ": several communicators have it; choose one with --comm:" + comm_list(job, with),
      {}};
}

// Losses come first here too: an operation that was lost is missing from the list.
int show_list(const Arguments& arguments, const model::Job& job, const input::RunOverview& overview,
              const std::vector<uint32_t>& comms) {
  auto limit = arguments.number("limit");
  if (!limit) return fail(limit.error());
  uint64_t p2ps = 0;
  const std::vector<show::ListedOperation> listed = show::list_operations(job, comms, p2ps);
  if (!arguments.has("json"))
    return print(
        loss_report(overview) + show::list_text(job, listed, p2ps, *limit, Style::of_stdout().columns()),
        exit_of_losses(overview));
  Json document = show::list_json(job, listed, p2ps);
  document["losses"] = input::losses_json(overview);
  return print(json_text(document), exit_of_losses(overview));
}

Result<show::FoundOperation> named_operation(const Arguments& arguments, const model::Job& job,
                                             const std::vector<uint32_t>& comms) {
  const std::string asked = arguments.value("op");
  const auto name = show::parse_operation(asked);
  if (!name) return usage_error("--op " + asked + ": a number, coll:N or p2p:N is expected");
  LOCKSTEP_ASSIGN(const uint32_t comm, choose_comm(job, comms, *name, asked));
  return show::FoundOperation{comm, *name};
}

Result<show::FoundOperation> operation_of_id(const Arguments& arguments, const model::Job& job,
                                             const std::vector<uint32_t>& comms) {
  constexpr size_t kMost = 8;
  const std::string asked = arguments.value("comms-id");
  uint64_t id = 0;
  const auto [end, error] = std::from_chars(asked.data(), asked.data() + asked.size(), id);
  // 0 marks operations whose id is unknown, so it would match all of those.
  if (error != std::errc{} || end != asked.data() + asked.size() || id == 0)
    return usage_error("--comms-id " + asked + ": a number is expected, as Comms Id is printed");
  std::vector<show::FoundOperation> found = show::find_comms_id(job, id);
  // The hash is weak, and several communicators may have the id: --comm decides between them.
  std::erase_if(found, [&](const show::FoundOperation& one) {
    return std::find(comms.begin(), comms.end(), one.comm) == comms.end();
  });
  if (found.size() == 1) return found.front();
  if (found.empty())
    return Error{ErrorCode::kNotFound,
                 "--comms-id " + asked +
                     ": no operation has it; it is known where PyTorch's name of the group is, "
                     "and all its ranks are in the run",
                 {}};
  std::string text = "--comms-id " + asked + ": several operations have this id; choose one:";
  for (size_t i = 0; i < found.size() && i < kMost; ++i)
    text += std::string(i > 0 ? ";" : "") + " --comm " + wording::name(job.comm_name(found[i].comm)) +
            " --op " + show::address(found[i].name);
  if (found.size() > kMost) text += "; and " + std::to_string(found.size() - kMost) + " more";
  return usage_error(text);
}

int show_operation(const Arguments& arguments, const model::Job& job, input::Input& input,
                   const input::RunOverview& overview, const std::vector<uint32_t>& comms) {
  auto rank = wanted_rank(arguments);
  if (!rank) return fail(rank.error());
  const auto found = arguments.has("comms-id") ? operation_of_id(arguments, job, comms)
                                               : named_operation(arguments, job, comms);
  if (!found) return fail(found.error());
  show::TreeLimits limits;
  limits.rank = *rank;
  // --all lifts both bounds: on ranks, and on events of a kind.
  if (arguments.has("all")) limits.ranks = limits.siblings = SIZE_MAX;
  const show::Operation operation =
      show::load_operation(job, *input.source, found->comm, found->name, limits);
  const auto is_it = [&](const show::RankOperation& of) { return of.job_rank == *rank || of.rank == *rank; };
  if (*rank && std::none_of(operation.ranks.begin(), operation.ranks.end(), is_it))
    return fail("--rank " + std::to_string(**rank) + ": the communicator has no such rank");
  if (!arguments.has("json"))
    return print(loss_report(overview) +
                     show::operation_text(job, operation, arguments.has("all"), Style::of_stdout().columns()),
                 exit_of_losses(overview));
  Json document = show::operation_json(job, operation);
  document["losses"] = input::losses_json(overview);
  return print(json_text(document), exit_of_losses(overview));
}

int run_show(const Arguments& arguments) {
  if (arguments.has("rank") && !arguments.has("op") && !arguments.has("comms-id"))
    return fail("--rank is for one operation; name it by --op or --comms-id");
  if (arguments.has("op") && arguments.has("comms-id"))
    return fail("--op and --comms-id name the same thing; give one");
  if (auto limited = limit_memory(arguments); !limited) return fail(limited.error());
  auto input = input::open_input(arguments.operands());
  if (!input) return fail(input.error());
  // The lambda ends the progress bar before anything is printed.
  auto job = [&] {
    Progress progress("reading");
    return job::gather::gather(*input->source, {.threads = 0, .progress = progress.callback()});
  }();
  if (!job) return fail(job.error());
  std::vector<analysis::Finding> findings;  // `diagnose` reports them
  // The numbers that users give are those after this alignment; the clocks are aligned by matched operations.
  job::match::align(*job);
  job::clock::align(*job, findings);
  // The source observes processes and losses while it is read, so the overview comes after gather.
  const input::RunOverview overview = input->source->overview();
  std::vector<uint32_t> comms = all_comms(*job);
  if (arguments.has("comm")) {
    comms = show::find_comms(*job, arguments.value("comm"));
    if (comms.empty())
      return fail("--comm " + arguments.value("comm") +
                  ": no such communicator; there are:" + comm_list(*job, all_comms(*job)));
  }
  return arguments.has("op") || arguments.has("comms-id")
             ? show_operation(arguments, *job, *input, overview, comms)
             : show_list(arguments, *job, overview, comms);
}

}  // namespace

const Command show_command = {
    .name = "show",
    .summary = "show one operation with all its events, on all ranks",
    .description =
        "Shows what NCCL, the network and the GPUs did for one operation, on each rank of its communicator: "
        "when it was called, enqueued, launched "
        "and run, and below that every event that the trace has of it, with its thread, its states and its "
        "times after "
        "the first call. Without --op it lists the operations.\n\n"
        "N counts from 0 and is the number that every verdict, report and table prints: for \"operation 1329 "
        "of "
        "mesh_dp:1 (its 1,295th AllReduce)\" give --comm mesh_dp:1 --op 1329. For \"transfer 17 from ...\" "
        "give "
        "--op p2p:A-B:17, where A and B are ranks of the communicator; --op p2p:N selects each rank's send or receive with this `op_index` in trace.db. Many events of a kind are folded: --all shows each. Up to "
        "four unfinished events are listed; the rest are counted.",
    .operands = {.name = "RUN|TRACE.DB|FILE",
                 .help = "run directories, trace.dbs and process files, or other tools' files of one format",
                 .least = 1,
                 .most = SIZE_MAX},
    .options = kShowOptions,
    .run = run_show,
};

}  // namespace lockstep::cli
