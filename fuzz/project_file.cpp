// Files of projects: any bytes. What is refused is refused in one line that begins with the file's name; of what is
// accepted a map and an Extractor can be made, and every start has its place.
#include "config/internal/project_file.hpp"

#include <cstdint>
#include <string_view>

#include "fuzz/require.hpp"
#include "project/rules/internal/project_map.hpp"

using namespace argiope;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto read = parse_project_file({reinterpret_cast<const char*>(data), size}, "file");
  if (!read) {
    require(read.error().message.starts_with("file:") && read.error().message.find('\n') == std::string::npos);
    return 0;
  }
  require(!read->name.empty() && read->burst >= 1);
  require(!read->rules.empty() || !read->processor.empty());
  require(!read->rate || *read->rate > 0);
  for (const ProjectRule& rule : read->rules) {
    require(!rule.name().empty());
    require(!rule.terms.auto_recrawl || rule.terms.adaptive || rule.terms.age > Duration::zero());
    require(!rule.terms.retry_delay.table.empty());
    RequestSettings request = rule.request;
    require(take_out_clients_headers(request).empty());
    const PageSettings said{.request = rule.request};
    const auto again = read_settings(stored(said));
    require(again && *again == said);
    if (!rule.extraction.fields.empty()) require(Extractor::compile({{rule.extraction}}).has_value());
  }
  for (const ProjectSink& sink : read->sinks) {
    require(!sink.name.empty() && (!sink.target.empty() || !sink.command.empty()));
    require(!sink.rotate_bytes || *sink.rotate_bytes >= ProjectSink::kLeastRotateBytes);
    require(!sink.rotate_span || *sink.rotate_span >= ProjectSink::kLeastRotateSpan);
    require(sink.kind != ProjectSink::Kind::postgresql || !sink.table.empty());
  }
  const auto map = ProjectMap::make(*read);
  if (!map) {
    require(!read->processor.empty());  // too large together, which is asked for starts alone
    return 0;
  }
  for (const Url& start : read->start) {
    const auto answer = map->find(start.href());
    require(!read->processor.empty() || answer.rule.has_value());
    if (answer.rule) (void)map->follows(*answer.rule, "http://a.test/x?y=1");
  }
  return 0;
}
