# Copyright (c) 2026 The Pawl authors
# SPDX-License-Identifier: BSL-1.0

# Prints objects of states.cpp at each of its stops. The answers are in states.txt, except for the last stop, whose
# answers depend on the optimiser and are in ../gdb.sh.

set auto-load off
set debuginfod enabled off
set disable-randomization off
set startup-with-shell off
set width 0
source tools/gdb/pawl_printers.py

break stopped_in
commands
    silent
    printf "--- %s\n", state
end
run
print *shown::timer
print *shown::other
print shown::tick
print shown::never

continue
print *shown::timer
print shown::timer->handle_
print $pawl_shard(*shown::timer)

continue
print *shown::timer
print *shown::other
print shown::timer->handle_.core_

continue
print *shown::timer
print $pawl_shard(shown::timer)

continue
print *shown::timer

continue
print *shown::timer

continue
print *shown::timer
print $pawl_shard(*shown::timer)

continue
print *shown::timer
print *shown::other

continue
print *shown::compact
print $pawl_shard(*shown::compact)
print *shown::ring
print $pawl_shard(*shown::ring)
print *shown::steady
print *shown::system
print *shown::real

continue
set print elements 3
print *shown::compact
print $pawl_shard(*shown::compact)
set print elements 200

continue
print *shown::timer
print *shown::other
print *shown::compact
print shown::timer->handle_

continue
print *shown::timer
print *shown::other

continue
print *shown::timer
print shown::name
print shown::other_name

continue
print shown::alarm[0]
print shown::alarm[1]
print shown::alarm[2]
print shown::alarm[3]
print $pawl_shard(shown::alarm[0])

continue
print shown::alarm[1]
print shown::alarm[2]

continue
print *shown::timer
python
try:
    gdb.execute("print $pawl_shard(*shown::timer)")
except gdb.error as error:
    print(error)
try:
    gdb.execute("print $pawl_shard(shown::tick)")
except gdb.error as error:
    print(error)
end

continue
print *shown::wheel
print *shown::binary

continue
set print elements 3
print *shown::wheel
print *shown::binary

continue
print *shown::wheel
print *shown::binary
set print elements 200

continue
print *shown::alarms
print *shown::queue

continue
print shown::deadline

continue
print shown::deadline
set $copy = shown::deadline
print $copy

continue
up-silently
print gone
python print(Tick(gdb.parse_and_eval("gone")).to_string())
