// A visit of a project that is there for it alone.
#include "project/run/try_desk.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "argiope/base/clock.hpp"
#include "argiope/web/detail/charset.hpp"
#include "base/internal/counted.hpp"
#include "base/internal/json_writer.hpp"
#include "base/internal/printable.hpp"
#include "base/internal/utf8.hpp"
#include "project/process/internal/asked_pages.hpp"
#include "project/rules/internal/ask_words.hpp"
#include "project/rules/internal/data_scheme.hpp"

namespace argiope {
namespace {

constexpr Duration kTryWordsAhead =
    std::chrono::milliseconds{100};  // who waits for a host says what for, before the time is over
constexpr std::string_view kMessageUrl = "data:,on_message";

// Of what a script is sent without being asked for by a URL of its own.
std::string rule_of_event(const ProcessorDescription* description, std::string_view url) {
  if (url.starts_with(kTickPage)) return std::string(url.substr(kTickPage.size()));
  if (description == nullptr) return {};
  if (url == kStartPage) return description->on_start;
  if (url == kFinishedPage) return description->on_finished;
  return url == kMessageUrl ? description->on_message : std::string{};
}

void take_text(const PageResponse& response, TriedPage& tried) {
  tried.body_bytes = response.body.size();
  if (response.encoding.empty()) return;
  // In no encoding a byte of the text takes more than two.
  const std::string_view bytes = std::string_view(response.body).substr(0, 2 * TriedPage::kMostText + 4);
  auto text = to_utf8(bytes, response.encoding);
  std::string whole = text ? std::move(*text) : to_valid_utf8(bytes);
  if (constexpr std::string_view kMark = "\xef\xbb\xbf"; whole.starts_with(kMark)) whole.erase(0, kMark.size());
  const std::size_t kept = cut_between_characters(whole, TriedPage::kMostText).size();
  tried.is_cut = kept < whole.size() || bytes.size() < response.body.size();
  whole.resize(kept);
  tried.text = std::move(whole);
}

void take_answer(const FetchedAnswer& fetched, TriedPage& tried) {
  const PageResponse& response = fetched.response;
  tried.url = response.url;
  tried.status = response.status;
  tried.took = response.took;
  tried.headers = response.headers;
  take_text(response, tried);
  // A status that is no success is still an answer.
  if (!response.error_kind.empty() && response.error_kind != "status") tried.not_fetched = response.error_text;
}

// Why a script cannot run: its trace is the last that it has said.
ProcessorFailure failure_of(const Error& error, std::vector<PageLog>& logs) {
  ProcessorFailure failure{.text = error.message};
  const auto trace = std::ranges::find_if(logs.rbegin(), logs.rend(), [](const PageLog& line) {
    return line.level == "error" && line.text.contains('\n');
  });
  if (trace == logs.rend()) return failure;
  failure.trace = std::move(trace->text);
  logs.erase(std::next(trace).base());
  return failure;
}

Coro<void> end_processor_of_try([[maybe_unused]] std::shared_ptr<const void> place,
                                std::shared_ptr<Processor> processor) {
  co_await processor->close();
}

}  // namespace

// Counts as one that is under way.
class TryDesk::TryPlace {
 public:
  explicit TryPlace(std::shared_ptr<std::size_t> count) : count_(std::move(count)) { ++*count_; }
  TryPlace(const TryPlace&) = delete;
  TryPlace& operator=(const TryPlace&) = delete;
  ~TryPlace() { --*count_; }

