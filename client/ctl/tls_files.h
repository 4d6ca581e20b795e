// SPDX-License-Identifier: Apache-2.0
// What TLS to a daemon needs of files.
#ifndef MEMTUNED_CLIENT_CTL_TLS_FILES_H_
#define MEMTUNED_CLIENT_CTL_TLS_FILES_H_

#include <string>

namespace memtuned::ctl {

// PEM files for TCP: whom to trust, and who we are. The server's certificate
// must be for `server_name`, or for the target's host when that is "".
struct TlsFiles {
  std::string ca, certificate, key;
  std::string server_name;
};

}  // namespace memtuned::ctl

#endif  // MEMTUNED_CLIENT_CTL_TLS_FILES_H_
