// SPDX-License-Identifier: Apache-2.0
// Mutual TLS over real sockets: who gets in, and what rotations do to those
// who come and those who are there.
#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <grpcpp/create_channel.h>
#include <grpcpp/security/credentials.h>
#include <gtest/gtest.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <thread>

#include "daemon/tls/certificate_reloader.h"
#include "tests/daemon/rpc/test_server.h"
#include "tests/daemon/tls/test_certificates.h"

namespace memtuned {
namespace {

using ::testing::HasSubstr;

// A connection to a port of this machine.
int ConnectTo(const std::string& address) {
  const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in to{};
  to.sin_family = AF_INET;
  to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  to.sin_port = htons(
      static_cast<uint16_t>(std::stoi(address.substr(address.rfind(':') + 1))));
  EXPECT_EQ(connect(fd, reinterpret_cast<sockaddr*>(&to), sizeof(to)), 0);
  return fd;
}

class TlsTest : public testing::Test {
 protected:
  TlsTest() {
    folder_.Rotate(server_, ca_.certificate);
    auto reloader = CertificateReloader::Create(folder_.paths());
    EXPECT_TRUE(reloader.ok()) << reloader.status();
    reloader_ = *std::move(reloader);
    test_server_ =
        std::make_unique<TestServer>(std::vector<FakeOptions>{FakeOptions{}},
                                     SamplerOptions{}, reloader_.get());
    address_ = test_server_->server().tls_address();
  }

  // A channel of its own: no connection or session of another is used.
  std::shared_ptr<grpc::Channel> Channel(
      const std::shared_ptr<grpc::ChannelCredentials>& credentials) {
    grpc::ChannelArguments arguments;
    arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
    return grpc::CreateCustomChannel(address_, credentials, arguments);
  }
  std::shared_ptr<grpc::Channel> Channel(const Pair* client,
                                         const std::string& server_ca) {
    grpc::SslCredentialsOptions options;
    options.pem_root_certs = server_ca;
    if (client != nullptr) {
      options.pem_cert_chain = client->certificate;
      options.pem_private_key = client->key;
    }
    return Channel(grpc::SslCredentials(options));
  }

  grpc::Status Call(const std::shared_ptr<grpc::Channel>& channel) {
    auto stub = v1::TopologyService::NewStub(channel);
    v1::ListSubjectsResponse response;
    return stub->ListSubjects(Soon().get(), {}, &response);
  }
  // A new client that trusts `server_ca` calls; the reason it cannot.
  std::string Refusal(const Pair* client, const std::string& server_ca) {
    const grpc::Status status = Call(Channel(client, server_ca));
    if (status.ok()) return "";
    EXPECT_EQ(status.error_code(), grpc::StatusCode::UNAVAILABLE);
    return status.error_message();
  }
  bool GetsIn(const Pair& client, const std::string& server_ca) {
    return Refusal(&client, server_ca).empty();
  }

