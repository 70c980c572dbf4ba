// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

/// @file
/// Purpose
///   A file descriptor for a foreign event loop to poll: readable while there is an event.
///
/// Model
///   An eventfd, or a pipe where that does not exist. With a deadline, for a queue that keeps its own
///   timers: an epoll descriptor of an eventfd and a timerfd. Windows has no descriptor that can be
///   polled together with sockets; there the constructor fails.
///
/// Threads
///   The owner's lock guards it.
#ifndef PAWL_DETAIL_QUEUE_READY_DESCRIPTOR_HPP
#define PAWL_DETAIL_QUEUE_READY_DESCRIPTOR_HPP

#include <pawl/config.hpp>

#include <boost/asio/error.hpp>
#include <boost/system/system_error.hpp>

#if PAWL_DETAIL_POSIX
#include <fcntl.h>
#include <unistd.h>
#endif

#if defined(__linux__)
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/timerfd.h>
#endif

#include <cerrno>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <utility>

namespace pawl::detail {

class ready_descriptor {
public:
    /// @param with_deadline whether ready_after() will be called.
    /// @throws boost::system::system_error if the system has no more descriptors, or no suitable
    ///     kind.
    explicit ready_descriptor(bool with_deadline) : ready_descriptor() {
#if defined(__linux__)
        reading_ = writing_ = valid(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
        if (!with_deadline)
            return;
        timer_ = valid(::timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK));
        outer_ = valid(::epoll_create1(EPOLL_CLOEXEC));
        for (const int fd : {reading_, timer_}) {
            ::epoll_event event{};
            event.events = EPOLLIN;
            valid(::epoll_ctl(outer_, EPOLL_CTL_ADD, fd, &event));
        }
#elif PAWL_DETAIL_POSIX
        if (with_deadline) {
            errno = ENOTSUP;
            valid(none);
        }
        int ends[2];
        valid(::pipe(ends));
        reading_ = ends[0];
        writing_ = ends[1];
        for (const int fd : ends) {
            valid(::fcntl(fd, F_SETFD, FD_CLOEXEC));
            valid(::fcntl(fd, F_SETFL, O_NONBLOCK));
        }
#else
        static_cast<void>(with_deadline);
        throw boost::system::system_error(boost::asio::error::operation_not_supported,
                                          "pawl: a descriptor for an event queue");
#endif
    }
    ready_descriptor& operator=(ready_descriptor&&) = delete;
    ~ready_descriptor() {
#if PAWL_DETAIL_POSIX
        for (const int fd : {outer_, timer_, reading_, writing_ != reading_ ? writing_ : none})
            if (fd != none)
                ::close(fd);
#endif
    }

    /// The descriptor to poll. This object owns it.
    [[nodiscard]] int get() const noexcept { return outer_ != none ? outer_ : reading_; }

    /// There is an event, or there no longer is one.
    void set(bool something) noexcept {
        if (std::exchange(is_set_, something) == something)
            return;
#if PAWL_DETAIL_POSIX
        std::uint64_t one = 1;
        const std::size_t bytes = reading_ == writing_ ? sizeof(one) : 1;
        while ((something ? ::write(writing_, &one, bytes) : ::read(reading_, &one, bytes)) < 0 &&
               errno == EINTR)
            ;
#endif
    }

    /// Makes the descriptor readable after `d`, at once if `d` is not positive, and never for the
    /// longest duration. Replaces the last call.
    /// @pre constructed with a deadline.
    void ready_after([[maybe_unused]] std::chrono::nanoseconds d) noexcept {
#if defined(__linux__)
        constexpr std::int64_t second = 1'000'000'000;
        std::int64_t ns = d.count() < 1 ? 1 : d.count();
        if (d == std::chrono::nanoseconds::max())
            ns = 0; // disarms
        ::itimerspec when{};
        when.it_value.tv_sec = static_cast<::time_t>(ns / second);
        when.it_value.tv_nsec = static_cast<long>(ns % second);
        ::timerfd_settime(timer_, 0, &when, nullptr);
#endif
    }

private:
    static constexpr int none = -1;

    static int valid(int fd) {
        if (fd < 0)
            throw boost::system::system_error(errno, boost::system::system_category(),
                                              "pawl: a descriptor for an event queue");
        return fd;
    }

    ready_descriptor() noexcept = default; // what follows it may throw: the destructor runs

    int reading_ = none;
    int writing_ = none;
    int timer_ = none;
    int outer_ = none;
    bool is_set_ = false;
};

} // namespace pawl::detail

#endif // PAWL_DETAIL_QUEUE_READY_DESCRIPTOR_HPP
