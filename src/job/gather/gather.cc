// SPDX-License-Identifier: Apache-2.0
// Joins the parts of all processes into one job. Parts are made on several threads and joined in order, so
// that the result does not depend on timing. Everything that a file names is bounded here: ranks, members and
// sizes may be anything in a damaged file, and lists are made of them.
#include "job/gather/gather.h"

#include <algorithm>
#include <condition_variable>
#include <map>
#include <mutex>
#include <tuple>
#include <unordered_map>

#include "base/parallel.h"
#include "job/gather/process_part.h"
#include "model/limits.h"
#include "model/names/host_name.h"
#include "model/record_gaps.h"

namespace lockstep::job::gather {
namespace {

using model::kNoRow;

// Gives the texts, signatures, members and communicators of the parts their numbers in the job. Parts come in
// order.
class Join {
 public:
  explicit Join(model::Job& job) : job_(job) {}

  void add(ProcessPart&& part) {
    uint32_t process = static_cast<uint32_t>(job_.processes.size());
    // Texts and signatures have numbers of their own in each part: they are replaced before anything else is
    // taken.
    translate_texts(part.strings);
    std::vector<uint32_t> signatures = join_signatures(part.signatures);
    for (uint32_t& id : part.process.ops.signature) id = signatures[id];
    uint32_t first_member = static_cast<uint32_t>(job_.members.size());
    model::JobProcess& row = job_.processes.emplace_back(std::move(part.process));
    name(row);
    earlier_.clear();
    for (uint32_t i = 0; i < part.members.size(); ++i) add_member(process, part.comms[i], part.members[i]);
    uint32_t members = static_cast<uint32_t>(part.members.size());
    for (uint32_t i = 0; i < members; ++i) {
      if (part.comms[i].context != 0)
        // By these another process of the host names the communicator whose network work it does.
        contexts_.try_emplace({row.row.boot_id, row.row.pid, part.comms[i].context}, first_member + i);
    }
    take_foreign(part.foreign, members, row);
    auto to_job = [first_member, members](uint32_t& member) {
      member = member < members ? member + first_member : kNoRow;
    };
    for (uint32_t i = 0; i < members; ++i) row.members.push_back(first_member + i);
    for (model::OpenCall& call : row.open_calls) {
      to_job(call.member);
      call.func = texts_[call.func];
    }
    for (model::OpenStep& step : row.open_steps) to_job(step.member);
    for (model::NetPair& pair : row.net_pairs) {
      to_job(pair.member);
      for (model::StringId* text : {&pair.traffic.func, &pair.traffic.algo, &pair.traffic.proto})
        *text = texts_[*text];
    }
    for (model::ExposedFunc& exposed : row.exposed) {
      to_job(exposed.member);
      exposed.func = texts_[exposed.func];
    }
    for (model::Mark& mark : row.marks) mark.name = texts_[mark.name];
    for (size_t i = 0; i < part.losses.size(); ++i) add_loss(process, part.losses.row(i));
    if (row.row.world <= model::kMostRanks)
      job_.expected_ranks = std::max(job_.expected_ranks, row.row.world);
  }

  // What processes did for others on their host (PXN) is those others': they began it, and wait for it.
  void give_back_foreign(bool is_counted) {
    uint64_t lost = 0;
    for (Foreign& work : foreign_) {
      const auto at = contexts_.find(work.origin);
      // The process that began it left no file, or is not among those given: its work belongs to nobody here.
      if (at == contexts_.end()) {
        lost += work.proxy_ops;
        continue;
      }
      model::JobProcess& process = job_.processes[job_.members[at->second].process];
      for (model::NetPair& pair : work.pairs) {
        pair.member = at->second;
        process.net_pairs.push_back(pair);
      }
      for (model::OpenStep& step : work.open_steps) {
        step.member = at->second;
        process.open_steps.push_back(step);
      }
    }
    foreign_.clear();
    if (lost == 0 || is_counted) return;
    job_.losses.append(
        {.process = kNoRow,
         .stage = job_.strings.intern("gather"),
         .kind = job_.strings.intern(model::kLossForeignParent),
         .count = lost,
         .detail = job_.strings.intern(
             "network operations that a process did for another one on its host (PXN), whose file is not in the run")});
  }

  // Lists are made of the members of a communicator, those that left no file included: as many as of a real
  // job.
  void limit_sizes() {
    int64_t left = model::kMostMembers;
    uint64_t refused = 0;
    for (model::JobComm& comm : job_.comms) {
      if (comm.ranks <= 0) continue;
      if (comm.ranks > left) {
        comm.ranks = -1;
        ++refused;
      } else {
        left -= comm.ranks;
      }
    }
    if (refused == 0) return;
    job_.losses.append({.process = kNoRow,
                        .stage = job_.strings.intern("gather"),
                        .kind = job_.strings.intern("bad_value"),
                        .count = refused,
                        .detail = job_.strings.intern("communicators that claim to be larger than the job")});
  }

