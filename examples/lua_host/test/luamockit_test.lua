-- Copyright (c) 2026 The Pawl authors
-- SPDX-License-Identifier: BSL-1.0

-- A script as for luamockit, and tests of luamockit's defects.

local mit = require "luamockit"

local function until_pending(count)
    while mit.pending() < count do
        mit.sleep(1)
    end
end

-- Time and sleep.
local seconds, ms = mit.time()
assert(math.type(seconds) == "integer" and ms >= 0 and ms < 1000)
local before = mit.mstimestamp()
local left, code = mit.sleep(20, true)
assert(left == 0 and code == 0)
assert(mit.mstimestamp() >= before) -- it is the wall clock, which may be set

-- A one-off: wait, and process.
local called = 0
local function callback() called = called + 1 end
assert(mit.oneoff(5, callback) == nil)
assert(mit.pending() == 0 or mit.pending() == 1)
mit.wait(8000)
mit.process_events()
assert(called == 1)

-- An interval fills the queue until the script processes events.
called = 0
local it = mit.getit(2, callback)
until_pending(5)
local pending = mit.pending()
assert(mit.inqueue() >= pending)
assert(called == 0)
mit.process_events()
assert(called >= pending)
it = it:destroy(true)
assert(it == nil and mit.pending() == 0 and mit.inqueue() == 0)

-- disarm() leaves one last event, which is not handled; arm() restarts the interval.
called = 0
it = mit.getit(60000, callback)
it:disarm()
assert(mit.pending() == 0 and mit.inqueue() == 1)
mit.process_events()
assert(called == 0 and mit.inqueue() == 0)
it:arm()
it = it:destroy() -- luamockit blocked here for up to a period

-- luamockit hung when a timer was destroyed after its last event had been handled.
it = mit.getit(60000, callback)
it:disarm()
mit.process_events()
it = it:destroy(true)

-- luamockit lost the event after one that had failed.
called = 0
mit.oneoff(1, function() error "this is expected" end)
mit.oneoff(1, callback)
mit.oneoff(1, callback)
until_pending(3)
require "pawl".on_error(function() end)
assert(mit.process_events() == 3)
assert(called == 2)

-- luamockit's wait() returned at once for each event that had already been handled.
assert(mit.wait(1) == false)

-- luamockit turned this into 5 ms.
mit.oneoff(2 ^ 32 + 5, callback)
mit.sleep(10)
assert(mit.pending() == 0)
assert(not pcall(mit.oneoff, -1, callback))

print "luamockit: passed"
os.exit(true, true)
