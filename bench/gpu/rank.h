// SPDX-License-Identifier: Apache-2.0
// What the programs here need to be one rank of a job: checked calls, numbers from the environment, NCCL's id
// by way of a file. All of it ends the process when something is wrong; who started it sees the exit code and
// one line on stderr.
#pragma once
#include <cuda_runtime.h>
#include <nccl.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <string>

inline void check(int status, const char* what) {
  if (status == 0) return;
  std::fprintf(stderr, "%s failed with %d\n", what, status);
  _exit(1);
}
#define CHECK(call) check(static_cast<int>(call), #call)

inline int number_of(const char* variable) {
  const char* text = std::getenv(variable);
  if (text == nullptr) {
    std::fprintf(stderr, "%s is not set\n", variable);
    _exit(2);
  }
  return std::atoi(text);
}

// Rank 0 makes the id and writes it to `path`; the others wait for it, a minute at most.
inline ncclUniqueId agree_on_id(int rank, const std::string& path) {
  ncclUniqueId id{};
  if (rank == 0) {
    CHECK(ncclGetUniqueId(&id));
    const std::string partial = path + ".partial";
    std::FILE* file = std::fopen(partial.c_str(), "wb");
    CHECK(file == nullptr || std::fwrite(&id, sizeof id, 1, file) != 1 || std::fclose(file) != 0);
    CHECK(std::rename(partial.c_str(), path.c_str()));
    return id;
  }
  std::FILE* file = nullptr;
  for (int tries = 0; (file = std::fopen(path.c_str(), "rb")) == nullptr; ++tries) {
    CHECK(tries > 6000);
    usleep(10000);
  }
  CHECK(std::fread(&id, sizeof id, 1, file) != 1);
  std::fclose(file);
  return id;
}
