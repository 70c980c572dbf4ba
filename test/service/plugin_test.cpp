// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

// A plugin that has used timers can be unloaded. What it keeps for each thread must not keep it loaded, as a thread_local
// object with a destructor would, and must not be looked for when the thread ends.

#define BOOST_TEST_MODULE plugin
#include <boost/test/unit_test.hpp>

#include <dlfcn.h>

#include <future>
#include <thread>

BOOST_AUTO_TEST_CASE(a_plugin_can_be_unloaded_while_a_thread_lives_that_used_it) {
    for (int i = 0; i != 3; ++i) {
        void* const plugin = dlopen(PAWL_TEST_PLUGIN, RTLD_NOW | RTLD_LOCAL);
        BOOST_REQUIRE(plugin);
        const auto run = reinterpret_cast<int (*)()>(dlsym(plugin, "run_some_waits"));
        BOOST_REQUIRE(run);

        std::promise<int> used;
        std::promise<void> unloaded;
        std::thread user([&] {
            used.set_value(run());
            unloaded.get_future().wait();
        });
        BOOST_TEST(used.get_future().get() == 100);
        BOOST_TEST(run() == 100);
        dlclose(plugin);
        BOOST_TEST(!dlopen(PAWL_TEST_PLUGIN, RTLD_NOW | RTLD_NOLOAD));
        unloaded.set_value();
        user.join();
    }
}
