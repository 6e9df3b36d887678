// SPDX-License-Identifier: Apache-2.0
// Communicators first, then the processes that name them: who reads between the two finds newer operations
// than the process reports, never older.
#include <algorithm>
#include <map>

#include "base/hex.h"
#include "base/unix_time.h"
#include "store/clickhouse/make_tables.h"
#include "store/clickhouse/now/followed_run.h"
#include "store/clickhouse/now/part_bytes.h"
#include "store/clickhouse/wire/digest.h"
#include "store/fleet_now.h"

namespace lockstep::store {
namespace {

using namespace clickhouse;
using model::FollowedProcess;
using model::ProcessPart;

constexpr size_t kMostNameBytes = 256;

uint64_t bits(int64_t value) { return static_cast<uint64_t>(value); }

// From what a process is, not from when it was seen: a follower that is started again goes on with the same
// rows.
uint64_t number_of(const ProcessPart& part) {
  const model::Process& row = part.process.row;
  Digest digest;
  digest.add(part.strings[row.host])
      .add(part.strings[row.boot_id])
      .add(bits(row.pid))
      .add(bits(row.start_ns));
  return digest.value();
}

// A row stays in its partition, however long the job runs.
uint16_t day_of(const ProcessPart& part) {
  constexpr int64_t kDayNs = 86'400'000'000'000;
  return static_cast<uint16_t>(std::clamp<int64_t>(part.process.row.start_ns / kDayNs, 0, UINT16_MAX));
}

// What people ask of a communicator's newest operation.
struct NewestOp {
  uint64_t called = 0;
  int64_t since_ns = 0;
  uint32_t op = model::kNoRow;
  int32_t peer = -1;
  std::string_view state = "never called";
};

NewestOp newest_op(const ProcessPart& part, const model::Member& member) {
  const model::JobOps& ops = part.process.ops;
  NewestOp newest;
  const auto look = [&](uint32_t first, uint32_t count, int32_t peer) {
    if (count == 0) return;
    const uint32_t op = first + count - 1;
    newest.called += uint64_t{ops.index[op]} + 1;
    // Of the collectives and of each lane the last one: whichever was called last is the newest of all.
    if (newest.op != model::kNoRow && ops.entered_ns(op) <= ops.entered_ns(newest.op)) return;
    newest.op = op;
    newest.peer = peer;
  };
  look(member.first, member.ops, -1);
  for (const model::Lane& lane : member.lanes) look(lane.first, lane.ops, lane.peer);
  if (newest.op == model::kNoRow) return newest;
  const bool ended = ops.gpu_end_ns[newest.op] != 0, begun = ops.gpu_start_ns[newest.op] != 0;
  newest.state = ended ? "finished" : begun ? "running" : "called";
  newest.since_ns = ended   ? ops.gpu_end_ns[newest.op]
                    : begun ? ops.gpu_start_ns[newest.op]
                            : ops.entered_ns(newest.op);
  return newest;
}

class Writer : public NowWriter {
 public:
  Writer(Client client, std::string database, const std::string& run)
      : client_(std::move(client)),
        database_(std::move(database)),
        name_(run),
        run_(followed_run_number(run)) {}

  Result<void> write(const std::vector<FollowedProcess>& processes) override {
    // Above all earlier ones, also where this host's clock was set back.
    version_ = std::max(version_ + 1, static_cast<uint64_t>(unix_now_ns() / 1'000'000));
    std::map<std::pair<uint64_t, uint32_t>, uint64_t> digests;
    Blocks comms, rows;
    for (const FollowedProcess& process : processes) {
      add_comms(*process.part, comms, digests);
      add_process(process, rows);
    }
    LOCKSTEP_TRY(send(TableId::kNow, comms));
    // What did not arrive is sent again.
    for (const auto& [key, digest] : digests) digests_[key] = digest;
    return send(TableId::kNowProcesses, rows);
  }
  uint64_t sent_bytes() const override { return sent_bytes_; }

 private:
  using Blocks = std::map<uint16_t, BlockWriter>;  // by day: each insert is of one partition
  static BlockWriter& block(Blocks& blocks, TableId id, uint16_t day) {
    return blocks.try_emplace(day, table(id).columns).first->second;
  }

