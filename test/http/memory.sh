#!/usr/bin/env bash
# Copyright (c) 2026 The Pawl authors
# SPDX-License-Identifier: BSL-1.0
#
# usage: memory.sh DIRECTORY TIMER
#
# If http_server has no memory for a request, it ends the connection of that request, with a line on stderr, and no
# other. DIRECTORY has the programs, TIMER is pawl or asio.

set -euo pipefail
programs=${1:?usage: memory.sh DIRECTORY TIMER}
timer=$2
. "$(dirname "${BASH_SOURCE[0]}")/support.sh"

ask() { curl -q -sS --noproxy '*' -m 60 "$@"; }

mkdir "$scratch/root"
printf 'hello\n' >"$scratch/root/index.html"
ulimit -Sv 400000 # KiB; only the server comes near it
start --timer "$timer" --root "$scratch/root" --max-body 1073741824

status=0
truncate -s 500M "$scratch/large"
exec {other}<>"/dev/tcp/127.0.0.1/$port" # a connection without a request
ask -X POST -T "$scratch/large" "http://127.0.0.1:$port/echo" >"$scratch/answer" 2>"$scratch/curl" || status=$?
[[ $status != 0 ]] || complain 'the request has been answered'
printf 'GET / HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n' >&"$other"
same 'the answer to another client' hello "$(timeout 60 cat <&"$other" | tail -n 1)"
same 'the answer to another request' hello "$(ask "http://127.0.0.1:$port/")"

kill -TERM "$server"
wait_for_end 0
says 'stderr' 'a connection is given up: std::bad_alloc' "$(<"$scratch/stderr")"
says 'the summary' 'in the middle of a handshake, request or answer 1'$'\n' "$(<"$scratch/stderr")"

finish
