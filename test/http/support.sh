# Copyright (c) 2026 The Pawl authors
# SPDX-License-Identifier: BSL-1.0
#
# Shared by the tests of http_server. To be sourced, with $programs set to the folder of the programs. Afterwards
# $scratch is a folder that is removed at the end of the test.

scratch=$(mktemp -d)
server=
failures=0

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

# complain TEXT: the test fails, and continues.
complain() {
    printf 'line %s: %s\n' "${BASH_LINENO[1]}" "$*" >&2
    failures=$((failures + 1))
}

# same WHAT EXPECTED FOUND
same() { [[ $2 == "$3" ]] || complain "$1: expected '$2', found '$3'"; }

# says WHAT PATTERN TEXT: a bash pattern that may match anywhere.
says() { [[ $3 == *$2* ]] || complain "$1: expected '$2' in '$3'"; }

# certificate NAME: makes $scratch/NAME.crt and its key, $scratch/NAME.key.
certificate() {
    openssl req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=localhost \
        -keyout "$scratch/$1.key" -out "$scratch/$1.crt" 2>"$scratch/openssl" ||
        { cat "$scratch/openssl" >&2; exit 1; }
}

# start OPTION...: a server on a free port of 127.0.0.1, which is then $port.
start() {
    : >"$scratch/stdout" # read below, maybe before the server's process has started
    "$programs/http_server" --port 0 "$@" >"$scratch/stdout" 2>"$scratch/stderr" &
    server=$!
    port=
    while [[ -z $port ]]; do
        kill -0 "$server" 2>/dev/null || break
        sleep 0.02
        port=$(sed -n 's/^listening on .*://p' "$scratch/stdout")
    done
    [[ -n $port ]] || { cat "$scratch/stderr" >&2; echo 'the server did not start' >&2; exit 1; }
}

# wait_for_end STATUS: until the server has ended by itself.
wait_for_end() {
    local status=0
    wait "$server" || status=$?
    server=
    same 'exit status of the server' "$1" "$status"
    [[ $status == "$1" ]] || sed 's/^/server: /' "$scratch/stderr" >&2
}

# finish: exits with the status of the test.
finish() {
    ((failures == 0)) || { echo "failures: $failures" >&2; exit 1; }
    echo passed
}
