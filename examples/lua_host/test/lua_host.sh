#!/usr/bin/env bash
# Copyright (c) 2026 The Pawl authors
# SPDX-License-Identifier: BSL-1.0
#
# usage: lua_host.sh LUA_HOST scripts|console|cron
#
# Runs lua_host with scripts, with typed lines, and with cron.lua. Only the order of times is checked.

set -euo pipefail
host=${1:?usage: lua_host.sh LUA_HOST scripts|console|cron}
here=$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")
. "$here/../../../test/http/support.sh"

# run WORD...: leaves $status, $out and $err. Standard input goes to the host.
run() {
    status=0
    "$host" "$@" >"$scratch/out" 2>"$scratch/err" || status=$?
    out=$(<"$scratch/out")
    err=$(<"$scratch/err")
}

# script WORD...: runs standard input as a script.
script() {
    cat >"$scratch/script.lua"
    run "$scratch/script.lua" "$@"
}

# until_says FILE PATTERN: waits until a line matches; ctest has the time limit.
until_says() {
    until grep -q -- "$2" "$1"; do
        kill -0 "$server" 2>/dev/null || {
            cat "$scratch/out" "$scratch/err" >&2
            complain "ended without '$2'"
            exit 1
        }
        sleep 0.02
    done
}

test_scripts() {
    run </dev/null
    same 'status without a script' 2 "$status"
    says 'usage' 'usage: lua_host' "$err"
    run --nonsense x
    same 'status with a bad option' 2 "$status"
    run --help
    same 'status of --help' 0 "$status"
    run "$scratch/none.lua"
    same 'status of a missing script' 1 "$status"
    script <<<'x x'
    same 'status of a syntax error' 1 "$status"
    says 'a syntax error' 'script.lua:1: syntax error' "$err"
    script <<<'error "on purpose"'
    same 'status of a failed script' 1 "$status"
    says 'a failed script' $'script.lua:1: on purpose\nstack traceback:' "$err"

    script one 'two words' <<<'print(arg[0]:match "[^/]*$", arg[1], ...)'
    same 'arguments' $'script.lua\tone\tone\ttwo words' "$out"
    same 'status of a good script' 0 "$status"

    # A callback fails: the others run, and the exit status shows the failure.
    script <<'LUA'
coroutine.wrap(function() pawl.sleep(5) print "first" end)()
pawl.once(10, function() local nothing; nothing.x = 1 end)
pawl.once(20, function() print "second" end)
pawl.once(30, function() print "last" end)
LUA
    same 'events around a failed one' $'first\nsecond\nlast' "$out"
    same 'status after a failed callback' 1 "$status"
    says 'a failed callback' 'pawl: error in a callback: ' "$err"
    says 'a failed callback' "script.lua:2: attempt to index a nil value (local 'nothing')" "$err"
    says 'a failed callback' $'\nstack traceback:\n' "$err"

    script <<'LUA'
pawl.on_error(function(text) print(text:match "^[^\n]*: (.-)\n") end)
pawl.once(1, function() error "one" end)
pawl.once(2, function() error "two" end)
LUA
    same 'errors that are handled' $'one\ntwo' "$out"
    same 'status when errors are handled' 0 "$status"

    script <<'LUA'
pawl.on_error(function() error "the handler, too" end)
pawl.once(1, function() error "one" end)
pawl.once(2, function() print "two" end)
LUA
    same 'events after a handler that fails' two "$out"
    says 'a handler that fails' 'in on_error(): ' "$err"
    says 'a handler that fails' 'the handler, too' "$err"
    same 'status after a handler that fails' 1 "$status"

    # A callback closes the state, with timers that go on, and finalizers that call the module.
    script <<'LUA'
local kept = pawl.every(1, function() end)
setmetatable({}, {__gc = function() print(pcall(pawl.now), pcall(kept.armed, kept)) end})
pawl.once(5, function() os.exit(7, true) end)
LUA
    same 'status of os.exit() in a callback' 7 "$status"
    same 'what is on stderr then' '' "$err"
    script <<<'kept = pawl.every(1, print) coroutine.wrap(function() pawl.sleep(1e9) end)() os.exit(3, true)'
    same 'status of os.exit() with live timers' 3 "$status"

    # Signals arrive as events: in order, and only when the host processes events.
    script <<'LUA'
local seen = {}
pawl.on_signal("HUP", function() table.insert(seen, "HUP") end)
pawl.on_signal("USR1", function() table.insert(seen, "USR1") end)
local me = io.open "/proc/self/stat":read "n"
os.execute("kill -HUP " .. me)
pawl.wait()
assert(#seen == 0 and pawl.pending() == 1)
pawl.process_events()
os.execute("kill -USR1 " .. me)
pawl.wait()
pawl.process_events()
pawl.on_signal("USR1", nil)
os.execute("kill -HUP " .. me)
pawl.wait()
pawl.process_events()
print(table.concat(seen, " "))
os.execute("kill -USR1 " .. me)
pawl.block(10000)
LUA
    same 'signals' 'HUP USR1 HUP' "$out"
    same 'status of a signal that is no longer handled' $((128 + $(kill -l USR1))) "$status"

    "$host" --stay <(echo 'pawl.on_signal("INT", function() os.exit(5, true) end) print "ready" io.stdout:flush()') \
        >"$scratch/out" 2>"$scratch/err" &
    server=$!
    until_says "$scratch/out" ready
    kill -INT $server
    status=0
    wait $server || status=$?
    server=
    same 'status after SIGINT with --stay' 5 "$status"
}

test_console() {
    # Lines arrive one by one. Timers fire while the host waits for the next line.
    mkfifo "$scratch/in"
    "$host" -i <"$scratch/in" >"$scratch/out" 2>"$scratch/err" &
    server=$!
    exec {typed}>"$scratch/in"
    echo 'timer = pawl.every(5, function() count = (count or 0) + 1 if count == 3 then print "three" end end)' >&$typed
    until_says "$scratch/out" three
    echo 'timer:destroy()' >&$typed
    printf 'print "a half ' >&$typed
    sleep 0.1
    echo 'line"' >&$typed
    until_says "$scratch/out" 'a half line'
    printf 'function f()\nreturn 6 * 7, "x"\nend\nf()\nx x\nerror "bad"\n' >&$typed
    echo 'pawl.once(10, function() print "later" error "in a timer" end)' >&$typed
    until_says "$scratch/out" later
    printf '\x1bLua\n' >&$typed # the beginning of a binary chunk
    echo '1 + 1' >&$typed
    printf '"the last line, without an end"' >&$typed
    exec {typed}>&-
    status=0
    wait $server || status=$?
    server=
    same 'status' 0 "$status"
    out=$(<"$scratch/out")
    err=$(<"$scratch/err")
    says 'a statement over lines' '>> >> > 42'$'\t''x' "$out"
    says 'an expression' $'> 2\n' "$out"
    says 'the end' 'the last line, without an end' "$out"
    says 'a syntax error' 'syntax error near' "$err"
    says 'a binary chunk' 'attempt to load a binary chunk' "$err"
    says 'an error' $'stdin:1: bad\nstack traceback:' "$err"
    says 'an error in a timer' 'in a timer' "$err"
}

test_cron() {
    local table=$scratch/crontab

    printf '%s\n' '# bad ones' 'every 0s: print 1' 'every 5x: print 1' '* * * * *: print 1' '60 * * * * *: print 1' \
        '* * * 0 * *: print 1' '* */0 * * * *: print 1' '* * * 30 2 *: print 1' '* a * * * *: print 1' 'print 1' \
        '' 'every 1s: print(' '* * * * * 8: print 1' '5-1 * * * * *: print 1' >"$table"
    run "$here/../cron.lua" "$table"
    same 'status with errors in the crontab' 1 "$status"
    same 'stdout with errors in the crontab' '' "$out"
    same 'lines with errors' '2 3 4 5 6 7 8 9 10 12 13 14' \
        "$(sed -n 's/^cron: .*crontab:\([0-9]*\): .*/\1/p' "$scratch/err" | xargs)"
    says 'a bad period' "2: 'every 0s': must be like 'every 5s', in ms, s, min or h, greater than 0" "$err"
    says 'a bad second' "5: second '60': must be from 0 to 59" "$err"
    says 'a date that is none' "8: '* * * 30 2 *': never comes" "$err"
    says 'bad code' '12: unexpected symbol near <eof>' "$err"
    run "$here/../cron.lua" "$scratch/none"
    same 'status without the crontab' 1 "$status"
    says 'no crontab' 'No such file' "$err"
    run "$here/../cron.lua" --nonsense
    same 'status of a bad option' 2 "$status"

    printf '%s\n' 'every 200ms: print "old"' '* * * * * *: print "each second"' 'every 0.3s: error "broken job"' \
        '0 0 0 1 1 *: print "new year"' >"$table"
    "$host" "$here/../cron.lua" --lateness "$table" >>"$scratch/out" 2>"$scratch/err" &
    server=$!
    until_says "$scratch/out" 'each second'
    until_says "$scratch/out" old
    until_says "$scratch/err" 'crontab:3: broken job'

    printf '%s\n' 'every 100ms: print "new"' 'every 1s print "no colon"' >"$table"
    kill -HUP $server
    until_says "$scratch/err" "2: no ':' between the time and the code"
    until_says "$scratch/err" '1 errors, the old 4 jobs go on'
    : >"$scratch/out"
    until_says "$scratch/out" old
    grep -q new "$scratch/out" && complain 'jobs of a crontab with errors run'

    printf '%s\n' 'every 100ms: print "new"' >"$table"
    kill -HUP $server
    until_says "$scratch/err" 'read again, 1 jobs'
    : >"$scratch/out"
    until_says "$scratch/out" new
    : >"$scratch/out"
    until_says "$scratch/out" new
    grep -q old "$scratch/out" && complain 'old jobs run after the crontab was read again'

    kill -TERM $server
    status=0
    wait $server || status=$?
    server=
    same 'status' 1 "$status" # because of the broken job
    says 'lateness' 'runs, ' "$(<"$scratch/err")"

    # A run of a given length. Cron jobs are not early, and in order.
    printf '%s\n' '* * * * * *: print("at", now)' 'every 250ms: print "quarter"' >"$table"
    run "$here/../cron.lua" --lateness --for 2.2 "$table"
    same 'status of a run' 0 "$status"
    same 'early ones' '' "$(grep -- '-[0-9.]* ms late' "$scratch/out" || true)"
    (($(grep -c ^at "$scratch/out") >= 1)) || complain "no full second in 2.2 s: $out"
    (($(grep -c ^quarter "$scratch/out") >= 1)) || complain "no quarter in 2.2 s: $out"
    sed -n 's/^at\t//p' "$scratch/out" >"$scratch/seconds"
    sort -n -u -c "$scratch/seconds" || complain 'seconds are not in order, or come twice'
}

case ${2-} in
    scripts | console | cron) "test_$2" ;;
    *)
        echo 'usage: lua_host.sh LUA_HOST scripts|console|cron' >&2
        exit 2
        ;;
esac
((failures == 0))
