// SPDX-License-Identifier: Apache-2.0
// Runs a program as a user does: with arguments, environment and a working directory, its output caught, in a
// process group of its own or on a terminal of its own.
#pragma once
#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <pty.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>
#include <utmp.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <map>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "tests/support/patience.h"

namespace lockstep::test {

struct Finished {
  int code = -1;  // exit status; 1000 + signal if a signal ended it
  std::string out, err;
};
inline std::ostream& operator<<(std::ostream& stream, const Finished& finished) {
  return stream << "code " << finished.code << "\nstdout: " << finished.out << "\nstderr: " << finished.err;
}

struct Surroundings {
  std::string folder;                              // working directory
  std::map<std::string, std::string> environment;  // added to ours
  std::string input;                               // file for stdin; empty: /dev/null
  bool terminal = false;  // stdin, stdout and stderr are a new terminal; `out` holds both
};

class Process {
 public:
  Process(const std::vector<std::string>& argv, Surroundings around = {}) {
    int out[2] = {-1, -1}, err[2] = {-1, -1};
    if (around.terminal) {
      int inner = -1;
      EXPECT_EQ(openpty(&out[0], &inner, nullptr, nullptr, nullptr), 0);
      out[1] = inner;
      fcntl(out[0], F_SETFD, FD_CLOEXEC);
    } else {
      EXPECT_EQ(pipe2(out, O_CLOEXEC), 0);
      EXPECT_EQ(pipe2(err, O_CLOEXEC), 0);
    }
    pid_ = fork();
    if (pid_ == 0) become(argv, around, out[1], err[1]);
    close(out[1]);
    if (err[1] >= 0) close(err[1]);
    terminal_ = around.terminal ? out[0] : -1;
    descriptors_ = {out[0], err[0]};
    readers_.emplace_back([this, fd = out[0]] { drain(fd, finished_.out); });
    if (err[0] >= 0) readers_.emplace_back([this, fd = err[0]] { drain(fd, finished_.err); });
  }
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;
  ~Process() {
    if (!readers_.empty()) kill(-pid_, SIGKILL), wait();
  }

  pid_t pid() const { return pid_; }  // also its process group
  void type(const std::string& keys) const {
    EXPECT_EQ(write(terminal_, keys.data(), keys.size()), ssize_t(keys.size()));
  }
  // Until it has written this to stdout; false if it does not.
  bool await_output(const std::string& part);
  // Waits for its end; kills it when it hangs.
  Finished wait() {
    int status = 0;
    auto end = std::chrono::steady_clock::now() + std::chrono::duration<double>(2 * kPatienceSeconds);
    while (waitpid(pid_, &status, WNOHANG) == 0) {
      if (std::chrono::steady_clock::now() > end) kill(-pid_, SIGKILL);
      std::this_thread::sleep_for(std::chrono::milliseconds(2));
    }
    finished_.code = WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + WTERMSIG(status);
    for (std::thread& reader : readers_) reader.join();
    readers_.clear();
    for (int fd : descriptors_)
      if (fd >= 0) close(fd);
    return finished_;
  }

 private:
  [[noreturn]] static void become(const std::vector<std::string>& argv, const Surroundings& around, int out,
                                  int err) {
    if (around.terminal) {
      login_tty(out);  // a session of its own, so a group of its own
    } else {
      setpgid(0, 0);
      int in = open(around.input.empty() ? "/dev/null" : around.input.c_str(), O_RDONLY);
      dup2(in, 0);
      dup2(out, 1);
      dup2(err, 2);
    }
    if (!around.folder.empty() && chdir(around.folder.c_str()) != 0) _exit(99);
    for (const auto& [name, value] : around.environment) setenv(name.c_str(), value.c_str(), 1);
    std::vector<char*> words;
    for (const std::string& word : argv) words.push_back(const_cast<char*>(word.c_str()));
    words.push_back(nullptr);
    execvp(words[0], words.data());
    _exit(98);
  }
  void drain(int fd, std::string& text) {
    char buffer[4096];
    for (;;) {
      ssize_t got = read(fd, buffer, sizeof buffer);
      if (got < 0 && errno == EINTR) continue;
      if (got <= 0) break;  // EIO: the terminal's other side has gone
      std::lock_guard lock(mutex_);
      text.append(buffer, static_cast<size_t>(got));
    }
  }

  pid_t pid_ = -1;
  int terminal_ = -1;
  std::array<int, 2> descriptors_{};  // our ends; the readers are done with them when they are joined
  std::vector<std::thread> readers_;
  std::mutex mutex_;  // of what the readers append to
  Finished finished_;
};

inline Finished run(const std::vector<std::string>& argv, Surroundings around = {}) {
  return Process(argv, std::move(around)).wait();
}

// False if it did not come true.
inline bool wait_until(const std::function<bool()>& condition) {
  auto end = std::chrono::steady_clock::now() + std::chrono::duration<double>(kPatienceSeconds);
  while (!condition()) {
    if (std::chrono::steady_clock::now() > end) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return true;
}

inline bool Process::await_output(const std::string& part) {
  return wait_until([&] {
    std::lock_guard lock(mutex_);
    return finished_.out.find(part) != std::string::npos;
  });
}

inline std::string read_file(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}
inline void write_file(const std::string& path, const std::string& text) {
  std::ofstream file(path, std::ios::binary);
  file << text;
}

}  // namespace lockstep::test
