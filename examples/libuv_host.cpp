// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

// Pawl timers and Asio completions in the event loop of another library: libuv polls the queue's
// descriptor. The io_context has its own thread, but handlers run only in libuv's thread.

#include <pawl/event_queue.hpp>

#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>

#include <uv.h>

#include <chrono>
#include <iostream>
#include <string>
#include <thread>

using namespace std::chrono_literals;

namespace {

struct host {
    explicit host(pawl::event_queue& q) : queue(q) {
        uv_loop_init(&loop);
        uv_poll_init(&loop, &readable, queue.native_handle());
        readable.data = this;
        uv_poll_start(&readable, UV_READABLE, [](uv_poll_t* handle, int, int) {
            static_cast<host*>(handle->data)->queue.process_events();
        });
    }
    host(const host&) = delete;
    host& operator=(const host&) = delete;
    ~host() { uv_loop_close(&loop); }

    /// The loop ends when it has nothing left to poll.
    void stop() { uv_close(reinterpret_cast<uv_handle_t*>(&readable), nullptr); }

    pawl::event_queue& queue;
    uv_loop_t loop{};
    uv_poll_t readable{};
};

/// Runs the same events in a libuv loop, with each kind of queue. @return whether all went well.
bool run(const char* name, pawl::event_queue& queue) {
    host uv(queue);
    const auto loop_thread = std::this_thread::get_id();
    std::string seen;
    bool good = true;
    const auto event = [&](char what) {
        good = good && std::this_thread::get_id() == loop_thread;
        seen += what;
    };

    // A libuv timer, between Pawl's.
    uv_timer_t theirs{};
    uv_timer_init(&uv.loop, &theirs);
    theirs.data = &seen;
    uv_timer_start(
        &theirs,
        [](uv_timer_t* t) {
            *static_cast<std::string*>(t->data) += 'u';
            uv_close(reinterpret_cast<uv_handle_t*>(t), nullptr);
        },
        1, 0);

    // Each event causes the next, so the order does not depend on the load of the machine.
    int ticks = 0;
    pawl::event_queue::timer interval;
    const auto tick = [&] {
        event('i');
        if (++ticks == 3) {
            interval.destroy();
            uv.stop();
        }
    };
    boost::asio::post(queue.get_executor(), [&] {
        event('p');
        queue.once(1ms, [&] {
            event('o');
            interval = queue.every(5ms, tick);
        });
    });

    uv_run(&uv.loop, UV_RUN_DEFAULT);
    std::cout << name << ": " << seen << '\n';

    std::erase(seen, 'u'); // its position is not fixed
    return good && seen == "poiii" && queue.timers() == 0;
}

} // namespace

int main() {
    bool good = true;
    {
        pawl::event_queue queue; // its descriptor also covers its timers
        good = run("a queue that keeps its timers", queue);
    }
    {
        boost::asio::io_context context;
        pawl::event_queue queue(context);
        auto work = boost::asio::make_work_guard(context);
        std::thread thread([&] { context.run(); });
        good = run("a queue on an io_context", queue) && good;
        work.reset();
        thread.join();
    }
    if (!good)
        std::cout << "FAILED\n";
    return good ? 0 : 1;
}
