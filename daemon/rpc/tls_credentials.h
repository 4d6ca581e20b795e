// SPDX-License-Identifier: Apache-2.0
// Server credentials for mutual TLS 1.2 and 1.3 that follow a
// CertificateReloader. Floor 4.
#ifndef MEMTUNED_DAEMON_RPC_TLS_CREDENTIALS_H_
#define MEMTUNED_DAEMON_RPC_TLS_CREDENTIALS_H_

#include <grpcpp/security/server_credentials.h>

#include <memory>

#include "daemon/tls/certificate_reloader.h"

namespace memtuned {

// Every handshake takes the reloader's set of that moment, certificate, key
// and CAs together; connections that stand are left alone. A client without a
// certificate of one of the CAs is refused in the handshake.
//
// For one listening address. `certificates` outlives the server.
std::shared_ptr<grpc::ServerCredentials> MakeTlsCredentials(
    const CertificateReloader* certificates);

}  // namespace memtuned

#endif  // MEMTUNED_DAEMON_RPC_TLS_CREDENTIALS_H_
