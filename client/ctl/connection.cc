// SPDX-License-Identifier: Apache-2.0
// Implementation of connection.h.
#include "client/ctl/connection.h"

#include <chrono>
#include <fstream>
#include <iterator>
#include <tuple>

#include "client/ctl/format.h"

namespace memtuned::ctl {
namespace {

// Replies are cut at about 3 MiB by the daemon; a later one may send more.
constexpr int kMaxReplyBytes = 64 << 20;

absl::StatusOr<std::string> ReadPem(const char* option,
                                    const std::string& path) {
  if (path.empty()) {
    return absl::InvalidArgumentError(
        std::string("TCP is spoken with TLS only: ") + option +
        " names no file (nor does the context)");
  }
  std::ifstream file(path);
  std::string text((std::istreambuf_iterator<char>(file)), {});
  if (!file || text.find("-----BEGIN") == std::string::npos) {
    return absl::InvalidArgumentError(std::string(option) + " is '" + path +
                                      "'; no PEM file can be read there");
  }
  return text;
}

absl::StatusOr<std::shared_ptr<grpc::ChannelCredentials>> MakeCredentials(
    const Target& target, const TlsFiles& tls) {
  if (!target.is_tcp()) return grpc::InsecureChannelCredentials();
  grpc::SslCredentialsOptions options;
  for (auto [name, path, text] :
       {std::tuple{"--tls-ca", &tls.ca, &options.pem_root_certs},
        std::tuple{"--tls-certificate", &tls.certificate,
                   &options.pem_cert_chain},
        std::tuple{"--tls-key", &tls.key, &options.pem_private_key}}) {
    auto pem = ReadPem(name, *path);
    if (!pem.ok()) return pem.status();
    *text = std::move(*pem);
  }
  return grpc::SslCredentials(options);
}

std::shared_ptr<grpc::Channel> MakeChannel(
    const Target& target, const std::string& server_name,
    const std::shared_ptr<grpc::ChannelCredentials>& credentials) {
  grpc::ChannelArguments arguments;
  arguments.SetMaxReceiveMessageSize(kMaxReplyBytes);
  arguments.SetUserAgentPrefix("memtunectl");
  if (target.is_tcp() && !server_name.empty()) {
    arguments.SetSslTargetNameOverride(server_name);
  }
  return grpc::CreateCustomChannel(target.Address(), credentials, arguments);
}

}  // namespace

absl::StatusOr<std::unique_ptr<Connection>> Connection::Create(
    const Target& target, const TlsFiles& tls, const CallLimit& limit) {
  const absl::Status checked = CheckSocket(target);
  if (!checked.ok()) return checked;
  auto credentials = MakeCredentials(target, tls);
  if (!credentials.ok()) return credentials.status();
  return std::unique_ptr<Connection>(
      new Connection(target, tls.server_name, *credentials, limit));
}

Connection::Connection(
    const Target& target, const std::string& server_name,
    const std::shared_ptr<grpc::ChannelCredentials>& credentials,
    const CallLimit& limit)
    : target_(target),
      limit_(limit),
      created_(std::chrono::system_clock::now()),
      channel_(MakeChannel(target, server_name, credentials)),
      topology_(v1::TopologyService::NewStub(channel_)),
      stats_(v1::StatsService::NewStub(channel_)),
      tuning_(v1::TuningService::NewStub(channel_)),
      health_(grpc::health::v1::Health::NewStub(channel_)) {}

absl::Status Connection::Explain(const absl::Status& failure) const {
  // An answer with details came from the daemon: it speaks for itself.
  if (!ErrorReason(failure).empty()) return failure;
  if (absl::IsUnavailable(failure)) return ExplainFailure(target_, failure);
  if (absl::IsDeadlineExceeded(failure)) {
    return absl::DeadlineExceededError(
        "no answer from " + target_.Address() + " within " +
        Formatter(Glyphs::Ascii()).Seconds(limit_.seconds) + " (--timeout)");
  }
  return failure;
}

void Connection::SetDeadline(grpc::ClientContext& context) const {
  const auto from =
      limit_.together ? created_ : std::chrono::system_clock::now();
  context.set_deadline(from +
                       std::chrono::duration_cast<std::chrono::microseconds>(
                           std::chrono::duration<double>(limit_.seconds)));
}

}  // namespace memtuned::ctl
