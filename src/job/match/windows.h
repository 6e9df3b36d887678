// SPDX-License-Identifier: Apache-2.0
// Recordings of a part of each process' life, whose operations are counted from the begin of the part. The
// parts need not begin alike: they are laid over each other by the steps that they share, and where these do
// not tell, by what was called.
#pragma once
#include <vector>

#include "model/job.h"

namespace lockstep::job::match {

// Gives the collectives of the members of one communicator comparable indexes. Members that have nothing in
// common with the one that has most are not aligned. Members that are no such part are left alone. `essence`:
// by signature, see essences().
void align_windows(model::Job& job, const std::vector<uint32_t>& members,
                   const std::vector<uint32_t>& essence);

// Whether two such processes began with the same step, so that their n-th sends and receives are the same.
bool windows_begin_alike(const model::JobProcess& a, const model::JobProcess& b);

}  // namespace lockstep::job::match
