// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

/// @file
/// Purpose
///   A boost::asio::cancellation_signal with inline storage for the cancellation handler of an
///   operation. Asio's signal allocates and frees memory for each operation.
///
/// Model
///   A handler that fits is stored in the signal itself, any other one in a signal of Asio's. The
///   slot converts to Asio's slot type, because operations store such slots (Beast's saved_handler
///   does). After the first conversion everything goes through Asio's signal, so that all slots
///   refer to one place; a handler already stored inline is represented there. A slot of Asio's
///   also converts to this type and remains a slot of its own signal.
///
///   The memory is used again without a count: a new handler takes it as soon as the last one is
///   destroyed. Only the slot's holder may replace or clear a handler, also from within the call of
///   emit(), but not from the destructor of a handler. Debug builds assert it.
///
/// Threads
///   One at a time, as with Asio's.
#ifndef PAWL_DETAIL_LIMIT_INLINE_SIGNAL_HPP
#define PAWL_DETAIL_LIMIT_INLINE_SIGNAL_HPP

#include <pawl/config.hpp>

#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/cancellation_type.hpp>

#include <cstddef>
#include <new>
#include <type_traits>
#include <utility>

namespace pawl::detail {

class inline_signal {
    struct any_handler {
        virtual void call(boost::asio::cancellation_type_t type) = 0;
        virtual void destroy() noexcept = 0;

    protected:
        ~any_handler() = default;
    };

    template <class Handler>
    struct handler final : any_handler {
        template <class... Args>
        explicit handler(Args&&... args) : function(std::forward<Args>(args)...) {}
        void call(boost::asio::cancellation_type_t type) override { function(type); }
        void destroy() noexcept override { this->~handler(); }

        Handler function;
    };

    /// Stands in Asio's signal for the inline handler.
    class representative {
    public:
        explicit representative(inline_signal& signal) noexcept : signal_(&signal) {}
        representative& operator=(representative&&) = delete;
        ~representative() { signal_->clear_small(); }

        void operator()(boost::asio::cancellation_type_t type) { signal_->small_->call(type); }

    private:
        inline_signal* signal_;
    };

    static constexpr std::size_t room = 72; // Asio's sockets need 56, co_spawn 72

    template <class Handler>
    static constexpr bool fits =
        sizeof(handler<Handler>) <= room && alignof(handler<Handler>) <= alignof(void*);

public:
    /// As boost::asio::cancellation_slot.
    class slot_type {
    public:
        slot_type() noexcept = default;
        explicit slot_type(inline_signal& signal) noexcept : signal_(&signal) {}
        /// A slot of another signal, as this type. A handler wrapper may return it: the wrapper has
        /// the slot type of the handler, but filters through a cancellation_state (Boost.MQTT5
        /// does).
        slot_type(const boost::asio::cancellation_slot& other) noexcept : other_(other) {}

        template <class Handler, class... Args>
        Handler& emplace(Args&&... args) {
            if (!signal_)
                return other_.template emplace<Handler>(std::forward<Args>(args)...);
            if constexpr (fits<Handler>) {
                if (!signal_->converted_) {
                    clear();
                    PAWL_ASSERT(!signal_->small_); // its destructor has emplaced no other
                    auto* const h = ::new (static_cast<void*>(signal_->memory_))
                        handler<Handler>(std::forward<Args>(args)...);
                    signal_->small_ = h;
                    return h->function;
                }
            }
            signal_->clear_small();
            return signal_->large_.slot().template emplace<Handler>(std::forward<Args>(args)...);
        }
        template <class Handler>
        std::decay_t<Handler>& assign(Handler&& h) {
            return emplace<std::decay_t<Handler>>(std::forward<Handler>(h));
        }
        void clear() {
            if (signal_) {
                signal_->clear_small();
                if (auto large = signal_->large_.slot(); large.has_handler()) // saves a call
                    large.clear();
            } else {
                other_.clear();
            }
        }

        [[nodiscard]] bool is_connected() const noexcept {
            return signal_ || other_.is_connected();
        }
        [[nodiscard]] bool has_handler() const noexcept {
            if (signal_)
                return signal_->small_ || signal_->large_.slot().has_handler();
            return other_.has_handler();
        }

        /// @throws std::bad_alloc if there is a handler.
        operator boost::asio::cancellation_slot() const {
            if (!signal_)
                return other_;
            signal_->convert();
            return signal_->large_.slot();
        }

        friend bool operator==(const slot_type&, const slot_type&) noexcept = default;
        friend bool operator==(const slot_type& a, const boost::asio::cancellation_slot& b) {
            return static_cast<boost::asio::cancellation_slot>(a) ==
                   b; // each converts to the other
        }

    private:
        inline_signal* signal_ = nullptr;
        boost::asio::cancellation_slot other_; ///< used without signal_
    };

    inline_signal& operator=(inline_signal&&) = delete;
    ~inline_signal() { clear_small(); }

    [[nodiscard]] slot_type slot() noexcept { return slot_type(*this); }

    void emit(boost::asio::cancellation_type_t type) {
        if (small_ && !converted_)
            small_->call(type);
        else
            large_.emit(type);
    }

private:
    void convert() {
        if (!converted_ && small_)
            large_.slot().emplace<representative>(*this);
        converted_ = true;
    }
    void clear_small() noexcept {
        if (small_)
            std::exchange(small_, nullptr)->destroy();
    }

    any_handler* small_ = nullptr; ///< in memory_; large_ then has its representative, or nothing
    bool converted_ = false;       ///< slots of large_ may exist
    boost::asio::cancellation_signal large_;
    alignas(void*) std::byte memory_[room];
};

} // namespace pawl::detail

#endif // PAWL_DETAIL_LIMIT_INLINE_SIGNAL_HPP