  void add_run_losses(const model::Trace& trace) {
    translate_texts(trace.strings);
    for (size_t i = 0; i < trace.losses.size(); ++i) add_loss(kNoRow, trace.losses.row(i));
  }

 private:
  void translate_texts(const model::StringPool& strings) {
    texts_.resize(strings.size());
    for (uint32_t i = 0; i < texts_.size(); ++i) texts_[i] = job_.strings.intern(strings[i]);
  }

  std::vector<uint32_t> join_signatures(std::vector<model::Signature>& signatures) {
    std::vector<uint32_t> numbers;
    for (model::Signature& s : signatures) {
      for (model::StringId* text : {&s.func, &s.datatype, &s.algo, &s.proto}) *text = texts_[*text];
      auto key =
          std::tuple(s.func, s.datatype, s.algo, s.proto, s.root, s.kind, s.channels, s.count, s.bytes);
      auto [at, is_new] = signature_ids_.try_emplace(key, static_cast<uint32_t>(job_.signatures.size()));
      if (is_new) job_.signatures.push_back(s);
      numbers.push_back(at->second);
    }
    return numbers;
  }

  void take_foreign(const std::vector<ProcessPart::Foreign>& foreign, uint32_t members,
                    model::JobProcess& process) {
    const size_t first = foreign_.size();
    for (const ProcessPart::Foreign& one : foreign)
      foreign_.push_back({.origin = {process.row.boot_id, one.pid, one.context},
                          .proxy_ops = one.proxy_ops,
                          .pairs = {},
                          .open_steps = {}});
    const auto is_foreign = [&](uint32_t member) {
      return member != kNoRow && member >= members && member - members < foreign.size();
    };
    // The pairs leave this process. Counted here and there they would double the traffic.
    std::erase_if(process.net_pairs, [&](const model::NetPair& pair) {
      if (is_foreign(pair.member)) foreign_[first + pair.member - members].pairs.push_back(pair);
      return is_foreign(pair.member);
    });
    std::erase_if(process.open_steps, [&](const model::OpenStep& step) {
      if (is_foreign(step.member)) foreign_[first + step.member - members].open_steps.push_back(step);
      return is_foreign(step.member);
    });
  }

  void name(model::JobProcess& process) {
    model::Process& row = process.row;
    for (model::StringId* text :
         {&row.host, &row.host_id, &row.boot_id, &row.launcher, &row.job, &row.argv, &row.visible_devices,
          &row.pci, &row.uuid, &row.gpu_model, &row.nccl_library, &row.nccl_build_id, &row.other_nccl})
      *text = texts_[*text];
    for (model::StringId& place : process.ops.place) place = texts_[place];
    // Hosts that one machine pretends to be share its clock.
    model::StringId host = model::host_of(row);
    auto [at, is_new] =
        host_ids_.try_emplace(std::pair(row.boot_id, host), static_cast<uint32_t>(job_.hosts.size()));
    if (is_new)
      job_.hosts.push_back({.name = host, .boot_id = row.boot_id, .clock = {}, .contradictions = 0});
    process.host = at->second;
  }

  void add_member(uint32_t process, const ProcessPart::Comm& comm, model::Member& member) {
    member.process = process;
    member.comm = comm_row(comm, member.rank);
    uint32_t row = static_cast<uint32_t>(job_.members.size());
    model::JobComm& joined = job_.comms[member.comm];
    joined.ranks = std::max(joined.ranks, comm.ranks);
    joined.nodes = std::max(joined.nodes, comm.nodes);
    if (joined.name == 0) joined.name = texts_[comm.name];
    place(joined, member.rank, row);
    job_.members.push_back(std::move(member));
  }

  // Ranks are hostile: a file may name any.
  void place(model::JobComm& comm, int32_t rank, uint32_t member) {
    if (rank < 0 || rank >= model::kMostRanks || (comm.ranks >= 0 && rank >= comm.ranks)) {
      comm.unranked.push_back(member);
      return;
    }
    size_t at = static_cast<size_t>(rank);
    if (comm.members.size() <= at) {
      // A list is as long as its highest rank, so a single forged one would cost as much as a job.
      if (at + 1 - comm.members.size() > places_left_) return comm.unranked.push_back(member);
      places_left_ -= at + 1 - comm.members.size();
      comm.members.resize(at + 1, kNoRow);
    }
    // Who comes second with a rank does not push out the first.
    (comm.members[at] == kNoRow ? comm.members[at] : comm.unranked.emplace_back()) = member;
  }

  // A process that is one rank of one id twice made the communicator again: its second belongs to the second
  // of others.
  uint32_t comm_row(const ProcessPart::Comm& comm, int32_t rank) {
    auto add = [&] {
      model::JobComm row;
      row.comm_id = comm.comm_id;
      row.name = texts_[comm.name];
      row.declared = comm.declared;
      job_.comms.push_back(std::move(row));
      return static_cast<uint32_t>(job_.comms.size() - 1);
    };
    // A declared group has no id: its name and its ranks stand for it.
    uint64_t id = comm.comm_id;
    if (id == 0 && !(comm.declared && comm.name != 0)) return add();
    CommKey key{id, comm.declared ? texts_[comm.name] : 0, comm.declared ? texts_[comm.members] : 0,
                comm.declared, 0};
    // Counted per rank within one process: several GPUs in one process are several ranks of one communicator,
    // not several of its lives.
    if (rank >= 0) std::get<kGeneration>(key) = earlier_[{key, rank}]++;
    auto at = comm_ids_.find(key);
    if (at == comm_ids_.end()) at = comm_ids_.emplace(key, add()).first;
    return at->second;
  }

