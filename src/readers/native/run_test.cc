// SPDX-License-Identifier: Apache-2.0
// Many files as one run: what is accepted, grouping, order, clocks and device numbers.
#include <unistd.h>

#include <map>
#include <thread>

#include "model/testing/values.h"
#include "readers/native/test_run.h"
#include "segment/process_stat.h"

namespace lockstep::readers::native {
namespace {

namespace fs = std::filesystem;

void set_pid(FileBuilder& file, int32_t pid, int32_t rank, uint64_t start_ticks = 5000) {
  file.header().pid = pid;
  file.header().rank = file.header().local_rank = rank;
  file.header().start_ticks = start_ticks;
}
model::Trace run_losses(model::TraceSource& source) {
  model::Trace trace;
  source.run_losses(trace);
  return trace;
}
model::Trace load(model::TraceSource& source, size_t i) {
  model::Trace trace;
  auto loaded = source.load(i, trace);
  EXPECT_TRUE(loaded) << loaded.error().message();
  return trace;
}
std::string text(const model::Trace& trace, model::StringId id) { return std::string(trace.strings[id]); }

TEST(Run, ADirectoryWithNodesInItOrderedByRank) {
  std::string dir = test_dir();
  fs::create_directories(dir + "/node0/too/deep");
  for (int32_t rank : {2, 0, 1}) {
    FileBuilder file;
    set_pid(file, 1000 - rank, rank);
    file.write(dir + (rank == 1 ? "/node0/" : "/") + std::to_string(rank) + ".lks");
    if (rank == 2) file.write(dir + "/node0/too/deep/x.lks");  // not looked at
  }
  std::ofstream(dir + "/manifest.json") << "{}";
  auto source = open({dir});
  ASSERT_TRUE(source) << source.error().message();
  ASSERT_EQ((*source)->processes(), 3u);
  for (size_t i = 0; i < 3; ++i) EXPECT_EQ(load(**source, i).processes.rank[0], static_cast<int32_t>(i));
  EXPECT_EQ(run_losses(**source).losses.size(), 0u);
}

TEST(Run, AFileThatItsProcessIsJustMakingIsNoLoss) {
  const std::string dir = test_dir();
  segment::ProcessStat self;
  ASSERT_TRUE(segment::read_process_stat("/proc/self/stat", &self));
  const std::string living = "/a.host." + std::to_string(getpid()) + "." + std::to_string(self.start_ticks);
  const std::vector<std::byte> zeros(format::kHeaderBytes);
  write_bytes(dir + living + ".nccl.lks", {});
  write_bytes(dir + living + ".api.lks", zeros);
  write_bytes(dir + living + ".nccl.1.lks", zeros);
  auto nothing = open({dir});
  ASSERT_FALSE(nothing);
  EXPECT_NE(nothing.error().text.find("just starting"), std::string::npos) << nothing.error().text;
  FileBuilder file;
  file.write(dir + "/0.lks");
  auto source = open({dir});
  ASSERT_TRUE(source) << source.error().message();
  EXPECT_EQ(run_losses(**source).losses.size(), 0u);
  // Of one that has ended, or is not known, nothing comes any more.
  for (const char* other : {"/h", "/h.1.0.nccl", "/h..5.nccl"}) write_bytes(dir + other + ".lks", zeros);
  auto damaged = open({dir});
  ASSERT_TRUE(damaged);
  EXPECT_EQ(run_losses(**damaged).losses.size(), 3u);
}

TEST(Run, FilesOfOneProcessAreOneProcess) {
  std::string dir = test_dir();
  FileBuilder nccl, api, other;
  uint32_t comm = nccl.comm(7, 0, 2, "world");
  FileBuilder::Log& caller = nccl.log(100, "python");
  FileBuilder::Log& progress = nccl.log(101);
  add_allreduce(caller, progress, comm, 5000);
  api.header().source = format::Source::kApi;
  api.header().rank = -1;  // only one library saw the launcher
  api.header().state = static_cast<uint32_t>(format::FileState::kClosed);
  format::CommDef group{};
  group.rank = 1;
  uint32_t declared = api.comm(group);
  format::GroupRanksDef ranks{};
  ranks.n = 3;
  ranks.ranks[0] = 4;
  ranks.ranks[1] = 6;
  ranks.ranks[2] = 9;
  api.define(format::Def::kGroupRanks, declared, ranks);
  ranks.n = 1;
  ranks.ranks[0] = 11;
  api.define(format::Def::kGroupRanks, declared, ranks);
  FileBuilder::Log& log = api.log(100, "python");
  log.add(Kind::kApiOp,
          format::ApiOpRecord{head(9000, 9), 5, 5, 0, 0, 0, 0, declared, log.shape("x"), 0, -1, 0});
  set_pid(other, 100, 1, 5001);  // the same pid, later: another process
  nccl.write(dir + "/h.100.5000.nccl.lks");
  api.write(dir + "/h.100.5000.api.lks");
  other.write(dir + "/h.100.5001.nccl.lks");
  auto source = open({dir, dir + "/h.100.5000.api.lks"});  // one of them named twice
  ASSERT_TRUE(source);
  ASSERT_EQ((*source)->processes(), 2u);
  model::Trace trace = load(**source, 0);
  EXPECT_EQ(trace.processes.size(), 1u);
  EXPECT_EQ(trace.processes.rank[0], 0);
  EXPECT_EQ(trace.processes.closed[0], 0);
  ASSERT_EQ(trace.tasks.size(), 2u);
  ASSERT_EQ(trace.comms.size(), 2u);
  bool api_first = text(trace, trace.comms.name[0]).empty();
  EXPECT_EQ(text(trace, trace.comms.members[api_first ? 0 : 1]), "4,6,9,11");
  EXPECT_EQ(trace.comms.comm_id[trace.calls.comm[0]], 7u);  // comm numbers are per file
  EXPECT_EQ(trace.threads.size(), 2u);                      // the caller is one thread in both files
  EXPECT_EQ(trace.processes.first_ns[0], at(5000));
  EXPECT_EQ(trace.processes.last_ns[0], at(9009));
}

TEST(Run, ProcessesOfAHostShareOneOffsetWhateverTheWallClockDid) {
  std::string dir = test_dir();
  FileBuilder a, b, elsewhere;
  a.log(1).add(Kind::kMark, format::MarkRecord{head(50'000), 0, 0, 1, 0});
  b.log(1).add(Kind::kMark, format::MarkRecord{head(50'000), 0, 0, 1, 0});
  set_pid(b, 200, 1);
  b.header().first_anchor = {40'000, 40'000, 40'000, FileBuilder::kEpochNs + 1'000'000'000,
                             1,      0};  // stepped by a second
  set_pid(elsewhere, 300, 2);
  elsewhere.header().boot_id[0] = 0xb1;
  elsewhere.header().first_anchor.realtime_ns += 77;
  elsewhere.log(1).add(Kind::kMark, format::MarkRecord{head(50'000), 0, 0, 1, 0});
  a.write(dir + "/a.lks");
  b.write(dir + "/b.lks");
  elsewhere.write(dir + "/c.lks");
  auto source = open({dir});
  ASSERT_TRUE(source);
  EXPECT_EQ(load(**source, 0).marks.time_ns[0], at(50'000));
  EXPECT_EQ(load(**source, 1).marks.time_ns[0], at(50'000));
  EXPECT_EQ(load(**source, 2).marks.time_ns[0], at(50'077));
}

TEST(Run, DeviceNumbersAreDistinctOverTheRun) {
  std::string dir = test_dir();
  auto with_device = [&](int32_t pid, int32_t rank, unsigned char uuid, const char* pci, int32_t ordinal,
                         const char* name) {
    FileBuilder file;
    set_pid(file, pid, rank);
    format::CommDef def{};
    def.device = ordinal;
    def.uuid[15] = uuid;
    std::strncpy(def.pci, pci, sizeof def.pci - 1);
    file.comm(def);
    file.write(dir + "/" + name);
  };
  with_device(1, 0, 0xaa, "0000:1b:00.0", 0, "0.lks");  // every rank sees its GPU as device 0
  with_device(2, 1, 0xbb, "0000:2b:00.0", 0, "1.lks");
  with_device(3, 2, 0xaa, "0000:1b:00.0", 1, "2.lks");  // shares the first one
  with_device(4, 3, 0, "0000:3b:00.0", 0, "3.lks");
  with_device(5, 4, 0, "", -1, "4.lks");
  with_device(6, -1, 0, "", -1, "5.lks");
  auto source = open({dir});
  ASSERT_TRUE(source);
  std::vector<int32_t> gpus;
  for (size_t i : {5, 0, 1, 2, 3, 4}) {  // in any order of loading
    model::Trace trace = load(**source, i);
    EXPECT_EQ(trace.comms.gpu[0], trace.processes.gpu[0]);
    gpus.push_back(trace.processes.gpu[0]);
  }
  // Processes: the one of unknown rank, then ranks 0..4. Ranks 0 and 2 share a device; those without an
  // address come last.
  EXPECT_EQ(gpus, (std::vector<int32_t>{4, 3, 0, 1, 0, 2}));
}

// Four ranks, in pairs: NCCL's communicators have ids alone, the program declares its groups.
TEST(Run, DeclaredGroupsNameCommunicatorsWithTheirMembers) {
  const std::string dir = test_dir();
  for (int32_t rank = 0; rank < 4; ++rank) {
    FileBuilder nccl, api;
    set_pid(nccl, 1000 + rank, rank);
    set_pid(api, 1000 + rank, rank);
    const uint64_t pair = 20 + static_cast<uint64_t>(rank) / 2;
    const uint32_t comms[] = {nccl.comm(10, rank, 4), nccl.comm(pair, rank % 2, 2), nccl.comm(30, rank, 4)};
    FileBuilder::Log& caller = nccl.log(100, "python");
    for (const uint32_t comm : comms)
      if (comm != comms[1] || rank < 2) add_allreduce(caller, caller, comm, 1000 + 5000 * comm);
    format::CommDef world{}, tensor{};
    world.rank = rank, world.ranks = 4, world.comm_id = 1;
    tensor.rank = rank % 2, tensor.ranks = 2, tensor.comm_id = pair + 100;
    std::strcpy(world.name, "default_pg:0");
    std::strcpy(tensor.name, "mesh_tp:1");
    format::GroupRanksDef all{{}, 0, 4, {0, 1, 2, 3}}, two{{}, 0, 2, {rank / 2 * 2, rank / 2 * 2 + 1}};
    const uint32_t groups[] = {api.comm(world), api.comm(tensor)};
    api.define(format::Def::kGroupRanks, groups[0], all);
    api.define(format::Def::kGroupRanks, groups[1], two);
    nccl.write(dir + "/" + std::to_string(rank) + ".nccl.lks");
    api.write(dir + "/" + std::to_string(rank) + ".api.lks");
  }
  auto source = open({dir});
  ASSERT_TRUE(source) << source.error().message();
  ASSERT_EQ((*source)->processes(), 4u);
  for (size_t i = 0; i < 4; ++i) {
    const model::Trace trace = load(**source, i);
    std::map<uint64_t, std::string> names;
    for (uint32_t comm = 0; comm < trace.comms.size(); ++comm)
      if (trace.comms.api_version[comm] != 0)
        names[trace.comms.comm_id[comm]] = text(trace, trace.comms.name[comm]);
    // Two communicators span all ranks: neither is said to be the group's. A pair has a collective, or none.
    const std::map<uint64_t, std::string> expected = {
        {10, ""}, {20 + i / 2, i < 2 ? "mesh_tp:1" : ""}, {30, ""}};
    EXPECT_EQ(names, expected) << "rank " << i;
  }
}

TEST(Run, AProcessThatCommunicatesWithNobodyTakesNoRanksDeviceNumber) {
  std::string dir = test_dir();
  FileBuilder launcher;
  set_pid(launcher, 1, -1);
  launcher.write(dir + "/launcher.lks");
  for (int32_t rank = 0; rank < 2; ++rank) {
    FileBuilder file;
    set_pid(file, 2 + rank, rank);
    file.comm(7, rank, 2, "world");
    file.write(dir + "/" + std::to_string(rank) + ".lks");
  }
  auto source = open({dir});
  ASSERT_TRUE(source);
  std::map<int32_t, int32_t> gpus;  // by rank
  for (size_t i = 0; i < 3; ++i) {
    model::Trace trace = load(**source, i);
    gpus[trace.processes.rank[0]] = trace.processes.gpu[0];
  }
  EXPECT_EQ(gpus, (std::map<int32_t, int32_t>{{-1, 8}, {0, 0}, {1, 1}}));
}

TEST(Run, NotesTellTheModelOfTheGpu) {
  std::string dir = test_dir();
  FileBuilder file;
  set_pid(file, 1, 0);
  for (auto [key, value] :
       {std::pair("of_a_newer_version", "x"), std::pair(format::kNoteGpuModel, "NVIDIA H200"),
        std::pair(format::kNoteGpuModel, "of another card")}) {
    format::NoteDef note{};
    std::strncpy(note.key, key, sizeof note.key - 1);
    std::strncpy(note.value, value, sizeof note.value - 1);
    file.define(format::Def::kNote, 0, note);
  }
  file.write(dir + "/0.lks");
  auto source = open({dir});
  ASSERT_TRUE(source) << source.error().message();
  model::Trace trace = load(**source, 0);
  EXPECT_EQ(trace.strings[trace.processes.gpu_model[0]], "NVIDIA H200");
}

TEST(Run, NotesTellWhichNcclIsMapped) {
  std::string dir = test_dir();
  FileBuilder file;
  set_pid(file, 1, 0);
  for (auto [key, value] : {std::pair(format::kNoteNcclLibrary, "00ff 22809 /a folder/libnccl.so.2"),
                            std::pair(format::kNoteOtherNccl, "- 0 /other/libnccl.so.2"),
                            std::pair(format::kNoteOtherNccl, "aa11 0 /third/libnccl.so.2"),
                            std::pair(format::kNoteOtherNccl, "torn")}) {
    format::NoteDef note{};
    std::strncpy(note.key, key, sizeof note.key - 1);
    std::strncpy(note.value, value, sizeof note.value - 1);
    file.define(format::Def::kNote, 0, note);
  }
  file.write(dir + "/0.lks");
  auto source = open({dir});
  ASSERT_TRUE(source) << source.error().message();
  model::Trace trace = load(**source, 0);
  EXPECT_EQ(trace.strings[trace.processes.nccl_library[0]], "/a folder/libnccl.so.2");
  EXPECT_EQ(trace.strings[trace.processes.nccl_build_id[0]], "00ff");
  EXPECT_EQ(trace.strings[trace.processes.other_nccl[0]], "- /other/libnccl.so.2\naa11 /third/libnccl.so.2");
}

TEST(Run, TellsWhatWasRecordedWhen) {
  std::string dir = test_dir();
  FileBuilder file;
  set_pid(file, 1, 0);
  file.header().mode = format::Mode::kLite;
  auto add = [&](uint32_t mode, uint32_t keep, uint32_t of, uint64_t ticks) {
    format::ModeDef def{};
    def.mode = mode;
    def.keep = keep;
    def.of = of;
    file.define(format::Def::kMode, 0, def, ticks);
  };
  add(1, 0, 0, 0);
  add(4, 1, 100, 2'000'000'000);
  add(77, 0, 0, 3'000'000'000);  // of a newer version
  add(1, 0, 0, 4'000'000'000);
  file.write(dir + "/0.lks");
  auto source = open({dir});
  ASSERT_TRUE(source) << source.error().message();
  model::Trace trace = load(**source, 0);
  EXPECT_EQ(trace.strings[trace.processes.modes[0]],
            "lite 1700000000000000000, sample=1/100 1700000002000000000, lite 1700000004000000000");
  EXPECT_EQ(trace.processes.mode[0], static_cast<uint8_t>(format::Mode::kSample));
}

// `modes` as definitions of one file; `second` in the header of another of the same process.
format::Mode mode_of(const std::vector<format::Mode>& modes, format::Mode second) {
  const std::string dir = test_dir();
  FileBuilder file, other;
  set_pid(file, 1, 0);
  set_pid(other, 1, 0);
  file.header().mode = format::Mode::kOff;
  other.header().mode = second;
  for (const format::Mode mode : modes) {
    format::ModeDef def{};
    def.mode = static_cast<uint32_t>(mode);
    def.keep = def.of = mode == format::Mode::kSample ? 1 : 0;
    file.define(format::Def::kMode, 0, def, 0);
  }
  file.write(dir + "/0.lks");
  other.write(dir + "/1.lks");
  auto source = open({dir});
  EXPECT_TRUE(source) << source.error().message();
  if (!source) return format::Mode::kOff;
  EXPECT_EQ((*source)->processes(), 1u);
  return static_cast<format::Mode>(load(**source, 0).processes.mode[0]);
}

TEST(Run, OfSeveralModesTheOneThatRecordsMostCounts) {
  using format::Mode;
  EXPECT_EQ(mode_of({Mode::kDefault, Mode::kDeep, Mode::kSample}, Mode::kOff), Mode::kDeep);
  EXPECT_EQ(mode_of({Mode::kDefault, Mode::kSample, Mode::kDefault}, Mode::kOff), Mode::kSample);
  EXPECT_EQ(mode_of({Mode::kSample}, Mode::kDeep), Mode::kDeep);
  EXPECT_EQ(mode_of({Mode::kDeep}, Mode::kSample), Mode::kDeep);
  EXPECT_EQ(mode_of({Mode::kDefault}, Mode::kSample), Mode::kSample);
}

TEST(Run, LoadsOnSeveralThreadsAtOnce) {
  std::string dir = test_dir();
  for (int32_t rank = 0; rank < 8; ++rank) {
    FileBuilder file;
    set_pid(file, 1000 + rank, rank);
    uint32_t comm = file.comm(7, rank, 8, "world");
    FileBuilder::Log& caller = file.log(100, "python");
    FileBuilder::Log& progress = file.log(101);
    for (uint64_t i = 0; i < 50; ++i) add_allreduce(caller, progress, comm, 5000 + i * 5000);
    file.write(dir + "/" + std::to_string(rank) + ".lks");
  }
  auto source = open({dir});
  ASSERT_TRUE(source) << source.error().message();
  std::vector<std::thread> threads;
  for (size_t first = 0; first < 4; ++first) {
    threads.emplace_back([&, first] {
      for (size_t i = first; i < 8; i += 4) {
        model::Trace trace = load(**source, i);
        EXPECT_EQ(trace.processes.rank[0], static_cast<int32_t>(i));
        EXPECT_EQ(trace.processes.gpu[0], static_cast<int32_t>(i));
        EXPECT_EQ(trace.tasks.size(), 50u);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
}

TEST(Run, OneProcessOnSeveralDevices) {
  FileBuilder file;
  for (int32_t device : {0, 1, -1, 1}) {
    format::CommDef def{};
    def.device = device;
    file.comm(def);
  }
  model::Trace trace = load_one(file);
  EXPECT_EQ(model::testing::values(trace.comms, &model::CommTable::gpu), (std::vector<int32_t>{0, 1, 0, 1}));
  EXPECT_EQ(trace.processes.device[0], 0);
}

TEST(Run, ABadFileAmongGoodOnesIsALossOfTheRun) {
  std::string dir = test_dir();
  FileBuilder().write(dir + "/good.lks");
  std::ofstream(dir + "/empty.lks").flush();
  std::ofstream(dir + "/text.lks") << "hello";
  std::ofstream(dir + "/notes.txt") << "not asked for";
  auto source = open({dir});
  ASSERT_TRUE(source);
  EXPECT_EQ((*source)->processes(), 1u);
  model::Trace lost = run_losses(**source);
  EXPECT_EQ(loss(lost, "unreadable_file"), 2u) << losses_text(lost);
  EXPECT_EQ(lost.losses.process[0], model::kNoRow);
  EXPECT_NE(losses_text(lost).find("empty.lks: the file is empty"), std::string::npos) << losses_text(lost);

  auto mixed = open({dir + "/good.lks", dir + "/notes.txt", dir + "/absent.lks"});
  ASSERT_TRUE(mixed);
  EXPECT_EQ(loss(run_losses(**mixed), "unreadable_file"), 2u);
}

TEST(Run, TheOnlyFileBeingBadIsAnError) {
  std::string dir = test_dir();
  auto error = [&](auto change, size_t keep = SIZE_MAX) {
    FileBuilder file;
    change(file.header());
    std::vector<std::byte> bytes = file.bytes();
    write_bytes(dir + "/x.lks", std::span(bytes).first(std::min(keep, bytes.size())));
    auto source = open({dir + "/x.lks"});
    EXPECT_FALSE(source);
    return source ? "" : source.error().message();
  };
  auto nothing = [](format::FileHeader&) {};
  auto has = [](const std::string& message, const char* part) {
    return message.find(part) != std::string::npos;
  };
  EXPECT_TRUE(has(error([](auto& h) { h.magic[0] = 0; }), "not a Lockstep process file"));
  EXPECT_TRUE(has(error([](auto& h) { h.major = 9; }), "format 9 by a newer Lockstep"));
  EXPECT_TRUE(has(error([](auto& h) { h.state = 0; }), "never finished"));
  EXPECT_TRUE(has(error([](auto& h) { h.chunk_bytes = 0; }), "header is damaged"));
  EXPECT_TRUE(has(error([](auto& h) { h.major = 0; }), "header is damaged"));
  EXPECT_TRUE(has(error(nothing, 0), "empty"));
  EXPECT_TRUE(has(error(nothing, 4), "not a Lockstep process file"));
  EXPECT_TRUE(has(error(nothing, 100), "cut inside its header"));
  EXPECT_TRUE(has(error([](auto& h) {
                    h.minor = 99;
                    h.magic[0] = 1;
                  }),
                  ".lks magic"));
}

TEST(Run, NothingToReadSaysHowToCapture) {
  std::string dir = test_dir();
  EXPECT_NE(open({}).error().message().find("lockstep trace"), std::string::npos);
  EXPECT_NE(open({dir}).error().message().find("lockstep trace"), std::string::npos);
  std::ofstream(dir + "/notes.txt") << "x";
  EXPECT_NE(open({dir + "/notes.txt"}).error().message().find("known format"), std::string::npos);
  EXPECT_EQ(open({dir + "/absent.lks"}).error().code, ErrorCode::kNotFound);
}

TEST(Run, AFileThatVanishesAfterOpenIsAnErrorOfItsProcess) {
  std::string path = test_dir() + "/p.lks";
  FileBuilder().write(path);
  auto source = open({path});
  ASSERT_TRUE(source);
  fs::remove(path);
  model::Trace trace;
  EXPECT_FALSE((*source)->load(0, trace));
}

TEST(Run, TextFieldsAreCutAndValid) {
  FileBuilder file;
  std::memset(file.header().host, 'h', sizeof file.header().host);  // no NUL
  std::memcpy(file.header().job_id, "job\xff", 5);
  std::memcpy(file.header().argv, "python\0train.py\0", 16);
  file.header().argv_bytes = 0xffffffff;
  model::Trace trace = load_one(file);
  EXPECT_EQ(text(trace, trace.processes.host[0]), std::string(128, 'h'));
  EXPECT_EQ(text(trace, trace.processes.job[0]), "job?");
  EXPECT_EQ(text(trace, trace.processes.argv[0]), "python train.py");
}

TEST(Registry, FormatsHaveNamesAndSniffTheirFiles) {
  std::string path = test_dir() + "/p.lks";
  FileBuilder().write(path);
  auto format = detect(path);
  ASSERT_TRUE(format);
  ASSERT_NE(*format, nullptr);
  EXPECT_EQ((*format)->name, "native");
  for (const Format* known : all()) {
    EXPECT_FALSE(known->summary.empty());
    EXPECT_FALSE(known->sniff({}));
  }
}

}  // namespace
}  // namespace lockstep::readers::native
