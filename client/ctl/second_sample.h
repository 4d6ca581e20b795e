// SPDX-License-Identifier: Apache-2.0
// Reads a subject again for --rate: waits, then asks until the daemon serves
// a newer sample than the first one.
#ifndef MEMTUNED_CLIENT_CTL_SECOND_SAMPLE_H_
#define MEMTUNED_CLIENT_CTL_SECOND_SAMPLE_H_

#include <chrono>
#include <string>
#include <thread>

#include "absl/status/statusor.h"
#include "client/ctl/connection.h"
#include "client/ctl/rates.h"

namespace memtuned::ctl {

// How often to ask again while the daemon still serves the first sample.
inline constexpr std::chrono::milliseconds kSamplePoll{100};

// `read()` makes the call; `sample(response)` is the SampleInfo of a response.
// Errors: read()'s; kDeadlineExceeded when no newer sample came for the
// connection's timeout. Blocks: `seconds`, then until there is one.
template <typename Response, typename Read, typename Sample>
absl::StatusOr<Response> SecondSample(const Connection& connection,
                                      const Response& first, double seconds,
                                      Read read, Sample sample) {
  std::this_thread::sleep_for(std::chrono::duration<double>(seconds));
  const auto give_up =
      std::chrono::steady_clock::now() +
      std::chrono::duration<double>(connection.timeout_seconds());
  while (true) {
    absl::StatusOr<Response> next = read();
    if (!next.ok()) return next.status();
    if (SecondsBetween(sample(first).time(), sample(*next).time()) > 0) {
      return next;
    }
    if (std::chrono::steady_clock::now() >= give_up) {
      return absl::DeadlineExceededError("the daemon took no new sample of " +
                                         sample(first).subject() +
                                         " within --timeout");
    }
    std::this_thread::sleep_for(kSamplePoll);
  }
}

}  // namespace memtuned::ctl

#endif  // MEMTUNED_CLIENT_CTL_SECOND_SAMPLE_H_
