// Seed 20261220006864, shrunk to 9 steps: P1: wait 2 (of a timer of kind 4, due at 65000000) is early: its clock says 0
// 
//     g++ -std=c++20 -Iinclude -Itest failure.cpp \
//         test/simulation/{world,limits,intervals,streams,timers_?,print,report,virtual_time}.cpp -o failure

#include "simulation/world.hpp"

int main() {
    using namespace simulation;
    scenario s;
    setup& b = s.begin;
    b.contexts = {
    {.concurrency_hint = -1,
     .precision = 1000000,
     .level_bits = {6},
     .shards = 1,
     .batch_limit = 256,
     .completions_per_turn = 1,
     .locking = true,
     .deliver = false,
     .rings = {{1, 3}, {1000003, 1}},
     .marks = 8,
     .when_full = pawl::ring_overflow::grow,
     .round_up = false}};
    b.threads = false;
    b.steady = 0;
    b.set = 0;
    b.set_milli = 0;
    b.mock = 0;
    b.manual = 0;
    b.edge = 0;
    b.traits = mock_wait::zero;
    s.steps.push_back({.what = op::make, .object = 1, .type = kind::manual});
    s.steps.push_back({.what = op::make, .object = 3, .type = kind::set_binary});
    s.steps.push_back({.what = op::rearm_after, .object = 3, .type = kind::manual, .time = 65000000});
    s.steps.push_back({.what = op::pass, .object = 5, .type = kind::set_binary, .time = 89000000});
    s.steps.push_back({.what = op::wait, .object = 1, .type = kind::set_binary});
    s.steps.push_back({.what = op::wait, .object = 3, .type = kind::set_binary, .time = 8000000000000});
    s.steps.push_back({.what = op::advance_to_next, .object = 2, .type = kind::manual});
    s.steps.push_back({.what = op::set_to, .type = kind::set_binary});
    s.steps.push_back({.what = op::poll, .object = 1, .type = kind::manual, .time = 638000000000000000});
    world::trace = true;
    run(s);
}
