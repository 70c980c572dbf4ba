// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

// Timers of Pawl, and completions of Asio, in the event loop of another library: libuv watches the
// queue's descriptor. The io_context has a thread of its own, but handlers run in libuv's thread only.

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

    /// The loop ends when nothing is watched any more.
    void stop() { uv_close(reinterpret_cast<uv_handle_t*>(&readable), nullptr); }

    pawl::event_queue& queue;
    uv_loop_t loop{};
    uv_poll_t readable{};
};

/// Runs the same under a libuv loop with each kind of queue. @return whether all went well.
bool run(const char* name, pawl::event_queue& queue) {
    host uv(queue);
    const auto loop_thread = std::this_thread::get_id();
    std::string seen;
    bool good = true;
    const auto event = [&](char what) {
        good = good && std::this_thread::get_id() == loop_thread;
        seen += what;
    };

    // A timer of libuv's, between those of Pawl.
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

    // Each event causes the next, so that their order does not depend on how busy the machine is.
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

    std::erase(seen, 'u'); // that one may come anywhere
    return good && seen == "poiii" && queue.timers() == 0;
}

} // namespace

int main() {
    bool good = true;
    {
        pawl::event_queue queue; // its descriptor tells of its timers, too
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
