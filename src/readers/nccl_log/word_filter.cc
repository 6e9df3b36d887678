// SPDX-License-Identifier: Apache-2.0
#include "readers/nccl_log/word_filter.h"

#include <algorithm>
#include <array>
#include <bitset>
#include <cstdint>
#include <cstring>

namespace lockstep::readers::nccl_log {
namespace {

// A line may be one if it holds four characters out of a word that all of its kind
// have; looking for all of them at once, from the end of a window of four, passes over three characters at a
// step.
class WordFilter {
 public:
  WordFilter() {
    steps_.fill(kWindow - 1);
    for (const std::string_view window : kWindows) {
      places_.set(place_of(window));
      for (size_t end = 1; end < kWindow; ++end) {
        uint8_t& step = steps_[pair_at(window, end)];
        step = std::min(step, static_cast<uint8_t>(kWindow - 1 - end));
      }
    }
  }
  bool may_hold(std::string_view text) const {
    for (size_t end = kWindow - 1; end < text.size();) {
      const uint8_t step = steps_[pair_at(text, end)];
      if (step == 0 && is_window(text.substr(end + 1 - kWindow, kWindow))) return true;
      end += std::max<size_t>(step, 1);
    }
    return false;
  }

 private:
  static constexpr size_t kWindow = 4;
  // Of the words that the readers of such lines look for; in order: NCCL, collective, exitcode, local_rank,
  // exited on signal, task 5:, timed out, detected from, async error, latest states, ranks:, nccl...Error:,
  // CUDA and HIP failure, FAILED, Traceback, Last error:, out of memory, waiting for, got error:,
  // monitoredBarrier, timeout after, closed by, Read error, return code, received by, died, killed, oom_kill,
  // oom-kill, OOMKilled, Killed, DUE TO, core dumped, Xid, undefined symbol, libfabric's <warn> err:,
  // unhandled ... error, remote process, libnccl.so, fallen off, HW Exception, access fault, GPU reset,
  // RCCL's lastT:, Duplicate, unexpectedly, signal, exit code, Process name, RUNNING, MPI_ABORT, subprocess,
  // sigquit, connectFullMesh, refused, No route, Socket closed, writev, SocketImpl, TCPStore, remainder,
  // shutdown, temporarily, new thread, CANCELLED, socket, NET/IB, ibv_, WARN, world size, Culprit rank, ready
  // ranks, terminated, received signal, device handle, NVML, amdgpu, deadlock, Exception, WorkerProc,
  // initialization, *ERROR* ring, GPUs, Cable, Link, Uncorrected, Primary job, unstuck, block found, NULL
  // value, non-zero status, Peer GPU, DeepEP, UCX  ERROR, heartbeats, incarnation, jax_worker, JAX,
  // Coordination service, failed to start, an issue, watchdog_timeout, Illegal, Aborted, backtrace, SIG...
  // received, killed by, process pool, scheduler, Node failure, child process, nvidia-nccl-cu, NVIDIA driver,
  // Cuda failure, Assertion; frames of stacks: File "x", frame #3; words of an error that nobody knows:
  // ERROR, failed, FATAL, fatal; compute-sanitizer's === Invalid, Uninitialized, Program and Race; preamble,
  // front-end, detokenizer, placement, fulfill, UNEXPECTED, NODE_OUT_OF_MEMORY, Segmentation,
  // free(): and malloc():, smashing, exiting, select, nvidia-container, CrashLoop, ErrImagePull,
  // ImagePullBackOff, vendor.com/gpu, MPI_ERR, read-write, ancdata, CPUAllocator, bad_alloc,
  // nccl-tests' #wrong
  static constexpr std::string_view kWindows[] = {
      "NCCL", "llec",  "xitc", "al_r", "d on", " tas", "imed", "d fr", "nc e", "t st", "nks:", "rror", "t CU",
      "t HI", "AILE",  "ceba", "of m", "ng f", "dBar", "out ", "d by", "n co", "died", "lled", "cclI", "om_k",
      "om-k", "DUE ",  " dum", "Xid ", "symb", "arn>", "dled", "emot", "ccl.", "llen", "W Ex", "s fa", "PU r",
      "stT:", "Dupl",  "nexp", "gnal", "it c", "ss n", "UNNI", "_ABO", "bpro", "sigq", "lMes", "refu", "No r",
      "t cl", "itev",  "Impl", "TCPS", "aind", "hutd", "mpor", "w th", " SIG", "CELL", "ocke", "NET/", "ibv_",
      " WAR", "worl",  "Culp", "eady", "e ha", "I ha", "NVML", "amdg", "eadl", "xcep", "rPro", "zati", "R* r",
      "GPUs", "Cabl",  "Link", "corr", "y jo", "nstu", "k fo", "NULL", "o st", "er G", "epEP", "X  E", "tbea",
      "carn", "ax_w",  "JAX ", "inat", "an i", "dog_", "gal ", "bort", "cktr", " SIG", "ss p", "sche", "e fa",
      "hild", "-ncc",  "IDIA", "ilur", "sser", "CUDA", "aptu", "IPv4", "gine", "eati", "hann", "MINA", "GNAL",
      "egfa", "otec",  "opco", "gfxh", "ncor", "vLLM", "nabl", "lots", "_INI", "ssh:", "erif", "unch", "Errn",
      "y in", "le \"", "me #", "RROR", "aile", "FATA", "fata", "= In", "= Un", "= Pr", "= Ra", "eamb", "t-en",
      "deto", "acem",  "ulfi", "EXPE", "OF_M", "egme", "(): ", "mash", "xiti", "elec", "ia-c", "shLo", "gePu",
      "llBa", "m/gp",  "MPI_", "-wri", "ancd", "CPUA", "d_al", "#wro"};
  static size_t pair_at(std::string_view text, size_t end) {
    return static_cast<size_t>(static_cast<unsigned char>(text[end - 1])) << 8 |
           static_cast<unsigned char>(text[end]);
  }
  static size_t place_of(std::string_view window) {
    uint32_t bytes = 0;
    std::memcpy(&bytes, window.data(), sizeof(bytes));
    return (bytes * 0x9E3779B1U) >> (32 - kPlaceBits);
  }
  bool is_window(std::string_view text) const {
    return places_.test(place_of(text)) &&
           std::any_of(std::begin(kWindows), std::end(kWindows),
                       [&](std::string_view window) { return text == window; });
  }

  static constexpr unsigned kPlaceBits = 14;
  std::array<uint8_t, 1 << 16> steps_{};
  std::bitset<1 << kPlaceBits> places_;  // where windows are: most texts of four characters fall elsewhere
};

}  // namespace

bool may_speak(std::string_view text) {
  static const WordFilter kFilter;
  return kFilter.may_hold(text);
}

}  // namespace lockstep::readers::nccl_log
