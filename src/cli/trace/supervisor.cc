// SPDX-License-Identifier: Apache-2.0
// Launchers of jobs leave processes behind that outlive the command, and their files are not whole before
// they end. So this process becomes the reaper of all that descends from the command. Signals are taken in
// order from one place, as a handler could do nothing of what they ask for.
#include "cli/trace/supervisor.h"

#include <fcntl.h>
#include <pthread.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <thread>

#include "base/start_thread.h"
#include "cli/kit/inherited_signals.h"
#include "run/process_info.h"

namespace lockstep::cli::trace {
namespace {

constexpr int kHelperNice = 10;
constexpr std::chrono::seconds kHelperEnd{5};
constexpr int kPassedOn[] = {SIGINT, SIGQUIT, SIGTERM, SIGHUP, SIGUSR1, SIGUSR2};

// Blocks the watched signals before the sentinel, the first member made, is forked.
sigset_t block(sigset_t& original) {
  sigset_t watched;
  sigemptyset(&watched);
  for (int signal : kPassedOn) sigaddset(&watched, signal);
  sigaddset(&watched, SIGCHLD);
  pthread_sigmask(SIG_BLOCK, &watched, &original);
  return watched;
}

}  // namespace

Supervisor::Supervisor() : watched_(block(original_)) { prctl(PR_SET_CHILD_SUBREAPER, 1); }

Supervisor::~Supervisor() { pthread_sigmask(SIG_SETMASK, &original_, nullptr); }

int Supervisor::start(const std::vector<std::string>& argv) {
  std::vector<char*> words;
  for (const std::string& word : argv) words.push_back(const_cast<char*>(word.c_str()));
  words.push_back(nullptr);
  int report[2] = {-1, -1};  // closed by a successful exec, else carries errno
  // Without it a command that cannot be executed is one that ended.
  if (pipe2(report, O_CLOEXEC) != 0) report[0] = report[1] = -1;
  command_ = fork();
  if (command_ == 0) {
    pthread_sigmask(SIG_SETMASK, &original_, nullptr);
    // An ignored signal stays ignored over exec, and the command is to have SIGXFSZ and SIGCHLD as without
    // us.
    restore_signals();
    execvp(words[0], words.data());
    int error = errno;
    [[maybe_unused]] ssize_t put = write(report[1], &error, sizeof error);
    _exit(kExitNotFound);
  }
  int error = command_ < 0 ? errno : 0;
  close(report[1]);
  if (command_ > 0) {
    int failed = 0;
    ssize_t got = 0;
    while ((got = read(report[0], &failed, sizeof failed)) < 0 && errno == EINTR) {
    }
    if (got == sizeof failed) {
      error = failed;
      while (waitpid(command_, nullptr, 0) < 0 && errno == EINTR) {
      }
    }
  }
  close(report[0]);
  return error;
}

void Supervisor::pass_on(const siginfo_t& signal) {
  // SI_KERNEL: the terminal, which signals its whole foreground group.
  // A command that signals its parent does not want the signal back.
  if (signal.si_code == SI_KERNEL || signal.si_pid == command_ || sentinel_.saw(signal.si_signo)) return;
  kill(command_, signal.si_signo);
}

void Supervisor::reap() {
  for (;;) {
    int status = 0;
    pid_t ended = waitpid(-1, &status, WNOHANG);
    if (ended < 0 && errno == EINTR) continue;
    if (ended <= 0) {
      // ECHILD: no child is left, orphans that were handed to us included.
      reaped_all_ = ended < 0 ? errno == ECHILD : command_status_ != -1 && has_only_helper();
      return;
    }
    if (ended == helper_) helper_ = -1;
    if (ended == command_) command_status_ = status;
  }
}

// Where /proc does not list children, the helper ends with the command, as nothing tells it from the others.
bool Supervisor::has_only_helper() const {
  if (helper_ <= 0) return false;
  const std::vector<int64_t> children = run::children_of(getpid());
  if (std::find(children.begin(), children.end(), helper_) == children.end()) kill(helper_, SIGKILL);
  return std::all_of(children.begin(), children.end(), [&](int64_t child) { return is_own(child); });
}

void Supervisor::start_helper(const std::function<int()>& work) {
  const pid_t parent = getpid(), pid = fork();
  if (pid == 0) {
    setpgid(0, 0);
    prctl(PR_SET_PDEATHSIG, SIGTERM);
    prctl(PR_SET_NAME, "lockstep-push");
    // If the parent died before, no signal comes.
    if (getppid() != parent) _exit(0);
    setpriority(PRIO_PROCESS, 0, kHelperNice);
    if (const int score = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC); score >= 0) {
      [[maybe_unused]] const ssize_t put = write(score, "1000", 4);
      close(score);
    }
    // Whoever waits for the end of the job's output does not wait for the helper.
    if (const int null = open("/dev/null", O_RDWR | O_CLOEXEC); null >= 0) {
      dup2(null, STDIN_FILENO);
      dup2(null, STDOUT_FILENO);
    }
    // A write to the terminal from outside its foreground group must not stop it.
    signal(SIGTTOU, SIG_IGN);
    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, nullptr);
    int code = kExitNotExecutable;
    attempt([&] { code = work(); });
    _exit(code);
  }
  helper_ = pid;
}

