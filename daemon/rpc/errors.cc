// SPDX-License-Identifier: Apache-2.0
// absl::Status payloads hold serialized google.rpc messages; their type URLs
// are the ones of google.protobuf.Any.
#include "daemon/rpc/errors.h"

#include <google/protobuf/message.h>

#include <cmath>
#include <cstdint>

#include "absl/strings/cord.h"
#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "google/rpc/error_details.pb.h"
#include "google/rpc/status.pb.h"

namespace memtuned {
namespace {

constexpr char kTypePrefix[] = "type.googleapis.com/";
constexpr size_t kMaxEchoedValue = 64;
constexpr size_t kMaxListedNames = 16;
constexpr size_t kMaxMessageBytes = 1500;
constexpr size_t kMaxDetailBytes = 3000;

std::string TypeUrl(const google::protobuf::Message& message) {
  return absl::StrCat(kTypePrefix, message.GetDescriptor()->full_name());
}

absl::Status WithDetail(const absl::Status& status,
                        const google::protobuf::Message& message) {
  absl::Status result = status;
  result.SetPayload(TypeUrl(message), absl::Cord(message.SerializeAsString()));
  return result;
}

google::rpc::ErrorInfo MakeErrorInfo(const std::string& reason) {
  google::rpc::ErrorInfo info;
  info.set_reason(reason);
  info.set_domain(kErrorDomain);
  return info;
}

// Cuts at a character's start, so that the text stays valid UTF-8.
std::string Cut(std::string text, size_t limit) {
  if (text.size() <= limit) return text;
  while (limit > 0 &&
         (static_cast<unsigned char>(text[limit]) & 0xc0) == 0x80) {
    --limit;
  }
  text.resize(limit);
  return text + "...";
}

}  // namespace

absl::Status WithReason(const absl::Status& status, const std::string& reason,
                        const std::map<std::string, std::string>& metadata) {
  google::rpc::ErrorInfo info = MakeErrorInfo(reason);
  for (const auto& [key, value] : metadata) {
    (*info.mutable_metadata())[key] = Cut(value, kMaxEchoedValue * 4);
  }
  return WithDetail(status, info);
}

bool HasReason(const absl::Status& status) {
  return status.GetPayload(TypeUrl(google::rpc::ErrorInfo())).has_value();
}

absl::Status WithRetryAfter(const absl::Status& status, double seconds) {
  google::rpc::RetryInfo info;
  const double whole = std::floor(seconds);
  info.mutable_retry_delay()->set_seconds(static_cast<int64_t>(whole));
  info.mutable_retry_delay()->set_nanos(
      static_cast<int32_t>((seconds - whole) * 1e9));
  return WithDetail(status, info);
}

absl::Status BadField(const std::string& field, const std::string& description,
                      const std::string& reason) {
  FieldErrors errors;
  errors.Add(field, description);
  return WithReason(errors.ToStatus(), reason);
}

absl::Status NotYet(const std::string& field, const std::string& description) {
  google::rpc::BadRequest bad;
  auto* violation = bad.add_field_violations();
  violation->set_field(field);
  violation->set_description(description);
  return WithReason(WithDetail(absl::UnimplementedError(
                                   absl::StrCat(field, ": ", description)),
                               bad),
                    "NOT_IMPLEMENTED");
}

void FieldErrors::Add(const std::string& field,
                      const std::string& description) {
  errors_.emplace_back(field, description);
}

absl::Status FieldErrors::ToStatus() const {
  if (errors_.empty()) return absl::OkStatus();
  google::rpc::BadRequest bad;
  for (const auto& [field, description] : errors_) {
    if (bad.field_violations_size() == kMaxReported) break;
    auto* violation = bad.add_field_violations();
    violation->set_field(field);
    violation->set_description(Cut(description, kMaxEchoedValue * 8));
  }
  std::string message =
      absl::StrCat(errors_.front().first, ": ", errors_.front().second);
  if (errors_.size() > 1) {
    absl::StrAppend(&message, " (and ", errors_.size() - 1,
                    " more, see the details)");
  }
  return WithReason(WithDetail(absl::InvalidArgumentError(message), bad),
                    "INVALID_FIELD");
}

std::string Quoted(const std::string& value) {
  return absl::StrCat("'", absl::Utf8SafeCEscape(Cut(value, kMaxEchoedValue)),
                      "'");
}

std::string Listed(const std::vector<std::string>& names) {
  std::string text;
  for (size_t i = 0; i < names.size() && i < kMaxListedNames; ++i) {
    absl::StrAppend(&text, i == 0 ? "" : ", ", names[i]);
  }
  if (names.size() > kMaxListedNames) {
    absl::StrAppend(&text, " and ", names.size() - kMaxListedNames, " more");
  }
  return names.empty() ? "none" : text;
}

grpc::Status ToGrpcStatus(const absl::Status& status) {
  if (status.ok()) return grpc::Status::OK;
  const int code = static_cast<int>(status.code());
  const std::string message =
      Cut(std::string(status.message()), kMaxMessageBytes);

  google::rpc::Status details;
  details.set_code(code);
  details.set_message(message);
  const std::string info_url = TypeUrl(google::rpc::ErrorInfo());
  if (!status.GetPayload(info_url)) {
    details.add_details()->PackFrom(
        MakeErrorInfo(absl::StatusCodeToString(status.code())));
  }
  // ErrorInfo first: it is what clients switch on.
  if (const auto info = status.GetPayload(info_url)) {
    auto* any = details.add_details();
    any->set_type_url(info_url);
    any->set_value(std::string(*info));
  }
  status.ForEachPayload([&](absl::string_view url, const absl::Cord& payload) {
    const std::string type(url);
    if (type == info_url || !absl::StartsWith(url, kTypePrefix)) return;
    if (details.ByteSizeLong() + payload.size() > kMaxDetailBytes) return;
    auto* any = details.add_details();
    any->set_type_url(type);
    any->set_value(std::string(payload));
  });
  return grpc::Status(static_cast<grpc::StatusCode>(code), message,
                      details.SerializeAsString());
}

}  // namespace memtuned
