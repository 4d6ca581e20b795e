// SPDX-License-Identifier: Apache-2.0
// What the judge says of good and of bad sets.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include "daemon/tls/certificate_set.h"
#include "tests/daemon/tls/test_certificates.h"

namespace memtuned {
namespace {

using ::testing::HasSubstr;

class CertificateCheckTest : public testing::Test {
 protected:
  CertificateSet Set(const std::string& chain, const std::string& key,
                     const std::string& ca) {
    return {
        {"server.pem", chain, {}}, {"key.pem", key, {}}, {"ca.pem", ca, {}}};
  }
  // The reason, "" when the set is good.
  std::string Judge(const std::string& chain, const std::string& key,
                    const std::string& ca) {
    return JudgeCertificateSet(Set(chain, key, ca), now_).Reason();
  }
  std::string JudgeChain(const std::string& chain) {
    return Judge(chain, server_.key, ca_.certificate);
  }
  std::string JudgeBundle(const std::string& bundle) {
    return Judge(server_.certificate, server_.key, bundle);
  }

  const SystemTime now_ = std::chrono::system_clock::now();
  const Pair ca_ = MakeCa("ca");
  const Pair server_ = MakePair({}, &ca_);
};

TEST_F(CertificateCheckTest, AcceptsAMatchingSetAndSaysHowLong) {
  const auto verdict = JudgeCertificateSet(
      Set(server_.certificate, server_.key, ca_.certificate), now_);

  EXPECT_TRUE(verdict.ok()) << verdict.Reason();
  EXPECT_NEAR(
      std::chrono::duration<double>(verdict.server_expiry - now_).count(), 3600,
      5);
  EXPECT_NEAR(std::chrono::duration<double>(verdict.ca_expiry - now_).count(),
              3600, 5);
}

TEST_F(CertificateCheckTest, FindsAKeyThatDoesNotFit) {
  const Pair other = MakePair({}, &ca_);

  EXPECT_EQ(Judge(server_.certificate, other.key, ca_.certificate),
            "key.pem: does not fit the certificate in server.pem");
}

TEST_F(CertificateCheckTest, FindsWhatIsNotValidNow) {
  const Pair old = MakePair({.begin = -7200, .end = -3600}, &ca_);
  const Pair early = MakePair({.begin = 3600, .end = 7200}, &ca_);

  EXPECT_THAT(Judge(old.certificate, old.key, ca_.certificate),
              HasSubstr("server.pem: certificate 1 expired at 20"));
  EXPECT_THAT(Judge(early.certificate, early.key, ca_.certificate),
              HasSubstr("server.pem: certificate 1 is not valid before 20"));
  EXPECT_THAT(JudgeBundle(MakeCa("old", -60).certificate),
              HasSubstr("ca.pem: no CA in it is valid: certificate 1 expired"));
}

TEST_F(CertificateCheckTest, TakesABundleThatStillHoldsAnExpiredCa) {
  const auto verdict =
      JudgeCertificateSet(Set(server_.certificate, server_.key,
                              MakeCa("old", -60).certificate + ca_.certificate),
                          now_);

  EXPECT_TRUE(verdict.ok()) << verdict.Reason();
  EXPECT_GT(verdict.ca_expiry, now_);
}

TEST_F(CertificateCheckTest, FollowsTheChainUpwards) {
  const Pair middle =
      MakePair({.name = "middle", .end = 1800, .is_ca = true}, &ca_);
  const Pair leaf = MakePair({.name = "leaf"}, &middle);

  const auto verdict = JudgeCertificateSet(
      Set(leaf.certificate + middle.certificate, leaf.key, ca_.certificate),
      now_);

  EXPECT_TRUE(verdict.ok()) << verdict.Reason();
  EXPECT_LT(verdict.server_expiry, now_ + std::chrono::seconds(1810));
  EXPECT_EQ(
      Judge(leaf.certificate + ca_.certificate, leaf.key, ca_.certificate),
      "server.pem: certificate 2 did not issue certificate 1");
}

TEST_F(CertificateCheckTest, RefusesACertificateForClientsOnly) {
  const Pair client = MakePair({.usage = "clientAuth"}, &ca_);

  EXPECT_THAT(Judge(client.certificate, client.key, ca_.certificate),
              HasSubstr("not for servers"));
}

// Every shorter file is refused, but those that only lack line ends.
TEST_F(CertificateCheckTest, RefusesAFileCutOffAnywhere) {
  const std::string& pem = server_.certificate;
  const std::string two = ca_.certificate + pem;
  for (size_t size = 0; size + 1 < pem.size(); ++size) {
    ASSERT_THAT(JudgeChain(pem.substr(0, size)), HasSubstr("server.pem: "))
        << size;
    ASSERT_THAT(
        Judge(pem, server_.key.substr(0, size), ca_.certificate),
        size + 1 < server_.key.size() ? HasSubstr("key.pem: ") : HasSubstr(""))
        << size;
    if (size == 0) continue;
    ASSERT_THAT(JudgeBundle(two.substr(0, ca_.certificate.size() + size)),
                HasSubstr("ca.pem: certificate 2 is torn"))
        << size;
  }
}

TEST_F(CertificateCheckTest, RefusesWhatIsNoPem) {
  EXPECT_EQ(JudgeChain("hello\n"), "server.pem: holds no certificate");
  EXPECT_EQ(JudgeBundle(""), "ca.pem: holds no certificate");
  EXPECT_THAT(JudgeChain("-----BEGIN CERTIFICATE-----\nAAAA\n"
                         "-----END CERTIFICATE-----\n"),
              HasSubstr("certificate 1 is torn or not PEM"));
  EXPECT_THAT(Judge(server_.certificate, EncryptedKey(server_), ""),
              HasSubstr("without a passphrase; ca.pem: holds no certificate"));
  EXPECT_THAT(Judge(server_.certificate, server_.certificate, ca_.certificate),
              HasSubstr("key.pem: holds no whole private key"));
}

TEST(CertificateSetTest, SaysWhatCannotBeRead) {
  CertificateFolder folder;
  const Pair ca = MakeCa("ca");
  folder.Rotate(MakePair({}, &ca), ca.certificate);
  CertificatePaths paths = folder.paths();
  const std::string pipe = folder.Write("pipe", "");
  unlink(pipe.c_str());
  ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
  const std::string big = folder.Write("big", std::string((1 << 20) + 1, 'x'));

  const CertificateSet good = ReadCertificateSet(paths);
  const CertificateSet bad = ReadCertificateSet({pipe, "/no/such/file", big});

  EXPECT_EQ(good, ReadCertificateSet(paths));
  EXPECT_TRUE(JudgeCertificateSet(good, std::chrono::system_clock::now()).ok());
  EXPECT_EQ(bad.certificate.status.message(),
            pipe + ": cannot be read: it is not a regular file");
  EXPECT_EQ(bad.key.status.message(),
            "/no/such/file: cannot be read: No such file or directory");
  EXPECT_EQ(bad.client_ca.status.message(),
            big + ": cannot be read: File too large");
  EXPECT_THAT(
      JudgeCertificateSet(bad, std::chrono::system_clock::now()).Reason(),
      HasSubstr("pipe: cannot be read: it is not a regular file; "));
}

}  // namespace
}  // namespace memtuned
