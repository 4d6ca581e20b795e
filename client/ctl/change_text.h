// SPDX-License-Identifier: Apache-2.0
// A change as people read it: values before and after, and what follows.
#ifndef MEMTUNED_CLIENT_CTL_CHANGE_TEXT_H_
#define MEMTUNED_CLIENT_CTL_CHANGE_TEXT_H_

#include <memtuned/v1/tuning.pb.h>

#include <string>
#include <vector>

#include "client/ctl/format.h"

namespace memtuned::ctl {

// The parts of a heading: "plan only, nothing written" or "applied", then
// generation and etag.
std::vector<std::string> ChangeParts(const v1::Change& change);

// The lines below the heading: a value a line, then effects, risks. Equal
// effects of several zones share a line; `all_zones` names every one of them.
std::vector<std::string> ChangeLines(const v1::Change& change,
                                     const Formatter& format, bool all_zones);

}  // namespace memtuned::ctl

#endif  // MEMTUNED_CLIENT_CTL_CHANGE_TEXT_H_
