// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

// A library for preloading: the process has a second thread, which sleeps, from the start to the
// end. Made without C++'s threads, whose memory a test might count. It gets no signals.

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <pthread.h>
#include <unistd.h>

namespace {

extern "C" void* sleep_for_ever(void*) {
    for (;;)
        pause();
}

const struct idle_thread {
    idle_thread() {
        sigset_t all;
        sigset_t before;
        sigfillset(&all);
        pthread_sigmask(SIG_SETMASK, &all, &before);
        pthread_t thread;
        if (pthread_create(&thread, nullptr, sleep_for_ever, nullptr) != 0) {
            std::fputs("idle_thread: no thread could be made\n", stderr);
            std::abort();
        }
        pthread_detach(thread);
        pthread_sigmask(SIG_SETMASK, &before, nullptr);
    }
} there_is_one;

} // namespace
