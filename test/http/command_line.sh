#!/usr/bin/env bash
# Copyright (c) 2026 The Pawl authors
# SPDX-License-Identifier: BSL-1.0
#
# usage: command_line.sh DIRECTORY
#
# How the servers and their clients treat a bad command line: 2, the cause and the usage if it has no meaning; 1 and one
# clear sentence if the system does not allow it. DIRECTORY has the programs; those of the echo server may be missing.

set -euo pipefail
programs=${1:?usage: command_line.sh DIRECTORY}
. "$(dirname "${BASH_SOURCE[0]}")/support.sh"

program=http_server

# run OPTION...: leaves $status, $out and $err.
run() {
    status=0
    "$programs/$program" "$@" >"$scratch/out" 2>"$scratch/err" || status=$?
    out=$(<"$scratch/out")
    err=$(<"$scratch/err")
}

# misused OPTION...: the command line has no meaning.
misused() {
    run "$@"
    same "exit status of $program $*" 2 "$status"
    same "stdout of $program $*" '' "$out"
    says "stderr of $program $*" "$program: *"$'\n'"Usage: $program \\[OPTIONS\\]"$'\n'"See $program --help." "$err"
}

# refused SENTENCE OPTION...: the command line has a meaning, but the system does not allow it.
refused() {
    local sentence=$1
    shift
    run "$@"
    same "exit status of $program $*" 1 "$status"
    same "stdout of $program $*" '' "$out"
    says "stderr of $program $*" "$sentence" "$err"
    same "lines on stderr of $program $*" 1 "$(wc -l <"$scratch/err")"
}

root=$scratch/root
mkdir "$root"
certificate one
certificate other

run --help
same 'exit status of --help' 0 "$status"
says 'stdout of --help' '--drain DURATION=10s' "$out"
same 'stderr of --help' '' "$err"

misused
misused --root
misused --root "$root" --nonsense
misused --root "$root" unasked
misused --root "$root" --port 65536
misused --root "$root" --port -1
misused --root "$root" --address nowhere
misused --root "$root" --threads 0
misused --root "$root" --threads 257
misused --root "$root" --timer sundial
misused --root "$root" --idle 0
misused --root "$root" --idle 25h
misused --root "$root" --idle -1s
misused --root "$root" --header-timeout soon
misused --root "$root" --body-timeout 5parsec
misused --root "$root" --write-timeout ''
misused --root "$root" --request-timeout 1e99h
misused --root "$root" --drain 99999999999999999999
misused --root "$root" --max-header 1
misused --root "$root" --max-body -1
misused --root "$root" --tabs -1
misused --root "$root" --tabs 1025
misused --root "$root" --churn -1
misused --root "$root" --churn 10000001
misused --root "$root" --churn much
misused --root "$root" --churn 1 --timer asio
misused --root "$root" --expose-timers=perhaps
misused --root "$root" --tls
misused --root "$root" --tls --cert "$scratch/one.crt"
misused --root "$root" --cert "$scratch/one.crt" --key "$scratch/one.key"

tls=(--root "$root" --tls)
refused "cannot serve $root/nothing: No such file or directory" --root "$root/nothing"
refused "cannot serve $scratch/one.crt: Not a directory" --root "$scratch/one.crt"
refused "cannot write to $root/no/log" --root "$root" --access-log "$root/no/log"
refused "cannot use $root/none: No such file" "${tls[@]}" --cert "$root/none" --key "$scratch/one.key"
refused "cannot use $root/none: No such file" "${tls[@]}" --cert "$scratch/one.crt" --key "$root/none"
refused "cannot use $scratch/one.key: " "${tls[@]}" --cert "$scratch/one.key" --key "$scratch/one.key"
refused "cannot use $scratch/other.key: " "${tls[@]}" --cert "$scratch/one.crt" --key "$scratch/other.key"
refused 'cannot listen on 192.0.2.1:0: ' --root "$root" --address 192.0.2.1 # an address of no machine

start --root "$root"
refused "cannot listen on 127.0.0.1:$port: Address already in use" --root "$root" --port "$port"
if [[ -x $programs/idle_echo_server ]]; then
    program=idle_echo_server
    refused "cannot listen on 127.0.0.1:$port: Address already in use" --port "$port"
    refused 'cannot listen on 192.0.2.1:0: ' --address 192.0.2.1
fi
kill -TERM "$server"
wait_for_end 0

if [[ -x $programs/idle_echo_server ]]; then
    : >"$scratch/stdout"
    "$programs/idle_echo_server" --port 0 >"$scratch/stdout" 2>"$scratch/stderr" &
    server=$!
    until grep -q '^listening on ' "$scratch/stdout" || ! kill -0 "$server" 2>/dev/null; do
        sleep 0.02
    done
    kill -INT "$server"
    wait_for_end 0
    says 'stderr of idle_echo_server' 'stopping on SIGINT' "$(<"$scratch/stderr")"
fi

program=http_clients
misused
misused --port 80
misused --ordinary 1
misused --port 80 --ordinary 0
misused --port 65536 --ordinary 1
misused --port 80 --ordinary -1
misused --port 80 --host nowhere --ordinary 1
misused --port 80 --ordinary 1 --tolerance soon
misused --port 80 --ordinary 1 --header-timeout 0
misused --port 80 --ordinary 1 --nonsense
misused --port 80 --ordinary 1 unasked

if [[ -x $programs/idle_echo_server ]]; then
    program=idle_echo_server
    run --help
    same 'exit status of --help' 0 "$status"
    says 'stdout of --help' '--idle DURATION=30s' "$out"
    misused --nonsense
    misused unasked
    misused --port
    misused --port 65536
    misused --address nowhere
    misused --idle 0
    misused --idle 25h
    misused --idle soon
    misused --threads 0
    misused --threads 257

    program=demo_clients
    misused
    misused --port 65536
    misused --port 80 --host nowhere
    misused --port 80 --idle-ms 1
    misused --port 80 --silent -1
    misused --port 80 --silent 0 --talkers 0 --leavers 0
    misused --port 80 --seconds 1
    misused --port 80 --nonsense
fi

finish
