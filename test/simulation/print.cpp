// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

#include "simulation/scenario.hpp"

#include <cstdint>
#include <iterator>
#include <sstream>
#include <string>
#include <vector>

namespace simulation {

namespace {

constexpr const char* operations[] = {"make",
                                      "destroy",
                                      "move",
                                      "assign",
                                      "expires_after",
                                      "expires_at",
                                      "expires_within",
                                      "rearm_after",
                                      "rearm_at",
                                      "rearm_within",
                                      "wait",
                                      "cancel",
                                      "cancel_one",
                                      "emit",
                                      "expire_all",
                                      "expire_all_of",
                                      "cancel_all",
                                      "operation",
                                      "complete",
                                      "make_interval",
                                      "destroy_interval",
                                      "wait_interval",
                                      "cancel_interval",
                                      "reset_interval",
                                      "reset_interval_after",
                                      "set_period",
                                      "make_alarm",
                                      "destroy_alarm",
                                      "move_alarm",
                                      "arm_alarm_after",
                                      "arm_alarm_at",
                                      "arm_alarm_within",
                                      "disarm_alarm",
                                      "make_stream",
                                      "destroy_stream",
                                      "limit_stream",
                                      "expire_stream",
                                      "read",
                                      "write",
                                      "feed",
                                      "drain",
                                      "connect",
                                      "accept",
                                      "begin_handshake",
                                      "end_handshake",
                                      "close_stream",
                                      "retry",
                                      "make_limiter",
                                      "destroy_limiter",
                                      "acquire",
                                      "try_acquire",
                                      "make_map",
                                      "destroy_map",
                                      "insert",
                                      "use",
                                      "erase",
                                      "pop",
                                      "pass",
                                      "set",
                                      "set_to",
                                      "approach",
                                      "advance",
                                      "advance_to_next",
                                      "poll",
                                      "poll_one",
                                      "run_one",
                                      "run_for",
                                      "stop",
                                      "restart",
                                      "shut_down",
                                      "open",
                                      "raise"};
static_assert(std::size(operations) == static_cast<std::size_t>(op::raise) + 1);

constexpr const char* types[] = {"steady",     "compact",   "ring",  "set",
                                 "set_binary", "set_milli", "mock",  "manual",
                                 "edge",       "edge_ring", "coarse"};
static_assert(std::size(types) == kinds);

constexpr const char* executors[] = {"native", "strand", "unknown", "copying", "immediate"};
static_assert(std::size(executors) == flavours);

constexpr const char* limits[] = {"timeout", "cancel_after"};
constexpr const char* obediences[] = {"ignores", "inline_", "posts", "channel"};
constexpr const char* shapes[] = {"handler", "composed", "raced",  "raced_under", "coroutine",
                                  "awaited", "spawned",  "either", "both"};
static_assert(std::size(shapes) == simulation::shapes);
constexpr const char* waits[] = {"zero", "one", "negative", "shortest", "longest", "honest"};

template <class Enum>
std::size_t index(Enum e) {
    return static_cast<std::size_t>(e);
}

std::string number(std::int64_t n) { return n == earliest ? "earliest" : std::to_string(n); }

void print(std::ostream& out, const step& s, int indent);

void print(std::ostream& out, const std::vector<step>& steps, int indent) {
    out << '{';
    for (std::size_t i = 0; i < steps.size(); ++i) {
        out << (i != 0 ? ",\n" : "\n") << std::string(static_cast<std::size_t>(indent), ' ');
        print(out, steps[i], indent);
    }
    out << '}';
}

void print(std::ostream& out, const step& s, int indent) {
    const step usual;
    out << "{.what = op::" << operations[index(s.what)];
    const auto member = [&](const char* name, const auto& value, const auto& normal,
                            const std::string& text) {
        if (value != normal)
            out << ", ." << name << " = " << text;
    };
    member("object", s.object, usual.object, std::to_string(s.object));
    member("other", s.other, usual.other, std::to_string(s.other));
    member("context", s.context, usual.context, std::to_string(s.context));
    member("type", s.type, usual.type, std::string("kind::") + types[index(s.type)]);
    member("executor", s.executor, usual.executor,
           std::string("flavour::") + executors[index(s.executor)]);
    member("bound", s.bound, usual.bound, "true");
    member("thread", s.thread, usual.thread, std::to_string(s.thread));
    member("signal", s.signal, usual.signal, std::to_string(s.signal));
    member("time", s.time, usual.time, number(s.time));
    member("more", s.more, usual.more, number(s.more));
    member("under", s.under, usual.under, std::string("limit::") + limits[index(s.under)]);
    member("obeys", s.obeys, usual.obeys, std::string("obedience::") + obediences[index(s.obeys)]);
    member("in", s.in, usual.in, std::string("shape::") + shapes[index(s.in)]);
    if (!s.then.empty()) {
        out << ", .then = ";
        print(out, s.then, indent + 4);
    }
    if (!s.dying.empty()) {
        out << ", .dying = ";
        print(out, s.dying, indent + 4);
    }
    out << '}';
}

} // namespace

std::string text_of(const step& s) {
    std::ostringstream out;
    print(out, s, 4);
    return std::move(out).str();
}

std::string program(const scenario& s, const std::string& text) {
    std::ostringstream out;
    std::istringstream lines(text);
    for (std::string line; std::getline(lines, line);)
        out << "// " << line << '\n';
    out << R"(
#include "simulation/world.hpp"

int main() {
    using namespace simulation;
    scenario s;
    setup& b = s.begin;
    b.contexts = {)";
    for (std::size_t i = 0; i < s.begin.contexts.size(); ++i) {
        out << (i != 0 ? ",\n    " : "\n    ");
        print(out, s.begin.contexts[i]);
    }
    out << "};\n    b.threads = " << std::boolalpha << s.begin.threads
        << ";\n    b.steady = " << number(s.begin.steady)
        << ";\n    b.set = " << number(s.begin.set)
        << ";\n    b.set_milli = " << number(s.begin.set_milli)
        << ";\n    b.mock = " << number(s.begin.mock)
        << ";\n    b.manual = " << number(s.begin.manual)
        << ";\n    b.edge = " << number(s.begin.edge)
        << ";\n    b.traits = mock_wait::" << waits[index(s.begin.traits)] << ";\n";
    for (const step& each : s.steps) {
        out << "    s.steps.push_back(";
        print(out, each, 8);
        out << ");\n";
    }
    out << "    world::trace = true;\n    run(s);\n}\n";
    return std::move(out).str();
}

} // namespace simulation
