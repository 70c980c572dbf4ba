// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

/// @file
/// Purpose
///   The initiation of an operation that is a function; and what posts a result to the handler of
///   one that is refused, or complete at once.
///
/// Cost
///   One allocation by the associated allocator of the handler, plus those of the executors.
#ifndef PAWL_DETAIL_LIMIT_POST_RESULT_HPP
#define PAWL_DETAIL_LIMIT_POST_RESULT_HPP

#include <pawl/detail/wait/claim.hpp>
#include <pawl/detail/wait/wait_allocator.hpp>
#include <pawl/detail/wait/wait_handler.hpp>

#include <boost/asio/associated_executor.hpp>
#include <boost/asio/dispatch.hpp>
#include <boost/asio/post.hpp>

#include <tuple>
#include <type_traits>
#include <utility>

namespace pawl::detail {

/// Initiates an asynchronous operation: calls `function(handler)`. Its executor is that of handlers
/// without one, and must exist until then.
template <class Executor, class Function>
class initiation {
public:
    using executor_type = Executor;

    initiation(const Executor& ex, Function f) : executor_(&ex), function_(std::move(f)) {}

    [[nodiscard]] const executor_type& get_executor() const noexcept { return *executor_; }

    template <class Handler>
    void operator()(Handler&& handler) const {
        function_(std::forward<Handler>(handler));
    }

private:
    const Executor* executor_;
    Function function_;
};

// One function object type for everything that is posted or dispatched. Asio instantiates some
// kilobytes of code for each function object type that is given to an executor. With this type
// it does so once per executor and allocator, not once per completion handler.

/// A function object that owns `object`. Calls `f(object, true)` when it is invoked, or `f(object,
/// false)` when it is destroyed without having been invoked. Copies share the object: exactly one
/// of these calls happens, once.
template <class Allocator>
class deferred_call {
public:
    using allocator_type = Allocator;
    using function = void (*)(void* object, bool called);

    deferred_call(void* object, function f, const Allocator& a) noexcept
        : object_(object), function_(f), alloc_(a) {}
    deferred_call(deferred_call&& other) noexcept = default;
    deferred_call(const deferred_call& other) = default;
    deferred_call& operator=(deferred_call&&) = delete;
    ~deferred_call() {
        object_.end([f = function_](void* object) { f(object, false); });
    }

    allocator_type get_allocator() const noexcept { return alloc_; }

    void operator()() const {
        if (void* const object = object_.take())
            function_(object, true);
    }

private:
    claim<void> object_;
    function function_;
    [[no_unique_address]] Allocator alloc_;
};

/// A handler and its results. Posted to `Executor`, then dispatched to the executor of the handler,
/// if it has one.
template <class Handler, class Executor, class... Results>
class posted_result {
    using allocator_type = handler_allocator<Handler>;
    using memory = allocated_block<posted_result, allocator_type>;
    friend memory;
    using next_executor =
        std::conditional_t<has_no_executor<Handler>, no_executor,
                           handler_work<boost::asio::associated_executor_t<Handler, Executor>>>;
    using call = deferred_call<allocator_type>;

public:
    /// By value: the handler may own the executor.
    template <class H>
    static void post(Executor ex, H&& handler, Results&&... results) {
        const allocator_type alloc = get_handler_allocator(handler);
        auto* const op = memory(alloc).make(ex, std::forward<H>(handler), std::move(results)...);
        boost::asio::post(ex, call(op, &posted_result::hand_over, alloc));
    }

private:
    template <class H>
    posted_result(const Executor& ex, H&& handler, Results&&... results)
        : next_(next_of(handler, ex)), handler_(std::forward<H>(handler)),
          results_(std::move(results)...) {}

    static next_executor next_of([[maybe_unused]] const Handler& handler,
                                 [[maybe_unused]] const Executor& ex) {
        if constexpr (has_no_executor<Handler>)
            return {};
        else
            return next_executor(boost::asio::get_associated_executor(handler, ex));
    }

    static void hand_over(void* object, bool called) {
        auto& self = *static_cast<posted_result*>(object);
        if constexpr (!has_no_executor<Handler>) {
            if (called) {
                const auto ex = self.next_.executor(); // `self` may be gone before dispatch returns
                return boost::asio::dispatch(ex, call(object, &posted_result::complete,
                                                      get_handler_allocator(self.handler_)));
            }
        }
        complete(object, called);
    }

    static void complete(void* object, bool called) {
        auto& self = *static_cast<posted_result*>(object);
        auto [handler, results] = [&self] { // before the upcall, as in wait_handler
            const allocated_object last(get_handler_allocator(self.handler_), self);
            return std::pair<Handler, std::tuple<Results...>>(std::move(self.handler_),
                                                              std::move(self.results_));
        }();
        if (called)
            std::apply(std::move(handler), std::move(results));
    }

    [[no_unique_address]] const next_executor next_;
    Handler handler_;
    std::tuple<Results...> results_;
};

/// As `boost::asio::post(ex, boost::asio::append(handler, results...))`.
template <class Executor, class Handler, class... Results>
void post_result(const Executor& ex, Handler&& handler, Results... results) {
    posted_result<std::decay_t<Handler>, Executor, Results...>::post(
        ex, std::forward<Handler>(handler), std::move(results)...);
}

} // namespace pawl::detail

#endif // PAWL_DETAIL_LIMIT_POST_RESULT_HPP