  void add_loss(uint32_t process, model::Loss loss) {
    loss.process = process;
    for (model::StringId* text : {&loss.stage, &loss.kind, &loss.detail}) *text = texts_[*text];
    job_.losses.append(loss);
  }

  using Origin = std::tuple<model::StringId, int64_t, uint64_t>;  // boot id, pid, context
  struct Foreign {
    Origin origin;
    uint64_t proxy_ops = 0;
    std::vector<model::NetPair> pairs;
    std::vector<model::OpenStep> open_steps;
  };
  std::map<Origin, uint32_t> contexts_;  // members of the job
  std::vector<Foreign> foreign_;

  using CommKey = std::tuple<uint64_t, model::StringId, model::StringId, bool, uint32_t>;
  static constexpr size_t kGeneration = 4;
  model::Job& job_;
  std::vector<model::StringId> texts_;  // of the part at hand
  std::map<std::tuple<model::StringId, model::StringId, model::StringId, model::StringId, int32_t, uint8_t,
                      uint8_t, uint64_t, uint64_t>,
           uint32_t>
      signature_ids_;
  std::map<std::pair<model::StringId, model::StringId>, uint32_t> host_ids_;
  std::map<CommKey, uint32_t> comm_ids_;
  std::map<std::pair<CommKey, int32_t>, uint32_t> earlier_;  // communicators of the process at hand
  size_t places_left_ = model::kMostMembers;                 // for ranks: 64 MiB over all communicators
};

// Loads on several threads, joins in order.
class Gatherer {
 public:
  Gatherer(model::TraceSource& source, const Options& options, model::Job& job)
      : source_(source), options_(options), join_(job), total_(source.processes()) {}

  void run() {
    for_each_parallel(total_, options_.threads != 0 ? options_.threads : parallel_threads(),
                      [this](size_t i) { load(i); });
  }
  const std::vector<Error>& errors() const { return errors_; }
  Join& join() { return join_; }

 private:
  void load(size_t i) {
    try {
      ProcessPart part;
      Result<void> loaded;
      if (source_.gives_parts()) {
        loaded = source_.load_part(i, part);
      } else {
        model::Trace trace;
        loaded = source_.load(i, trace);
        if (loaded) part = make_part(std::move(trace));
      }
      take_turn(i, loaded, std::move(part));
    } catch (...) {
      // Others wait for this one's turn, which will not come.
      give_up();
      throw;
    }
  }

  void take_turn(size_t i, const Result<void>& loaded, ProcessPart&& part) {
    std::unique_lock lock(mutex_);
    // Waiting bounds the memory too: no thread runs ahead by more than its one part.
    turn_.wait(lock, [&] { return joined_ == i || gave_up_; });
    if (gave_up_) return;
    if (loaded)
      join_.add(std::move(part));
    else
      errors_.push_back(loaded.error());
    ++joined_;
    if (options_.progress) options_.progress(static_cast<double>(joined_) / static_cast<double>(total_));
    turn_.notify_all();
  }

  // Nobody is left waiting for the turn of one that does not come.
  void give_up() {
    const std::lock_guard lock(mutex_);
    gave_up_ = true;
    turn_.notify_all();
  }

  model::TraceSource& source_;
  const Options& options_;
  Join join_;
  size_t total_;
  std::mutex mutex_;
  std::condition_variable turn_;
  size_t joined_ = 0;
  bool gave_up_ = false;
  std::vector<Error> errors_;
};

}  // namespace

Result<model::Job> gather(model::TraceSource& source, const Options& options) {
  model::Job job;
  Gatherer gatherer(source, options, job);
  gatherer.run();
  if (job.processes.empty()) {
    if (!gatherer.errors().empty()) return gatherer.errors().front();
    return Error{ErrorCode::kNotFound, "no process in " + source.name(), {}};
  }
  model::Trace run;
  source.run_losses(run);
  // A merge has looked before.
  const auto kinds = run.losses.all(&model::LossTable::kind);
  gatherer.join().give_back_foreign(std::any_of(kinds.begin(), kinds.end(), [&](model::StringId kind) {
    return run.strings[kind] == model::kLossForeignParent;
  }));
  Join rest(job);
  rest.limit_sizes();
  rest.add_run_losses(run);
  for (const Error& error : gatherer.errors()) {
    job.losses.append({.process = kNoRow,
                       .stage = job.strings.intern("read"),
                       .kind = job.strings.intern("unreadable_process"),
                       .count = 1,
                       .detail = job.strings.intern(error.message())});
  }
  return job;
}

}  // namespace lockstep::job::gather
