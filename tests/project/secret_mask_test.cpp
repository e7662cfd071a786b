// What a script was given in confidence is in nothing that is shown of it.
#include "project/process/internal/secret_mask.hpp"

#include <gmock/gmock.h>

#include "argiope/async/event_loop.hpp"
#include "argiope/async/sync.hpp"
#include "base/internal/json_reader.hpp"
#include "support/loop_fixture.hpp"
#include "support/simulated_projects.hpp"

namespace argiope {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

SecretMask mask_of(std::initializer_list<std::string_view> secrets) {
  SecretMask mask;
  for (const std::string_view secret : secrets) mask.add(secret);
  return mask;
}

TEST(SecretMaskTest, TakesSecretsOutOfText) {
  const SecretMask mask = mask_of({"open sesame", "k/ey+123"});
  EXPECT_EQ(mask.masked("token open sesame, open sesameopen sesame"), "token ***, ******");
  EXPECT_EQ(mask.masked("GET /?token=open%20sesame&k=k%2Fey%2B123"), "GET /?token=***&k=***");
  EXPECT_EQ(mask.masked("nothing of it: open ses"), "nothing of it: open ses");
  EXPECT_EQ(mask.masked(""), "");
}

TEST(SecretMaskTest, KnowsEachLineOfASecretAndItsJson) {
  const SecretMask mask = mask_of({"-----BEGIN KEY-----\nAAAABBBBCCCC\r\nshort\nDDDDEEEEFFFF", "with \"quotes\""});
  EXPECT_EQ(mask.masked("line AAAABBBBCCCC and DDDDEEEEFFFF"), "line *** and ***");
  EXPECT_EQ(mask.masked("short"), "short") << "a line that could be anything";
  EXPECT_EQ(mask.masked(R"({"a":"with \"quotes\""})"), R"({"a":"***"})");
}

TEST(SecretMaskTest, ATextOfNothingElseTakesNoLonger) {
  constexpr std::size_t kTimes = 2'000'000;
  std::string text, concealed;
  for (std::size_t i = 0; i < kTimes; ++i) {
    text += "12345678";
    concealed += "***";
  }
  EXPECT_TRUE(mask_of({"12345678"}).masked(std::move(text)) == concealed);
}

TEST(SecretMaskTest, OfAPieceOfATextNothingOfASecretIsLeftWhereItWasCut) {
  const SecretMask mask = mask_of({"open sesame, and the door"});
  EXPECT_EQ(mask.masked_piece("token: open sesame, and the do"), "token: ***");
  EXPECT_EQ(mask.masked_piece(R"(wrote "token: open sesame…", too long)"), R"(wrote "token: ***…", too long)");
  EXPECT_EQ(mask.masked_piece("esame, and the door was it"), "*** was it");
  EXPECT_EQ(mask.masked_piece("sesame, and the door open ses"), "*** ***");
  EXPECT_EQ(mask.masked_piece("open sesame, and the door"), "***");
  EXPECT_EQ(mask.masked_piece("the door open ses"), "*** ***") << "eight bytes each";
  EXPECT_EQ(mask.masked_piece("he door; open s"), "he door; open s") << "less could be anything";
  EXPECT_EQ(mask.masked_piece("open sesame is said, and more"), "open sesame is said, and more") << "no cut is there";
  EXPECT_EQ(mask.masked_piece(""), "");
}

TEST(SecretMaskTest, TheLongerOfTwoGoesFirst) {
  const SecretMask mask = mask_of({"password", "password-of-all"});
  EXPECT_EQ(mask.masked("password-of-all password"), "*** ***");
}

TEST(SecretMaskTest, LeavesWhatIsTooShort) {
  const SecretMask mask = mask_of({"", "1234567"});
  EXPECT_TRUE(mask.is_empty());
  EXPECT_EQ(mask.masked("1234567"), "1234567");
}

TEST(SecretMaskTest, TextsOfJsonAreMaskedAndItStaysJson) {
  const SecretMask mask = mask_of({"nsecret-12", "12345678"});
  const auto masked = [&](std::string json) {
    json = mask.masked_json(std::move(json));
    EXPECT_TRUE(JsonText::parse(json)) << json;
    return json;
  };
  EXPECT_EQ(masked(R"({"a":"x nsecret-12 y","b":[12345678,"12345678"],"nsecret-12":null})"),
            R"({"a":"x *** y","b":[12345678,"***"],"***":null})");
  // An escape's letter is none of the text's.
  EXPECT_EQ(masked(R"(["\nsecret-12"])"), R"(["\nsecret-12"])");
  EXPECT_EQ(masked(R"(["\u006esecret-12\n\"", "\\nsecret-12"])"), R"(["***\n\"", "\\***"])");
  EXPECT_EQ(masked(R"("nsecret-12")"), R"("***")");
  EXPECT_EQ(masked(R"({"a":"","b":"\"","c":1.5})"), R"({"a":"","b":"\"","c":1.5})");
}

class MaskedProcessorTest : public OnVirtualLoop {};

TEST_F(MaskedProcessorTest, NothingThatIsShownHasThem) {
  const auto mask = std::make_shared<SecretMask>();
  mask->add("open sesame");
  const auto answer_of = [](const PageCall&) -> Coro<VisitAnswer> {
    VisitAnswer answer;
    answer.pages.push_back({.url = "https://a.test/?token=open%20sesame"});
    answer.results = std::vector<PageResult>{{"open sesame", R"({"token":"open sesame"})"}};
    answer.save_json = R"("open sesame")";
    answer.logs.push_back({"print", "open sesame"});
    answer.logs.push_back({"stderr", "key open sesam"});
    answer.failure = ProcessorFailure{
        .text = "bad open sesame", .kind = "open sesame", .where = "open sesame:1", .trace = "open sesame\n"};
    co_return answer;
  };
  const auto masked = masked_processor(std::make_unique<TestProcessor>(ProcessorDescription{}, answer_of), mask);
  loop_.run_until_complete([](Processor& processor) -> Coro<void> {
    EXPECT_TRUE(co_await processor.describe());
    EXPECT_EQ(processor.capacity(), 2u);
    const PageCall call;
    const VisitAnswer answer = co_await processor.process(call);
    EXPECT_EQ(answer.logs.at(0).text, "***");
    EXPECT_EQ(answer.logs.at(1).text, "key ***") << "the rest is in the next line";
    EXPECT_EQ(answer.failure->text, "bad ***");
    EXPECT_EQ(answer.failure->kind, "***");
    EXPECT_EQ(answer.failure->where, "***:1");
    EXPECT_EQ(answer.failure->trace, "***\n");
    EXPECT_EQ(answer.results->at(0).part, "***");
    EXPECT_EQ(answer.results->at(0).value_json, R"({"token":"***"})");
    EXPECT_EQ(answer.pages.at(0).url, "https://a.test/?token=open%20sesame") << "it is to be fetched";
    EXPECT_EQ(answer.save_json, R"("open sesame")") << "it is the script's own";
    co_await processor.close();
  }(*masked));

  std::vector<std::string> told;
  ProcessorWatch watch = masked_watch({.log = [&](PageLog line) { told.push_back(line.text); },
                                       .described = {},
                                       .trouble = [&](const std::string& why) { told.push_back(why); }},
                                      mask);
  watch.log({"info", "open sesame 1"});
  watch.trouble("open sesame 2");
  mask->add("another secret");
  watch.log({"info", "another secret"});
  EXPECT_THAT(told, ElementsAre("*** 1", "*** 2", "***"));
}

TEST_F(MaskedProcessorTest, RestsAsLongAsTheOneInIt) {
  class Resting final : public Processor {
   public:
    Coro<Result<ProcessorDescription>> describe() override { co_return ProcessorDescription{}; }
    Coro<void> rest() override {
      ++times;
      co_await ended.wait();
    }
    Coro<VisitAnswer> process(const PageCall&) override { co_return VisitAnswer{}; }
    std::size_t capacity() const override { return 1; }
    Coro<void> close() override { co_return; }
    int times = 0;
    Event ended;
  };
  auto resting = std::make_unique<Resting>();
  Resting& inner = *resting;
  const auto masked = masked_processor(std::move(resting), std::make_shared<SecretMask>());
  loop_.run_until_complete([](Processor& processor, Resting& its) -> Coro<void> {
    Task<void> rest = EventLoop::current().create_task(processor.rest());
    co_await sleep(std::chrono::seconds{1});
    EXPECT_EQ(its.times, 1);
    EXPECT_FALSE(rest.done()) << "it has not ended yet";
    its.ended.set();
    co_await rest;
    Task<void> given_up = EventLoop::current().create_task(processor.rest());
    its.ended.clear();
    co_await sleep(std::chrono::seconds{1});
    given_up.cancel();
    try {
      co_await given_up;
      ADD_FAILURE() << "it was cancelled";
    } catch (const CancelledError&) {
    }
    EXPECT_EQ(its.times, 2);
  }(*masked, inner));
}

}  // namespace
}  // namespace argiope
