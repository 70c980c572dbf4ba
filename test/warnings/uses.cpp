// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

// Uses each part of the library, for warnings that compilers give when they have inlined all of it.
// Compiled, and not run: check.sh includes every public header before it.

#include <pawl/pawl.hpp>

#include <boost/asio.hpp>

#include <array>
#include <chrono>
#include <cstddef>
#include <string>

namespace {

namespace asio = boost::asio;
using namespace std::chrono_literals;

template <class Timer>
void use_timer(asio::io_context& context) {
    Timer timer(context, 1h);
    timer.async_wait([](boost::system::error_code) {});
    timer.async_wait(
        asio::bind_executor(asio::make_strand(context), [](boost::system::error_code) {}));
    timer.rearm_after(2h);
    timer.cancel_one();
    timer.expires_after(1h);
    Timer other(std::move(timer));
    other.cancel();
}

asio::awaitable<int> answer() {
    co_await pawl::sleep_for(1ms);
    co_return 42;
}

asio::awaitable<void> use_limits(pawl::tcp_stream& stream, pawl::steady_timer& timer) {
    std::array<char, 8> data{};
    co_await stream.async_read_some(asio::buffer(data), pawl::timeout(1s));
    co_await stream.async_read_some(asio::buffer(data), pawl::cancel_after(timer, 1s));
    co_await stream.async_write_some(asio::buffer(data), pawl::coarse_timeout(1s));
    co_await pawl::timeout(1s, answer());
    co_await pawl::with_deadline(pawl::deadline::after(1s), answer());
    co_await timer.async_wait(pawl::timeout_at(pawl::deadline::after(1s)));
    pawl::group group(stream.get_executor());
    co_await stream.async_read_some(asio::buffer(data), pawl::timeout(1s, pawl::in_group(group)));
    co_await pawl::in_group(group, answer());
    co_await group.async_drained();
    pawl::interval_timer ticks(stream.get_executor(), 1s);
    co_await ticks.async_wait(asio::deferred);
}

} // namespace

int main() {
    asio::io_context context;
    pawl::options options;
    options.rings.delays.push_back({.delay = 1h});
    options.rings.delays.push_back({.delay = 2h});
    pawl::make_timer_service<pawl::ring_timer>(context, options);
    use_timer<pawl::steady_timer>(context);
    use_timer<pawl::system_timer>(context);
    use_timer<pawl::coarse_timer>(context);
    use_timer<pawl::compact_timer>(context);
    use_timer<pawl::ring_timer>(context);
    use_timer<pawl::manual_timer>(context);

    pawl::tcp_stream stream(context);
    stream.set_limits({.idle = 1s, .write = 1s});
    pawl::steady_timer timer(context);
    asio::co_spawn(context, use_limits(stream, timer), asio::detached);

    pawl::event_queue queue;
    pawl::broadcast_ring<std::string> ring(64);
    pawl::timing_wheel<std::string> wheel(std::chrono::steady_clock::now());
    pawl::expire_all(context, asio::error::operation_aborted);
    return static_cast<int>(context.run());
}