 private:
  const std::shared_ptr<std::size_t> count_;
};

struct TryDesk::TryUnderWay {
  PageTryOrder order;
  SharedProject project;  // as the order has it
  std::shared_ptr<std::vector<PageLog>> logs = std::make_shared<std::vector<PageLog>>();
  TriedPage tried;
  TimePoint until{};
  std::string doing = "before it had begun";  // when its time is over
  bool is_fetched = false;
};

void TryDesk::end_tries() {
  for (Timeout* const limit : try_limits_) {
    if (!limit->expired()) limit->reschedule(core_.loop->time());
  }
}

Coro<Result<TriedPage>> TryDesk::try_page(PageTryOrder order) {
  if (!core_.background || core_.stopping || core_.ended.is_set())
    co_return fail(Errc::cancelled, "pages are not visited now");
  if (*tries_ >= options_.most_tries)
    co_return fail(Errc::busy,
                   fmt::format("{} are being tried, and no more at once: try again soon", counted(*tries_, "page")));
  if (!is_data_url(order.page.url)) {
    if (const auto url = url_to_visit(order.page.url); !url) co_return std::unexpected(url.error());
  }
  TryUnderWay its{.order = std::move(order)};
  its.project = std::make_shared<LiveProject>(options_, ProjectRecord{});
  LiveProject& project = *its.project;
  if (auto taken = project.take_version({.text = its.order.definition}, core_.reading, options_.pause.after); !taken)
    co_return std::unexpected(std::move(taken.error()));
  project.record.name = project.definition.name;
  // Lines that come when it has ended are for nobody. Notes on a sandbox come twice.
  project.log = [logs = std::weak_ptr(its.logs)](PageLog line) {
    const auto kept = logs.lock();
    if (!kept) return;
    const bool is_known = line.level == "info" && std::ranges::any_of(*kept, [&](const PageLog& one) {
                            return one.level == "info" && one.text == line.text;
                          });
    if (!is_known) kept->push_back(std::move(line));
  };

  its.until = saturating_add(core_.loop->time(), options_.try_limit);
  Timeout limit(its.until);
  struct Registered {
    TryDesk& engine;
    Timeout& limit;
    Registered(TryDesk& its_engine, Timeout& its_limit) : engine(its_engine), limit(its_limit) {
      engine.try_limits_.push_back(&limit);
      engine.tries_are_over_.clear();
    }
    ~Registered() {
      std::erase(engine.try_limits_, &limit);
      if (engine.try_limits_.empty()) engine.tries_are_over_.set();
    }
  } const registered(*this, limit);
  // Its processor ends behind it, whatever becomes of who has asked.
  struct Ending {
    TryDesk& engine;
    LiveProject& project;
    std::shared_ptr<const TryPlace> place;
    ~Ending() {
      if (project.processor)
        engine.core_.background->run(nullptr,
                                     end_processor_of_try(std::move(place), std::exchange(project.processor, nullptr)));
    }
  } const ending{*this, project, std::make_shared<const TryPlace>(tries_)};

  if (!project.definition.processor.empty()) {
    const auto& make = its.order.make_processor ? its.order.make_processor : options_.make_processor;
    if (!make)
      co_return fail(Errc::unsupported, fmt::format("project {} has a processor, and nobody here can run it",
                                                    in_quotes(project.record.name)));
    auto made = make(
        project.definition,
        {.log = project.log, .described = [](const ProcessorDescription&) {}, .trouble = [](const std::string&) {}});
    if (!made) co_return std::unexpected(std::move(made.error()));
    project.processor = std::move(*made);
  }
  bool is_out_of_time = false;
  try {
    co_await limit.run(try_now(its));
  } catch (const TimeoutError&) {
    is_out_of_time = true;
  }
  if (is_out_of_time) {
    if (core_.stopping) co_return fail(Errc::cancelled, "the pages are not visited any more");
    const std::string why =
        fmt::format("the {} that a try may take were over {}", format_duration(options_.try_limit), its.doing);
    if (its.is_fetched) {
      its.tried.failure = ProcessorFailure{.text = why};
    } else {
      its.tried.not_fetched = why;
    }
  }
  its.tried.logs.insert(its.tried.logs.begin(), std::make_move_iterator(its.logs->begin()),
                        std::make_move_iterator(its.logs->end()));
  co_return std::move(its.tried);
}

Coro<void> TryDesk::try_now(TryUnderWay& its) {
  LiveProject& project = *its.project;
  TriedPage& tried = its.tried;
  if (project.processor) {
    its.doing = "before its script had said what it is";
    auto said = co_await project.processor->describe();
    if (!said) {
      tried.failure = failure_of(said.error(), *its.logs);
      tried.not_fetched = "its script cannot run";
      co_return;
    }
    project.description = std::move(*said);
    project.make_rules();
  }
  AskedPage asked = its.order.page;
  const bool is_event = is_data_url(asked.url) && asked.rule.empty();
  if (is_event) asked.rule = rule_of_event(project.description ? &*project.description : nullptr, asked.url);
  asked.force = asked.force || (!asked.rule.empty() && is_event);
  const auto meant = AskDesk::meant_by(project, asked, wall());
  if (!meant) {
    tried.not_fetched = meant.error().message;
    co_return;
  }
  const RuleNumber rule = meant->rule ? *meant->rule : project.rule_number({});
  if (meant->rule) tried.rule = project.rules[rule].name;
  tried.url = meant->url;
  const bool is_bare_start = asked.url == kStartPage && !meant->rule;
  tried.becomes = is_bare_start ? "its starts are asked for" : becomes(its, *meant);

  PageVisit visit{.project = its.project,
                  .record = {.name = meant->name,
                             .url = meant->url,
                             .rule = tried.rule,
                             .context = asked.context_json,
                             .save = its.order.save_json},
                  .rule = rule,
                  .settings = project.rules[rule].settled};
  if (!asked.settings.is_empty()) visit.settings = settled(merged(asked.settings, project.rules[rule].settings, {}));
  auto fetched = co_await fetch_tried(its, visit);
  if (!fetched) co_return;
  its.is_fetched = true;
  take_answer(*fetched, tried);
  if (its.order.on_answer && tried.status != 0) its.order.on_answer(fetched->response);
  its.doing = "before it was read";
  VisitReader::ReadPage read;
  if (meant->rule) read = co_await reader_.read_page(visit, *fetched);
  tell_leads(its, visit, *fetched, read);
  VisitAnswer& answer = read.answer;
  tried.logs = std::move(answer.logs);
  tried.messages = std::move(answer.messages);
  tried.save_json = std::move(answer.save_json);
  if (answer.failure && answer.failure->text != tried.not_fetched) tried.failure = std::move(answer.failure);
  const bool has_failed = tried.failure || !tried.not_fetched.empty();
  if (answer.results) tried.results = std::move(*answer.results);
  if (!read.reading) co_return;
  tried.columns = visit.readers->columns(visit.place);
  tried.dropped = read.reading->dropped;
  if (read.reading->not_read) tried.not_extracted = read.reading->not_read->message;
  for (const RuleReading::Trouble& trouble : read.reading->troubles) {
    tried.logs.push_back({"warning", trouble.text()});
  }
  if (!answer.results && !has_failed && read.reading->results) tried.results = std::move(*read.reading->results);
}

// Its server's answer, or the one to the try before; nullopt: `tried` says why it was not asked.
Coro<std::optional<FetchedAnswer>> TryDesk::fetch_tried(TryUnderWay& its, PageVisit& visit) {
  TriedPage& tried = its.tried;
  tried.request = stored(PageSettings{.request = visit.settings.request});
  if (its.order.answer && its.order.answered_request == tried.request) {
    tried.answer = its.order.answer;
    co_return *its.order.answer;
  }
  const bool is_asked = !is_data_url(visit.record.url);
  if (is_asked) {
    const auto url = url_to_visit(visit.record.url);
    its.doing = "while it waited for its host";
    const RequestSettings& said = visit.settings.request;
    const HostDesk::Answer entered =
        co_await hosts_.desk().enter(hosts_.host_of(*url), *url, said.robots.value.value_or(true),
                                     its.until - kTryWordsAhead, said.verify_certificate.value.value_or(true));
    if (entered.leave != HostDesk::Leave::go) {
      tried.not_fetched = entered.leave == HostDesk::Leave::forbidden ? "robots.txt forbids it"
                          : entered.leave == HostDesk::Leave::lost
                              ? entered.why.message
                              : fmt::format("{}: {}", url->site_key(), entered.words);
      co_return std::nullopt;
    }
  }
  its.doing = "before it was answered";
  FetchedAnswer fetched = co_await reader_.fetch(visit);
  // A copy: reading may end with what it reads still lent to a script.
  if (is_asked && fetched.response.status != 0) tried.answer = std::make_shared<const FetchedAnswer>(fetched);
  co_return fetched;
}

std::string TryDesk::becomes(const TryUnderWay& its, const AskMeant& meant) const {
  if (!meant.rule) return in_words(meant.place);
  std::optional<KnownPage> known;
  if (const SharedProject running = core_.find(its.project->record.name)) {
    if (const PageIndex::Number page = running->index.find(page_fingerprint(meant.name)); page != 0)
      known = running->index.known(page);
  }
  return in_words(decide_ask(known ? &*known : nullptr, meant.ask, its.project->terms_of(*meant.rule), wall()));
}

void TryDesk::add_lead(TryUnderWay& its, const AskedPage& page, bool is_followed) const {
  if (its.tried.leads.size() >= TriedPage::kMostLeads) {
    ++its.tried.leads_left_out;
    return;
  }
  LiveProject& project = *its.project;
  TriedPage::Lead lead{.url = page.url, .context_json = page.context_json, .priority = page.settings.priority.value};
  if (says_more_than_where(page)) lead.page_json = json_object([&](JsonWriter& out) { write_asked_page(out, page); });
  const auto meant = AskDesk::meant_by(project, page, wall());
  if (!meant) {
    lead.becomes = meant.error().message;
  } else {
    if (meant->rule) lead.rule = project.rules[*meant->rule].name;
    lead.is_followed = is_followed && meant->rule;
    lead.becomes = is_followed || !meant->rule ? becomes(its, *meant) : "not followed";
  }
  its.tried.leads.push_back(std::move(lead));
}

// Pages that a visit would ask for go before those that it would let be.
void TryDesk::tell_leads(TryUnderWay& its, const PageVisit& visit, const FetchedAnswer& fetched,
                         const VisitReader::ReadPage& read) const {
  const LiveProject& project = *its.project;
  if (its.order.page.url == kStartPage) {
    for (const Url& start : project.definition.start) add_lead(its, {.url = start.href(), .force = true});
  }
  std::vector<AskedPage> others;
  if (!project.definition.rules.empty() && fetched.is_success) {
    const std::optional<std::size_t> place = project.rules[visit.rule].place;
    for (RuleReader::Link& link : project.readers->here().links_of(visit.record.url, fetched.response)) {
      const bool is_followed =
          place && !link.nofollow && project.map->follows(*place, link.url) && project.map->find(link.url).rule;
      AskedPage page{.url = std::move(link.url)};
      if (is_followed) {
        add_lead(its, page);
      } else {
        others.push_back(std::move(page));
      }
    }
  }
  for (const AskedPage& page : read.answer.pages) add_lead(its, page);
  for (const AskedPage& page : others) add_lead(its, page, false);
}

Coro<void> TryDesk::ended() {
  while (!tries_are_over_.is_set()) co_await tries_are_over_.wait();
}

}  // namespace argiope
