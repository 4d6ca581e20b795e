// SPDX-License-Identifier: Apache-2.0
// Which sets take effect, and when.
#include "daemon/tls/certificate_reloader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <functional>

#include "tests/daemon/tls/test_certificates.h"

namespace memtuned {
namespace {

using std::chrono::milliseconds;
using ::testing::HasSubstr;

bool Eventually(const std::function<bool()>& condition) {
  for (int i = 0; i < 1000; ++i) {
    if (condition()) return true;
    std::this_thread::sleep_for(milliseconds(5));
  }
  return false;
}

class CertificateReloaderTest : public testing::Test {
 protected:
  CertificateReloaderTest() {
    folder_.Rotate(first_, ca_.certificate);
    auto reloader = CertificateReloader::Create(folder_.paths());
    EXPECT_TRUE(reloader.ok()) << reloader.status();
    reloader_ = *std::move(reloader);
  }

  std::string key() { return reloader_->Current()->key.text; }
  int64_t server_failures() { return reloader_->state().server_failures; }
  int64_t ca_failures() { return reloader_->state().ca_failures; }

  CertificateFolder folder_;
  const Pair ca_ = MakeCa("ca");
  const Pair first_ = MakePair({}, &ca_);
  const Pair second_ = MakePair({.end = 7200}, &ca_);
  std::unique_ptr<CertificateReloader> reloader_;
};

TEST_F(CertificateReloaderTest, FindsARotationByItself) {
  reloader_->Start(milliseconds(5));
  const SystemTime before = reloader_->state().server_expiry;

  folder_.Rotate(second_, ca_.certificate);

  EXPECT_TRUE(Eventually([&] { return key() == second_.key; }));
  EXPECT_GT(reloader_->state().server_expiry, before);
  EXPECT_EQ(server_failures() + ca_failures(), 0);
}

TEST_F(CertificateReloaderTest, KeepsTheSameSetWhileNothingChanges) {
  const auto before = reloader_->Current();

  reloader_->LookNow();

  EXPECT_EQ(reloader_->Current(), before);
}

// Certificate and key are written one after the other, some time apart.
TEST_F(CertificateReloaderTest, LetsFilesSettleBeforeItJudges) {
  folder_.Overwrite("server.pem", second_.certificate);
  reloader_->Look();
  folder_.Overwrite("key.pem", second_.key);
  reloader_->Look();
  EXPECT_EQ(key(), first_.key);

  reloader_->Look();

  EXPECT_EQ(key(), second_.key);
  EXPECT_EQ(server_failures(), 0);
}

TEST_F(CertificateReloaderTest, KeepsTheLastGoodSetAndCountsBadOnesOnce) {
  folder_.Overwrite("server.pem", second_.certificate);
  for (int i = 0; i < 3; ++i) reloader_->LookNow();

  EXPECT_EQ(key(), first_.key);
  EXPECT_EQ(server_failures(), 1);
  EXPECT_EQ(ca_failures(), 0);

  folder_.Overwrite("ca.pem", ca_.certificate.substr(0, 300));
  reloader_->LookNow();

  EXPECT_EQ(key(), first_.key);
  EXPECT_EQ(server_failures(), 2);
  EXPECT_EQ(ca_failures(), 1);

  folder_.Overwrite("ca.pem", ca_.certificate);
  folder_.Overwrite("key.pem", second_.key);
  reloader_->LookNow();

  EXPECT_EQ(key(), second_.key);
  EXPECT_EQ(server_failures(), 2);
}

TEST_F(CertificateReloaderTest, ABadCaHoldsBackAGoodCertificate) {
  folder_.Rotate(second_, MakeCa("old", -60).certificate);
  reloader_->LookNow();

  EXPECT_EQ(key(), first_.key);
  EXPECT_EQ(server_failures(), 0);
  EXPECT_EQ(ca_failures(), 1);
}

TEST_F(CertificateReloaderTest, TakesACertificateOnceItsTimeHasCome) {
  reloader_->Start(milliseconds(5));
  const Pair early = MakePair({.begin = 2}, &ca_);

  folder_.Rotate(early, ca_.certificate);

  EXPECT_TRUE(Eventually([&] { return server_failures() == 1; }));
  EXPECT_EQ(key(), first_.key);
  EXPECT_TRUE(Eventually([&] { return key() == early.key; }));
  EXPECT_EQ(server_failures(), 1);
}

TEST_F(CertificateReloaderTest, SurvivesFilesThatVanish) {
  folder_.Overwrite("ca.pem", "");
  std::filesystem::remove(folder_.paths().key);
  reloader_->LookNow();

  EXPECT_EQ(key(), first_.key);
  EXPECT_EQ(server_failures(), 1);
  EXPECT_EQ(ca_failures(), 1);
}

TEST_F(CertificateReloaderTest, RefusesToStartWithABadSetNamingFileAndReason) {
  folder_.Overwrite("key.pem", second_.key);

  const auto reloader = CertificateReloader::Create(folder_.paths());

  EXPECT_EQ(reloader.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(reloader.status().message()),
              HasSubstr("/live/key.pem: does not fit the certificate in "));
}

}  // namespace
}  // namespace memtuned
