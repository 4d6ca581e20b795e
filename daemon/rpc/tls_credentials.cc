// SPDX-License-Identifier: Apache-2.0
// gRPC's C interface asks a callback for the set at each handshake and keeps
// the previous one when there is no other. The C++ interface does not pass it
// on; its file watcher reads root, key and certificate one by one, and has no
// last good set.
#include "daemon/rpc/tls_credentials.h"

#include <grpc/grpc.h>
#include <grpc/grpc_security.h>

#include <utility>

#include "core/base/check.h"

namespace memtuned {
namespace {

class TlsCredentials : public grpc::ServerCredentials {
 public:
  explicit TlsCredentials(const CertificateReloader* certificates)
      : certificates_(certificates),
        credentials_(grpc_ssl_server_credentials_create_with_options(
            grpc_ssl_server_credentials_create_options_using_config_fetcher(
                GRPC_SSL_REQUEST_AND_REQUIRE_CLIENT_CERTIFICATE_AND_VERIFY,
                Fetch, this))) {}
  ~TlsCredentials() override { grpc_server_credentials_release(credentials_); }

  // Callers are judged per call, from their certificate.
  void SetAuthMetadataProcessor(
      const std::shared_ptr<grpc::AuthMetadataProcessor>&) override {
    CHECK(false);
  }

 private:
  int AddPortToServer(const std::string& address,
                      grpc_server* server) override {
    return grpc_server_add_http2_port(server, address.c_str(), credentials_);
  }

  // gRPC serialises the calls of one address.
  static grpc_ssl_certificate_config_reload_status Fetch(
      void* self, grpc_ssl_server_certificate_config** config) {
    TlsCredentials& me = *static_cast<TlsCredentials*>(self);
    auto now = me.certificates_->Current();
    if (now == me.handed_out_) {
      return GRPC_SSL_CERTIFICATE_CONFIG_RELOAD_UNCHANGED;
    }
    const grpc_ssl_pem_key_cert_pair pair = {now->key.text.c_str(),
                                             now->certificate.text.c_str()};
    *config = grpc_ssl_server_certificate_config_create(
        now->client_ca.text.c_str(), &pair, 1);
    me.handed_out_ = std::move(now);
    return GRPC_SSL_CERTIFICATE_CONFIG_RELOAD_NEW;
  }

  const CertificateReloader* const certificates_;
  std::shared_ptr<const CertificateSet> handed_out_;
  grpc_server_credentials* const credentials_;
};

}  // namespace

std::shared_ptr<grpc::ServerCredentials> MakeTlsCredentials(
    const CertificateReloader* certificates) {
  return std::make_shared<TlsCredentials>(certificates);
}

}  // namespace memtuned
