#!/usr/bin/env bash
# Copyright (c) 2026 The Pawl authors
# SPDX-License-Identifier: BSL-1.0
#
# usage: idle_echo_demo.sh DIRECTORY [option of demo_clients]...
#
# Starts idle_echo_server on a free loopback port, drives it from another process with 2,000 real TCP
# clients, and stops it with SIGTERM while connections are open. Exits with 0 only if every silent
# client was closed in time, no talking client was closed, and the server ended cleanly. DIRECTORY
# contains the programs.

set -euo pipefail

idle_ms=2000      # the server's timeout
files=2500        # each of the two processes needs this many
held=20           # connections that are open when the server is told to stop
stop_within_ms=2000

(($# >= 1)) || {
    echo 'usage: idle_echo_demo.sh DIRECTORY [option of demo_clients]...' >&2
    exit 2
}
programs=$1
shift
# shellcheck source=examples/demo_base.sh
. "$(dirname "${BASH_SOURCE[0]}")/demo_base.sh"
need_programs idle_echo_server demo_clients

soft=$(ulimit -Sn)
if [[ $soft != unlimited ]] && ((soft < files)); then
    ulimit -Sn "$files" 2>/dev/null ||
        die "needs $files open files; the hard limit is $(ulimit -Hn): raise it in limits.conf"
fi

start_server idle_echo_server --port 0 --idle "${idle_ms}ms"
echo "server: process $server listens on 127.0.0.1:$port, closes connections after $idle_ms ms of silence"

# --- the clients ----------------------------------------------------------------------------------

clients_status=0
"$programs/demo_clients" --port "$port" --idle-ms "$idle_ms" "$@" ||
    clients_status=$?

# --- the end --------------------------------------------------------------------------------------

hold $held x -N 1
echo "SIGTERM while $held connections are open"
begin=$(now_ms)
kill -TERM "$server" || true
while kill -0 "$server" 2>/dev/null && (($(now_ms) - begin < stop_within_ms)); do
    sleep 0.01
done
took=$(($(now_ms) - begin))
for connection in "${held_connections[@]}"; do
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
