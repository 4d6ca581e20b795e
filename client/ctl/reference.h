// SPDX-License-Identifier: Apache-2.0
// The tables of memtuned as Markdown, for the README's reference.
#ifndef MEMTUNED_CLIENT_CTL_REFERENCE_H_
#define MEMTUNED_CLIENT_CTL_REFERENCE_H_

#include <string>

namespace memtuned::ctl {

std::string CommandReference();  // verbs with arguments and help
std::string OptionReference();   // options of every verb
std::string ExitCodeReference();
std::string TunableReference();  // core/tunables.h
std::string MetricReference();   // core/stats.h

}  // namespace memtuned::ctl

#endif  // MEMTUNED_CLIENT_CTL_REFERENCE_H_
