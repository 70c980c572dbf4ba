#!/usr/bin/env bash
# Copyright (c) 2026 The Pawl authors
# SPDX-License-Identifier: BSL-1.0
#
# usage: slowloris.sh DIRECTORY TIMER SLOW ORDINARY TOLERANCE
#
# SLOW clients that send a header a byte at a time are all closed on time, never early and at most TOLERANCE (200,
# 200ms, 2s) late, while ORDINARY ones see no error. DIRECTORY has the programs, TIMER is pawl or asio.

set -euo pipefail
programs=${1:?usage: slowloris.sh DIRECTORY TIMER SLOW ORDINARY TOLERANCE}
timer=$2
slow=$3
ordinary=$4
tolerance=$5
. "$(dirname "${BASH_SOURCE[0]}")/support.sh"

mkdir "$scratch/root"
printf 'hello\n' >"$scratch/root/index.html"
# Only the limit of the header is short: on a busy machine, the ordinary clients must not exceed the other limits.
start --timer "$timer" --root "$scratch/root" --header-timeout 2s --idle 60s --write-timeout 60s

"$programs/http_clients" --port "$port" --header-timeout 2s --tolerance "$tolerance" \
    --slow-headers "$slow" --ordinary "$ordinary" || complain 'see above'

kill -TERM "$server"
wait_for_end 0
says 'the summary' "header $slow, body 0, idle 0, write 0" "$(<"$scratch/stderr")"
says 'the summary' 'malformed or too large 0' "$(<"$scratch/stderr")"

finish
