// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

/// @file
/// Purpose
///   How a pawl::timeout_stream holds its state: a std::shared_ptr that still reaches the state
///   after a move, because the executor of a moved-from stream may be queried.
///
/// Model
///   After a move both pointers share the state. The moved-from one is marked: its holder neither
///   closes nor uses the stream.
///
/// Cost
///   A std::shared_ptr. A move adds one owner.
#ifndef PAWL_STREAM_STREAM_OWNER_HPP
#define PAWL_STREAM_STREAM_OWNER_HPP

#include <pawl/config.hpp>

#include <cstdint>
#include <memory>
#include <utility>

namespace pawl::detail {

/// @tparam Impl its alignment is 2 or more.
template <class Impl>
class stream_owner {
public:
    stream_owner(std::shared_ptr<Impl> impl) noexcept : impl_(std::move(impl)) {}
    stream_owner(stream_owner&& other) noexcept : impl_(other.impl_) { other.mark(); }
    stream_owner& operator=(stream_owner&& other) noexcept {
        impl_ = other.impl_;
        other.mark();
        return *this;
    }
    ~stream_owner() = default;

    /// False after a move from this object.
    [[nodiscard]] explicit operator bool() const noexcept { return (word() & moved_from) == 0; }

    /// @pre not moved from. The same holds for owned().
    [[nodiscard]] Impl* operator->() const noexcept {
        PAWL_ASSERT(*this);
        return impl_.get();
    }
    [[nodiscard]] const std::shared_ptr<Impl>& owned() const noexcept {
        PAWL_ASSERT(*this);
        return impl_;
    }

    /// The state, also after a move from this object.
    [[nodiscard]] Impl& state() const noexcept {
        return *reinterpret_cast<Impl*>(word() & ~moved_from);
    }

private:
    static constexpr std::uintptr_t moved_from = 1;

    [[nodiscard]] std::uintptr_t word() const noexcept {
        return reinterpret_cast<std::uintptr_t>(impl_.get());
    }
    void mark() noexcept {
        impl_ = std::shared_ptr<Impl>(impl_, reinterpret_cast<Impl*>(word() | moved_from));
    }

    std::shared_ptr<Impl> impl_;
};

} // namespace pawl::detail

#endif // PAWL_STREAM_STREAM_OWNER_HPP
