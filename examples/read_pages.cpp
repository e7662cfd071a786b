// A project whose pages this program reads: from the page that is named it follows links to others of its site, each
// once, and keeps their titles. Run again, it visits what it has not seen.
#include <cstdio>
#include <string>

#include "argiope/document/document.hpp"
#include "argiope/project/local_project.hpp"

using namespace argiope;

namespace {

Coro<ProjectAnswer> read_page(const ProjectPage& page) {
  ProjectAnswer answer;
  const auto document = Document::parse_html(page.body);
  if (!document) {
    answer.failure = document.error().message;
    co_return answer;
  }
  const auto titles = document->select(*Selector::css("title"));
  std::string title = titles && !titles->empty() ? titles->front().text() : "";
  for (char& c : title) {
    if (c == '"' || c == '\\' || static_cast<unsigned char>(c) < 0x20) c = ' ';
  }
  answer.results = {{.value = "{\"title\":\"" + title + "\"}"}};
  co_return answer;
}

}  // namespace

int main(int argc, char** argv) {
  const std::string start = argc > 1 ? argv[1] : "http://127.0.0.1:8080/";
  LocalProjectOptions options;
  options.definition = R"({"project": {"name": "titles", "start": [")" + start +
                       R"("], "processor": ["read_pages"]}, "rule": [{"name": "page"}]})";
  options.read = read_page;
  options.setup.database = argc > 2 ? argv[2] : ":memory:";
  const auto project = LocalProject::open(std::move(options));
  if (!project) return std::fprintf(stderr, "%s\n", project.error().message.c_str()), 2;
  const auto report = (*project)->run();
  if (!report) return std::fprintf(stderr, "%s\n", report.error().message.c_str()), 1;
  const auto shown = (*project)->results([](const LocalProject::Row& row) {
    std::printf("%s %s\n", row.url.c_str(), row.value.c_str());
    return true;
  });
  std::printf("%llu visits, %llu results\n", static_cast<unsigned long long>(report->visits),
              static_cast<unsigned long long>(report->results));
  return shown ? 0 : 1;
}
