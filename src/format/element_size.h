// SPDX-License-Identifier: Apache-2.0
// Bytes of one element by the name of its type: the one table, of what capture, readers and the model meet.
// NCCL's and RCCL's spellings ("ncclFloat32", "ncclBfloat16"), c10's ("Float", "c10::BFloat16",
// "ComplexFloat"), Python's ("torch.float32", "complex64", "<f4"), XLA's ("bf16", "s32", "c64", "pred"),
// HIP's and CUDA's ("__half", "HIP_R_16F"), C's ("unsigned int"). Capital letters or small. A name that says
// nothing counts as 1: NCCL calls uint8 "Unknown". libc alone, no allocation.
#pragma once
#include <stddef.h>
#include <stdint.h>
#include <string.h>

namespace lockstep::format {

// A name in small letters, read from its front. Longer names than kMost are empty: no type has one.
struct TypeName {
  static constexpr size_t kMost = 48;  // longer names are no type's
  char text[kMost + 1] = {};
  char* at = text;

  // `at` points into `text`, so a copy needs its own.
  TypeName(const TypeName& other) : at(text + (other.at - other.text)) {
    memcpy(text, other.text, sizeof text);
  }
  TypeName& operator=(const TypeName&) = delete;
  TypeName(const char* name, size_t size) {
    if (size > kMost) return;
    for (size_t i = 0; i < size; ++i) {
      const char c = name[i];
      text[i] = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
    }
  }
  // Moves on behind `word` if it stands here.
  bool take(const char* word) {
    const size_t size = strlen(word);
    if (strncmp(at, word, size) != 0) return false;
    at += size;
    return true;
  }
  // All that is left is `word`.
  bool is(const char* word) const { return strcmp(at, word) == 0; }
  // The digits that stand here; -1: none.
  int number() const {
    int value = -1;
    for (const char* c = at; *c >= '0' && *c <= '9' && value < 1000; ++c)
      value = (value < 0 ? 0 : value) * 10 + (*c - '0');
    return value;
  }
};

// Names that do not say how wide they are.
struct NamedType {
  char name[20];
  uint8_t bytes;
};
// Sizes of C's types are those of 64-bit Linux.
inline constexpr NamedType kNamedTypes[] = {{"half", 2},          {"float", 4},
                                            {"single", 4},        {"double", 8},
                                            {"long double", 16},  {"longdouble", 16},
                                            {"char", 1},          {"byte", 1},
                                            {"bool", 1},          {"short", 2},
                                            {"short int", 2},     {"unsigned short", 2},
                                            {"ushort", 2},        {"int", 4},
                                            {"unsigned int", 4},  {"unsigned", 4},
                                            {"intc", 4},          {"uintc", 4},
                                            {"long", 8},          {"long int", 8},
                                            {"unsigned long", 8}, {"long long", 8},
                                            {"longlong", 8},      {"ulonglong", 8},
                                            {"ulong", 8},         {"unsigned long long", 8},
                                            {"intp", 8},          {"uintp", 8},
                                            {"size_t", 8},        {"chalf", 4},
                                            {"cfloat", 8},        {"csingle", 8},
                                            {"cdouble", 16},      {"clongdouble", 32}};

// What stands before the width in bits: "float32", "bf16", "s8", "quint4x2". A complex type gives the width
// of both parts.
inline constexpr const char* kNumberedTypes[] = {"float", "bfloat", "fp",   "bf",      "f",
                                                 "int",   "uint",   "qint", "quint",   "i",
                                                 "u",     "s",      "bits", "complex", "c"};

// Name spaces and libraries. In the order in which they may stand before one another; each is taken once at
// most.
inline constexpr const char* kPrefixes[] = {"std::", "c10::", "at::",  "torch.", "numpy.", "np.", "jnp.",
                                            "nccl",  "rccl",  "cuda_", "__",     "nv_",    "hip_"};

// Of a width in bits. Narrower types (fp8, int4) count as one byte, the smallest element that NCCL has, and
// so does a width that no type has.
inline uint8_t bytes_of_bits(int bits) {
  return static_cast<uint8_t>(bits == 16    ? 2
                              : bits == 32  ? 4
                              : bits == 64  ? 8
                              : bits == 128 ? 16
                              : bits == 256 ? 32
                                            : 1);
}

// NumPy's dtype.str: byte order, kind, bytes ("<f4", "|u1", ">c16"). 0: it has another form.
inline uint8_t numpy_bytes(TypeName name) {
  if (strchr("<>|=", *name.at) == nullptr || *name.at == 0) return 0;
  ++name.at;
  if (*name.at == 0 || strchr("biufc", *name.at) == nullptr) return 0;
  ++name.at;
  const int bytes = name.number();
  return bytes == 1 || bytes == 2 || bytes == 4 || bytes == 8 || bytes == 16 || bytes == 32
             ? static_cast<uint8_t>(bytes)
             : 0;
}

// Bytes of a name without prefix and byte order; 0: no name of a type.
inline uint8_t plain_bytes(const TypeName& name) {
  for (const NamedType& type : kNamedTypes) {
    if (name.is(type.name)) return type.bytes;
  }
  for (const char* family : kNumberedTypes) {
    TypeName rest = name;
    if (rest.take(family) && rest.number() >= 0) return bytes_of_bits(rest.number());
  }
  return 0;
}

// Bytes of one element, at least 1; `datatype` needs no NUL. What is no name of a type counts as 1.
inline uint8_t element_bytes(const char* datatype, size_t size) {
  TypeName name(datatype, size);
  if (const uint8_t bytes = numpy_bytes(name); bytes != 0) return bytes;
  for (const char* prefix : kPrefixes) name.take(prefix);
  // cudaDataType and hipDataType name the width of a part.
  if (name.take("r_")) return name.number() < 0 ? 1 : bytes_of_bits(name.number());
  if (name.take("c_")) return static_cast<uint8_t>(name.number() < 0 ? 1 : 2 * bytes_of_bits(name.number()));
  uint8_t bytes = plain_bytes(name);
  if (bytes == 0 && name.take("complex")) {
    name.take("<");
    for (const char* prefix : kPrefixes) name.take(prefix);
    if (char* end = strchr(name.at, '>'); end != nullptr) *end = 0;
    bytes = static_cast<uint8_t>(2 * plain_bytes(name));
  }
  return bytes == 0 ? 1 : bytes;
}

// Of a text with a NUL; nullptr: 1.
inline uint8_t element_bytes(const char* datatype) {
  return datatype == nullptr ? uint8_t{1} : element_bytes(datatype, strlen(datatype));
}

}  // namespace lockstep::format
