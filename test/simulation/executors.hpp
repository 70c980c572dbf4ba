// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

// Executors on an io_context that are not Asio's.

#ifndef PAWL_TEST_SIMULATION_EXECUTORS_HPP
#define PAWL_TEST_SIMULATION_EXECUTORS_HPP

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/execution.hpp>
#include <boost/asio/execution_context.hpp>
#include <boost/asio/prefer.hpp>
#include <boost/asio/query.hpp>
#include <boost/asio/require.hpp>

#include <cstdint>
#include <memory>
#include <type_traits>
#include <utility>

namespace simulation {

namespace asio = boost::asio;

enum class flavour : std::uint8_t {
    native,
    strand,
    unknown,  ///< an unknown type
    copying,  ///< copies functions that can be copied, and runs the copy one unit later
    immediate ///< runs functions inside the call, unless it must not block
};
inline constexpr int flavours = 5;

template <flavour F>
class foreign_executor {
public:
    foreign_executor(asio::any_io_executor inner, bool may_block) noexcept
        : inner_(std::move(inner)), may_block_(may_block) {}

    asio::execution_context& query(asio::execution::context_t) const noexcept {
        return asio::query(inner_, asio::execution::context);
    }
    foreign_executor require(asio::execution::blocking_t::never_t) const {
        return foreign_executor(asio::require(inner_, asio::execution::blocking.never), false);
    }
    foreign_executor require(asio::execution::blocking_t::possibly_t) const {
        return foreign_executor(inner_, true);
    }
    template <class Property>
        requires asio::can_prefer_v<asio::any_io_executor, Property>
    foreign_executor prefer(const Property& property) const {
        return foreign_executor(asio::prefer(inner_, property), may_block_);
    }

    template <class Function>
    void execute(Function&& f) const {
        if constexpr (F == flavour::copying) {
            auto first = std::make_shared<std::decay_t<Function>>(std::forward<Function>(f));
            asio::require(inner_, asio::execution::blocking.never)
                .execute([ex = inner_, first = std::move(first)]() mutable {
                    if constexpr (std::is_copy_constructible_v<std::decay_t<Function>>) {
                        auto copy = *first;
                        first.reset();
                        ex.execute(std::move(copy));
                    } else {
                        auto moved = std::move(*first);
                        first.reset();
                        ex.execute(std::move(moved));
                    }
                });
        } else if (F == flavour::immediate && may_block_) {
            std::decay_t<Function> function(std::forward<Function>(f));
            std::move(function)();
        } else {
            inner_.execute(std::forward<Function>(f));
        }
    }

    friend bool operator==(const foreign_executor& a, const foreign_executor& b) noexcept {
        return a.inner_ == b.inner_ && a.may_block_ == b.may_block_;
    }

private:
    asio::any_io_executor inner_;
    bool may_block_;
};

} // namespace simulation

#endif
