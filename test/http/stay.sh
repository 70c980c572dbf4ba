#!/usr/bin/env bash
# Copyright (c) 2026 The Pawl authors
# SPDX-License-Identifier: BSL-1.0
#
# usage: stay.sh DIRECTORY
#
# `./dev demo --stay` prints the address of the page of timers, stays, and ends properly when it is told to. DIRECTORY
# has the programs.

set -euo pipefail
programs=${1:?usage: stay.sh DIRECTORY}
. "$(dirname "${BASH_SOURCE[0]}")/support.sh"

ask() { curl -q -sS --noproxy '*' -m 60 "$@"; }

: >"$scratch/stdout"
"$(dirname "${BASH_SOURCE[0]}")/../../examples/demo.sh" "$programs" --stay >"$scratch/stdout" 2>"$scratch/stderr" &
server=$!
until grep -q '^Ctrl-C' "$scratch/stdout" || ! kill -0 "$server" 2>/dev/null; do
    sleep 0.02
done
grep -q '^Ctrl-C' "$scratch/stdout" || { cat "$scratch/stderr" >&2; echo 'it does not start' >&2; exit 1; }
url=$(sed -n 's/^the page of its timers: //p' "$scratch/stdout")
says 'the address of the page' 'http://127.0.0.1:*/timers' "$url"
says 'the page' '<h1>Timers of this server</h1>' "$(ask "$url")"
until (($(ask "${url%/timers}/metrics" | sed -n 's/^pawl_timer_lateness_seconds_count //p') > 0)); do
    sleep 0.1 # until a slow request of its visitors has ended
done
: >"$scratch/events"
ask -N "$url/events" >"$scratch/events" &
tab=$!
until grep -q '^data: {' "$scratch/events"; do
    sleep 0.1
done
kill -TERM "$server" # stands for Ctrl-C, which a process in the background ignores
wait_for_end 0
wait "$tab" || complain 'the stream of a tab does not end in order'
says 'its last words' 'server: draining on SIGTERM' "$(<"$scratch/stdout")"

finish
