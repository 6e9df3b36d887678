// SPDX-License-Identifier: Apache-2.0
// Made from arguments.def with every timeline, so that the names that readers see cannot differ from what the
// events bear. The definition is itself a message, written by hand: one message does not need the library of
// Protocol Buffers.
#include "exporters/perfetto/arguments_proto.h"

#include "exporters/common/arguments.h"
#include "exporters/perfetto/fields.h"
#include "exporters/perfetto/proto_bytes.h"

namespace lockstep::exporters::perfetto {
namespace {

// Fields of Protocol Buffers' descriptor.proto.
enum : uint32_t { kSetFile = 1 };
enum : uint32_t {
  kFileName = 1,
  kFilePackage = 2,
  kFileDependency = 3,
  kFileMessage = 4,
  kFileExtension = 7,
  kFileSyntax = 12
};
enum : uint32_t { kMessageName = 1, kMessageField = 2 };
enum : uint32_t {
  kFieldName = 1,
  kFieldExtendee = 2,
  kFieldNumber = 3,
  kFieldLabel = 4,
  kFieldType = 5,
  kFieldTypeName = 6
};
enum : uint32_t { kInt64 = 3, kUint64 = 4, kBool = 8, kMessage = 11 };
constexpr uint32_t kOptional = 1;

uint32_t type_of(common::ArgumentKind kind) {
  switch (kind) {
    case common::ArgumentKind::kUnsigned:
      return kUint64;
    case common::ArgumentKind::kFlag:
      return kBool;
    default:
      return kInt64;
  }
}

}  // namespace

std::string arguments_descriptor_set() {
  ProtoBytes message, part;
  message.bytes(kMessageName, "Arguments");
  for (const common::ArgumentInfo& argument : common::kArguments) {
    if (argument.field == 0) continue;
    part.clear();
    part.bytes(kFieldName, argument.perfetto).number(kFieldNumber, argument.field);
    part.number(kFieldLabel, kOptional).number(kFieldType, type_of(argument.kind));
    message.bytes(kMessageField, part.view());
  }
  ProtoBytes file, set;
  file.bytes(kFileName, "lockstep/arguments.proto").bytes(kFilePackage, "lockstep.timeline");
  file.bytes(kFileDependency, "protos/perfetto/trace/track_event/track_event.proto");
  file.bytes(kFileMessage, message.view());
  part.clear();
  // Names of messages begin with a point: they are absolute, whatever package the reader looks them up in.
  part.bytes(kFieldName, "lockstep").bytes(kFieldExtendee, ".perfetto.protos.TrackEvent");
  part.number(kFieldNumber, field::event::kLockstep).number(kFieldLabel, kOptional);
  part.number(kFieldType, kMessage).bytes(kFieldTypeName, ".lockstep.timeline.Arguments");
  file.bytes(kFileExtension, part.view()).bytes(kFileSyntax, "proto2");
  set.bytes(kSetFile, file.view());
  return std::string(set.view());
}

}  // namespace lockstep::exporters::perfetto
