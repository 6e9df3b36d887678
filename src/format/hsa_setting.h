// SPDX-License-Identifier: Apache-2.0
// LOCKSTEP_HSA, as the launcher and the capture library read it: words between commas (format/cuda_setting.h:
// has_word).
//
// Words that nobody knows are ignored; `off` comes before all others.
#pragma once
namespace lockstep::format {

// The variable, and its words.
inline constexpr const char* kHsaSetting = "LOCKSTEP_HSA";
inline constexpr const char* kHsaOff = "off";                  // no AMD kernels
inline constexpr const char* kHsaCopies = "copies";            // copies, too
inline constexpr const char* kHsaNoArguments = "noargs";       // kernels' arguments are not read
inline constexpr const char* kHsaDeviceArguments = "devargs";  // also where they lie in a GPU's memory
inline constexpr const char* kHsaSdk = "sdk";                  // as a client of rocprofiler's SDK
inline constexpr const char* kHsaRanges = "ranges";            // of roctx
inline constexpr const char* kHsaPatched = "patched";  // the runtime is ROCm 7.2's with its overflow mended
inline constexpr const char* kHsaPrint = "print";      // counters on stderr at the end of each process

}  // namespace lockstep::format
