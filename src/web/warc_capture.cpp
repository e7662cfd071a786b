#include "web/internal/warc_capture.hpp"

#include "web/internal/ascii.hpp"

namespace argiope {

std::optional<CdxjLine> capture_of(const WarcRecord& record, std::string_view filename) {
  const WarcHead& head = record.head;
  const bool revisit = head.type() == WarcType::revisit && is_same_payload(head.field("WARC-Profile"));
  if (head.type() != WarcType::response && !revisit) return std::nullopt;
  CdxjLine line;
  line.url = head.field("WARC-Target-URI");
  line.timestamp = cdx_timestamp(head.field("WARC-Date"));
  const bool is_http = starts_with_lower(line.url, "http:") || starts_with_lower(line.url, "https:");
  if (!is_http || line.timestamp.empty()) return std::nullopt;
  const std::size_t http_size = http_head_size(record.block).value_or(record.block.size());
  const HttpHeadFacts facts = facts_of_response(std::string_view(record.block).substr(0, http_size));
  line.status = facts.status;
  line.mime = revisit ? kRevisitMime : mime_of(facts.content_type);
  const std::string_view digest = head.field("WARC-Payload-Digest");
  if (starts_with_lower(digest, "sha1:")) line.digest = digest.substr(5);
  line.offset = record.offset;
  line.length = record.size;
  line.filename = filename;
  return line;
}

}  // namespace argiope
