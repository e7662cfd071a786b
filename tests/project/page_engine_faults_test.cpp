// The engine on a disk that fails: whichever write it is, the run ends with the reason, and the next one has all the
// pages and results.
#include <fmt/format.h>
#include <gmock/gmock.h>

#include <algorithm>
#include <map>
#include <optional>

#include "support/faulty_vfs.hpp"
#include "support/simulated_projects.hpp"
#include "support/temporary_folder.hpp"

namespace argiope {
namespace {

using namespace std::chrono_literals;

constexpr int kFaultItems = 12;
constexpr const char* kFaultShop = R"({"project":{"name":"shop","start":["http://shop.test/"]},
  "rule":[{"name":"item","match":"/item/*","follow":false,"fields":{"title":"css:h1"}},{"name":"list","match":"/"}]})";

class PageEngineFaultsTest : public testing::Test {
 protected:
  // One life of the engine, from opening the file to its round's end or the store's. What ended it early; nullopt:
  // nothing did.
  std::optional<Error> live(Fault fault) {
    auto opened = open_page_store(file_, {.linger = 1ms});
    if (!opened) return std::move(opened.error());
    SimulatedProjects sim;
    sim.may_fail = true;
    sim.options.hosts.robots = false;
    sim.options.hosts.rate = 1'000;
    add_pages(sim.web);
    sim.store = std::make_unique<PromptPageStore>(std::move(*opened));
    sim.begin();
    if (!sim.failed && !sim.engine->project("shop")) {
      const auto put = sim.engine->put_project(draft_of(kFaultShop));
      EXPECT_TRUE(put) << (put ? "" : put.error().message);
      sim.pass(1ms);
    }
    const auto status = sim.engine->project("shop");
    if (!sim.failed && status && !status->round) EXPECT_TRUE(sim.engine->start("shop"));
    sim.pass(1min);
    // Whom nobody has told may still ask.
    if (sim.failed) {
      EXPECT_EQ(sim.web.under_way, 0u);
      EXPECT_EQ(sim.engine->under_way(), 0u);
      (void)sim.engine->ask("shop", {.url = "http://shop.test/item/1", .force = true});
      sim.pass(1min);
    } else if (fault == Fault::none) {
      check(sim);
    }
    sim.stop();
    // Closing it may meet the fault, too: all that was acknowledged is there.
    const auto closed = sim.store->close();
    if (!sim.failed && !closed) return closed.error();
    if (sim.failed) {
      EXPECT_EQ(sim.failed->code, fault == Fault::full ? Errc::disk_full : Errc::io) << sim.failed->message;
      EXPECT_THAT(sim.failed->message, testing::HasSubstr(file_));
    }
    return sim.failed;
  }

  static void add_pages(PageWeb& web) {
    std::vector<std::string> links;
    for (int i = 1; i <= kFaultItems; ++i) {
      links.push_back(fmt::format("/item/{}", i));
      web.pages[fmt::format("http://shop.test/item/{}", i)] = {.body = fmt::format("<h1>Item {}</h1>", i)};
    }
    web.pages["http://shop.test/"] = page_with(links);
  }

  void check(SimulatedProjects& sim) {
    const auto status = sim.engine->project("shop");
    ASSERT_TRUE(status);
    EXPECT_FALSE(status->round) << "its round has ended";
    EXPECT_EQ(sim.engine->counters("shop")->all(ProjectCounters::Count::success), kFaultItems + 1);
    std::map<std::string, std::string> found;
    for (const ResultRow& row : sim.results(status->id))
      EXPECT_TRUE(found.emplace(row.page_name, row.value).second) << row.page_name << " twice";
    ASSERT_EQ(found.size(), std::size_t{kFaultItems});
    for (int i = 1; i <= kFaultItems; ++i) {
      EXPECT_EQ(found[fmt::format("http://shop.test/item/{}", i)], fmt::format(R"({{"title":"Item {}"}})", i));
    }
  }

  // Operations of a life without a fault.
  std::uint64_t operations_of(Fault fault) {
    FaultyDisk disk(1);
    disk.plan(fault, ~std::uint64_t{0});
    const auto ended = live(fault);
    EXPECT_FALSE(ended) << ended->message;
    return disk.operations();
  }

  void sweep(Fault fault) {
    const std::uint64_t operations = operations_of(fault);
    ASSERT_FALSE(HasFailure());
    std::uint64_t faults = 0;
    for (std::uint64_t at = 0; at < operations; at += std::max<std::uint64_t>(operations / 60, 1)) {
      FaultyDisk disk(at + 1);
      disk.plan(fault, at);
      faults += live(fault).has_value();
      // A full disk stays so for whoever comes next.
      if (fault == Fault::full) (void)live(fault);
      disk.restart();
      const auto ended = live(Fault::none);
      EXPECT_FALSE(ended) << ended->message;
      ASSERT_FALSE(HasFailure()) << "operation " << at << " of " << operations;
    }
    RecordProperty("faults", static_cast<int>(faults));
    EXPECT_GT(faults, 5u);
  }

  TemporaryFolder folder_;  // for the lock; the rest is on the disk in memory
  const std::string file_ = folder_.file("pages.db");
};

TEST_F(PageEngineFaultsTest, AWriteThatFailsOnceEndsTheRunAndLosesNothing) { sweep(Fault::write); }
TEST_F(PageEngineFaultsTest, ASyncThatFailsOnceEndsTheRunAndLosesNothing) { sweep(Fault::sync); }
TEST_F(PageEngineFaultsTest, ADiskThatStaysFullEndsEachRunAndLosesNothing) { sweep(Fault::full); }

}  // namespace
}  // namespace argiope
