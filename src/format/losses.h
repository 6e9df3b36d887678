// SPDX-License-Identifier: Apache-2.0
// Names of the loss counters (losses.def). Those below kLossKinds are counted in each log and in the file's
// header, the others in the header alone.
#pragma once
#include "format/file_layout.h"

namespace lockstep::format {

// Numbers of the counters, from losses.def; they are on disk and stay.
enum Loss : uint32_t {
#define LOSS(index, name, text) kLoss_##name = index,
#include "format/losses.def"
#undef LOSS
};

// Where a file's header counts it: kinds that came with minor 6 lie behind the older fields. Several threads
// count: add atomically.
inline uint64_t* loss_counter(FileHeader* header, Loss kind) {
  return kind < kLossKinds ? &header->losses[kind] : &header->more_losses[kind - kLossKinds];
}

// Events that are not in the file because there was no room for them. The others concern single fields, or
// are the way of ring retention. The live reader and the Score-P plugin add them up as `dropped`.
inline constexpr Loss kDropped[] = {kLoss_no_chunk, kLoss_disk_full,    kLoss_size_cap,
                                    kLoss_no_log,   kLoss_storage_slow, kLoss_file_lost};

}  // namespace lockstep::format
