#include "warc/internal/warc_capture.hpp"

#include "web/text/internal/ascii.hpp"

namespace argiope {

namespace {

// Of a record without a date: the oldest, so that any other capture of its URL is preferred.
constexpr std::string_view kNoDate = "19700101000000";

bool is_capture(const WarcHead& head) {
  const bool revisit = head.type() == WarcType::revisit && is_same_payload(head.field("WARC-Profile"));
  return revisit || head.type() == WarcType::response || head.type() == WarcType::resource;
}

}  // namespace

std::string head_for_payload(const WarcHead& head) {
  const std::string_view type = head.field("Content-Type");
  std::string made = "HTTP/1.1 200 OK\r\n";
  if (!type.empty() && !starts_with_lower(type, "application/http"))
    made.append("Content-Type: ").append(type) += "\r\n";
  return made + "\r\n";
}

HttpParts answer_in(const WarcRecord& record) {
  const bool is_payload = record.head.type() == WarcType::resource &&
                          !starts_with_lower(record.head.field("Content-Type"), "application/http");
  return is_payload ? HttpParts{{}, record.block} : http_parts(record.block);
}

void OtherMethods::take_request(const WarcRecord& request) {
  id_.clear();
  concurrent_to_.clear();
  const std::string_view method = std::string_view(request.block).substr(0, request.block.find(' '));
  if (method.empty() || equals_lower(method, "get")) return;
  id_ = request.head.field("WARC-Record-ID");
  concurrent_to_ = request.head.field("WARC-Concurrent-To");
}

bool OtherMethods::is_answer_to_other(const WarcHead& answer) const {
  const auto names = [](std::string_view id, std::string_view other) { return !id.empty() && id == other; };
  return names(id_, answer.field("WARC-Concurrent-To")) || names(concurrent_to_, answer.field("WARC-Record-ID"));
}

std::optional<CdxjLine> capture_of(const WarcRecord& record, std::string_view filename) {
  const WarcHead& head = record.head;
  if (!is_capture(head)) return std::nullopt;
  CdxjLine line;
  line.url = head.field("WARC-Target-URI");
  line.timestamp = cdx_timestamp(head.field("WARC-Date"));
  const bool is_http = starts_with_lower(line.url, "http:") || starts_with_lower(line.url, "https:");
  if (!is_http) return std::nullopt;
  if (line.timestamp.empty()) line.timestamp = kNoDate;
  const bool revisit = head.type() == WarcType::revisit;
  const HttpParts parts = answer_in(record);
  const std::string made = parts.head.empty() && !revisit ? head_for_payload(head) : std::string(parts.head);
  const HttpHeadFacts facts = facts_of_response(made);
  if (facts.status == kNotModifiedStatus) return std::nullopt;
  line.status = facts.status;
  line.mime = revisit ? kRevisitMime : mime_of(facts.content_type);
  const std::string_view digest = head.field("WARC-Payload-Digest");
  line.digest = starts_with_lower(digest, "sha1:") ? digest.substr(5) : digest;
  line.offset = record.offset;
  line.length = record.size;
  line.filename = filename;
  return line;
}

}  // namespace argiope
