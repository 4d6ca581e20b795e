// SPDX-License-Identifier: Apache-2.0
// Named contexts: where an operator's daemons are and what TLS to them needs,
// in a file, so that a command line need not say it each time.
//
//   current-context: lab
//   contexts:
//     lab:
//       target: unix:/run/memtuned/memtuned.sock
//     production:
//       targets: /etc/memtunectl/hosts      # or a list
//       tls-ca: /etc/memtunectl/ca.pem
//       tls-certificate: /etc/memtunectl/ann.pem
//       tls-key: /etc/memtunectl/ann.key
#ifndef MEMTUNED_CLIENT_CTL_CONTEXT_H_
#define MEMTUNED_CLIENT_CTL_CONTEXT_H_

#include <string>

#include "absl/status/statusor.h"
#include "client/ctl/invocation.h"
#include "client/ctl/tls_files.h"

namespace memtuned::ctl {

struct Context {
  std::string target;   // one daemon
  std::string targets;  // or several, as --targets has them
  TlsFiles tls;
};

// What the command line says (--target, --targets, --tls-...), filled up from
// the context it names with --context, or else, unless it or $MEMTUNED_TARGET
// names a target, from the file's current one. The file is $MEMTUNECTL_CONFIG,
// else $XDG_CONFIG_HOME/memtunectl.yaml, else ~/.config/memtunectl.yaml.
// Errors: kInvalidArgument naming file and line, key or context.
absl::StatusOr<Context> ContextOf(const Invocation& invocation);

// The contexts of a file's text, "" for the current one's.
absl::StatusOr<Context> ReadContext(const std::string& text,
                                    const std::string& file,
                                    const std::string& name);

}  // namespace memtuned::ctl

#endif  // MEMTUNED_CLIENT_CTL_CONTEXT_H_
