// SPDX-License-Identifier: Apache-2.0
// Implementation of rpc_error.h.
#include "client/ctl/rpc_error.h"

#include <google/protobuf/util/json_util.h>
#include <google/rpc/error_details.pb.h>
#include <google/rpc/status.pb.h>
#include <grpcpp/support/status.h>

#include <map>
#include <nlohmann/json.hpp>
#include <optional>

#include "absl/strings/cord.h"
#include "absl/strings/str_cat.h"
#include "client/ctl/exit_code.h"
#include "client/ctl/format.h"

namespace memtuned::ctl {
namespace {

constexpr char kPayload[] = "type.googleapis.com/google.rpc.Status";

// Text from the network: one line, no terminal control.
std::string Visible(std::string_view text) {
  std::string visible;
  for (const char byte : text) {
    const auto code = static_cast<unsigned char>(byte);
    visible += code < 0x20 || code == 0x7F ? ' ' : byte;
  }
  return visible;
}

// Adds a detail unless the message in front already says it.
void AddLine(const std::string& text, std::vector<std::string>& lines) {
  const std::string line = Visible(text);
  if (lines.front().rfind(line, 0) != 0) lines.push_back(line);
}

void AddDetail(const google::protobuf::Any& any,
               std::vector<std::string>& lines) {
  google::rpc::BadRequest bad_request;
  google::rpc::ErrorInfo info;
  google::rpc::RetryInfo retry;
  google::rpc::PreconditionFailure precondition;
  if (any.UnpackTo(&bad_request)) {
    for (const auto& violation : bad_request.field_violations()) {
      AddLine(violation.field() + ": " + violation.description(), lines);
    }
  } else if (any.UnpackTo(&info)) {
    const std::map<std::string, std::string> sorted(info.metadata().begin(),
                                                    info.metadata().end());
    for (const auto& [key, value] : sorted) {
      const bool said = lines.front().find(value) != std::string::npos;
      if (!said) AddLine(absl::StrCat(key, ": ", value), lines);
    }
  } else if (any.UnpackTo(&retry)) {
    const double seconds =
        static_cast<double>(retry.retry_delay().seconds()) +
        static_cast<double>(retry.retry_delay().nanos()) / 1e9;
    AddLine("try again in " + Formatter(Glyphs::Ascii()).Seconds(seconds),
            lines);
  } else if (any.UnpackTo(&precondition)) {
    for (const auto& violation : precondition.violations()) {
      AddLine(violation.subject() + ": " + violation.description(), lines);
    }
  } else {
    AddLine("detail: " + any.type_url(), lines);
  }
}

std::optional<google::rpc::Status> DetailsOf(const absl::Status& status) {
  const absl::optional<absl::Cord> payload = status.GetPayload(kPayload);
  google::rpc::Status details;
  if (!payload.has_value() || !details.ParseFromString(std::string(*payload))) {
    return std::nullopt;
  }
  return details;
}

}  // namespace

absl::Status FromGrpcStatus(const grpc::Status& status) {
  if (status.ok()) return absl::OkStatus();
  absl::Status result(static_cast<absl::StatusCode>(status.error_code()),
                      status.error_message());
  google::rpc::Status details;
  if (!status.error_details().empty() &&
      details.ParseFromString(status.error_details())) {
    result.SetPayload(kPayload, absl::Cord(status.error_details()));
  }
  return result;
}

absl::Status WithMessage(const absl::Status& status,
                         const std::string& message) {
  absl::Status result(status.code(), message);
  status.ForEachPayload([&](absl::string_view url, const absl::Cord& payload) {
    result.SetPayload(url, payload);
  });
  return result;
}

google::rpc::Status RpcStatusOf(const absl::Status& status) {
  google::rpc::Status result =
      DetailsOf(status).value_or(google::rpc::Status());
  result.set_code(static_cast<int>(status.code()));
  result.set_message(std::string(status.message()));
  return result;
}

std::string ErrorReason(const absl::Status& status) {
  const auto details = DetailsOf(status);
  if (!details.has_value()) return "";
  for (const auto& any : details->details()) {
    google::rpc::ErrorInfo info;
    if (any.UnpackTo(&info)) return info.reason();
  }
  return "";
}

std::vector<std::string> ErrorLines(const absl::Status& status) {
  const std::string code = absl::StatusCodeToString(status.code());
  std::string message = Visible(std::string(status.message()));
  if (message.empty()) message = code;
  std::vector<std::string> lines = {message};
  if (const auto details = DetailsOf(status)) {
    for (const auto& any : details->details()) AddDetail(any, lines);
  }
  const std::string reason = ErrorReason(status);
  if (!reason.empty() && reason != code) {
    lines.front() += " (" + Visible(reason) + ")";
  }
  return lines;
}

std::string ErrorJson(const absl::Status& status) {
  using Json = nlohmann::ordered_json;
  Json details = Json::array();
  const google::rpc::Status rpc_status = RpcStatusOf(status);
  for (const auto& any : rpc_status.details()) {
    google::protobuf::util::JsonPrintOptions options;
    options.preserve_proto_field_names = true;
    std::string text;
    // An unknown type has no JSON form; its name is better than nothing.
    if (google::protobuf::util::MessageToJsonString(any, &text, options).ok()) {
      details.push_back(Json::parse(text));
    } else {
      details.push_back(Json{{"@type", any.type_url()}});
    }
  }
  const Json error = {{"code", static_cast<int>(status.code())},
                      {"status", absl::StatusCodeToString(status.code())},
                      {"message", std::string(status.message())},
                      {"exit_code", static_cast<int>(ExitCodeOf(status))},
                      {"details", details}};
  return Json{{"error", error}}.dump(1, ' ', false,
                                     nlohmann::json::error_handler_t::replace);
}

}  // namespace memtuned::ctl
