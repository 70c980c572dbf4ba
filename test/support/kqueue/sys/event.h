// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

/// @file
/// kqueue() and kevent() by epoll, as far as Asio's kqueue_reactor calls them, so that this reactor,
/// which the BSDs and macOS have, runs on Linux: ./dev test --platform kqueue. What is not the
/// same: `ident` and `data` of a reported event are 0, and the child of a fork has the descriptor,
/// too.
#ifndef PAWL_TEST_SUPPORT_KQUEUE_SYS_EVENT_H
#define PAWL_TEST_SUPPORT_KQUEUE_SYS_EVENT_H

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <ctime>
#include <mutex>

#include <poll.h>
#include <sys/epoll.h>
#include <unistd.h>

struct kevent {
    std::uintptr_t ident;
    std::int16_t filter;
    std::uint16_t flags;
    std::uint32_t fflags;
    std::intptr_t data;
    void* udata;
};

inline constexpr std::int16_t EVFILT_READ = -1;
inline constexpr std::int16_t EVFILT_WRITE = -2;
inline constexpr std::uint16_t EV_ADD = 0x0001;
inline constexpr std::uint16_t EV_DELETE = 0x0002;
inline constexpr std::uint16_t EV_CLEAR = 0x0020;
#define EV_OOBAND EV_OOBAND // Asio asks for it by #if
inline constexpr std::uint16_t EV_OOBAND = 0x2000;
inline constexpr std::uint16_t EV_ERROR = 0x4000;

inline void EV_SET(struct kevent* e, int ident, std::int16_t filter, int flags, unsigned fflags,
                   std::intptr_t data, void* udata) {
    *e = {static_cast<std::uintptr_t>(ident), filter, static_cast<std::uint16_t>(flags), fflags, data, udata};
}

namespace pawl_test::kqueue {

/// What epoll looks for: it keeps one entry for both filters of a descriptor. Not on the heap, whose
/// blocks the tests count.
struct interests {
    static constexpr int most = 1024; ///< descriptors

    std::mutex mutex;
    std::array<std::array<epoll_event, most>, most> of; // of a kqueue, of a descriptor

    static interests& all() {
        static interests i{};
        return i;
    }
};

inline int change(int kq, const struct kevent& wanted) {
    const int fd = static_cast<int>(wanted.ident);
    if (fd >= interests::most) {
        errno = EMFILE;
        return -1;
    }
    const std::uint32_t filter = wanted.filter == EVFILT_READ ? EPOLLIN | EPOLLPRI | EPOLLRDHUP : EPOLLOUT;
    interests& i = interests::all();
    const std::lock_guard lock(i.mutex);
    epoll_event& entry = i.of[static_cast<std::size_t>(kq)][static_cast<std::size_t>(fd)];
    if ((wanted.flags & EV_DELETE) != 0) {
        entry.events &= ~filter;
        const bool none = (entry.events & (EPOLLIN | EPOLLOUT)) == 0;
        return epoll_ctl(kq, none ? EPOLL_CTL_DEL : EPOLL_CTL_MOD, fd, &entry);
    }
    entry.data.ptr = wanted.udata;
    entry.events |= filter;
    if ((wanted.flags & EV_CLEAR) != 0)
        entry.events |= EPOLLET;
    if (epoll_ctl(kq, EPOLL_CTL_MOD, fd, &entry) == 0)
        return 0;
    if (errno != ENOENT)
        return -1;
    // The number is new, or it was that of a descriptor which has been closed.
    entry.events = filter | (entry.events & std::uint32_t{EPOLLET});
    return epoll_ctl(kq, EPOLL_CTL_ADD, fd, &entry);
}

} // namespace pawl_test::kqueue

inline int kqueue() {
    const int kq = epoll_create1(EPOLL_CLOEXEC);
    if (kq >= pawl_test::kqueue::interests::most) {
        close(kq);
        errno = EMFILE;
        return -1;
    }
    pawl_test::kqueue::interests& i = pawl_test::kqueue::interests::all();
    const std::lock_guard lock(i.mutex);
    if (kq >= 0)
        i.of[static_cast<std::size_t>(kq)].fill({});
    return kq;
}

inline int kevent(int kq, const struct kevent* changes, int change_count, struct kevent* events,
                  int event_count, const timespec* timeout) {
    for (int n = 0; n < change_count; ++n) {
        if (pawl_test::kqueue::change(kq, changes[n]) != 0)
            return -1;
    }
    if (event_count == 0)
        return 0;
    pollfd some{kq, POLLIN, 0}; // epoll_wait() has milliseconds only
    if (const int ready = ppoll(&some, 1, timeout, nullptr); ready <= 0)
        return ready;
    std::array<epoll_event, 64> found;
    const int most = std::min(static_cast<int>(found.size()), event_count / 2);
    const int count = epoll_wait(kq, found.data(), most, 0);
    int reported = 0;
    for (int n = 0; n < count; ++n) {
        const epoll_event& e = found[static_cast<std::size_t>(n)];
        const std::uint16_t urgent = (e.events & EPOLLPRI) != 0 ? EV_OOBAND : std::uint16_t{0};
        if ((e.events & ~std::uint32_t{EPOLLOUT}) != 0)
            events[reported++] = {0, EVFILT_READ, urgent, 0, 0, e.data.ptr};
        if ((e.events & (EPOLLOUT | EPOLLHUP | EPOLLERR)) != 0)
            events[reported++] = {0, EVFILT_WRITE, 0, 0, 0, e.data.ptr};
    }
    return count < 0 ? count : reported;
}

#endif // PAWL_TEST_SUPPORT_KQUEUE_SYS_EVENT_H
