// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

// hiredis in an io_context, as far as reminders.cpp needs it: commands that can be awaited and
// cancelled, and a subscription. Your own program would use Boost.Redis, or the client that it
// already has.
#ifndef PAWL_EXAMPLES_COOKBOOK_REDIS_CONNECTION_HPP
#define PAWL_EXAMPLES_COOKBOOK_REDIS_CONNECTION_HPP

#include <hiredis/async.h>
#include <hiredis/hiredis.h>

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/associated_cancellation_slot.hpp>
#include <boost/asio/associated_executor.hpp>
#include <boost/asio/async_result.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/cancellation_type.hpp>
#include <boost/asio/error.hpp>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/system/error_code.hpp>
#include <boost/system/system_error.hpp>

#include <cstddef>
#include <functional>
#include <memory>
#include <new>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace cookbook {

/// An answer of Redis: an integer, a text, or a list. Nil is an empty text.
struct redis_reply {
    long long integer = 0;
    std::string text{};
    std::vector<redis_reply> list{};
    bool is_error = false;

    redis_reply() = default;
    explicit redis_reply(const redisReply& reply)
        : integer(reply.type == REDIS_REPLY_INTEGER ? reply.integer : 0),
          is_error(reply.type == REDIS_REPLY_ERROR) {
        if (reply.str)
            text.assign(reply.str, static_cast<std::size_t>(reply.len));
        for (std::size_t i = 0; i != reply.elements; ++i)
            list.emplace_back(*reply.element[i]);
    }
};

/// A connection to a Redis on this machine, for one thread. It outlives its pending commands, which
/// complete through the executor, never from within a call.
class redis_connection {
    using error_code = boost::system::error_code;

public:
    /// @param path of the server's socket.
    /// @throws boost::system::system_error if there is no server.
    redis_connection(const boost::asio::any_io_executor& executor, const std::string& path)
        : context_(redisAsyncConnectUnix(path.c_str())), socket_(executor) {
        if (!context_)
            throw std::bad_alloc();
        if (context_->err != REDIS_OK) {
            redisAsyncFree(std::exchange(context_, nullptr));
            throw boost::system::system_error(boost::asio::error::connection_refused);
        }
        socket_.assign(context_->c.fd);
        context_->ev.data = this;
        context_->ev.addRead = [](void* self) { of(self).watch(of(self).reads_, true); };
        context_->ev.delRead = [](void* self) { of(self).reads_.wanted = false; };
        context_->ev.addWrite = [](void* self) { of(self).watch(of(self).writes_, false); };
        context_->ev.delWrite = [](void* self) { of(self).writes_.wanted = false; };
        context_->ev.cleanup = [](void* self) { // hiredis has released the socket, or is about to
            of(self).context_ = nullptr;
            of(self).socket_.release();
        };
    }
    redis_connection(const redis_connection&) = delete;
    redis_connection& operator=(const redis_connection&) = delete;
    ~redis_connection() { close(); }

    /// Ends the pending commands with `eof`.
    void close() {
        on_loss_ = nullptr;
        if (context_)
            redisAsyncFree(context_);
    }

    /// Sends a command. If it is cancelled, a later answer is dropped.
    /// @throws boost::system::system_error if the connection is lost, or the command is cancelled
    ///         (`operation_aborted`); std::runtime_error if Redis answers with an error.
    boost::asio::awaitable<redis_reply> command(std::vector<std::string> words) {
        redis_reply reply =
            co_await boost::asio::async_initiate<decltype(boost::asio::use_awaitable),
                                                 void(error_code, redis_reply)>(
                [this, &words](auto handler) { start(std::move(handler), words); },
                boost::asio::use_awaitable);
        if (reply.is_error)
            throw std::runtime_error("redis: " + reply.text);
        co_return reply;
    }

    /// Calls `on_ready()` when the subscription is active, `on_message(text)` for each message, and
    /// `on_loss()` if the connection is lost before it is closed. It takes no other commands afterwards.
    void subscribe(const std::string& channel, std::function<void()> on_ready,
                   std::function<void(const std::string&)> on_message,
                   std::function<void()> on_loss) {
        on_ready_ = std::move(on_ready);
        on_message_ = std::move(on_message);
        on_loss_ = std::move(on_loss);
        const auto told = [](redisAsyncContext*, void* raw, void* self) {
            if (!raw)
                return of(self).lost();
            const redis_reply reply(*static_cast<redisReply*>(raw));
            if (reply.list.size() != 3)
                return;
            if (reply.list[0].text == "subscribe")
                of(self).on_ready_();
            else
                of(self).on_message_(reply.list[2].text);
        };
        if (!context_ ||
            redisAsyncCommand(context_, told, this, "SUBSCRIBE %s", channel.c_str()) != REDIS_OK)
            lost();
    }

private:
    struct direction {
        bool wanted = false;
        bool watched = false;
    };

