#!/usr/bin/env bash
# Copyright (c) 2026 The Pawl authors
# SPDX-License-Identifier: BSL-1.0
#
# usage: idle_echo_demo.sh DIRECTORY [option of demo_clients]...
#
# Starts idle_echo_server on a free loopback port, drives it from another process with 2,000 real
# TCP clients, and stops it with SIGTERM while connections are open. Exits with 0 only if every
# silent client was closed in time, no talking one was, and the server ended cleanly. DIRECTORY has
# the programs.

set -euo pipefail

idle_ms=2000      # the server's timeout
files=2500        # each of the two processes needs this many
held=20           # connections that are open when the server is told to stop
stop_within_ms=2000

die() {
    printf 'demo: %s\n' "$*" >&2
    exit 1
}

now_ms() { printf '%s' "$((${EPOCHREALTIME/[.,]/} / 1000))"; }

(($# >= 1)) || {
    echo 'usage: idle_echo_demo.sh DIRECTORY [option of demo_clients]...' >&2
    exit 2
}
programs=$1
shift
for program in idle_echo_server demo_clients; do
    [[ -x $programs/$program ]] || die "$programs/$program is not there; build the examples first"
done

soft=$(ulimit -Sn)
if [[ $soft != unlimited ]] && ((soft < files)); then
    ulimit -Sn "$files" 2>/dev/null ||
        die "needs $files open files; the hard limit is $(ulimit -Hn): raise it in limits.conf"
fi

scratch=$(mktemp -d)
server=
clean_up() {
    if [[ -n $server ]]; then
        kill -KILL "$server" 2>/dev/null || true
        wait "$server" 2>/dev/null || true
    fi
    rm -rf "$scratch"
}
trap clean_up EXIT
trap 'exit 130' INT
trap 'exit 143' TERM HUP

# --- the server -----------------------------------------------------------------------------------

: >"$scratch/stdout" # read below, perhaps before the server's process has begun
"$programs/idle_echo_server" --port 0 --idle "${idle_ms}ms" \
    >"$scratch/stdout" 2>"$scratch/stderr" &
server=$!

address=
for ((i = 0; i < 200; ++i)); do
    address=$(sed -n 's/^listening on //p' "$scratch/stdout")
    [[ -z $address ]] || break
    kill -0 "$server" 2>/dev/null || break
    sleep 0.05
done
if [[ -z $address ]]; then
    cat "$scratch/stderr" >&2
    die 'the server did not start'
fi
host=${address%:*}
port=${address##*:}
echo "server: process $server listens on $address, closes connections after $idle_ms ms of silence"

# --- the clients ----------------------------------------------------------------------------------

clients_status=0
"$programs/demo_clients" --host "$host" --port "$port" --idle-ms "$idle_ms" "$@" ||
    clients_status=$?

# --- the end --------------------------------------------------------------------------------------

connections=()
for ((i = 0; i < held; ++i)); do
    exec {connection}<>"/dev/tcp/$host/$port" || die 'the server accepts no more connections'
    connections+=("$connection")
    printf x >&"$connection"
    # The echo shows that the connection is not only in the listen queue.
    read -r -N 1 -t 5 -u "$connection" || die 'the server does not answer'
done

echo "SIGTERM while $held connections are open"
begin=$(now_ms)
kill -TERM "$server" || true
while kill -0 "$server" 2>/dev/null && (($(now_ms) - begin < stop_within_ms)); do
    sleep 0.01
done
took=$(($(now_ms) - begin))
for connection in "${connections[@]}"; do
    exec {connection}>&-
done

server_status=0
if kill -0 "$server" 2>/dev/null; then
    server_status='none: still running'
else
    wait "$server" || server_status=$?
    server=
fi
sed 's/^/server: /' "$scratch/stderr"
echo "server: exit status $server_status, $took ms after SIGTERM"

if [[ $clients_status == 0 && $server_status == 0 ]]; then
    echo 'demo: PASSED'
else
    echo "demo: FAILED (clients: $clients_status, server: $server_status)"
    exit 1
fi
