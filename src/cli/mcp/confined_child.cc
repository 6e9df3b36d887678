// SPDX-License-Identifier: Apache-2.0
// A file that a client names may be hostile, and the server must outlive it. Work is done in a child with a
// limit of time and of output, whose end is the answer whatever happened inside.
#include "cli/mcp/confined_child.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>

namespace lockstep::cli::mcp {
namespace {

using Clock = std::chrono::steady_clock;
constexpr int kDied = 125;

class Pipe {
 public:
  Pipe() {
    if (pipe2(ends_.data(), O_CLOEXEC) != 0) ends_ = {-1, -1};
  }
  ~Pipe() {
    close_end(0);
    close_end(1);
  }
  Pipe(const Pipe&) = delete;
  Pipe& operator=(const Pipe&) = delete;
  bool is_open() const { return ends_[0] >= 0; }
  int reading() const { return ends_[0]; }
  int writing() const { return ends_[1]; }
  void close_end(size_t end) {
    if (ends_[end] >= 0) close(ends_[end]);
    ends_[end] = -1;
  }

 private:
  std::array<int, 2> ends_{-1, -1};
};

[[noreturn]] void be_child(const std::function<int()>& work, const Pipe& out, const Pipe& err, pid_t parent) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  // The parent may have died before prctl(), and no signal would come.
  if (getppid() != parent) _exit(kDied);
  // The parent's input holds further requests, which a child must not read.
  const int nothing = open("/dev/null", O_RDONLY);
  if (nothing < 0 || dup2(nothing, STDIN_FILENO) < 0 || dup2(out.writing(), STDOUT_FILENO) < 0 ||
      dup2(err.writing(), STDERR_FILENO) < 0)
    _exit(kDied);
  int code = kDied;
  try {
    code = work();
  } catch (const std::exception& failed) {
    std::fprintf(stderr, "lockstep: %s\n", failed.what());
  }
  std::fflush(stdout);
  // Not exit(): what would be cleaned up there is the server's.
  _exit(code);
}

Error failed(std::string text) { return {ErrorCode::kIo, std::move(text), {}}; }

// Reads both until they end. The reason why the child has to, or nothing.
std::string drain(const Pipe& out, const Pipe& err, ChildAnswer& answer, Clock::time_point until,
                  size_t most_bytes) {
  // Both at once: a child that fills one pipe while the other is read would block for ever.
  std::array<pollfd, 2> ends{{{out.reading(), POLLIN, 0}, {err.reading(), POLLIN, 0}}};
  const std::array<std::string*, 2> texts{&answer.out, &answer.err};
  char buffer[64 << 10];
  while (ends[0].fd >= 0 || ends[1].fd >= 0) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(until - Clock::now()).count();
    if (left <= 0) return "took too long";
    const int ready = poll(ends.data(), ends.size(), static_cast<int>(left));
    if (ready < 0 && errno != EINTR) return std::string("cannot be waited for: ") + std::strerror(errno);
    for (size_t i = 0; ready > 0 && i < ends.size(); ++i) {
      if (ends[i].fd < 0 || ends[i].revents == 0) continue;
      const ssize_t got = read(ends[i].fd, buffer, sizeof buffer);
      if (got < 0 && errno == EINTR) continue;
      if (got <= 0) {
        ends[i].fd = -1;
        continue;
      }
      texts[i]->append(buffer, static_cast<size_t>(got));
      // The child is killed by the caller, so nothing waits for a full pipe.
      if (answer.out.size() + answer.err.size() > most_bytes) return "answered more than the limit";
    }
  }
  return {};
}

}  // namespace

Result<ChildAnswer> run_confined(const std::function<int()>& work, std::chrono::seconds patience,
                                 size_t most_bytes) {
  Pipe out, err;
  if (!out.is_open() || !err.is_open())
    return failed(std::string("cannot create a pipe: ") + std::strerror(errno));
  // After fork() both processes would print what is buffered.
  std::fflush(stdout);
  const pid_t parent = getpid();
  const pid_t child = fork();
  if (child < 0) return failed(std::string("cannot start a process: ") + std::strerror(errno));
  if (child == 0) be_child(work, out, err, parent);
  // The parent's own writing ends would keep the pipes from ever ending.
  out.close_end(1);
  err.close_end(1);
  ChildAnswer answer;
  const std::string why = drain(out, err, answer, Clock::now() + patience, most_bytes);
  if (!why.empty()) kill(child, SIGKILL);
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  if (!why.empty()) return failed(why + "; ask for less");
  if (WIFSIGNALED(status)) return failed("was ended by signal " + std::to_string(WTERMSIG(status)));
  answer.code = WEXITSTATUS(status);
  return answer;
}

}  // namespace lockstep::cli::mcp