  void add_comms(const ProcessPart& part, Blocks& blocks,
                 std::map<std::pair<uint64_t, uint32_t>, uint64_t>& digests) {
    const model::Process& row = part.process.row;
    const uint64_t process = number_of(part);
    for (uint32_t i = 0; i < part.members.size(); ++i) {
      const std::string newest = pack_member(part, i);
      const uint64_t digest = Digest().add(newest).value();
      // Most communicators stand still between two looks: what did not change costs the store nothing.
      if (const auto sent = digests_.find({process, i}); sent != digests_.end() && sent->second == digest)
        continue;
      digests[{process, i}] = digest;
      const NewestOp op = newest_op(part, part.members[i]);
      const ProcessPart::Comm& comm = part.comms[i];
      BlockWriter& to = block(blocks, TableId::kNow, day_of(part));
      // Values go in the order of the table's columns (kNowColumns in tables.cc), whose types are checked.
      to.number(day_of(part)).number(run_).number(process).number(i);
      to.text(comm.comm_id == 0 ? std::string() : hex(comm.comm_id)).text(name_of(part, comm.name));
      to.number(bits(part.members[i].rank)).number(bits(comm.ranks));
      to.text(name_of(part, row.host)).number(bits(row.pid)).number(bits(row.rank)).number(op.called);
      add_op(part, op, to);
      to.text(op.state).number(bits(op.since_ns)).text(newest);
    }
  }

  static void add_op(const ProcessPart& part, const NewestOp& newest, BlockWriter& to) {
    if (newest.op == model::kNoRow) {
      to.number(bits(-1)).number(bits(-1)).text("").text("").number(0);
      return;
    }
    const model::JobOps& ops = part.process.ops;
    const model::Signature& signature = part.signatures[ops.signature[newest.op]];
    to.number(ops.index[newest.op]).number(bits(newest.peer));
    to.text(name_of(part, signature.func)).text(name_of(part, signature.datatype)).number(signature.count);
  }

  void add_process(const FollowedProcess& process, Blocks& blocks) const {
    const ProcessPart& part = *process.part;
    const model::Process& row = part.process.row;
    BlockWriter& to = block(blocks, TableId::kNowProcesses, day_of(part));
    to.number(day_of(part)).number(run_).number(number_of(part)).text(name_);
    to.text(name_of(part, row.host)).number(bits(row.pid)).number(bits(row.rank)).number(bits(row.world));
    to.text(followed_life(process.liveness, process.beats)).number(process.closed);
    to.number(bits(process.heartbeat_ns)).number(bits(process.seen_ns)).text(pack_process(part));
  }

  static std::string_view name_of(const ProcessPart& part, model::StringId text) {
    return part.strings[text].substr(0, kMostNameBytes);
  }

  Result<void> send(TableId id, const Blocks& blocks) {
    for (const auto& [day, rows] : blocks) {
      const std::string body = rows.encode(version_);
      LOCKSTEP_ASSIGN(const uint64_t bytes, client_.insert(insert_sql(database_, table(id)), body));
      sent_bytes_ += bytes;
    }
    return {};
  }

  Client client_;
  const std::string database_, name_;
  const uint64_t run_;
  uint64_t version_ = 0, sent_bytes_ = 0;
  std::map<std::pair<uint64_t, uint32_t>, uint64_t>
      digests_;  // of what was sent, by process and communicator
};

}  // namespace

Result<std::unique_ptr<NowWriter>> NowWriter::open(const FleetTarget& target, const std::string& run) {
  LOCKSTEP_TRY(check_target(target));
  LOCKSTEP_ASSIGN(Address address, parse_address(target.url));
  if (!target.key.empty()) address.key = target.key;
  LOCKSTEP_ASSIGN(Client client, Client::open(address, {.patience = target.patience, .compresses = true}));
  LOCKSTEP_TRY(make_tables(client, address.database, TableId::kNow, TableId::kNowProcesses));
  return std::unique_ptr<NowWriter>(std::make_unique<Writer>(std::move(client), address.database, run));
}

}  // namespace lockstep::store
