// Pages as a project's rules read them: the first line is the type, the second a JSON pointer, the rest the body.
// Beside not crashing: links are pages of the project, each once and as Url spells them; parts are told apart; values,
// and the fields for scripts, are JSON; and a page read twice says the same.
#include "project/process/internal/rule_reader.hpp"

#include <cstdint>
#include <set>
#include <string>
#include <string_view>

#include "base/internal/json_reader.hpp"
#include "base/internal/json_writer.hpp"
#include "fuzz/require.hpp"

using namespace argiope;

namespace {

ExtractionRule rule_of(std::string name, std::vector<std::string> match, const std::vector<std::string>& fields) {
  ExtractionRule rule{.name = std::move(name), .match = std::move(match)};
  for (const std::string& field : fields) rule.fields.push_back(parse_field(field).value());
  return rule;
}

ProjectDefinition rules_with(const std::string& pointer) {
  ProjectDefinition project{.name = "p", .start = {*Url::parse("http://a.test/")}};
  project.rules.resize(3);
  project.rules[0].extraction =
      rule_of("item", {"/i/*"}, {"t=css:h1", "p:number=css:p", "j=json:/a", "all[]=json:/items/*/b"});
  project.rules[1].extraction = rule_of("api", {"/api"}, {"k=json:/k", "whole=json:", "x:json=json:/0"});
  project.rules[1].extraction.each = "json:" + pointer;
  project.rules[1].part = "k";
  project.rules[2].extraction = rule_of("rest", {}, {"u=page:url"});
  project.rules[2].extraction.each = "json:" + pointer;
  return project;
}

std::string take_line(std::string_view& input) {
  const std::size_t end = std::min(input.find('\n'), input.size());
  std::string line(input.substr(0, end));
  input.remove_prefix(std::min(end + 1, input.size()));
  return line;
}

void require_json(std::string_view text) { require(JsonText::parse(text).has_value()); }

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  std::string_view input(reinterpret_cast<const char*>(data), size);
  PageResponse page{.url = "http://a.test/i/1", .status = 200};
  page.headers.emplace_back("content-type", take_line(input));
  const std::string pointer = take_line(input);
  page.body = input;
  const ProjectDefinition project = rules_with(pointer);
  const auto map = ProjectMap::make(project);
  auto reader = RuleReader::make(project, *map, "argiope");
  if (!reader) {
    require(reader.error().message.find("json") != std::string::npos &&
            reader.error().message.find('\n') == std::string::npos);
    return 0;
  }
  RuleReading reading, again;
  for (std::size_t rule = 0; rule < project.rules.size(); ++rule) {
    reader->read(rule, page.url, page, WallTime{}, reading);
    require(reading.links.size() == reading.rules.size());
    std::set<std::string> seen;
    for (std::size_t i = 0; i < reading.links.size(); ++i) {
      const auto url = Url::parse(reading.links[i]);
      require(url && url->href() == reading.links[i] && reading.links[i].find('#') == std::string::npos);
      require(map->find(reading.links[i]).rule == reading.rules[i]);
      require(seen.insert(reading.links[i]).second);
    }
    require(!reading.results || !reading.not_read);
    if (reading.results) {
      seen.clear();
      for (const PageResult& result : *reading.results) {
        require_json(result.value_json);
        require(seen.insert(result.part).second);
      }
      for (const std::uint32_t found : reading.found) require(found <= reading.records());
    }
    reader->read(rule, page.url, page, WallTime{}, again);
    require(again.links == reading.links && again.results.has_value() == reading.results.has_value() &&
            again.found == reading.found);
  }
  const auto fields = ScriptFields::compile(json_object([&](JsonWriter& json) {
    json.member("a", "json:" + pointer);
    json.member("b", "re:(.+)");
  }));
  if (!fields) return 0;
  std::vector<std::string> troubles;
  require_json(fields->read(page.url, page, WallTime{}, troubles));
  return 0;
}
