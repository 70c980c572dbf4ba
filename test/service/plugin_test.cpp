// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

// A plugin that has used timers can be unloaded. What it keeps for each thread must not keep it loaded, as a thread_local
// object with a destructor would, and must not be looked for when the thread ends. In a context of the program nothing of
// its code stays behind, such as the handler of the service's system timer or the functions of a shard.

#define BOOST_TEST_MODULE plugin
#include <boost/test/data/monomorphic.hpp>
#include <boost/test/data/test_case.hpp>
#include <boost/test/unit_test.hpp>

#include <pawl/event_feed.hpp>
#include <pawl/pressure.hpp>
#include <pawl/steady_timer.hpp>
#include <pawl/timer_service.hpp>

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/post.hpp>

#include <dlfcn.h>

#include <array>
#include <chrono>
#include <cstdint>
#include <future>
#include <optional>
#include <thread>

namespace {

using namespace std::chrono_literals;

/// A plugin and what it has in a context of this program.
class visitor {
public:
    visitor(const char* file, boost::asio::io_context& context, const char* come = "visit",
            const char* go = "leave")
        : library_(dlopen(file, RTLD_NOW | RTLD_LOCAL)), go_(go) {
        BOOST_REQUIRE(library_);
        visitor_ = function<void* (*)(boost::asio::io_context&, int&)>(come)(context, ended_);
    }
    visitor& operator=(visitor&&) = delete;

    [[nodiscard]] int ended() const noexcept { return ended_; }
    void part() { function<void (*)(void*)>("part")(visitor_); }
    void leave() { function<void (*)(void*)>(go_)(visitor_); }
    void unload(const char* file) {
        leave();
        close(file);
    }
    void close(const char* file) {
        dlclose(library_);
        BOOST_TEST(!dlopen(file, RTLD_NOW | RTLD_NOLOAD));
    }

private:
    template <class Function>
    Function function(const char* name) {
        const auto f = reinterpret_cast<Function>(dlsym(library_, name));
        BOOST_REQUIRE(f);
        return f;
    }

