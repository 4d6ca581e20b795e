// SPDX-License-Identifier: Apache-2.0
// Shell completion. What may come next is worked out here, from the tables;
// the scripts for the shells only carry words in and candidates out, so they
// never age.
#ifndef MEMTUNED_CLIENT_CTL_COMPLETION_H_
#define MEMTUNED_CLIENT_CTL_COMPLETION_H_

#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace memtuned::ctl {

// One thing that may be typed. Text that ends in '=' is not yet a whole word.
struct Candidate {
  std::string text;
  std::string help;
};

// Asks a daemon for the names of its subjects; empty when it does not answer
// in time. `target` is the value of --target, or "".
using SubjectLister =
    std::function<std::vector<std::string>(const std::string& target)>;

// What may stand for the last of `words` (the arguments typed so far; the
// last one is begun or empty).
std::vector<Candidate> Complete(const std::vector<std::string>& words,
                                const SubjectLister& list_subjects);

// The script for "bash", "zsh" or "fish"; "" for another shell.
std::string CompletionScript(std::string_view shell);

}  // namespace memtuned::ctl

#endif  // MEMTUNED_CLIENT_CTL_COMPLETION_H_
