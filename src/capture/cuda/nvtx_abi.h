// SPDX-License-Identifier: Apache-2.0
// What of NVIDIA's NVTX 3 this library uses, written from its published interface (c/include/nvtx3, version
// 3.1): NVTX is compiled into each library that calls it, and each of these copies asks once for an injected
// library: it calls InitializeInjectionNvtx2 of the file that NVTX_INJECTION64_PATH names. That one is given
// a function which returns tables; in them lie, by number, the places of the functions that the copy calls
// from then on.
#pragma once
#include <cstddef>
#include <cstdint>

namespace lockstep::capture::cuda::nvtx {

inline constexpr uint32_t kTableCallbacks = 1;
enum Module : int32_t { kModuleCore = 1, kModuleCore2 = 5 };
// Of kModuleCore: without a domain. A and W: text of char and of wchar_t.
enum Core : uint32_t {
  kRangeStartEx = 4,
  kRangeStartA = 5,
  kRangeStartW = 6,
  kRangeEnd = 7,
  kRangePushEx = 8,
  kRangePushA = 9,
  kRangePushW = 10,
  kRangePop = 11,
};
// Of kModuleCore2.
enum Core2 : uint32_t {
  kDomainRangeStartEx = 2,
  kDomainRangeEnd = 3,
  kDomainRangePushEx = 4,
  kDomainRangePop = 5,
  kDomainRegisterStringA = 10,
  kDomainRegisterStringW = 11,
  kDomainCreateA = 12,
  kDomainCreateW = 13,
};

using Function = void (*)();
using FunctionTable = Function**;  // places of functions, by number; null where there is none

struct Callbacks {
  size_t bytes;
  // 0: there is no such module. `size`: numbers below it are in the table.
  int (*functions)(int32_t module, FunctionTable* table, uint32_t* size);
};
static_assert(sizeof(Callbacks) == 16 && offsetof(Callbacks, functions) == 8);
using GetExportTable = const void* (*)(uint32_t table);

enum MessageType : int32_t { kMessageAscii = 1, kMessageWide = 2, kMessageRegistered = 3 };
struct Attributes {  // of versions 2 and 3; later ones grow at the end
  uint16_t version;
  uint16_t bytes;
  uint32_t category;
  int32_t color_type;
  uint32_t color;
  int32_t payload_type;
  int32_t reserved0;
  uint64_t payload;
  int32_t message_type;
  const void* message;
};
static_assert(sizeof(Attributes) == 48 && offsetof(Attributes, payload) == 24 &&
              offsetof(Attributes, message_type) == 32 && offsetof(Attributes, message) == 40);
static_assert(sizeof(wchar_t) == 4);

// What pushing and popping return instead of a level.
inline constexpr int kFailed = -1, kNotTracked = -2;

}  // namespace lockstep::capture::cuda::nvtx
