// SPDX-License-Identifier: Apache-2.0
// memtune-load as users run it, against a pool in this process.
#include <gmock/gmock.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <vector>

#include "tests/support/attach_test_server.h"

namespace memtuned::test {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

struct Output {
  int status = -1;
  std::string out, err;
};

std::string Contents(const std::string& path) {
  std::ifstream file(path);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

// A running memtune-load.
class Program {
 public:
  explicit Program(std::vector<std::string> arguments) {
    const char* folder = std::getenv("MEMTUNED_BIN_DIR");
    arguments.insert(arguments.begin(),
                     std::string(folder ? folder : "bin") + "/memtune-load");
    std::vector<char*> argv;
    for (std::string& argument : arguments) argv.push_back(argument.data());
    argv.push_back(nullptr);
    pid_ = fork();
    if (pid_ == 0) {
      const std::string out = folder_.path() + "/out";
      const std::string err = folder_.path() + "/err";
      if (!freopen(out.c_str(), "w", stdout) ||
          !freopen(err.c_str(), "w", stderr)) {
        _exit(98);
      }
      execv(argv[0], argv.data());
      _exit(99);
    }
  }

  pid_t pid() const { return pid_; }
  Output Wait() {
    int status = 0;
    waitpid(pid_, &status, 0);
    return {WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status),
            Contents(folder_.path() + "/out"),
            Contents(folder_.path() + "/err")};
  }

 private:
  TemporaryFolder folder_;
  pid_t pid_;
};

class LoadTest : public ::testing::Test {
 protected:
  std::vector<std::string> Arguments(std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), {"--socket", server_.path()});
    return arguments;
  }
  Output Execute(std::vector<std::string> arguments) {
    return Program(Arguments(std::move(arguments))).Wait();
  }
  // Runs with -o json; checks what holds for every shape.
  nlohmann::json Figures(std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), {"-o", "json"});
    const Output output = Execute(std::move(arguments));
    EXPECT_EQ(output.status, 0) << output.err;
    EXPECT_EQ(output.err, "");
    const auto json = nlohmann::json::parse(output.out, nullptr, false);
    EXPECT_FALSE(json.is_discarded()) << output.out;
    if (json.is_discarded()) return json;
    EXPECT_GT(json["operations"], 0);
    EXPECT_GT(json["operations_per_second"], 0);
    EXPECT_EQ(json["allocations"], json["frees"]);
    EXPECT_EQ(json["counters"]["refused_frees"], 0);
    const auto& counters = json["counters"];
    // The pool's own count agrees with the program's.
    EXPECT_EQ(json["allocations"].get<uint64_t>(),
              counters["pageset_allocations"].get<uint64_t>() +
                  counters["direct_allocations"].get<uint64_t>());
    EXPECT_EQ(server_.AllocatedPages(), 0u);
    return json;
  }

  AttachTestServer server_;
};

TEST_F(LoadTest, Lifo) {
  const auto json = Figures({"--seconds", "1", "lifo"});

  EXPECT_EQ(json["shape"], "lifo");
  EXPECT_EQ(json["pool"], "test");
  EXPECT_GE(json["seconds"], 0.99);
  EXPECT_LT(json["seconds"], 10);
  EXPECT_LT(json["zone_lock_acquisitions_per_page"], 0.001);
}

TEST_F(LoadTest, BurstRefillsAndFlushes) {
  const auto json = Figures(
      {"--seconds", "1", "--threads", "2", "--order", "1", "burst", "1000"});

  EXPECT_EQ(json["n"], 1000);
  EXPECT_EQ(json["order"], 1);
  EXPECT_EQ(json["threads"], 2);
  EXPECT_EQ(json["allocated_pages"].get<uint64_t>(),
            json["allocations"].get<uint64_t>() * 2);
  EXPECT_GT(json["counters"]["refilled_pages"], 0);
  EXPECT_GT(json["counters"]["zone_lock_acquisitions"], 0);
}

TEST_F(LoadTest, StreamOfOrderThreeByDefault) {
  const auto json = Figures({"--seconds", "1", "--processes", "2", "stream"});

  EXPECT_EQ(json["order"], 3);
  EXPECT_EQ(json["processes"], 2);
}

TEST_F(LoadTest, ProducerConsumerBetweenThreads) {
  const auto json =
      Figures({"--seconds", "1", "--threads", "4", "producer-consumer", "64"});

  EXPECT_EQ(json["threads"], 4);
}

TEST_F(LoadTest, ProducerConsumerBetweenProcesses) {
  const auto json = Figures({"--seconds", "1", "--processes", "4", "--threads",
                             "2", "producer-consumer"});

  EXPECT_EQ(json["processes"], 4);
}

TEST_F(LoadTest, FaultTouchesTheMemory) {
  const auto json = Figures({"--seconds", "1", "--processes", "2", "--threads",
                             "2", "--order", "2", "fault", "50"});

  EXPECT_EQ(json["allocation_failures"], 0);
}

TEST_F(LoadTest, AnExhaustedPoolIsCountedNotFatal) {
  const auto json =
      Figures({"--seconds", "0.3", "--order", "8", "burst", "1000"});

  EXPECT_GT(json["allocation_failures"], 0);
  EXPECT_EQ(json["counters"]["allocation_failures"],
            json["allocation_failures"]);
}

