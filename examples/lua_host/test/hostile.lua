-- Copyright (c) 2026 The Pawl authors
-- SPDX-License-Identifier: BSL-1.0

-- usage: hostile.lua [SEED [CALLS]]
--
-- Calls of the module with arguments that nobody means: each returns or raises an error with a text, and afterwards the
-- module works. Callbacks raise errors, yield, make such calls, and handle events themselves.

local pawl = require "pawl"

local seed, calls = tonumber(arg and arg[1]) or 1, tonumber(arg and arg[2]) or 2000
math.randomseed(seed)
local random = math.random

local depth, timers, threads = 0, {}, {}
local call -- makes one

local function one_of(list) return list[random(#list)] end

-- Values whose metamethods raise errors, return nonsense, yield, or make calls.
local function hostile(name)
    return setmetatable({}, {
        __name = name,
        __tostring = one_of {function() error("__tostring") end, function() return 1 end, function() return name end,
                             function() call() return "called" end, coroutine.yield},
        __call = function() call() end,
        __gc = function() pcall(call) end,
        __close = function() call() end,
        __index = function() error("__index") end,
    })
end

local callbacks = {
    function() end,
    function() error "a text" end,
    function() error(hostile "error") end,
    function() error() end,
    function() call() end,
    function() coroutine.yield() end,
    function() pawl.sleep(0) end,
    function() pawl.process_events() end,
    function() local closed <close> = hostile "closed"; error "closing" end,
    function() collectgarbage() end,
    string.rep, coroutine.wrap(function() while true do coroutine.yield() end end), pawl.process_events,
}

local numbers = {0, -0.0, 1, 0.5, 1e-300, -1, 1e308, -1e308, 1 / 0, -1 / 0, 0 / 0, math.maxinteger, math.mininteger, 2^53, 9.3e12}

local function value()
    local kind = random(9)
    if kind <= 2 then return one_of(numbers)
    elseif kind <= 4 then return one_of(callbacks)
    elseif kind == 5 then return timers[random(#timers + 1)]
    elseif kind == 6 then return one_of {"", "burst", "skip", "delay", "1", "0x10", "INT\0", ("x"):rep(300), "\xff"}
    elseif kind == 7 then return one_of {true, false, io.stdout, pawl, _G, coroutine.create(print)}
    elseif kind == 8 then return hostile("value")
    end
end

local names = {"once", "once", "every", "sleep", "process_events", "pending", "inqueue", "timers", "now", "time", "on_error"}
local methods = {"disarm", "destroy", "armed"}

-- Whether it may sleep for so long that the test would not end.
local function sleeps(v) return type(v) == "number" and v > 1 end

function call()
    if depth >= 5 then return end
    depth = depth + 1
    local good, result
    local a, b, c = value(), value(), value()
    local kind = random(20)
    if kind <= 10 then
        local name = one_of(names)
        if name == "every" and type(a) == "number" and a < 0.5 then a = 0.5 end -- bursts that take all the time
        good, result = pcall(pawl[name], table.unpack({a, b, c}, 1, random(0, 3)))
        if good and type(result) == "userdata" then timers[#timers + 1] = result end
    elseif kind <= 14 then
        local timer = timers[random(#timers + 1)]
        if timer == nil or random(8) == 1 then timer = value() end
        if not sleeps(a) then
            good, result = pcall(debug.getregistry()["pawl.timer"].__index[one_of(methods)], timer, a)
        end
    elseif kind <= 16 then
        local thread = coroutine.create(function()
            pcall(pawl.sleep, one_of(numbers))
            local closed <close> = hostile "in a coroutine"
            pawl.sleep(a)
            call()
        end)
        threads[#threads + 1] = thread
        good, result = coroutine.resume(thread)
    elseif kind == 17 and #threads > 0 then
        local thread = one_of(threads)
        good, result = pcall(one_of {coroutine.resume, coroutine.close}, thread, a)
    elseif kind == 18 then
        if not sleeps(a) then good, result = pcall(pawl.wait, type(a) == "nil" and 0 or a) end
    elseif kind == 19 then
        good, result = pcall(pawl.on_signal, one_of {"HUP", "USR1", "usr1", "KILL", a}, b)
    else
        good, result = pcall(pawl.process_events, random(0, 3))
    end
    if good == false and type(result) == "string" then assert(#result < 2000, "an endless message") end
    depth = depth - 1
end

pawl.on_error(function() end)
for _ = 1, calls do
    depth = 0
    call()
    if #timers > 50 then
        local old = table.remove(timers, random(#timers))
        if random(2) == 1 then pcall(old.destroy, old) end -- the others are only forgotten
    end
    if #threads > 50 then table.remove(threads, 1) end
end

-- The module still works.
depth = 5 -- callbacks make no more calls
local errors, ran = 0, 0
pawl.on_error(function(text)
    assert(type(text) == "string")
    errors = errors + 1
end)
for _, name in ipairs {"HUP", "USR1"} do pawl.on_signal(name, nil) end
pawl.once(0, function() ran = ran + 1 end)
pawl.once(0, function() ran = ran + 1; error "as it should" end)
while ran < 2 do
    pawl.wait(1000)
    pawl.process_events(100)
end
assert(errors >= 1)
os.exit(0, true) -- closes the state, with what is left
