# shellcheck shell=bash
# Copyright (c) 2026 The Pawl authors
# SPDX-License-Identifier: BSL-1.0
#
# Shared by the demos: a server in a process of its own, and an end that leaves nothing behind. Sourced, with the folder
# of the programs in $programs.

die() {
    printf 'demo: %s\n' "$*" >&2
    exit 1
}

now_ms() { printf '%s' "$((${EPOCHREALTIME/[.,]/} / 1000))"; }

# need_programs NAME...: fails unless these examples have been built.
need_programs() {
    local each
    for each in "$@"; do
        [[ -x $programs/$each ]] || die "$programs/$each is not there; build the examples first"
    done
}

scratch=$(mktemp -d)
server=
visitors=()
clean_up() {
    local each
    for each in "${visitors[@]}"; do
        kill -TERM -- "-$each" 2>/dev/null || true
        wait "$each" 2>/dev/null || true
    done
    if [[ -n $server ]]; then
        kill -KILL "$server" 2>/dev/null || true
        wait "$server" 2>/dev/null || true
    fi
    rm -rf "$scratch"
}
trap clean_up EXIT
trap 'exit 130' INT
trap 'exit 143' TERM HUP

# start_server NAME ARGUMENT...: the process $server, which listens on $port of 127.0.0.1.
start_server() {
    : >"$scratch/stdout" # read below, maybe before the server's process has started
    "$programs/$1" "${@:2}" >"$scratch/stdout" 2>"$scratch/stderr" &
    server=$!
    port=
    while [[ -z $port ]] && kill -0 "$server" 2>/dev/null; do
        sleep 0.02
        port=$(sed -n 's/^listening on .*://p' "$scratch/stdout")
    done
    if [[ -z $port ]]; then
        cat "$scratch/stderr" >&2
        die 'the server did not start'
    fi
}

# hold COUNT REQUEST READ_OPTION...: opens so many connections, and leaves their descriptors in $held_connections. The
# answer to REQUEST shows that a connection has left the listen queue.
hold() {
    local i connection answer
    held_connections=()
    for ((i = 0; i < $1; ++i)); do
        exec {connection}<>"/dev/tcp/127.0.0.1/$port" || die 'the server accepts no more connections'
        held_connections+=("$connection")
        printf '%b' "$2" >&"$connection"
        read -r "${@:3}" -t 5 -u "$connection" answer || die 'the server does not answer'
    done
}