TEST_F(LoadTest, TheTableNamesEveryCounter) {
  const Output output = Execute({"--seconds", "0.1", "lifo"});

  EXPECT_EQ(output.status, 0) << output.err;
  for (const char* line :
       {"pool test: lifo, order 0, 1 process x 1 thread",
        "operations per second", "zone-lock acquisitions per page",
        "allocation failures", "trylock_misses", "depot_pops",
        "flushed_pages_decay"}) {
    EXPECT_THAT(output.out, HasSubstr(line));
  }
}

TEST_F(LoadTest, ProgressIsALineASecondOnStderr) {
  const Output output =
      Execute({"--seconds", "2.5", "--progress", "-o", "json", "lifo"});

  EXPECT_EQ(output.status, 0);
  EXPECT_EQ(std::count(output.err.begin(), output.err.end(), '\n'), 2);
  EXPECT_THAT(output.err, HasSubstr("M operations/s"));
  EXPECT_THAT(output.out, Not(HasSubstr("M operations/s")));
}

TEST_F(LoadTest, InterruptEndsEarlyWithResults) {
  Program program(Arguments(
      {"--seconds", "600", "--processes", "2", "-o", "json", "burst"}));
  for (int i = 0; server_.AttachedProcesses() != 2 && i < 5000; ++i) {
    usleep(1000);
  }
  usleep(300000);
  ASSERT_EQ(kill(program.pid(), SIGINT), 0);

  const Output output = program.Wait();

  EXPECT_EQ(output.status, 0) << output.err;
  const auto json = nlohmann::json::parse(output.out, nullptr, false);
  ASSERT_FALSE(json.is_discarded()) << output.out;
  EXPECT_EQ(json["interrupted"], true);
  EXPECT_GT(json["operations"], 0);
  EXPECT_LT(json["seconds"], 60);
}

TEST_F(LoadTest, AProcessThatDiesIsReported) {
  Program program(Arguments({"--seconds", "600", "--processes", "2", "-o",
                             "json", "producer-consumer"}));
  for (int i = 0; server_.AttachedProcesses() != 2 && i < 5000; ++i) {
    usleep(1000);
  }
  usleep(100000);
  const auto victim =
      static_cast<pid_t>(Load(server_.segment().mapping().processes[1].pid));
  ASSERT_GT(victim, 0);
  ASSERT_EQ(kill(victim, SIGKILL), 0);

  const Output output = program.Wait();

  EXPECT_EQ(output.status, 1);
  EXPECT_EQ(output.out, "");
  EXPECT_THAT(output.err, HasSubstr("(pid " + std::to_string(victim) +
                                    "): killed by signal 9"));
}

TEST_F(LoadTest, TooManyProcessesForThePoolAreReported) {
  const Output output =
      Execute({"--seconds", "1", "--processes", "70", "lifo"});

  EXPECT_EQ(output.status, 1);
  EXPECT_THAT(output.err, HasSubstr("all 64 process slots"));
}

TEST(LoadArgumentsTest, NamesTheSocketThatIsNotThere) {
  const Output output =
      Program({"--socket", "/nonexistent.sock", "lifo"}).Wait();

  EXPECT_EQ(output.status, 1);
  EXPECT_THAT(output.err, HasSubstr("/nonexistent.sock does not exist"));
}

TEST(LoadArgumentsTest, WrongOnesAreNamedWithWhatIsAllowed) {
  const struct {
    std::vector<std::string> arguments;
    const char* message;
  } cases[] = {
      {{}, "SHAPE is required"},
      {{"spiral"}, "SHAPE is \"spiral\"; allowed lifo, burst, stream"},
      {{"burst", "0"}, "N is 0; allowed for burst: 1 to 1000000"},
      {{"burst", "many"}, "many"},
      {{"lifo", "5"}, "shape lifo takes none"},
      {{"producer-consumer", "100"}, "a power of two"},
      {{"--threads", "3", "producer-consumer"}, "--threads is 3"},
      {{"--processes", "3", "producer-consumer"}, "--processes is 3"},
      {{"--threads", "0", "lifo"}, "--threads: Value 0 not in range 1 to 256"},
      {{"--processes", "200", "--threads", "200", "lifo"},
       "is 40000; allowed 1 to 1024"},
      {{"--order", "11", "lifo"}, "11 not in range 0 to 10"},
      {{"--order", "-1", "lifo"}, "-1 not in range 0 to 10"},
      {{"--seconds", "0", "lifo"}, "--seconds: Value 0 not in range"},
      {{"-o", "yaml", "lifo"}, "json"},
  };
  for (const auto& c : cases) {
    auto arguments = c.arguments;
    arguments.insert(arguments.begin(), {"--socket", "/x"});
    const Output output = Program(arguments).Wait();
    EXPECT_EQ(output.status, 2) << output.err;
    EXPECT_EQ(output.out, "");
    EXPECT_THAT(output.err, HasSubstr(c.message));
  }
}

TEST(LoadArgumentsTest, HelpNamesEveryShape) {
  const Output output = Program({"--help"}).Wait();

  EXPECT_EQ(output.status, 0);
  for (const char* shape : {"lifo", "burst [N]", "stream [N]",
                            "producer-consumer [N]", "fault [N]"}) {
    EXPECT_THAT(output.out, HasSubstr(shape));
  }
}

}  // namespace
}  // namespace memtuned::test
