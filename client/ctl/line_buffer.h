// SPDX-License-Identifier: Apache-2.0
// The buffer of an output stream that hands over whole lines.
#ifndef MEMTUNED_CLIENT_CTL_LINE_BUFFER_H_
#define MEMTUNED_CLIENT_CTL_LINE_BUFFER_H_

#include <functional>
#include <streambuf>
#include <string>

namespace memtuned::ctl {

// Gets each line without its end, blank ones left out.
using LineSink = std::function<void(const std::string& line)>;

// Thread safety: one thread.
class LineBuffer : public std::streambuf {
 public:
  explicit LineBuffer(LineSink sink) : sink_(std::move(sink)) {}

 private:
  int_type overflow(int_type c) override {
    if (c == traits_type::eof()) return traits_type::not_eof(c);
    if (traits_type::to_char_type(c) != '\n') {
      line_ += traits_type::to_char_type(c);
    } else if (!line_.empty()) {
      sink_(line_);
      line_.clear();
    }
    return c;
  }

  const LineSink sink_;
  std::string line_;
};

}  // namespace memtuned::ctl

#endif  // MEMTUNED_CLIENT_CTL_LINE_BUFFER_H_