    void* library_;
    const char* go_;
    void* visitor_;
    int ended_ = 0;
};

/// One after the other, in threads that live at the same time.
template <class F, class... Others>
void each_in_a_thread(F f, Others... others) {
    std::thread([&] {
        f();
        if constexpr (sizeof...(others) != 0)
            each_in_a_thread(others...);
    }).join();
}

BOOST_AUTO_TEST_CASE(a_plugin_can_be_unloaded_while_a_thread_lives_that_used_it) {
    for (int i = 0; i != 3; ++i) {
        void* const plugin = dlopen(PAWL_TEST_PLUGIN, RTLD_NOW | RTLD_LOCAL);
        BOOST_REQUIRE(plugin);
        const auto run = reinterpret_cast<int (*)()>(dlsym(plugin, "run_some_waits"));
        BOOST_REQUIRE(run);

        std::promise<int> used;
        std::promise<void> unloaded;
        std::thread user([&] {
            used.set_value(run());
            unloaded.get_future().wait();
        });
        BOOST_TEST(used.get_future().get() == 100);
        BOOST_TEST(run() == 100);
        dlclose(plugin);
        BOOST_TEST(!dlopen(PAWL_TEST_PLUGIN, RTLD_NOW | RTLD_NOLOAD));
        unloaded.set_value();
        user.join();
    }
}

BOOST_DATA_TEST_CASE(one_of_two_plugins_in_a_context_is_unloaded_while_the_waits_of_others_go_on,
                     boost::unit_test::data::make({false, true}) *
                         boost::unit_test::data::make({1u, 0u}),
                     expires, shards) {
    boost::asio::io_context context;
    pawl::options o;
    o.shards = shards;
    pawl::make_timer_service(context, o); // its code must stay: see doc/compatibility.md
    int ended = 0;
    const auto count = [&](boost::system::error_code) { ++ended; };
    std::optional<visitor> first, other;
    std::optional<pawl::steady_timer> mine, last;
    // With a shard for each thread, the second one is made by the plugin that goes.
    each_in_a_thread([&] { other.emplace(PAWL_TEST_PLUGIN_2, context); },
                     [&] { first.emplace(PAWL_TEST_PLUGIN, context); },
                     [&] { mine.emplace(context, 10ms); }, [&] { last.emplace(context, 1h); });
    mine->async_wait(count);
    last->async_wait(count);

    if (!expires)
        first->part();
    while (first->ended() != (expires ? 3 : 2))
        context.run_one();
    first->unload(PAWL_TEST_PLUGIN);
    last->cancel();
    context.run();

    BOOST_TEST(ended == 2);
    BOOST_TEST(other->ended() == 3);
    other->unload(PAWL_TEST_PLUGIN_2);
    mine->expires_after(1ms);
    mine->async_wait(count);
    context.restart();
    context.run();
    BOOST_TEST(ended == 3);
}

BOOST_AUTO_TEST_CASE(a_plugin_and_the_program_in_one_thread_need_no_locks) {
    boost::asio::io_context context;
    pawl::options o;
    o.locking = false;
    pawl::make_timer_service(context, o);
    visitor guest(PAWL_TEST_PLUGIN, context);
    pawl::steady_timer mine(context, 1h);
    int aborted = 0;
    mine.async_wait([&](boost::system::error_code ec) { aborted += !!ec; });
    boost::asio::post(context, [&] { mine.cancel(); });
    context.run();

    BOOST_TEST(guest.ended() == 3);
    BOOST_TEST(aborted == 1);
    guest.unload(PAWL_TEST_PLUGIN);
}

// An interval, an event queue, a reader of the feed, a group and a stream, each with an operation that
// has ended and one that is pending. What they have started in the context goes with them, or is run
// before.
BOOST_DATA_TEST_CASE(a_plugin_with_one_of_each_object_is_unloaded_and_the_context_goes_on,
                     boost::unit_test::data::make({1u, 0u}), shards) {
    boost::asio::io_context context;
    pawl::options o;
    o.shards = shards;
    pawl::make_timer_service(context, o); // code that must stay: the services of all these objects
    pawl::event_feed feed(context);
    auto reader = feed.join();
    const boost::asio::ip::tcp::socket socket(context);
    pawl::steady_timer mine(context, 1h);
    int ended = 0;
    mine.async_wait([&](boost::system::error_code) { ++ended; });
    for (int round = 0; round != 2; ++round) { // it comes again
        const std::uint64_t before = feed.published();
        visitor tenant(PAWL_TEST_PLUGIN, context, "move_in", "move_out");
        while (tenant.ended() != 5)
            context.run_one();
        BOOST_TEST(feed.readers() == 2U);
        tenant.leave();
        BOOST_TEST(feed.readers() == 1U);
        while (context.poll() != 0) { // the handlers that the end of these objects has cancelled
        }
        tenant.close(PAWL_TEST_PLUGIN);
        BOOST_TEST(feed.published() > before);
    }
    mine.rearm_after(1ms);
    context.run();

    BOOST_TEST(ended == 1);
    std::array<pawl::timer_event, 64> some;
    BOOST_TEST(reader.try_read(some).count != 0U);
}

// The patterns, and a timer, a limit and an alarm that are scaled.
BOOST_DATA_TEST_CASE(a_plugin_with_one_of_each_pattern_is_unloaded_and_the_context_goes_on,
                     boost::unit_test::data::make({1u, 0u}), shards) {
    boost::asio::io_context context;
    pawl::options o;
    o.shards = shards;
    pawl::make_timer_service(context, o); // code that must stay
    pawl::make_timer_service<pawl::scaled_timer>(context, o);
    pawl::steady_timer mine(context, 1h);
    int ended = 0;
    mine.async_wait([&](boost::system::error_code) { ++ended; });
    for (int round = 0; round != 2; ++round) {
        visitor lodger(PAWL_TEST_PLUGIN, context, "check_in", "check_out");
        while (lodger.ended() != 12)
            context.run_one();
        lodger.leave();
        while (context.poll() != 0) { // the handlers that the end of these objects has cancelled
        }
        lodger.close(PAWL_TEST_PLUGIN);
    }
    mine.rearm_after(1ms);
    context.run();

    BOOST_TEST(ended == 1);
}

} // namespace
