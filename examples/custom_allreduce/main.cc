// SPDX-License-Identifier: Apache-2.0
// N processes on one machine with collectives of their own on shared memory, told to Lockstep through
// lockstep.h. Alone it checks its sums; under `lockstep trace` each rank is also recorded. It forks its ranks
// itself, unless torchrun, mpirun or srun have started several of it: then each is one rank of theirs.
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string_view>
#include <vector>

#include "job.h"

using namespace custom_allreduce;

namespace {

constexpr int kWrongSum = 3;  // a rank's exit status; this program's is 1

constexpr const char* kUsage =
    "usage: lockstep-custom-allreduce [options]\n"
    "  --ranks N        processes (4); under torchrun, mpirun and srun as many as they start\n"
    "  --steps N        training steps (5)\n"
    "  --iterations N   of each collective, per step and size (3)\n"
    "  --min-bytes N    smallest message (1024)\n"
    "  --max-bytes N    largest message (1048576)\n"
    "  --slow-rank R    this rank comes late to every operation,\n"
    "  --slow-us N      by so many microseconds (500)\n";

template <class Number>
bool parse(std::string_view text, Number low, Number high, Number* out) {
  Number value{};
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size() || value < low || value > high) return false;
  *out = value;
  return true;
}

bool parse_option(std::string_view name, std::string_view value, Options* options) {
  constexpr size_t kMostBytes = size_t{1} << 30;
  if (name == "--ranks") return parse(value, 1, 256, &options->ranks);
  if (name == "--steps") return parse(value, 1, 1000000, &options->steps);
  if (name == "--iterations") return parse(value, 1, 1000000, &options->iterations);
  if (name == "--min-bytes") return parse(value, sizeof(float), kMostBytes, &options->min_bytes);
  if (name == "--max-bytes") return parse(value, sizeof(float), kMostBytes, &options->max_bytes);
  if (name == "--slow-rank") return parse(value, 0, 255, &options->slow_rank);
  if (name == "--slow-us") return parse(value, int64_t{0}, int64_t{10000000}, &options->slow_us);
  return false;
}

// Where a launcher has put this process, if it has started more than one.
struct Place {
  int rank = 0, ranks = 1;
  std::string job;  // the same for all of them, and for no others
};
Place place_from_launcher() {
  struct Variables {
    const char *rank, *ranks, *job, *step;
  };
  constexpr Variables kLaunchers[] = {
      {"RANK", "WORLD_SIZE", "TORCHELASTIC_RUN_ID", "MASTER_PORT"},
      {"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "PMIX_NAMESPACE", "OMPI_COMM_WORLD_SIZE"},
      {"SLURM_PROCID", "SLURM_STEP_NUM_TASKS", "SLURM_JOB_ID", "SLURM_STEP_ID"},
  };
  for (const Variables& names : kLaunchers) {
    const char *rank = getenv(names.rank), *ranks = getenv(names.ranks), *job = getenv(names.job),
               *step = getenv(names.step);
    Place place;
    if (rank == nullptr || ranks == nullptr || job == nullptr || step == nullptr) continue;
    if (!parse(ranks, 2, 256, &place.ranks) || !parse(rank, 0, place.ranks - 1, &place.rank)) continue;
    place.job = std::string(job) + "." + step;
    return place;
  }
  return {};
}

std::string shared_name(std::string job) {
  for (char& c : job) c = c == '/' ? '_' : c;
  return "/lockstep-custom-allreduce." + job;
}

[[noreturn]] void be_rank(const Arena& arena, const Options& options, int number) {
  Rank self(arena, number);
  const Outcome outcome = run_rank(self, options);
  if (!outcome.wrong.empty()) fprintf(stderr, "rank %d: wrong result: %s\n", number, outcome.wrong.c_str());
  if (number == 0) {
    printf("%d ranks, %llu operations each in %.2f s, %s\n", options.ranks,
           static_cast<unsigned long long>(outcome.operations), outcome.seconds,
           outcome.wrong.empty() ? "all sums are right" : "WRONG");
  }
  exit(outcome.wrong.empty() ? 0 : kWrongSum);
}

// A forked rank says who it is as a launcher would, before the first call of lockstep.h.
[[noreturn]] void be_forked_rank(const Arena& arena, const Options& options, int number, pid_t parent) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent) _exit(1);
  const std::string rank = std::to_string(number), world = std::to_string(options.ranks);
  for (const char* name : {"RANK", "LOCAL_RANK"}) setenv(name, rank.c_str(), 1);
  for (const char* name : {"WORLD_SIZE", "LOCAL_WORLD_SIZE"}) setenv(name, world.c_str(), 1);
  be_rank(arena, options, number);
}

// 0 if every rank ended well. When one does not, the others would wait for it for ever.
int wait_for(std::vector<pid_t>& ranks) {
  int result = 0;
  bool died = false;
  for (size_t left = ranks.size(); left > 0; --left) {
    int status = 0;
    const pid_t pid = waitpid(-1, &status, 0);
    if (pid < 0) return 1;
    for (size_t i = 0; i < ranks.size(); ++i) {
      if (ranks[i] == pid) ranks[i] = 0;
    }
    if (status == 0) continue;
    result = 1;
    // A rank that found a wrong sum has taken part to the end.
    if (died || (WIFEXITED(status) && WEXITSTATUS(status) == kWrongSum)) continue;
    died = true;
    fprintf(stderr, "lockstep-custom-allreduce: a rank ended early (%s %d)\n",
            WIFEXITED(status) ? "status" : "signal",
            WIFEXITED(status) ? WEXITSTATUS(status) : WTERMSIG(status));
    for (const pid_t other : ranks) {
      if (other > 0) kill(other, SIGKILL);
    }
  }
  return result;
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  options.slow_us = 500;
  for (int i = 1; i < argc; i += 2) {
    if (strcmp(argv[i], "--help") == 0) {
      fputs(kUsage, stdout);
      return 0;
    }
    if (i + 1 == argc || !parse_option(argv[i], argv[i + 1], &options)) {
      fprintf(stderr, "lockstep-custom-allreduce: cannot use %s %s\n%s", argv[i],
              i + 1 < argc ? argv[i + 1] : "", kUsage);
      return 2;
    }
  }
  const Place place = place_from_launcher();
  if (place.ranks > 1) options.ranks = place.ranks;
  if (options.min_bytes > options.max_bytes ||
      options.min_bytes < sizeof(float) * static_cast<size_t>(options.ranks)) {
    fprintf(stderr,
            "lockstep-custom-allreduce: messages need at least one element per rank, and min <= max\n");
    return 2;
  }
  const std::string name = place.ranks > 1 ? shared_name(place.job) : "";
  const Arena arena(options.ranks, options.max_bytes / sizeof(float), name);
  if (!arena.ok()) {
    fprintf(stderr, "lockstep-custom-allreduce: shared memory: %s\n",
            errno == ETIMEDOUT ? "not all ranks came; they must be on one machine" : strerror(errno));
    return 1;
  }
  if (place.ranks > 1) be_rank(arena, options, place.rank);
  // No call of lockstep.h here: a process that has made one is recorded, and its forked children are not.
  const pid_t parent = getpid();
  std::vector<pid_t> ranks;
  fflush(nullptr);
  for (int rank = 0; rank < options.ranks; ++rank) {
    const pid_t pid = fork();
    if (pid == 0) be_forked_rank(arena, options, rank, parent);
    if (pid < 0) {
      perror("lockstep-custom-allreduce: fork");
      for (const pid_t other : ranks) kill(other, SIGKILL);
      return 1;
    }
    ranks.push_back(pid);
  }
  return wait_for(ranks);
}
