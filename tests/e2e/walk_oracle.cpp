// An independent crawl to hold ours to: libcurl fetches and resolves, gumbo parses each page whole, one after the
// other. Prints the URL of every HTML page (status 200) of the host, sorted. Usage: walk_oracle URL
//
// walk_oracle --graph URL prints all that was answered, and where it leads, for walks of a part of it: a line "page
// URL", "redirect URL" or "other URL" for each, and after it "link URL" for each of its links.
//
// Shares no code with Argiope, on purpose.
#include <curl/curl.h>
#include <gumbo.h>
#include <strings.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <deque>
#include <functional>
#include <set>
#include <sstream>
#include <string>
#include <string_view>

namespace {

struct Page {
  long status = 0;
  std::string content_type;
  std::string location;
  std::string body;
};

std::size_t append(char* data, std::size_t size, std::size_t count, void* body) {
  static_cast<std::string*>(body)->append(data, size * count);
  return size * count;
}

Page fetch(CURL* curl, const std::string& url) {
  Page page;
  curl_easy_setopt(curl, CURLOPT_URL, url.c_str());
  curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, append);
  curl_easy_setopt(curl, CURLOPT_WRITEDATA, &page.body);
  if (curl_easy_perform(curl) != CURLE_OK) return page;
  char* text = nullptr;
  curl_easy_getinfo(curl, CURLINFO_RESPONSE_CODE, &page.status);
  curl_easy_getinfo(curl, CURLINFO_CONTENT_TYPE, &text);
  if (text != nullptr) page.content_type = text;
  text = nullptr;
  curl_easy_getinfo(curl, CURLINFO_REDIRECT_URL, &text);
  if (text != nullptr) page.location = text;
  return page;
}

// Absolute and without fragment; empty when it is no http URL.
std::string resolve(const std::string& base, const std::string& reference) {
  CURLU* handle = curl_url();
  std::string resolved;
  char* text = nullptr;
  if (curl_url_set(handle, CURLUPART_URL, base.c_str(), 0) == CURLUE_OK &&
      curl_url_set(handle, CURLUPART_URL, reference.c_str(), CURLU_URLENCODE) == CURLUE_OK &&
      curl_url_set(handle, CURLUPART_FRAGMENT, nullptr, 0) == CURLUE_OK &&
      curl_url_get(handle, CURLUPART_URL, &text, 0) == CURLUE_OK) {
    resolved = text;
    curl_free(text);
  }
  curl_url_cleanup(handle);
  return resolved.starts_with("http://") ? resolved : "";
}

const char* attribute(const GumboElement& element, const char* name) {
  const GumboAttribute* found = gumbo_get_attribute(&element.attributes, name);
  return found != nullptr ? found->value : nullptr;
}

bool has_word(const char* list, std::initializer_list<const char*> words) {
  if (list == nullptr) return false;
  std::istringstream stream(list);
  for (std::string word; stream >> word;) {
    while (word.ends_with(',')) word.pop_back();
    for (const char* wanted : words) {
      if (strcasecmp(word.c_str(), wanted) == 0) return true;
    }
  }
  return false;
}

struct Links {
  std::string base;
  bool nofollow = false;
  std::vector<std::string> references;
};

void collect(const GumboNode* node, Links& links) {
  if (node->type != GUMBO_NODE_ELEMENT && node->type != GUMBO_NODE_TEMPLATE) return;
  const GumboElement& element = node->v.element;
  const char* rel = attribute(element, "rel");
  const char* href = attribute(element, "href");
  const char* src = attribute(element, "src");
  switch (element.tag) {
    case GUMBO_TAG_A:
    case GUMBO_TAG_AREA:
      if (href != nullptr && !has_word(rel, {"nofollow"})) links.references.emplace_back(href);
      break;
    case GUMBO_TAG_LINK:
      if (href != nullptr && !has_word(rel, {"nofollow", "stylesheet", "icon"}) &&
          has_word(rel, {"canonical", "next",     "prev",     "alternate", "author",  "help",       "license", "search",
                         "index",     "up",       "contents", "copyright", "first",   "last",       "start",   "top",
                         "bookmark",  "glossary", "appendix", "chapter",   "section", "subsection", "toc"})) {
        links.references.emplace_back(href);
      }
      break;
    case GUMBO_TAG_IFRAME:
    case GUMBO_TAG_FRAME:
      if (src != nullptr) links.references.emplace_back(src);
      break;
    case GUMBO_TAG_BASE:
      if (href != nullptr && links.base.empty()) links.base = href;
      break;
    case GUMBO_TAG_META:
      if (attribute(element, "name") != nullptr && strcasecmp(attribute(element, "name"), "robots") == 0 &&
          has_word(attribute(element, "content"), {"nofollow", "none"})) {
        links.nofollow = true;
      }
      break;
    default: break;
  }
  for (unsigned i = 0; i < element.children.length; ++i) {
    collect(static_cast<const GumboNode*>(element.children.data[i]), links);
  }
}

std::vector<std::string> links_of(const std::string& url, const std::string& html) {
  GumboOutput* output = gumbo_parse_with_options(&kGumboDefaultOptions, html.data(), html.size());
  Links links;
  collect(output->root, links);
  gumbo_destroy_output(&kGumboDefaultOptions, output);
  std::vector<std::string> resolved;
  if (links.nofollow) return resolved;
  const std::string base = links.base.empty() ? url : resolve(url, links.base);
  for (const std::string& reference : links.references) {
    const std::size_t first = reference.find_first_not_of(" \t\r\n\f");
    if (first == std::string::npos) continue;
    std::string trimmed = reference.substr(first, reference.find_last_not_of(" \t\r\n\f") - first + 1);
    // libcurl resolves a fragment against the directory, not the page.
    trimmed.resize(std::min(trimmed.find('#'), trimmed.size()));
    if (trimmed.empty()) continue;
    if (std::string target = resolve(base, trimmed); !target.empty()) resolved.push_back(std::move(target));
  }
  return resolved;
}

}  // namespace

int main(int argc, char** argv) {
  const bool graph = argc == 3 && std::strcmp(argv[1], "--graph") == 0;
  if (argc != 2 && !graph) {
    std::fprintf(stderr, "usage: walk_oracle [--graph] URL\n");
    return 2;
  }
  const std::string start = argv[argc - 1];
  const std::string site = start.substr(0, start.find('/', std::strlen("http://")) + 1);
  CURL* curl = curl_easy_init();
  std::deque<std::string> queue{start};
  std::set<std::string> seen{start};
  std::set<std::string> pages;
  const auto add = [&](const std::string& url) {
    if (url.starts_with(site) && seen.insert(url).second) queue.push_back(url);
  };
  while (!queue.empty()) {
    const std::string url = queue.front();
    queue.pop_front();
    const Page page = fetch(curl, url);
    const bool is_page = page.status == 200 && page.content_type.starts_with("text/html");
    std::vector<std::string> links;
    if (!page.location.empty()) links.push_back(resolve(url, page.location));
    if (is_page) links = links_of(url, page.body);
    if (is_page) pages.insert(url);
    for (const std::string& link : links) add(link);
    if (!graph) continue;
    std::printf("%s %s\n", is_page ? "page" : page.location.empty() ? "other" : "redirect", url.c_str());
    for (const std::string& link : links) std::printf("link %s\n", link.c_str());
  }
  curl_easy_cleanup(curl);
  if (graph) return 0;
  for (const std::string& url : pages) std::puts(url.c_str());
  return 0;
}
