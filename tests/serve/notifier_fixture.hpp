// A notifier over an engine in simulated time, with the rule "ops", whose messages are left in their queue.
#pragma once

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "serve/api_fixture.hpp"
#include "serve/notify/notifier.hpp"
#include "support/temporary_folder.hpp"

namespace argiope {

inline NotifyRule rule_of(std::string_view json) {
  const auto text = JsonText::parse(json);
  JsonErrors errors;
  NotifyRule rule = read_notify_rule(text->root(errors));
  EXPECT_FALSE(errors) << errors.error().message;
  return rule;
}
class Notifiers : public ApiTest {
 protected:
  ~Notifiers() override {
    if (notifier_) run([this]() -> Coro<void> { co_await notifier_->stop(); });
    notifier_.reset();
  }
  void watch(std::string_view more = "") {
    open();
    run([this]() -> Coro<void> {
      engine_->scheduler().start();
      co_return;
    });
    watch_again(more);
  }
  // The one rule "ops".
  void set(std::string_view more) { set_rules({{"ops", more}}); }
  // Of each its name, and what else it says.
  using Rules = std::vector<std::pair<std::string_view, std::string_view>>;
  void set_rules(const Rules& given) {
    run([&]() -> Coro<void> {
      std::vector<NotifyRule> rules;
      for (const auto& [name, more] : given) {
        rules.push_back(rule_of(fmt::format(R"({{"name":"{}","push":"https://x.example/"{}}})", name, more)));
      }
      EXPECT_TRUE(co_await notifier_->set(std::move(rules)));
    });
  }
  NotifierOptions options() {
    return {.from = "host:1",
            .unwell = [this] { return unwell_; },
            .alarms = [this](const std::string& project) { return alarms_of(project); },
            .daemon = [] { return "http://127.0.0.1:7733"; },
            .file = file_};
  }
  std::optional<std::vector<std::string>> alarms_of(const std::string& project) const {
    const auto found = last_rounds_.find(project);
    return found == last_rounds_.end() ? std::nullopt : std::optional(found->second);
  }
  // As the target of a rule does, which alone may.
  void settle_message(Verdict verdict) {
    run([&]() -> Coro<void> {
      const auto leased = co_await engine_->lease_now({.queues = {"argiope.notify.ops"}, .worker = "target"});
      EXPECT_TRUE(leased && leased->size() == 1);
      if (leased && !leased->empty()) EXPECT_TRUE(co_await engine_->settle(leased->front().token, verdict));
    });
  }
  void settle_one(std::string_view how, std::string queue = "mail") {
    const std::string token =
        post("/v1/leases", fmt::format(R"({{"queues":["{}"],"worker":"w"}})", queue)).text("/leases/0/token");
    post("/v1/leases/settle", fmt::format(R"({{"settlements":[{{"token":{},{}}}]}})", token, how));
  }
  void bury(std::string queue = "mail") {
    put_job(fmt::format(R"({{"queue":"{}"}})", queue));
    settle_one(R"("outcome":"bury","error":"no such address")", queue);
  }
  // The messages that wait, oldest first.
  std::vector<boost::json::value> messages(std::string_view rule = "ops") {
    std::vector<boost::json::value> out;
    for (const auto& job :
         get(fmt::format("/v1/jobs?queue=argiope.notify.{}&payloads=1", rule)).at("/jobs").as_array()) {
      out.push_back(boost::json::parse(job.at("payload").as_string()));
    }
    return out;
  }
  static std::string sentence(const boost::json::value& message, std::size_t place = 0) {
    return std::string(message.at("notices").as_array().at(place).at("sentence").as_string());
  }

  // The next process, after one that was killed: what that had left is read from `left`.
  void restart(std::string_view more = "") { restart_with({{"ops", more}}); }
  void restart_with(const Rules& rules) {
    const std::string left = folder_.file("left-by-a-kill.jsonl");
    std::filesystem::copy_file(file_, left, std::filesystem::copy_options::overwrite_existing);
    run([this]() -> Coro<void> { co_await notifier_->stop(); });
    std::filesystem::rename(left, file_);
    begin_anew();
    set_rules(rules);
  }
  void watch_again(std::string_view more) {
    begin_anew();
    set(more);
  }
  void begin_anew() {
    run([this]() -> Coro<void> {
      notifier_ = std::make_unique<Notifier>(*engine_, *feed_, options());
      notifier_->open();
      co_return;
    });
  }

  std::vector<NotifierOptions::Unwell> unwell_;
  std::map<std::string, std::vector<std::string>> last_rounds_;  // of projects, with their alarms
  const TemporaryFolder folder_;
  std::string file_;
  std::unique_ptr<Notifier> notifier_;
};

}  // namespace argiope
