// SPDX-License-Identifier: Apache-2.0
#include "nccl_host/adapt.h"

#include <cstring>
#include <iterator>
#include <string_view>

namespace lockstep::sim {
namespace {

namespace abi = nccl_abi;

// v1 carries numbers; what its adapter does not know becomes the adapter's default.
template <size_t N>
uint8_t code(const char* const (&names)[N], const char* text, uint8_t unknown) {
  for (size_t i = 0; i < N; ++i)
    if (text != nullptr && std::string_view(names[i]) == text) return static_cast<uint8_t>(i);
  return unknown;
}
constexpr uint8_t kUnknownFunc = 6, kUnknownAlgo = 6, kUnknownProto = 2, kUnknownDatatype = 8;

uint8_t datatype_code(const char* text) {
  const uint8_t value = code(abi::kDatatypeNames, text, kUnknownDatatype);
  return value >= 10 ? kUnknownDatatype : value;  // the adapter has no case for the fp8 types
}

// Members and header that v1 to v4 share. Their one-byte type leaves seven bytes of padding that nobody
// writes.
template <class Descriptor>
void adapt_header(const abi::v7::Descriptor& from, Descriptor* to) {
  std::memset(static_cast<void*>(to), 0xa5, 8);
  to->type = static_cast<uint8_t>(from.type);
  to->parent = from.parent;
  to->rank = from.rank;
  if (from.type == abi::kTypeColl) to->parent = from.coll.parent_group;
  if (from.type == abi::kTypeP2p) to->parent = from.p2p.parent_group;
  if (from.type == abi::kTypeProxyOp) to->proxy_op = from.proxy_op;
  if (from.type == abi::kTypeProxyStep) to->proxy_step = from.proxy_step;
}

// A core of the version's own time still names the comm; an adapter does not.
constexpr uint64_t kOldCoreCommHash = 0x01dc0de;
constexpr const char* kOldCoreCommName = "old";

template <class Member>
void adapt_identity(const Behaviour& behaviour, Member* to) {
  if (!behaviour.old_core) return;
  to->name = kOldCoreCommName;
  to->comm_hash = kOldCoreCommHash;
}

template <class Descriptor>
void adapt_named_tasks(const abi::v7::Descriptor& from, const Behaviour& behaviour, Descriptor* to) {
  if (from.type == abi::kTypeColl) {
    const auto& coll = from.coll;
    to->coll.seq = coll.seq;
    to->coll.func = coll.func;
    to->coll.send_buffer = coll.send_buffer;
    to->coll.recv_buffer = coll.recv_buffer;
    to->coll.count = coll.count;
    to->coll.root = coll.root;
    to->coll.datatype = coll.datatype;
    to->coll.max_channels = coll.channels;
    to->coll.warps = coll.warps;
    to->coll.algo = coll.algo;
    to->coll.proto = coll.proto;
    adapt_identity(behaviour, &to->coll);
  } else if (from.type == abi::kTypeP2p) {
    to->p2p = {nullptr, 0, from.p2p.func, from.p2p.buffer, from.p2p.datatype, from.p2p.count, from.p2p.peer};
    adapt_identity(behaviour, &to->p2p);
  }
}

// v5 and later share the small members bit for bit.
template <class Descriptor>
void adapt_api_era(const abi::v7::Descriptor& from, Descriptor* to) {
  to->type = from.type;
  to->parent = from.parent;
  to->rank = from.rank;
  switch (from.type) {
    case abi::kTypeGroupApi:
      to->group_api = from.group_api;
      break;
    case abi::kTypeCollApi:
      to->coll_api = {from.coll_api.func, from.coll_api.count,  from.coll_api.datatype,
                      from.coll_api.root, from.coll_api.stream, from.coll_api.graph_captured};
      break;
    case abi::kTypeP2pApi:
      to->p2p_api = {from.p2p_api.func, from.p2p_api.count, from.p2p_api.datatype, from.p2p_api.stream,
                     from.p2p_api.graph_captured};
      break;
    case abi::kTypeKernelLaunch:
      to->kernel_launch = from.kernel_launch;
      break;
    case abi::kTypeColl:
      to->coll = {from.coll.seq,   from.coll.func, from.coll.send_buffer, from.coll.recv_buffer,
                  from.coll.count, from.coll.root, from.coll.datatype,    from.coll.channels,
                  from.coll.warps, from.coll.algo, from.coll.proto,       from.coll.parent_group};
      break;
    case abi::kTypeP2p:
      to->p2p = {from.p2p.func, from.p2p.buffer,   from.p2p.datatype,    from.p2p.count,
                 from.p2p.peer, from.p2p.channels, from.p2p.parent_group};
      break;
    case abi::kTypeProxyOp:
      to->proxy_op = from.proxy_op;
      break;
    case abi::kTypeProxyStep:
      to->proxy_step = from.proxy_step;
      break;
    case abi::kTypeKernelCh:
      to->kernel_ch = from.kernel_ch;
      break;
    case abi::kTypeNetPlugin:
      to->net_plugin = from.net_plugin;
      break;
    default:
      break;
  }
}

}  // namespace

void adapt(const abi::v7::Descriptor& from, const Behaviour& behaviour, abi::v1::Descriptor* to) {
  adapt_header(from, to);
  if (from.type == abi::kTypeColl) {
    const auto& coll = from.coll;
    to->coll.seq = coll.seq;
    to->coll.func = code(abi::kFuncNames, coll.func, kUnknownFunc);
    to->coll.send_buffer = coll.send_buffer;
    to->coll.recv_buffer = coll.recv_buffer;
    to->coll.count = coll.count;
    to->coll.root = coll.root;
    to->coll.datatype = datatype_code(coll.datatype);
    to->coll.max_channels = coll.channels;
    to->coll.warps = coll.warps;
    to->coll.algo = code(abi::kAlgoNames, coll.algo, kUnknownAlgo);
    to->coll.proto = code(abi::kProtoNames, coll.proto, kUnknownProto);
    adapt_identity(behaviour, &to->coll);
  } else if (from.type == abi::kTypeP2p) {
    to->p2p = {nullptr,
               0,
               code(abi::kFuncNames, from.p2p.func, kUnknownFunc),
               from.p2p.buffer,
               datatype_code(from.p2p.datatype),
               from.p2p.count,
               from.p2p.peer};
    adapt_identity(behaviour, &to->p2p);
  }
}

void adapt(const abi::v7::Descriptor& from, const Behaviour& behaviour, abi::v2::Descriptor* to) {
  adapt_header(from, to);
  adapt_named_tasks(from, behaviour, to);
}

void adapt(const abi::v7::Descriptor& from, const Behaviour& behaviour, abi::v3::Descriptor* to) {
  adapt_header(from, to);
  adapt_named_tasks(from, behaviour, to);
  if (from.type == abi::kTypeKernelCh) to->kernel_ch.channel = from.kernel_ch.channel;
  if (from.type == abi::kTypeNetPlugin) to->net_plugin = from.net_plugin;
}

void adapt(const abi::v7::Descriptor& from, const Behaviour&, abi::v4::Descriptor* to) {
  adapt_header(from, to);
  if (from.type == abi::kTypeColl) {
    const auto& coll = from.coll;
    to->coll = {coll.seq,      coll.func,     coll.send_buffer, coll.recv_buffer, coll.count, coll.root,
                coll.datatype, coll.channels, coll.warps,       coll.algo,        coll.proto};
  } else if (from.type == abi::kTypeP2p) {  // member by member: the adapter forgets p2p.nChannels
    to->p2p.func = from.p2p.func;
    to->p2p.buffer = from.p2p.buffer;
    to->p2p.datatype = from.p2p.datatype;
    to->p2p.count = from.p2p.count;
    to->p2p.peer = from.p2p.peer;
  }
  if (from.type == abi::kTypeKernelCh) to->kernel_ch = from.kernel_ch;
  if (from.type == abi::kTypeNetPlugin) to->net_plugin = from.net_plugin;
}

void adapt(const abi::v7::Descriptor& from, const Behaviour&, abi::v5::Descriptor* to) {
  adapt_api_era(from, to);
}

void adapt(const abi::v7::Descriptor& from, const Behaviour&, abi::v6::Descriptor* to) {
  adapt_api_era(from, to);
  if (from.type == abi::kTypeCeColl) {
    const auto& ce = from.ce_coll;
    to->ce_coll = {ce.seq,     ce.func,     ce.send_buffer,   ce.recv_buffer,      ce.count,
                   ce.root,    ce.datatype, ce.sync_strategy, ce.intra_batch_sync, ce.batch_size,
                   ce.batches, ce.ce_seq,   ce.stream};
  }
  if (from.type == abi::kTypeCeSync) to->ce_sync = from.ce_sync;
  if (from.type == abi::kTypeCeBatch) to->ce_batch = from.ce_batch;
}

void adapt(const abi::v7::Descriptor& from, const Behaviour&, abi::v7::Descriptor* to) { *to = from; }

}  // namespace lockstep::sim
