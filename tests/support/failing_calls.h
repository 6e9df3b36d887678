// SPDX-License-Identifier: Apache-2.0
// Runs a program of which the n-th call into the kernel fails, once or from then on. The kernel itself asks
// before each call (seccomp(2), user notification), so calls of every library count, and those of all
// threads. Children of the program are spared.
#pragma once
#include <fcntl.h>
#include <gtest/gtest.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "tests/support/process.h"
#include "tests/support/temporary_folder.h"

namespace lockstep::test {

class FailingCalls {
 public:
  struct Plan {
    uint32_t first = 0;  // number of the call that fails, from 1; 0: none
    bool is_for_good = false;
  };
  struct Answer {
    Finished finished;
    uint32_t calls = 0;  // that were counted
    std::string failed;  // the first that did
  };

  // Calls are counted from the first one on that names something in `folder`, where stdout and stderr are
  // kept meanwhile.
  explicit FailingCalls(std::string folder) : folder_(std::move(folder)) {}

  // False where the kernel, or the container, lets nobody answer for a process or look at what it names.
  static bool are_possible() {
    const TemporaryFolder folder;
    const Answer answer = FailingCalls(folder.path()).run({"/bin/ls", folder.path()}, {});
    return answer.finished.code == 0 && answer.calls > 0;
  }

  Answer run(const std::vector<std::string>& argv, Plan plan) const {
    int ends[2];
    EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
    const pid_t pid = fork();
    if (pid == 0) become(argv, ends[1]);
    close(ends[1]);
    Answer answer;
    const int listener = take_descriptor(ends[0]);
    close(ends[0]);
    if (listener >= 0) answer_all(listener, pid, plan, answer);
    int status = 0;
    waitpid(pid, &status, 0);
    answer.finished.code = WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + WTERMSIG(status);
    answer.finished.out = text(out());
    answer.finished.err = text(err());
    return answer;
  }