    /// A command without an answer. It ends once: by the answer, a loss, or a cancellation.
    struct pending {
        virtual ~pending() = default;
        virtual void complete(error_code ec, redis_reply reply) = 0;
    };

    template <class Handler>
    struct pending_handler : pending {
        pending_handler(Handler h, const boost::asio::any_io_executor& fallback)
            : handler(std::move(h)), work(boost::asio::get_associated_executor(handler, fallback)) {
        }

        void complete(error_code ec, redis_reply reply) override {
            if (told)
                return;
            told = true;
            boost::asio::get_associated_cancellation_slot(handler).clear();
            boost::asio::post(work.get_executor(),
                              [h = std::move(handler), ec, r = std::move(reply)]() mutable {
                                  std::move(h)(ec, std::move(r));
                              });
            work.reset();
        }

        Handler handler;
        boost::asio::executor_work_guard<
            boost::asio::associated_executor_t<Handler, boost::asio::any_io_executor>>
            work;
        bool told = false;
    };

    static redis_connection& of(void* self) { return *static_cast<redis_connection*>(self); }

    void lost() {
        if (auto on_loss = std::exchange(on_loss_, nullptr))
            boost::asio::post(socket_.get_executor(), std::move(on_loss));
    }

    template <class Handler>
    void start(Handler handler, const std::vector<std::string>& words) {
        auto slot = boost::asio::get_associated_cancellation_slot(handler);
        const auto command =
            std::make_shared<pending_handler<Handler>>(std::move(handler), socket_.get_executor());
        if (slot.is_connected())
            slot.assign([weak = std::weak_ptr<pending>(command)](boost::asio::cancellation_type) {
                if (const auto waiting = weak.lock())
                    waiting->complete(boost::asio::error::operation_aborted, {});
            });

        std::vector<const char*> texts;
        std::vector<std::size_t> sizes;
        for (const std::string& word : words) {
            texts.push_back(word.data());
            sizes.push_back(word.size());
        }
        const auto told = [](redisAsyncContext*, void* raw, void* data) {
            const std::unique_ptr<std::shared_ptr<pending>> waiting(
                static_cast<std::shared_ptr<pending>*>(data));
            if (raw)
                (*waiting)->complete({}, redis_reply(*static_cast<redisReply*>(raw)));
            else
                (*waiting)->complete(boost::asio::error::eof, {});
        };
        auto data = std::make_unique<std::shared_ptr<pending>>(command);
        if (context_ &&
            redisAsyncCommandArgv(context_, told, data.get(), static_cast<int>(words.size()),
                                  texts.data(), sizes.data()) == REDIS_OK)
            data.release(); // hiredis owns it, and calls `told` in any case
        else
            command->complete(boost::asio::error::eof, {});
    }

    /// Tells hiredis when the socket is readable or writable, while it asks for that.
    void watch(direction& d, bool reading) {
        d.wanted = true;
        if (std::exchange(d.watched, true))
            return;
        socket_.async_wait(reading ? socket_.wait_read : socket_.wait_write,
                           [this, alive = std::weak_ptr<int>(alive_), &d, reading](error_code ec) {
                               if (alive.expired())
                                   return;
                               d.watched = false;
                               if (ec || !context_ || !d.wanted)
                                   return;
                               if (reading)
                                   redisAsyncHandleRead(context_);
                               else
                                   redisAsyncHandleWrite(context_);
                               if (context_ && d.wanted)
                                   watch(d, reading);
                           });
    }

    redisAsyncContext* context_;
    boost::asio::posix::stream_descriptor socket_;
    direction reads_{};
    direction writes_{};
    std::function<void()> on_ready_{};
    std::function<void(const std::string&)> on_message_{};
    std::function<void()> on_loss_{};
    std::shared_ptr<int> alive_ = std::make_shared<int>(); // for queued waits at the end
};

} // namespace cookbook

#endif // PAWL_EXAMPLES_COOKBOOK_REDIS_CONNECTION_HPP