  CertificateFolder folder_;
  const Pair ca_ = MakeCa("ca");
  const Pair server_ = MakePair({.name = "server"}, &ca_);
  const Pair client_ = MakePair({.name = "client"}, &ca_);
  std::unique_ptr<CertificateReloader> reloader_;
  std::unique_ptr<TestServer> test_server_;
  std::string address_;
};

TEST_F(TlsTest, ServesAClientOfItsCaBesideTheSocket) {
  EXPECT_EQ(Refusal(&client_, ca_.certificate), "");
  EXPECT_TRUE(Call(test_server_->channel()).ok());
  EXPECT_THAT(address_, HasSubstr("127.0.0.1:"));
}

TEST_F(TlsTest, RefusesAClientWithoutACertificate) {
  EXPECT_NE(Refusal(nullptr, ca_.certificate), "");
}

TEST_F(TlsTest, RefusesAClientOfAnotherCa) {
  const Pair other_ca = MakeCa("other");
  const Pair namesake_ca = MakeCa("ca");
  const Pair other = MakePair({.name = "client"}, &other_ca);
  const Pair namesake = MakePair({.name = "client"}, &namesake_ca);

  EXPECT_FALSE(GetsIn(other, ca_.certificate));
  EXPECT_FALSE(GetsIn(namesake, ca_.certificate));
  EXPECT_TRUE(GetsIn(client_, ca_.certificate));
}

TEST_F(TlsTest, RefusesAClientWhoseCertificateIsNotValidNow) {
  const Pair old = MakePair({.begin = -7200, .end = -60}, &ca_);
  const Pair early = MakePair({.begin = 3600, .end = 7200}, &ca_);

  EXPECT_FALSE(GetsIn(old, ca_.certificate));
  EXPECT_FALSE(GetsIn(early, ca_.certificate));
}

TEST_F(TlsTest, RefusesPlainText) {
  EXPECT_EQ(Call(Channel(grpc::InsecureChannelCredentials())).error_code(),
            grpc::StatusCode::UNAVAILABLE);
}

// Whether a handshake of one TLS version ends well, with everything allowed
// that this library can.
bool HandshakesWith(int version, const std::string& address,
                    const Pair& client) {
  SSL_CTX* context = SSL_CTX_new(TLS_client_method());
  SSL_CTX_set_security_level(context, 0);
  SSL_CTX_set_min_proto_version(context, version);
  SSL_CTX_set_max_proto_version(context, version);
  BIO* bio = BIO_new_mem_buf(client.certificate.data(), -1);
  X509* certificate = PEM_read_bio_X509(bio, nullptr, nullptr, nullptr);
  BIO_free(bio);
  bio = BIO_new_mem_buf(client.key.data(), -1);
  EVP_PKEY* key = PEM_read_bio_PrivateKey(bio, nullptr, nullptr, nullptr);
  BIO_free(bio);
  SSL_CTX_use_certificate(context, certificate);
  SSL_CTX_use_PrivateKey(context, key);
  SSL* ssl = SSL_new(context);
  const int fd = ConnectTo(address);
  SSL_set_fd(ssl, fd);
  static const unsigned char kAlpn[] = {2, 'h', '2'};
  SSL_set_alpn_protos(ssl, kAlpn, sizeof(kAlpn));
  const bool done = SSL_connect(ssl) == 1;
  SSL_free(ssl);
  close(fd);
  X509_free(certificate);
  EVP_PKEY_free(key);
  SSL_CTX_free(context);
  return done;
}

TEST_F(TlsTest, SpeaksTls12And13AndNothingOlder) {
  EXPECT_TRUE(HandshakesWith(TLS1_3_VERSION, address_, client_));
  EXPECT_TRUE(HandshakesWith(TLS1_2_VERSION, address_, client_));
  EXPECT_FALSE(HandshakesWith(TLS1_1_VERSION, address_, client_));
  EXPECT_FALSE(HandshakesWith(TLS1_VERSION, address_, client_));
}

// Each time the certificate, the key and the CA of both sides change.
TEST_F(TlsTest, FollowsThreeRotationsInARow) {
  Pair old_ca = ca_;
  Pair old_client = client_;
  for (int i = 0; i < 3; ++i) {
    const Pair ca = MakeCa("ca" + std::to_string(i));
    const Pair server = MakePair({.name = "server"}, &ca);
    const Pair client = MakePair({.name = "client"}, &ca);

    folder_.Rotate(server, ca.certificate);
    reloader_->LookNow();

    EXPECT_EQ(Refusal(&client, ca.certificate), "") << i;
    EXPECT_FALSE(GetsIn(old_client, ca.certificate)) << i;
    EXPECT_FALSE(GetsIn(client, old_ca.certificate)) << i;
    old_ca = ca;
    old_client = client;
  }
  EXPECT_EQ(reloader_->state().server_failures, 0);
}

class BadRotationTest : public TlsTest {
 protected:
  // The set of the start is served on.
  void ExpectUnimpressed() {
    reloader_->LookNow();

    EXPECT_EQ(Refusal(&client_, ca_.certificate), "");
    EXPECT_EQ(
        reloader_->state().server_failures + reloader_->state().ca_failures, 1);
  }
  const Pair new_ca_ = MakeCa("new");
};

TEST_F(BadRotationTest, AMismatchedPairChangesNothing) {
  const Pair next = MakePair({}, &new_ca_);
  folder_.Rotate({next.certificate, server_.key}, new_ca_.certificate);
  ExpectUnimpressed();
}

TEST_F(BadRotationTest, AnExpiredCertificateChangesNothing) {
  folder_.Rotate(MakePair({.begin = -7200, .end = -60}, &new_ca_),
                 new_ca_.certificate);
  ExpectUnimpressed();
}

TEST_F(BadRotationTest, ACertificateNotYetValidChangesNothing) {
  folder_.Rotate(MakePair({.begin = 3600, .end = 7200}, &new_ca_),
                 new_ca_.certificate);
  ExpectUnimpressed();
}

TEST_F(BadRotationTest, TornPemChangesNothing) {
  const Pair next = MakePair({}, &new_ca_);
  folder_.Rotate(
      {next.certificate.substr(0, next.certificate.size() / 2), next.key},
      new_ca_.certificate);
  ExpectUnimpressed();
}

TEST_F(BadRotationTest, ATornCaBundleChangesNothing) {
  folder_.Rotate(MakePair({}, &new_ca_),
                 ca_.certificate + new_ca_.certificate.substr(0, 100));
  ExpectUnimpressed();
}

TEST_F(TlsTest, AnOpenStreamOutlivesItsCaAndNewClientsOfItAreRefused) {
  auto stub = v1::StatsService::NewStub(Channel(&client_, ca_.certificate));
  const auto context = Soon();
  v1::WatchSnapshotsRequest request;
  request.set_name("pools/default");
  auto reader = stub->WatchSnapshots(context.get(), request);
  v1::WatchSnapshotsResponse event;
  ASSERT_TRUE(reader->Read(&event));
  const Pair new_ca = MakeCa("new");
  const Pair new_client = MakePair({.name = "client"}, &new_ca);

  folder_.Rotate(MakePair({.name = "server"}, &new_ca), new_ca.certificate);
  reloader_->LookNow();

  EXPECT_TRUE(GetsIn(new_client, new_ca.certificate));
  EXPECT_FALSE(GetsIn(client_, new_ca.certificate));
  for (int i = 0; i < 2; ++i) {
    test_server_->sampler().Refresh(std::chrono::steady_clock::now() +
                                    std::chrono::seconds(5));
    EXPECT_TRUE(reader->Read(&event));
  }
  context->TryCancel();
}

TEST_F(TlsTest, ABundleOfBothCasServesTheClientsOfBoth) {
  const Pair new_ca = MakeCa("new");
  const Pair new_client = MakePair({.name = "client"}, &new_ca);

  folder_.Rotate(server_, ca_.certificate + new_ca.certificate);
  reloader_->LookNow();

  EXPECT_TRUE(GetsIn(client_, ca_.certificate));
  EXPECT_TRUE(GetsIn(new_client, ca_.certificate));
}

// Handshakes while sets are swapped under them: each sees one set or the
// other, never a key of one with a certificate of the other.
TEST_F(TlsTest, NoHandshakeFailsWhileSetsChange) {
  const Pair other = MakePair({.name = "other"}, &ca_);
  std::atomic<bool> stop{false};
  std::thread rotating([&] {
    for (int i = 0; !stop; ++i) {
      folder_.Rotate(i % 2 == 0 ? other : server_, ca_.certificate);
      reloader_->LookNow();
    }
  });

  for (int i = 0; i < 100; ++i) {
    ASSERT_EQ(Refusal(&client_, ca_.certificate), "") << i;
  }
  stop = true;
  rotating.join();
  EXPECT_EQ(reloader_->state().server_failures, 0);
}

class BareServerTest : public TlsTest {
 protected:
  BareServerTest() {
    options_.listen = "unix:/tmp/memtuned-tls-test." + std::to_string(getpid());
    options_.listen_tls = "127.0.0.1:0";
    options_.certificates = reloader_.get();
  }
  ~BareServerTest() override { unlink(options_.listen.substr(5).c_str()); }

  const Registry registry_{{}};
  RpcServerOptions options_;
};

TEST_F(BareServerTest, ClosesAConnectionThatNeverShakesHands) {
  options_.handshake_timeout = std::chrono::milliseconds(200);
  const auto server = RpcServer::Start(options_, &registry_, nullptr);
  ASSERT_TRUE(server.ok()) << server.status();

  const int fd = ConnectTo((*server)->tls_address());
  const timeval patience{.tv_sec = 5, .tv_usec = 0};
  setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
  char byte;

  EXPECT_EQ(read(fd, &byte, 1), 0);
  close(fd);
}

TEST_F(BareServerTest, SaysWhichAddressIsTaken) {
  options_.listen_tls = address_;

  const auto server = RpcServer::Start(options_, &registry_, nullptr);

  EXPECT_EQ(server.status().code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(std::string(server.status().message()),
            "cannot listen on " + address_);
}

}  // namespace
}  // namespace memtuned
