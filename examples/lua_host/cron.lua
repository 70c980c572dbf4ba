-- Copyright (c) 2026 The Pawl authors
-- SPDX-License-Identifier: BSL-1.0

-- usage: lua_host cron.lua [--lateness] [--for SECONDS] CRONTAB
--
-- A small cron. A line of the crontab is a time and, after a colon, the Lua code of the job:
--
--     every 1500ms: print "each one and a half seconds"         -- ms, s, min or h
--     */2 * * * * *: print "each even second"
--     0 30 9 * * 1-5: os.execute "make report"                  -- half past nine, from Monday to Friday
--
-- The six fields are second, minute, hour, day of the month, month and day of the week (0 to 7, Sunday is 0 and 7), in
-- local time; each is `*`, or numbers and ranges with commas, with an optional step: `*/5`, `1,10-20/2`. All six must
-- match. `#` at the beginning of a line is a comment. Jobs see the time as `now`, in seconds since 1970.
--
-- On SIGHUP the crontab is read again; if it has errors, the old jobs go on. SIGINT and SIGTERM end the program.

local pawl = require "pawl"

local function log(format, ...)
    io.stdout:flush()
    io.stderr:write("cron: ", format:format(...), "\n")
end

-- Times ---------------------------------------------------------------------------------------------------------------

local units = {ms = 1, s = 1000, min = 60000, h = 3600000}

local fields = {
    {name = "second", least = 0, most = 59, key = "sec"},
    {name = "minute", least = 0, most = 59, key = "min"},
    {name = "hour", least = 0, most = 23, key = "hour"},
    {name = "day of the month", least = 1, most = 31, key = "day"},
    {name = "month", least = 1, most = 12, key = "month"},
    {name = "day of the week", least = 0, most = 7, key = "wday"},
}

-- The values that a field allows, as a set. Or nil and the error.
local function parse_field(text, field)
    local allowed = {}
    for part in (text .. ","):gmatch "(.-)," do
        local range, step = part:match "^(.-)/(%d+)$"
        range, step = range or part, tonumber(step or 1)
        local first, last = range:match "^(%d+)%-(%d+)$"
        if range == "*" then
            first, last = field.least, field.most
        elseif not first then
            first = range:match "^%d+$"
            last = first
        end
        first, last = math.tointeger(tonumber(first)), math.tointeger(tonumber(last))
        if not first or step == 0 then
            return nil, ("%s '%s': not *, a number or a range, with an optional step"):format(field.name, part)
        elseif first < field.least or last > field.most or first > last then
            return nil, ("%s '%s': must be from %d to %d"):format(field.name, part, field.least, field.most)
        end
        for value = first, last, step do
            allowed[value] = true
        end
    end
    return allowed
end

-- The next time that matches a schedule after `t`, in seconds since 1970. Or nil, if there is none within eight years.
local function next_time(schedule, t)
    local limit = t + 8 * 366 * 86400
    t = t + 1
    while t < limit do
        local d = os.date("*t", t)
        d.wday = d.wday - 1
        if not (schedule.day[d.day] and schedule.month[d.month] and schedule.wday[d.wday]) then
            t = math.max(t + 1, os.time {year = d.year, month = d.month, day = d.day + 1, hour = 0})
        elseif not schedule.hour[d.hour] then
            t = t + 3600 - d.min * 60 - d.sec
        elseif not schedule.min[d.min] then
            t = t + 60 - d.sec
        elseif not schedule.sec[d.sec] then
            t = t + 1
        else
            return t
        end
    end
end

-- A table with `period` in milliseconds, or with a set for each field. Or nil and the error.
local function parse_time(text)
    local count, unit = text:match "^every%s+([%d.]+)%s*(%a+)%s*$"
    if text:match "^every" then
        local period = tonumber(count) and units[unit] and tonumber(count) * 1.0 * units[unit]
        if not period or period <= 0 then
            return nil, ("'%s': must be like 'every 5s', in ms, s, min or h, greater than 0"):format(text)
        end
        return {period = period}
    end
    local schedule, n = {}, 0
    for word in text:gmatch "%S+" do
        n = n + 1
        if fields[n] then
            local allowed, wrong = parse_field(word, fields[n])
            if not allowed then
                return nil, wrong
            end
            schedule[fields[n].key] = allowed
        end
    end
    if n ~= #fields then
        return nil, ("'%s': must be 'every PERIOD' or six fields, and has %d"):format(text, n)
    end
    schedule.wday[0] = schedule.wday[0] or schedule.wday[7]
    if not next_time(schedule, os.time()) then
        return nil, ("'%s': never comes"):format(text)
    end
    return schedule
