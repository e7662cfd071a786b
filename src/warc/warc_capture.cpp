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
  if (!type.empty() && !starts_with_lower(type, "application/http")) made.append("Content-Type: ").append(type) += "\r\n";
  return made + "\r\n";
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
  const HttpParts parts = http_parts(head.type() == WarcType::resource ? std::string_view{} : record.block);
  const std::string made = parts.head.empty() && !revisit ? head_for_payload(head) : std::string(parts.head);
  const HttpHeadFacts facts = facts_of_response(made);
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
