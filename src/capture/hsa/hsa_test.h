// SPDX-License-Identifier: Apache-2.0
// What the tests of this folder share: a child process with a runtime of AMD's in it (sim/hsa) that loads the
// built library as HSA_TOOLS_LIB names it, and what the library left, byte by byte.
#pragma once
#include <fcntl.h>
#include <sys/mman.h>

#include <functional>
#include <map>
#include <set>

#include "sim/hsa/fake_hsa.h"
#include "tests/support/child.h"
#include "tests/support/lks_file.h"
#include "tests/support/places.h"

namespace lockstep::test {

using capture::hsa::Packet;
using sim::FakeHsa;
using sim::FakeHsaOptions;

inline constexpr uint64_t kCompute = 0x7000, kReduce = 0x7040, kLate = 0x7080, kOneRank = 0x70c0;
inline std::vector<sim::FakeSymbol> kernels_of_tests() {
  return {{"_Z7computePf.kd", kCompute},
          {"ncclDevKernel_Generic_1.kd", kReduce},
          {"_Z13oneRankReduceI7FuncSumIfEEvPvS2_m.kd", kOneRank},
          {"a_variable", 0}};
}

// Counters by their number, as the file's newest definition has them.
class HsaFile : public LksFile {
 public:
  using LksFile::LksFile;
  std::map<std::string, uint64_t> counters() const {
    const auto defs = all<format::HsaCountersDef>(format::Def::kHsaCounters);
    std::map<std::string, uint64_t> named;
    if (defs.empty()) return named;
#define COUNTER(index, name, label, text) named[label] = defs.back().counts[index];
#include "format/hsa_counters.def"
#undef COUNTER
    return named;
  }
  std::string symbol(uint32_t number) const {
    for (const Entry& entry : definitions(format::Def::kKernelSymbol)) {
      if (entry.def().id == number) return entry.bytes + offsetof(format::NameDef, name);
    }
    return {};
  }
  std::string note(const std::string& key) const {
    std::string found;
    for (const auto& note : all<format::NoteDef>(format::Def::kNote)) {
      if (note.key == key) found = note.value;
    }
    return found;
  }
  // Dispatches that have times; those of which nothing more is known.
  std::vector<format::DispatchRecord> finished() const { return dispatches(true); }
  std::vector<format::DispatchRecord> open() const { return dispatches(false); }
  // packets = injected + what was dropped; injected = recorded + what went wrong behind that.
  void expect_sums() const {
    std::map<std::string, uint64_t> c = counters();
    ASSERT_FALSE(c.empty());
    EXPECT_EQ(c["packets"], c["signals injected"] + c["drop (shutdown)"] + c["drop (not kernel)"] +
                                c["drop (batch skip)"] + c["drop (no qi)"] + c["drop (sig pool)"] +
                                c["drop (observed)"] + c["drop (mode)"] + c["drop (no room)"]);
    EXPECT_EQ(c["signals injected"], c["recorded OK"] + c["drop (ts fail)"] + c["drop (ts invalid)"] +
                                         c["unwritten"] + c["unfinished"]);
    uint64_t good = 0;
    for (const auto& times : all<format::GpuTimesRecord>(format::Kind::kGpuTimes))
      good += times.problem == format::TimesProblem::kNone && times.clock == format::TimesClock::kAgent;
    EXPECT_EQ(c["recorded OK"], good);
  }

 private:
  std::vector<format::DispatchRecord> dispatches(bool timed) const {
    std::set<uint64_t> ended;
    for (const auto& times : all<format::GpuTimesRecord>(format::Kind::kGpuTimes)) ended.insert(times.target);
    std::vector<format::DispatchRecord> found;
    for (const Entry& entry : records(format::Kind::kDispatch)) {
      const auto record = entry.as<format::DispatchRecord>();
      const bool is_open = !ended.contains(entry.handle()) && (record.head.flags & format::kFlagUntimed) == 0;
      if (timed ? ended.contains(entry.handle()) : is_open) found.push_back(record);
    }
    return found;
  }
};

// A run of one process, and the file that it left.
class OneFileTest : public ::testing::Test {
 protected:
  HsaFile file() const {
    const auto files = run_.files();
    EXPECT_EQ(files.size(), 1u);
    HsaFile file(files.empty() ? "" : files[0]);
    EXPECT_TRUE(file.problems().empty()) << file.problems().front();
    return file;
  }
  RunDirectory run_;
};

class HsaTest : public OneFileTest {
 protected:
  Environment environment(const std::string& mode = "default") const {
    return {{"HSA_TOOLS_LIB", LOCKSTEP_LIB_DIR "/liblockstep-hsa.so"},
            {"LOCKSTEP_DIR", run_.path()},
            {"LOCKSTEP_MODE", mode}};
  }
  // A program that starts the runtime, works with it, and ends as HIP's do: without shutting it down. Its
  // files may have as many bytes as `most`.
  template <class Work>
  Exit run(const FakeHsaOptions& options, Work work, Environment environment, rlim_t most = RLIM_INFINITY) {
    return run_child(environment, [&] {
      const rlimit limit{most, most};
      if (most != RLIM_INFINITY) {
        EXPECT_EQ(setrlimit(RLIMIT_FSIZE, &limit), 0);
      }
      FakeHsa& hsa = FakeHsa::get();
      hsa.init(options);
      work(hsa);
    });
  }
  template <class Work>
  Exit run(const FakeHsaOptions& options, Work work) {
    return run(options, std::move(work), environment());
  }
};

}  // namespace lockstep::test
