// SPDX-License-Identifier: Apache-2.0
// One run of memtunectl: the command line, where output goes and how it looks,
// and the connection, made when a verb first asks for it.
#ifndef MEMTUNED_CLIENT_CTL_SESSION_H_
#define MEMTUNED_CLIENT_CTL_SESSION_H_

#include <memory>
#include <ostream>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "client/ctl/format.h"
#include "client/ctl/invocation.h"
#include "client/ctl/table_printer.h"
#include "client/ctl/target.h"
#include "client/ctl/tls_files.h"

namespace google::protobuf {
class Message;
}
namespace memtuned::v1 {
class SampleInfo;
}

namespace memtuned::ctl {

class Connection;

// Where a session writes and what that can show.
struct Terminal {
  std::ostream& out;
  std::ostream& err;
  bool is_terminal = false;  // out is one
  int width = 0;             // columns; 0: no limit
  Glyphs glyphs;
};

// The daemon a session talks to.
struct Route {
  std::string target;  // as ParseTarget reads it
  TlsFiles tls;
  bool one_deadline = false;  // --timeout is for all calls together
};

// Thread safety: caller's thread.
class Session {
 public:
  Session(Invocation invocation, const Terminal& terminal, Route route);
  ~Session();

  const Invocation& invocation() const { return invocation_; }
  const Formatter& format() const { return format_; }
  std::ostream& out() { return terminal_.out; }
  bool is_terminal() const { return terminal_.is_terminal; }

  // json or yaml: print messages, not tables.
  bool for_scripts() const;
  bool wide() const;
  TableStyle style() const;

  // The connection to the route's target.
  // Errors: kInvalidArgument for a bad address, else Connection::Create's.
  absl::StatusOr<Connection*> Connect();

  // The subjects the verb is about, by the table's SubjectUse.
  // Errors: kInvalidArgument for a change without --subject when the daemon
  // serves several.
  absl::StatusOr<std::vector<std::string>> Subjects();

  // Prints a message for scripts; a line of its own with `line`.
  void PrintMessage(const google::protobuf::Message& message,
                    bool line = false);
  // Prints "SUBJECT at TARGET · part · part"; a blank line before all but
  // the first.
  void PrintHeading(const std::string& subject,
                    const std::vector<std::string>& parts);
  // The parts of a heading that a sample tells: generation, policy, age.
  std::vector<std::string> SampleParts(const v1::SampleInfo& sample) const;
  void PrintTable(const TablePrinter& table);
  // A failure of one subject among several, on the error stream.
  void PrintWarning(const std::string& text);

 private:
  const Invocation invocation_;
  const Terminal terminal_;
  const Route route_;
  const Formatter format_;
  std::unique_ptr<Connection> connection_;
  bool printed_heading_ = false;
};

}  // namespace memtuned::ctl

#endif  // MEMTUNED_CLIENT_CTL_SESSION_H_
