// SPDX-License-Identifier: Apache-2.0
// Real threads and processes that end in every way there is, and what the word
// says then.
#include "core/base/life.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <functional>
#include <thread>

namespace memtuned {
namespace {

class LifeTest : public testing::Test {
 protected:
  LifeTest() {
    file_ = memfd_create("lives", MFD_CLOEXEC);
    EXPECT_EQ(ftruncate(file_, 2 * kPageSizeBytes), 0);
    void* pages = mmap(nullptr, 2 * kPageSizeBytes, PROT_READ | PROT_WRITE,
                       MAP_SHARED, file_, 0);
    EXPECT_NE(pages, MAP_FAILED);
    pages_ = static_cast<LifePage*>(pages);
  }
  ~LifeTest() override {
    munmap(pages_, 2 * kPageSizeBytes);
    close(file_);
  }

  bool Begin(Life& life, int page = 1) {
    return life.Begin(file_, static_cast<uint64_t>(page) * kPageSizeBytes,
                      pages_[page]);
  }
  Shared32& Word(int page = 1) { return pages_[page].word; }
  bool Died() { return (Load(Word()) & kLifeDied) != 0; }

  // A child that runs `body`, says that it is ready, and waits to be ended.
  pid_t Child(const std::function<void()>& body) {
    int ready[2];
    EXPECT_EQ(pipe(ready), 0);
    const pid_t child = fork();
    if (child == 0) {
      body();
      if (write(ready[1], "r", 1) != 1) _exit(1);
      for (;;) pause();
    }
    char byte;
    EXPECT_EQ(read(ready[0], &byte, 1), 1);
    close(ready[0]);
    close(ready[1]);
    return child;
  }

  int file_ = -1;
  LifePage* pages_ = nullptr;
};

TEST_F(LifeTest, IsTheThreadsNumberWhileItLives) {
  Life life;
  ASSERT_TRUE(Begin(life));

  EXPECT_EQ(Load(Word()), static_cast<uint32_t>(gettid()));
  life.End();
  EXPECT_EQ(Load(Word()), 0u);
}

TEST_F(LifeTest, SaysSoSoonAfterAKill) {
  const pid_t child = Child([this] {
    auto* life = new Life;
    if (!Begin(*life)) _exit(1);
  });
  ASSERT_FALSE(Died());

  const auto start = std::chrono::steady_clock::now();
  kill(child, SIGKILL);
  while (!Died() &&
         std::chrono::steady_clock::now() - start < std::chrono::seconds(10)) {
    std::this_thread::yield();
  }

  EXPECT_TRUE(Died());
  waitpid(child, nullptr, 0);
}

TEST_F(LifeTest, SaysSoWhenTheProcessCallsExec) {
  const pid_t child = fork();
  if (child == 0) {
    auto* life = new Life;
    if (!Begin(*life)) _exit(1);
    execl("/bin/sleep", "sleep", "60", static_cast<char*>(nullptr));
    _exit(1);
  }
  for (int i = 0; i < 10000 && !Died(); ++i) usleep(1000);

  EXPECT_TRUE(Died());
  EXPECT_EQ(waitpid(child, nullptr, WNOHANG), 0);  // it lives, as another one
  kill(child, SIGKILL);
  waitpid(child, nullptr, 0);
}

TEST_F(LifeTest, SaysSoWhenAThreadEndsWithoutAWord) {
  Life life;
  std::thread([&] { ASSERT_TRUE(Begin(life)); }).join();

  EXPECT_TRUE(Died());
}

TEST_F(LifeTest, AForkedChildsCopyIsNotTheThreads) {
  Life life;
  ASSERT_TRUE(Begin(life));
  const uint32_t mine = Load(Word());

  const pid_t child = fork();
  if (child == 0) {
    life.End();
    _exit(0);
  }
  waitpid(child, nullptr, 0);

  EXPECT_EQ(Load(Word()), mine);
}

// Whoever leaves the pool unmaps it, while other threads of the process go on
// and have yet to end.
TEST_F(LifeTest, AThreadEndsWellAfterTheSharedPageIsGone) {
  Life life;
  std::atomic<int> stage{0};
  std::thread other([&] {
    ASSERT_TRUE(Begin(life));
    stage = 1;
    while (stage != 2) std::this_thread::yield();
  });
  while (stage != 1) std::this_thread::yield();

  life.Leave();
  stage = 2;
  other.join();

  EXPECT_EQ(Load(Word()), 0u);
}

// The word is anybody's to write; the list that it is in is the thread's own.
TEST_F(LifeTest, AWordThatWasWrittenOverHarmsNobody) {
  for (uint32_t word : {0u, 1u, ~0u, kLifeDied}) {
    Life life;
    ASSERT_TRUE(Begin(life));
    Store(Word(), word);
    life.End();
    EXPECT_EQ(Load(Word()), 0u);
    Life again;  // walks over the list that End left
    ASSERT_TRUE(Begin(again));
    Life beside;
    ASSERT_TRUE(Begin(beside, 0));
  }
}

}  // namespace
}  // namespace memtuned