end

-- The crontab ---------------------------------------------------------------------------------------------------------

-- Jobs see all globals, and `now`. Globals that they set are their own.
local environment = setmetatable({}, {__index = _G})

-- A list of jobs, and a list of errors with file and line.
local function read_crontab(path)
    local jobs, errors = {}, {}
    local file, cause = io.open(path)
    if not file then
        return jobs, {cause}
    end
    local number = 0
    for line in file:lines() do
        number = number + 1
        if line:match "%S" and not line:match "^%s*#" then
            local time, code = line:match "^%s*(.-)%s*:(.*)$"
            local schedule, run, wrong
            if time then
                schedule, wrong = parse_time(time)
            else
                wrong = "no ':' between the time and the code"
            end
            if wrong then
                wrong = ("%s:%d: %s"):format(path, number, wrong)
            else
                run, wrong = load(("\n"):rep(number - 1) .. code, "@" .. path, "t", environment) -- errors name the line
            end
            table.insert(wrong and errors or jobs, wrong or {line = number, schedule = schedule, run = run})
        end
    end
    file:close()
    return jobs, errors
end

-- Running jobs --------------------------------------------------------------------------------------------------------

local show_lateness = false
local late = {count = 0, sum = 0, most = 0}

local function run(job, ms_late)
    if show_lateness then
        late.count, late.sum, late.most = late.count + 1, late.sum + ms_late, math.max(late.most, ms_late)
        print(("line %d: %.3f ms late"):format(job.line, ms_late))
    end
    environment.now = math.floor(pawl.time())
    job.run()
end

-- Waits until the wall clock shows `due`: a minute at a time, because the clock may be set.
local function start_at(job, due)
    local left = due - pawl.time()
    job.timer = pawl.once(math.min(math.max(left, 0), 60) * 1000, function()
        local now = pawl.time()
        if now < due then
            return start_at(job, due)
        end
        start_at(job, next_time(job.schedule, math.max(due, math.floor(now))))
        run(job, (now - due) * 1000)
    end)
end

local function start(job)
    if job.schedule.period then
        job.timer = pawl.every(job.schedule.period, function(due) run(job, pawl.now() - due) end, "skip")
    else
        start_at(job, next_time(job.schedule, math.floor(pawl.time())))
    end
end

local jobs = {}

local function replace_jobs(new)
    for _, job in ipairs(jobs) do
        job.timer:destroy()
    end
    jobs = new
    for _, job in ipairs(jobs) do
        start(job)
    end
end

-- The program ---------------------------------------------------------------------------------------------------------

local path, seconds
local words = {...}
while #words > 0 do
    local word = table.remove(words, 1)
    if word == "--lateness" then
        show_lateness = true
    elseif word == "--for" and tonumber(words[1]) then
        seconds = tonumber(table.remove(words, 1))
    elseif word:sub(1, 1) == "-" or path then
        path = nil
        break
    else
        path = word
    end
end
if not path then
    io.stderr:write "usage: lua_host cron.lua [--lateness] [--for SECONDS] CRONTAB\n"
    os.exit(2, true)
end

local function report(errors)
    for _, text in ipairs(errors) do
        log("%s", text)
    end
end

local new, errors = read_crontab(path)
if #errors ~= 0 then
    report(errors)
    os.exit(1, true)
end
replace_jobs(new)
log("%s: %d jobs", path, #jobs)

pawl.on_signal("HUP", function()
    local new, errors = read_crontab(path)
    if #errors == 0 then
        replace_jobs(new)
        log("%s: read again, %d jobs", path, #jobs)
    else
        report(errors)
        log("%s: %d errors, the old %d jobs go on", path, #errors, #jobs)
    end
end)

local keep -- a crontab without jobs waits for SIGHUP
local function stop()
    replace_jobs {}
    keep:destroy()
    pawl.on_signal("INT", nil)
    pawl.on_signal("TERM", nil)
    if show_lateness then
        local average = late.sum / math.max(late.count, 1)
        log("%d runs, %.3f ms late on average, %.3f ms at most", late.count, average, late.most)
    end
end
keep = seconds and pawl.once(seconds * 1000, stop) or pawl.once(1e300, function() end)
pawl.on_signal("INT", stop)
pawl.on_signal("TERM", stop)
