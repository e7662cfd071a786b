// The entry of an index for a record: the same whether it is written down as the record is made, or found in a file.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "warc/internal/cdxj.hpp"
#include "warc/internal/warc_reader.hpp"

namespace argiope {

// A response, a resource, or a revisit with the payload of another record; nullopt: no index has the record. Those of
// what had not changed (304), revisits and responses alike, are among these: a search for the page finds the capture
// before.
std::optional<CdxjLine> capture_of(const WarcRecord& record, std::string_view filename);

// The answer in the block of a record: a resource is a payload without a head, unless its type says that it is an
// answer.
HttpParts answer_in(const WarcRecord& record);

// Whether an answer to something else than GET is no capture of its URL. Writers put the request of an answer beside
// it, before or behind, and one of both names the other.
class OtherMethods {
 public:
  // A request is what the answers around it are to.
  void take_request(const WarcRecord& request);
  // By the last request.
  bool is_answer_to_other(const WarcHead& answer) const;

 private:
  std::string id_, concurrent_to_;  // of the last request, where it is no GET
};

// The head of an answer for a record that has a payload alone: a resource, or a response without one.
std::string head_for_payload(const WarcHead& head);

inline constexpr int kNotModifiedStatus = 304;
// Whether the answer is one to GET, which it is unless the line says otherwise.
inline bool is_get(const CdxjLine& capture) noexcept { return capture.method.empty() || capture.method == "GET"; }
inline bool is_revisit(const CdxjLine& capture) noexcept { return capture.mime == kRevisitMime; }

}  // namespace argiope
