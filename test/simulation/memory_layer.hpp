// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

#ifndef PAWL_TEST_SIMULATION_MEMORY_LAYER_HPP
#define PAWL_TEST_SIMULATION_MEMORY_LAYER_HPP

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/associated_cancellation_slot.hpp>
#include <boost/asio/associated_executor.hpp>
#include <boost/asio/buffer.hpp>
#include <boost/asio/error.hpp>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/post.hpp>
#include <boost/system/error_code.hpp>

#include <array>
#include <cstddef>
#include <memory>
#include <type_traits>
#include <utility>

namespace simulation {

/// A socket in memory, one operation in each direction: an operation ends when its peer acts, when
/// it is cancelled, or when the socket is closed. (The socket that it is derived from is not used.)
class memory_layer : public boost::asio::ip::tcp::socket {
    using error_code = boost::system::error_code;

    struct any_handler {
        virtual ~any_handler() = default;
        virtual void post(const error_code& ec, std::size_t size) = 0;
    };
    template <class Handler, bool Connects>
    struct some_handler final : any_handler {
        some_handler(Handler&& h, const boost::asio::any_io_executor& ex)
            : handler(std::move(h)), work(boost::asio::get_associated_executor(handler, ex)) {}
        void post(const error_code& ec, std::size_t size) override {
            boost::asio::post(work.get_executor(), [h = std::move(handler), ec, size]() mutable {
                static_cast<void>(size); // clang warns of a capture that only one branch uses
                if constexpr (Connects)
                    std::move(h)(ec);
                else
                    std::move(h)(ec, size);
            });
        }
        Handler handler;
        boost::asio::executor_work_guard<
            boost::asio::associated_executor_t<Handler, boost::asio::any_io_executor>>
            work;
    };

public:
    enum side { reading, writing, connecting };

    /// Is notified before each change of the layer.
    class observer {
    public:
        virtual void ends(side s, const error_code& ec) = 0;
        virtual void closes() = 0;

    protected:
        ~observer() = default;
    };

    struct state {
        std::array<std::unique_ptr<any_handler>, 3> pending;
        bool open = true;
        observer* watch = nullptr;

        void end(side s, const error_code& ec, std::size_t size) {
            if (watch && pending[s])
                watch->ends(s, ec);
            if (const auto handler = std::move(pending[s]))
                handler->post(ec, size);
        }
        void cancel() {
            for (const side s : {reading, writing, connecting})
                end(s, boost::asio::error::operation_aborted, 0);
        }
    };

    using executor_type = boost::asio::any_io_executor;

    explicit memory_layer(const executor_type& ex) : basic_stream_socket(ex), executor_(ex) {}

    const executor_type& get_executor() const noexcept { return executor_; }
    [[nodiscard]] state& peer() const noexcept { return *state_; }

    bool is_open() const noexcept { return state_->open; }
    void close() {
        if (state_->watch)
            state_->watch->closes();
        state_->open = false;
        state_->cancel();
    }
    friend void beast_close_socket(memory_layer& layer) { layer.close(); }
    void cancel(error_code&) { state_->cancel(); }

    template <class Handler>
    void async_connect(const endpoint_type&, Handler&& handler) {
        state_->open = true;
        start<true>(connecting, std::forward<Handler>(handler));
    }

    template <class Buffers, class Handler>
    void async_read_some(const Buffers&, Handler&& handler) {
        start<false>(reading, std::forward<Handler>(handler));
    }
    template <class Buffers, class Handler>
    void async_write_some(const Buffers&, Handler&& handler) {
        start<false>(writing, std::forward<Handler>(handler));
    }

private:
    template <bool Connects, class Handler>
    void start(side s, Handler&& handler) {
        auto slot = boost::asio::get_associated_cancellation_slot(handler);
        state_->pending[s] = std::make_unique<some_handler<std::decay_t<Handler>, Connects>>(
            std::forward<Handler>(handler), executor_);
        if (!state_->open)
            return state_->end(s, boost::asio::error::bad_descriptor, 0);
        if (slot.is_connected())
            slot.assign([weak = std::weak_ptr(state_), s](boost::asio::cancellation_type_t type) {
                const auto here = weak.lock();
                if (here && type != boost::asio::cancellation_type::none)
                    here->end(s, boost::asio::error::operation_aborted, 0);
            });
    }

    executor_type executor_;
    std::shared_ptr<state> state_ = std::make_shared<state>();
};

} // namespace simulation

#endif
