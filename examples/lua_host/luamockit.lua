-- Copyright (c) 2026 The Pawl authors
-- SPDX-License-Identifier: BSL-1.0

-- The interface of luamockit (https://github.com/vcsaturninus/luamockit) on the module `pawl`, so that scripts for
-- luamockit run here. The differences: callbacks that fail are reported and lose no event; milliseconds may be
-- fractions, and bad ones are errors; destroy() never blocks; sleep() always continues after a signal.

local pawl = require "pawl"

local luamockit = {
    process_events = pawl.process_events, -- returns how many were handled
    pending = pawl.pending,
    inqueue = pawl.inqueue,
    wait = pawl.wait, -- returns whether an event is present
}

local interval = {}
interval.__index = interval

-- Starts a disarmed interval. Does not change an armed one.
function interval:arm()
    if not (self.timer and self.timer:armed()) then
        self.timer = pawl.every(self.ms, self.callback)
    end
end

-- Events in the queue are still handled.
function interval:disarm()
    if self.timer then
        self.timer:disarm()
    end
end

-- Events in the queue are skipped. Returns nil: `it = it:destroy()`. The argument, whether to wait for the end, has no
-- effect here: the timer has ended on return.
function interval:destroy()
    if self.timer then
        self.timer:destroy()
        self.timer = nil
    end
    return nil
end

-- An armed interval.
function luamockit.getit(ms, callback)
    local it = setmetatable({ms = ms, callback = callback}, interval)
    it:arm()
    return it
end

function luamockit.oneoff(ms, callback)
    pawl.once(ms, callback)
end

-- Blocks. Returns the milliseconds that are left, and an error code: 0, 0.
function luamockit.sleep(ms, _resume)
    pawl.block(ms)
    return 0, 0
end

-- Milliseconds since 1970.
function luamockit.mstimestamp()
    return math.floor(pawl.time() * 1000)
end

-- Seconds since 1970, and milliseconds since the last second.
function luamockit.time()
    local ms = luamockit.mstimestamp()
    return ms // 1000, ms % 1000
end

return luamockit