bool Supervisor::end_helper() {
  bool is_done = true;
  constexpr timespec kShort{0, 20'000'000};
  if (helper_ > 0) kill(helper_, SIGTERM);
  for (const auto end = std::chrono::steady_clock::now() + kHelperEnd; helper_ > 0;) {
    // Not reap(): what the job left behind is the caller's.
    if (waitpid(helper_, nullptr, WNOHANG) != 0) break;
    siginfo_t signal{};
    const int got = sigtimedwait(&watched_, &signal, &kShort);
    // The user does not want to wait, or the store takes too long.
    if ((got <= 0 || got == SIGCHLD) && std::chrono::steady_clock::now() < end) continue;
    is_done = false;
    kill(helper_, SIGKILL);
    while (waitpid(helper_, nullptr, 0) < 0 && errno == EINTR) {
    }
    break;
  }
  helper_ = -1;
  return is_done;
}

int Supervisor::wait_for_command() {
  for (reap(); command_status_ == -1; reap()) {
    siginfo_t signal{};
    if (sigwaitinfo(&watched_, &signal) > 0 && signal.si_signo != SIGCHLD) pass_on(signal);
  }
  // Else waiting for descendants would wait for it, too.
  sentinel_.end();
  if (WIFSIGNALED(command_status_)) return kExitSignal + WTERMSIG(command_status_);
  return WEXITSTATUS(command_status_);
}

bool Supervisor::wait_for_descendants(const std::function<void()>& waiting) {
  constexpr timespec kQuiet{1, 0}, kLong{3600, 0};
  bool has_reported = false;
  for (reap(); !reaped_all_; reap()) {
    siginfo_t signal{};
    int got = sigtimedwait(&watched_, &signal, has_reported ? &kLong : &kQuiet);
    // The command is gone, so a signal now is meant for us.
    if (got > 0 && got != SIGCHLD) return false;
    if (got < 0 && errno == EAGAIN && !has_reported) {
      has_reported = true;
      waiting();
    }
  }
  return true;
}

void Supervisor::end_on_signal(std::function<void(int)> stop) {
  // What is pending now was meant for the command.
  for (constexpr timespec kNow{0, 0}; sigtimedwait(&watched_, nullptr, &kNow) > 0;) {
  }
  std::thread waiter = start_thread([watched = watched_, stop = std::move(stop)]() mutable {
    // Children of the merge itself may end; that is no wish to stop.
    sigdelset(&watched, SIGCHLD);
    int signal = 0;
    while (sigwait(&watched, &signal) != 0) {
    }
    stop(signal);
    // Not exit(): the main thread is still in the merge and uses what destructors would take away.
    _exit(kExitSignal + signal);
  });
  if (waiter.joinable()) waiter.detach();
}

}  // namespace lockstep::cli::trace
