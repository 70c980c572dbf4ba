-- Copyright (c) 2026 The Pawl authors
-- SPDX-License-Identifier: BSL-1.0

-- The promises of the module `pawl`. Times have no upper bound here, because a machine may be busy.

local pawl = require "pawl"

local tests = {}
local function test(name, f)
    table.insert(tests, {name = name, run = f})
end

local function same(expected, found)
    if expected ~= found then
        error(("expected %s, found %s"):format(expected, found), 2)
    end
end

-- An error of f(...) that contains `text`.
local function fails(text, f, ...)
    local good, message = pcall(f, ...)
    if good then
        error(("no error, expected '%s'"):format(text), 2)
    elseif not tostring(message):find(text, 1, true) then
        error(("expected '%s' in '%s'"):format(text, message), 2)
    end
end

-- Handles events until no timer is left.
local function run()
    while pawl.timers() > 0 do
        pawl.wait()
        pawl.process_events()
    end
end

-- Waits until so many events are present.
local function until_pending(count)
    while pawl.pending() < count do
        pawl.block(1)
    end
end

local function nothing() end

test("events are handled in the order of their times, within process_events only", function()
    local seen, start
    repeat -- until all were made before the first was due
        pawl.process_events()
        seen, start = {}, pawl.now()
        for _, ms in ipairs {30, 10, 20, 10} do
            pawl.once(ms, function() table.insert(seen, ms) end)
        end
        local in_time = pawl.now() < start + 10
        until_pending(4)
    until in_time
    same(0, #seen)
    same(4, pawl.pending())
    same(4, pawl.process_events())
    same("10 10 20 30", table.concat(seen, " "))
    same(0, pawl.pending())
    same(0, pawl.timers())
end)

test("nothing is early, and a callback is told when it was due", function()
    local start = pawl.now()
    local due, ended
    pawl.once(12.5, function(d) due, ended = d, pawl.now() end)
    run()
    assert(due - start >= 12.5 and ended >= due)
end)

test("zero is now", function()
    local ran = false
    pawl.once(0, function() ran = true end)
    run()
    assert(ran)
end)

test("an interval goes on until it is disarmed; what is in the queue is handled", function()
    local count, timer = 0, nil
    timer = pawl.every(2, function()
        count = count + 1
        if count == 5 then
            same(true, timer:disarm())
            same(false, timer:disarm())
        end
    end)
    same(true, timer:armed())
    repeat
        pawl.wait()
        pawl.process_events(1)
    until not timer:armed()
    local left = pawl.pending()
    same(left + 1, pawl.inqueue()) -- and the last event
    same(left, pawl.process_events())
    same(5 + left, count)
    same(0, pawl.timers())
end)

test("what a destroyed timer has in the queue is skipped", function()
    local count = 0
    local timer = pawl.every(1, function() count = count + 1 end)
    local once = pawl.once(1, function() count = count + 1 end)
    until_pending(3)
    same(true, timer:destroy())
    same(true, once:destroy(100))
    same(0, pawl.pending())
    same(0, pawl.process_events())
    same(0, count)
end)

test("a callback may destroy its own timer, and start others", function()
    local count, timer = 0, nil
    timer = pawl.every(1, function()
        count = count + 1
        timer:destroy()
        pawl.once(1, function() count = count + 10 end)
    end)
    run()
    same(11, count)
end)

test("an interval takes a policy for missed ticks, and tells of them", function()
    for _, policy in ipairs {"burst", "delay", "skip"} do
        local count, timer = 0, nil
        timer = pawl.every(1, function(due, overruns)
            assert(pawl.now() >= due and math.type(overruns) == "integer" and overruns >= 0)
            count = count + 1
            if count == 3 then
                timer:destroy()
            end
        end, policy)
        run()
        same(3, count)
    end
end)

test("a handle that is collected does not stop its timer, and the callback is released in the end", function()
    local released = setmetatable({}, {__mode = "k"})
    local ran = 0
    do
        local token = {}
        released[token] = true
        pawl.once(1, function() ran = ran + (token and 1 or 0) end)
        local destroyed = pawl.every(1000, function() return token end)
        destroyed:destroy()
    end
    collectgarbage()
    run()
    same(1, ran)
    pawl.process_events()
    collectgarbage()
    same(nil, next(released))
end)

test("wait() says whether an event is there, and goes on to say so", function()
    same(false, pawl.wait(0))
    same(false, pawl.wait(1.5))
    pawl.once(1, nothing)
    same(true, pawl.wait())
    same(true, pawl.wait(0))
    same(1, pawl.process_events())
    same(false, pawl.wait(0))
end)

test("process_events() takes a limit", function()
    for _ = 1, 5 do
        pawl.once(0, nothing)
    end
    until_pending(5)
    same(0, pawl.process_events(0))
    same(2, pawl.process_events(2))
    same(3, pawl.process_events(1e3))
end)

test("an error is reported with a traceback, and loses no event", function()
    local reports, ran = {}, 0
    pawl.on_error(function(text) table.insert(reports, text) end)
    for i = 1, 6 do
        pawl.once(1, function()
            ran = ran + 1
            if i % 2 == 0 then
                error("broken " .. i)
            end
        end)
    end
    pawl.once(2, function() error {} end)
    pawl.once(3, function() error(nil) end)
    pawl.once(4, function() local function deep() return 1 + deep() end deep() end)
    pawl.once(5, function() ran = ran + 1 end)
    run()
    pawl.on_error(nil)
    same(7, ran)
    same(6, #reports)
    for i = 1, 3 do
        assert(reports[i]:find("api.lua:%d+: broken " .. 2 * i .. "\nstack traceback:\n"), reports[i])
    end
    assert(reports[4]:find "table: ")
    assert(reports[6]:find "stack overflow")
    same(0, pawl.pending())
end)

test("coroutines sleep, each for itself", function()
    local seen = {a = "", b = ""}
    local function sleeper(name, ms)
        coroutine.wrap(function()
            for i = 1, 3 do
                local start = pawl.now()
                same(true, pawl.sleep(ms))
                assert(pawl.now() - start >= ms)
                seen[name] = seen[name] .. i
            end
        end)()
    end
    sleeper("a", 5)
    sleeper("b", 8)
    run()
    same("123", seen.a)
    same("123", seen.b)
end)

test("a coroutine that nobody holds is not collected while it sleeps", function()
    local done = false
    coroutine.wrap(function()
        pawl.sleep(2)
        done = true
    end)()
    collectgarbage()
    run()
    assert(done)
end)

test("a coroutine that fails is reported with its own traceback, and its variables are closed", function()
    local report, closed
    pawl.on_error(function(text) report = text end)
    local function inner()
        local _ <close> = setmetatable({}, {__close = function() closed = true end})
        pawl.sleep(1)
        error "in the coroutine"
    end
    coroutine.wrap(function() inner() end)()
    run()
    pawl.on_error(nil)
    assert(report:find "api.lua:%d+: in the coroutine\nstack traceback:\n.*in %a+ 'inner'", report)
    assert(closed)
end)

test("a sleeping coroutine may be resumed early, or closed", function()
    local woken
    local early = coroutine.create(function() woken = pawl.sleep(1e9) end)
    assert(coroutine.resume(early))
    assert(coroutine.resume(early))
    same(false, woken)
    same(0, pawl.timers())

    local closed = coroutine.create(function() pawl.sleep(1) error "goes on" end)
    assert(coroutine.resume(closed))
    assert(coroutine.close(closed))
    run()
end)

test("events may be processed in a coroutine that ends afterwards", function()
    local ran = 0
    pawl.once(1, function() ran = ran + 1 end)
    pawl.once(30, function() ran = ran + 1 end)
    coroutine.wrap(function()
        while ran == 0 do
            pawl.wait()
            pawl.process_events()
        end
    end)()
    collectgarbage()
    run()
    same(2, ran)
end)

test("bad input is an error that names the value and the range", function()
    local zero, above = "a finite number of milliseconds, at least 0", "a finite number of milliseconds, greater than 0"
    for _, bad in ipairs {0 / 0, 1 / 0, -1 / 0, -1, -1e-300, math.mininteger, "5", "x", true, {}, print} do
        for _, f in ipairs {pawl.once, pawl.sleep, pawl.wait, pawl.block} do
            fails(tostring(bad) .. ": must be " .. zero, f, bad, nothing)
        end
        fails(tostring(bad) .. ": must be " .. above, pawl.every, bad, nothing)
    end
    fails("0: must be " .. above, pawl.every, 0, nothing)
    fails("0.0: must be " .. above, pawl.every, 0.0, nothing)
    fails("no value: must be " .. zero, pawl.once)
    for _, bad in ipairs {1, "print", {}, true} do
        for _, f in ipairs {pawl.once, pawl.every} do
            fails(tostring(bad) .. ": must be a function", f, 1, bad)
        end
        fails(tostring(bad) .. ": must be a function", pawl.on_error, bad)
        fails(tostring(bad) .. ": must be a function", pawl.on_signal, "HUP", bad)
    end
    fails("no value: must be a function", pawl.once, 1)
    fails("nil: must be a function", pawl.every, 1, nil)
    for _, bad in ipairs {-1, 1.5, 0 / 0, "1", {}, math.mininteger} do
        fails(tostring(bad) .. ": must be an integer, at least 0", pawl.process_events, bad)
    end
    for _, bad in ipairs {"KILL", "hup", 1, {}} do
        fails(tostring(bad) .. ": must be HUP, INT, TERM, USR1 or USR2", pawl.on_signal, bad, nothing)
    end
    fails("invalid option 'none'", pawl.every, 1, nothing, "none")
    fails("not within a coroutine", pawl.sleep, 1)
    same(0, pawl.timers()) -- none of them is left

    local timer = pawl.every(1000, nothing)
    fails("must be " .. zero, timer.destroy, timer, -1)
    fails("bad argument #2 to 'pawl.timer.destroy' (5: must be ", timer.destroy, timer, "5")
    fails("bad argument #1 to 'destroy' (5: must be ", function() timer:destroy("5") end)
    fails("bad argument #1 to 'pawl.once' (x: must be ", pawl.once, "x", nothing)
    fails("pawl.timer expected", timer.destroy, {})
    fails("pawl.timer expected", timer.disarm, io.stdout)
    timer:destroy()
    fails(tostring(timer) .. ": the timer was destroyed", timer.destroy, timer)
    fails(tostring(timer) .. ": the timer was destroyed", timer.disarm, timer)
    same(false, timer:armed())
    same(false, getmetatable(timer))
end)

test("huge times are never, not soon", function()
    for _, ms in ipairs {2 ^ 32 + 5, 1e18, 1e300, math.maxinteger} do
        local once, every = pawl.once(ms, error), pawl.every(ms, error)
        pawl.block(7)
        same(0, pawl.pending())
        once:destroy()
        every:destroy()
    end
end)

test("process_events() within a callback is an error, and the next call goes on", function()
    local message
    pawl.once(1, function() message = select(2, pcall(pawl.process_events)) end)
    pawl.once(1, nothing)
    run()
    assert(message:find "called by one of its own functions", message)
end)

test("ten thousand timers need no thread each", function()
    local count = 0
    for i = 1, 10000 do
        pawl.once(i % 50, function() count = count + 1 end)
    end
    run()
    same(10000, count)
end)

local failed = 0
for _, t in ipairs(tests) do
    local good, message = xpcall(t.run, debug.traceback)
    if not good then
        failed = failed + 1
        print("FAILED: " .. t.name .. ": " .. message)
    end
end
print(("%d tests, %d failed"):format(#tests, failed))
os.exit(failed == 0, true)