 private:
  struct Call {
    int number, error;
    const char* name;
    int path;  // which argument is one; -1 none
  };
  static const std::vector<Call>& calls() {
    static const std::vector<Call> list = {
        {SYS_openat, EMFILE, "openat", 1},
        {SYS_read, EIO, "read", -1},
        {SYS_pread64, EIO, "pread", -1},
        {SYS_readv, EIO, "readv", -1},
        {SYS_write, ENOSPC, "write", -1},
        {SYS_pwrite64, ENOSPC, "pwrite", -1},
        {SYS_writev, ENOSPC, "writev", -1},
        {SYS_lseek, EINVAL, "lseek", -1},
        {SYS_fsync, EIO, "fsync", -1},
        {SYS_fdatasync, EIO, "fdatasync", -1},
        {SYS_ftruncate, EIO, "ftruncate", -1},
        {SYS_fallocate, ENOSPC, "fallocate", -1},
        {SYS_fcntl, ENOLCK, "fcntl", -1},
        {SYS_flock, ENOLCK, "flock", -1},
        {SYS_newfstatat, EIO, "newfstatat", 1},
        {SYS_statx, EIO, "statx", 1},
        {SYS_fstat, EIO, "fstat", -1},
        {SYS_statfs, EIO, "statfs", 0},
        {SYS_faccessat, EACCES, "faccessat", 1},
        {SYS_getdents64, EIO, "getdents", -1},
        {SYS_readlinkat, EACCES, "readlinkat", 1},
        {SYS_mkdirat, EACCES, "mkdirat", 1},
        {SYS_unlinkat, EIO, "unlinkat", 1},
        {SYS_renameat, EIO, "renameat", 1},
        {SYS_renameat2, EIO, "renameat2", 1},
        {SYS_linkat, EPERM, "linkat", 1},
        {SYS_fchmodat, EPERM, "fchmodat", 1},
        {SYS_fchmod, EPERM, "fchmod", -1},
        {SYS_utimensat, EPERM, "utimensat", 1},
        {SYS_mmap, ENOMEM, "mmap", -1},
        {SYS_brk, ENOMEM, "brk", -1},
        {SYS_mprotect, ENOMEM, "mprotect", -1},
        {SYS_memfd_create, EMFILE, "memfd_create", -1},
        {SYS_pipe2, EMFILE, "pipe2", -1},
        {SYS_eventfd2, EMFILE, "eventfd", -1},
        {SYS_inotify_init1, EMFILE, "inotify_init", -1},
        {SYS_inotify_add_watch, ENOSPC, "inotify_add_watch", -1},
        {SYS_clone, EAGAIN, "clone", -1},
        {SYS_clone3, EAGAIN, "clone3", -1},
#ifdef __x86_64__  // others do without
        {SYS_access, EACCES, "access", 0},
        {SYS_readlink, EACCES, "readlink", 0},
        {SYS_mkdir, EACCES, "mkdir", 0},
        {SYS_rmdir, EBUSY, "rmdir", 0},
        {SYS_unlink, EIO, "unlink", 0},
        {SYS_rename, EIO, "rename", 0},
        {SYS_link, EPERM, "link", 0},
        {SYS_chmod, EPERM, "chmod", 0},
#endif
    };
    return list;
  }
  std::string out() const { return folder_ + "/stdout.txt"; }
  std::string err() const { return folder_ + "/stderr.txt"; }
  static std::string text(const std::string& path) {
    std::ifstream in(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
  }

  [[noreturn]] void become(const std::vector<std::string>& argv, int report_to) const {
    const int in = open("/dev/null", O_RDONLY);
    dup2(in, 0);
    dup2(open(out().c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600), 1);
    dup2(open(err().c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600), 2);
    std::vector<char*> words;
    for (const std::string& word : argv) words.push_back(const_cast<char*>(word.c_str()));
    words.push_back(nullptr);
    if (chdir(folder_.c_str()) != 0) _exit(99);
    std::vector<sock_filter> filter;
    filter.push_back(BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)));
    for (const Call& call : calls()) {
      filter.push_back(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, static_cast<uint32_t>(call.number), 0, 1));
      filter.push_back(BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_USER_NOTIF));
    }
    filter.push_back(BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW));
    const sock_fprog program{static_cast<unsigned short>(filter.size()), filter.data()};
    prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
    const auto listener = static_cast<int>(
        syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_NEW_LISTENER, &program));
    if (listener < 0) _exit(97);
    give_descriptor(report_to, listener);
    execv(words[0], words.data());
    _exit(98);
  }

  static void give_descriptor(int to, int descriptor) {
    char byte = 0;
    iovec data{&byte, 1};
    alignas(cmsghdr) char space[CMSG_SPACE(sizeof descriptor)] = {};
    msghdr message{};
    message.msg_iov = &data;
    message.msg_iovlen = 1;
    message.msg_control = space;
    message.msg_controllen = sizeof space;
    cmsghdr* header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(sizeof descriptor);
    std::memcpy(CMSG_DATA(header), &descriptor, sizeof descriptor);
    sendmsg(to, &message, 0);
    fcntl(descriptor, F_SETFD, FD_CLOEXEC);
  }
  static int take_descriptor(int from) {
    char byte = 0;
    iovec data{&byte, 1};
    alignas(cmsghdr) char space[CMSG_SPACE(sizeof(int))] = {};
    msghdr message{};
    message.msg_iov = &data;
    message.msg_iovlen = 1;
    message.msg_control = space;
    message.msg_controllen = sizeof space;
    if (recvmsg(from, &message, MSG_CMSG_CLOEXEC) != 1) return -1;
    const cmsghdr* header = CMSG_FIRSTHDR(&message);
    int descriptor = -1;
    if (header != nullptr) std::memcpy(&descriptor, CMSG_DATA(header), sizeof descriptor);
    return descriptor;
  }

  static bool read_memory(pid_t pid, uint64_t at, void* to, size_t size) {
    iovec local{to, size}, remote{reinterpret_cast<void*>(at), size};
    return process_vm_readv(pid, &local, 1, &remote, 1, 0) > 0;
  }
  bool names_folder(const seccomp_notif& asked, const Call& call) const {
    if (call.path < 0) return false;
    std::string path(folder_.size(), 0);
    return read_memory(static_cast<pid_t>(asked.pid), asked.data.args[call.path], path.data(), path.size()) &&
           path == folder_;
  }
  // What is written to stdout and stderr is what a test reads.
  static bool is_spared(const seccomp_notif& asked, const Call& call) {
    return (call.number == SYS_write || call.number == SYS_writev) && asked.data.args[0] <= 2;
  }
  // brk(2) has no error: it says where the break is. 0: there is none yet.
  static int64_t current_break(pid_t process) {
    std::ifstream maps("/proc/" + std::to_string(process) + "/maps");
    for (std::string line; std::getline(maps, line);) {
      unsigned long end = 0;
      if (line.ends_with("[heap]") && std::sscanf(line.c_str(), "%*x-%lx", &end) == 1)
        return static_cast<int64_t>(end);
    }
    return 0;
  }
  static bool is_thread_of(pid_t process, uint32_t task) {
    if (task == static_cast<uint32_t>(process)) return true;
    const std::string path = "/proc/" + std::to_string(process) + "/task/" + std::to_string(task);
    return ::access(path.c_str(), F_OK) == 0;
  }

  void answer_all(int listener, pid_t process, Plan plan, Answer& answer) const {
    bool is_counting = false;
    const auto begin = std::chrono::steady_clock::now();
    constexpr std::chrono::duration<double> patience(kPatienceSeconds);
    for (;;) {
      pollfd of{listener, POLLIN, 0};
      const int ready = poll(&of, 1, static_cast<int>(kPatienceSeconds * 1000));
      if (ready == 0 || std::chrono::steady_clock::now() - begin > patience) {
        ADD_FAILURE() << "hangs: call " << plan.first << " " << answer.failed;
        kill(process, SIGKILL);
        break;
      }
      if (ready < 0 || (of.revents & POLLIN) == 0) break;  // nobody is left who could ask
      seccomp_notif asked{};
      if (ioctl(listener, SECCOMP_IOCTL_NOTIF_RECV, &asked) != 0) continue;
      const auto call = std::find_if(calls().begin(), calls().end(),
                                     [&](const Call& c) { return c.number == asked.data.nr; });
      seccomp_notif_resp response{};
      response.id = asked.id;
      response.flags = SECCOMP_USER_NOTIF_FLAG_CONTINUE;
      if (call != calls().end() && is_thread_of(process, asked.pid) && !is_spared(asked, *call)) {
        is_counting = is_counting || names_folder(asked, *call);
        answer.calls += is_counting;
        const bool fails = is_counting && plan.first != 0 &&
                           (answer.calls == plan.first || (plan.is_for_good && answer.calls > plan.first));
        if (fails) {
          if (answer.failed.empty()) answer.failed = call->name;
          response.val = call->number == SYS_brk ? current_break(process) : 0;
          if (call->number != SYS_brk || response.val != 0) response.flags = 0;
          if (call->number != SYS_brk) response.error = -call->error;
        }
      }
      ioctl(listener, SECCOMP_IOCTL_NOTIF_SEND, &response);
    }
    close(listener);
  }

  const std::string folder_;
};

}  // namespace lockstep::test
