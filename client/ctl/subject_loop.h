// SPDX-License-Identifier: Apache-2.0
// Reading verbs run once for each subject; one that fails does not hide the
// others.
#ifndef MEMTUNED_CLIENT_CTL_SUBJECT_LOOP_H_
#define MEMTUNED_CLIENT_CTL_SUBJECT_LOOP_H_

#include <functional>
#include <string>

#include "absl/status/statusor.h"
#include "client/ctl/connection.h"
#include "client/ctl/exit_code.h"
#include "client/ctl/session.h"

namespace memtuned::ctl {

using SubjectReader =
    std::function<absl::Status(Connection&, const std::string& subject)>;

// Calls `read` for each subject of the session.
// Returns: kDone, or kPartial when some subjects failed; their errors are
// printed. Errors: the last one, when all subjects failed.
absl::StatusOr<ExitCode> ForEachSubject(Session& session,
                                        const SubjectReader& read);

// Which zones --node and --zone select.
class ZoneFilter {
 public:
  explicit ZoneFilter(const Invocation& invocation);

  bool Matches(int node, const std::string& zone) const;
  // Removes the zones that do not match.
  // Errors: kNotFound when none is left, naming the options.
  absl::Status Apply(const std::string& subject,
                     google::protobuf::RepeatedPtrField<v1::Zone>& zones) const;

 private:
  std::vector<int> nodes_;
  std::vector<std::string> zones_;
};

// The page size of `subject`.
absl::StatusOr<int64_t> PageSizeBytes(Connection& connection,
                                      const std::string& subject);

}  // namespace memtuned::ctl

#endif  // MEMTUNED_CLIENT_CTL_SUBJECT_LOOP_H_
