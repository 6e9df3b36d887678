// SPDX-License-Identifier: Apache-2.0
// People look for the line of their own program, not for the frame of PyTorch that called NCCL. Which frames
// are theirs is decided by the file's name alone, since stacks come from other hosts, where no file can be
// opened: a folder of installed packages, PyTorch built in place (known by its packages), or a short name as
// py-spy prints it. A wrong guess shows another frame of the same stack and changes no finding.
#include "model/names/call_place.h"

#include <algorithm>

#include "base/utf8.h"

namespace lockstep::model {
namespace {

constexpr size_t kLongestName = 128;

// Folders in which nobody keeps a program of one's own.
constexpr std::string_view kLibraryFolders[] = {"/site-packages/", "/dist-packages/", "/lib/python",
                                                "/lib64/python"};
// PyTorch that was built in a folder of one's own, by its packages; a project called torch has other ones.
constexpr std::string_view kTorchPackages[] = {
    "distributed/", "nn/modules/", "nn/parallel/", "utils/",           "autograd/",
    "cuda/",        "optim/",      "fx/",          "multiprocessing/", "_dynamo/",
    "_inductor/",   "_functorch/", "_tensor.py",   "_ops.py",          "_compile.py"};

// As py-spy shortens names: from a folder of Python's path on.
constexpr std::string_view kInstalled[] = {
    "torch/",   "numpy/",   "transformers/", "accelerate/", "deepspeed/", "lightning/", "pytorch_lightning/",
    "ray/",     "vllm/",    "sglang/",       "triton/",     "jax/",       "datasets/",  "multiprocessing/",
    "asyncio/", "logging/", "concurrent/",   "importlib/"};
constexpr std::string_view kStandard[] = {"threading.py",    "queue.py",      "selectors.py",  "socket.py",
                                          "ssl.py",          "subprocess.py", "contextlib.py", "functools.py",
                                          "runpy.py",        "pickle.py",     "tempfile.py",   "copy.py",
                                          "socketserver.py", "typing.py",     "signal.py"};

bool is_short_library(std::string_view file) {
  return std::find(std::begin(kStandard), std::end(kStandard), file) != std::end(kStandard) ||
         std::any_of(std::begin(kInstalled), std::end(kInstalled),
                     [&](std::string_view folder) { return file.starts_with(folder); });
}

bool is_torch(std::string_view file) {
  for (size_t at = file.find("/torch/"); at != std::string_view::npos; at = file.find("/torch/", at + 1)) {
    // A path may hold several folders of that name, and any of them may be PyTorch.
    const std::string_view rest = file.substr(at + 7);
    if (std::any_of(std::begin(kTorchPackages), std::end(kTorchPackages),
                    [&](std::string_view package) { return rest.starts_with(package); }))
      return true;
  }
  return false;
}

bool is_python(std::string_view file) {
  return file.ends_with(".py") || file.ends_with(".pyx") || file.starts_with("<ipython") ||
         file.starts_with("<stdin") || file.starts_with("<string");
}

}  // namespace

bool is_library(std::string_view file) {
  if (!is_python(file)) return true;
  return std::any_of(std::begin(kLibraryFolders), std::end(kLibraryFolders),
                     [&](std::string_view folder) { return file.find(folder) != std::string_view::npos; }) ||
         is_torch(file) || is_short_library(file);
}

void CallPlace::add(const Frame& frame, bool is_library) {
  if (frame.function.empty() && frame.file.empty()) return;
  if (innermost_.function.empty() && innermost_.file.empty()) innermost_ = frame;
  if (!is_complete() && !is_library) frames_[users_++] = frame;
}

std::string CallPlace::text() const {
  if (users_ == 0) return frame_text(innermost_);
  std::string text;
  for (size_t i = 0; i < users_; ++i) text += (i == 0 ? "" : ", from ") + frame_text(frames_[i]);
  return text;
}

std::string frame_text(const Frame& frame) {
  const std::string_view file = frame.file.substr(frame.file.find_last_of('/') + 1);
  std::string function = shown_name(frame.function, kLongestName);
  if (file.empty() || file == "??") return function;
  std::string text = shown_name(file, kLongestName);
  if (frame.line > 0) text += ":" + std::to_string(frame.line);
  const bool is_named = !function.empty() && function != "<module>";
  return is_named ? text + " (" + function + ")" : text;
}

}  // namespace lockstep::model
