#!/usr/bin/env bash
# Copyright (c) 2026 The Pawl authors
# SPDX-License-Identifier: BSL-1.0
#
# usage: demo.sh DIRECTORY [pawl|asio|--stay]
#
# Starts http_server with short limits on a free loopback port. Sends it good and bad requests with
# curl, then load with wrk together with over a thousand slow, silent, deaf or vanishing clients. Then
# stops it with SIGTERM while connections are open and a request is running. Exits with 0 only if the
# server kept all promises: a limit is never early, and at most 250 ms late. DIRECTORY contains the
# programs. Needs curl, wrk and openssl.
#
# With --stay it only runs the server, on port 8080 if that is free, under a light load until Ctrl-C,
# to look at its page of timers.

set -euo pipefail

limit_ms=2000         # for a header, a body, silence, and a client that does not read
request_ms=3000       # from the end of a header to the end of the response
tolerance_ms=250      # tolerated lateness: this machine may be busy
load_seconds=4        # of wrk
held=20               # connections that are idle when the server is told to stop
stop_within_ms=5000   # the server's --drain; the request that is running then needs another 1000

programs=${1-}
timer=${2:-pawl}
stay=
if [[ $timer == --stay ]]; then
    stay=curl # the only program that it needs
    timer=pawl
fi
[[ -n $programs && $# -le 2 && $timer =~ ^(pawl|asio)$ ]] || {
    echo 'usage: demo.sh DIRECTORY [pawl|asio|--stay]' >&2
    exit 2
}
# shellcheck source=examples/demo_base.sh
. "$(dirname "${BASH_SOURCE[0]}")/demo_base.sh"
need_programs http_server http_clients
for program in ${stay:-curl wrk openssl}; do
    command -v "$program" >/dev/null || die "needs $program"
done

# start OPTION...: a server that listens on 127.0.0.1:$port, on any free port if $wanted is 0.
wanted=0
start() { start_server http_server --timer "$timer" --port "$wanted" --root "$scratch/root" "$@"; }

# row WHAT PROMISED FOUND: a line of the table.
failures=0
row() {
    local verdict=ok
    [[ $2 == "$3" ]] || {
        verdict="NOT: $3"
        failures=$((failures + 1))
    }
    printf '%-46s %-28s %s\n' "$1" "$2" "$verdict"
}

ask() { curl -q -sS -k --noproxy '*' --path-as-is -m 20 "$@" 2>&1 || true; }
code() { ask -o /dev/null -w '%{http_code}' "$@"; }

mkdir "$scratch/root"
head -c 1000 /dev/urandom >"$scratch/root/small"
head -c 100000 /dev/urandom >"$scratch/root/medium"
truncate -s 32M "$scratch/root/large" # more than all buffers on the way to a client
head -c 2000000 /dev/zero >"$scratch/too_large"

# --- a server to look at ----------------------------------------------------------------------------

visit() { # as long as the server runs
    while kill -0 "$server" 2>/dev/null; do
        "$programs/http_clients" --port "$port" --ordinary 20 --length 10s --file /small >/dev/null 2>&1 || sleep 0.1
    done
}
wait_slowly() {
    while kill -0 "$server" 2>/dev/null; do
        ask "http://127.0.0.1:$port/slow?ms=$((RANDOM % 400))" >/dev/null
    done
}

if [[ -n $stay ]]; then
    set -m # so that Ctrl-C reaches only this script, which then ends the others
    wanted=8080
    if (exec 3<>/dev/tcp/127.0.0.1/$wanted) 2>/dev/null; then wanted=0; fi
    start --measure-times --churn 200 --drain 2s
    visit &
    visitors+=($!)
    for ((i = 0; i < 5; ++i)); do
        wait_slowly &
        visitors+=($!)
    done
    stopped=
    trap 'stopped=1' INT TERM HUP
    echo "the page of its timers: http://127.0.0.1:$port/timers"
    echo "the same in a terminal: ./dev top 127.0.0.1:$port"
    echo 'Ctrl-C ends it.'
    status=0
    wait "$server" || status=$?
    if [[ -n $stopped ]]; then
        kill -TERM "$server"
        status=0
        wait "$server" || status=$?
    fi
    sed 's/^/server: /' "$scratch/stderr"
    server=
    exit "$status"
fi

# --- good and bad requests --------------------------------------------------------------------------

start --idle ${limit_ms}ms --header-timeout ${limit_ms}ms --body-timeout ${limit_ms}ms \
    --write-timeout ${limit_ms}ms --request-timeout ${request_ms}ms --drain ${stop_within_ms}ms \
    --access-log "$scratch/log"
url=http://127.0.0.1:$port
echo "server: process $server listens on $url, limits $limit_ms ms, on $timer"
[[ $timer != pawl ]] || echo "the page of its timers, for the next seconds: $url/timers (./dev demo --stay leaves it there)"
echo
printf '%-46s %-28s %s\n' 'curl' 'promised' 'found'
row 'two files over one connection' '200 on 1, 200 on 0 new ones' \
    "$(ask -o /dev/null -o /dev/null -w '%{http_code} on %{num_connects}, ' "$url/small" "$url/medium" |
        sed 's/, $/ new ones/')"
row 'a large file' '200, 33554432 bytes' "$(ask -o /dev/null -w '%{http_code}, %{size_download} bytes' "$url/large")"
row 'HEAD' '200, 0 bytes' "$(ask -o /dev/null -w '%{http_code}, %{size_download} bytes' -I "$url/large")"
ask --data-binary "@$scratch/root/medium" "$url/echo" >"$scratch/echo"
row 'POST /echo, 100 kB' 'the same back' \
    "$(cmp "$scratch/root/medium" "$scratch/echo" 2>&1 && echo 'the same back')"
row 'a missing file' 404 "$(code "$url/nothing")"
row 'a path out of the root' 403 "$(code "$url/%2e%2e/secret")"
row 'DELETE' 405 "$(code -X DELETE "$url/small")"
row 'a body of 2 MB' 413 "$(code --data-binary "@$scratch/too_large" "$url/echo")"
row 'a header of 9 kB' 431 "$(code -H "Long: $(printf 'x%.0s' {1..9000})" "$url/small")"
row 'a malformed request' 400 "$(code -H 'Content-Length: x' "$url/small")"
row '/slow, 500 ms' 200 "$(code "$url/slow?ms=500")"
row "/slow, a minute, where $request_ms ms are allowed" 503 "$(code "$url/slow?ms=60000")"

# --- load, and clients that try to keep their connections forever ------------------------------------

echo
echo "wrk for $load_seconds s, and at the same time:"
clients_status=0
"$programs/http_clients" --port "$port" --tolerance ${tolerance_ms}ms --header-timeout ${limit_ms}ms \
    --body-timeout ${limit_ms}ms --idle ${limit_ms}ms --write-timeout ${limit_ms}ms \
    --slow-headers 1000 --mute 100 --slow-bodies 100 --idlers 100 --deaf 10 --vanishing 100 \
    --ordinary 50 --file /small --large-file /large >"$scratch/clients" 2>&1 &
clients=$!
sleep 1 # until all have connected, and the buffers of the deaf clients are full: filling them counts as lateness
wrk -t 1 -c 20 -d ${load_seconds}s --latency "$url/small" >"$scratch/wrk" 2>&1 || true
wait $clients || clients_status=$?
cat "$scratch/clients"
((clients_status == 0)) || failures=$((failures + 1))
echo
printf '%-46s %-28s %s\n' 'wrk' 'promised' 'found'
row 'answers other than 200, socket errors' none \
    "$(grep -E 'Non-2xx|Socket errors|unable|rror' "$scratch/wrk" || { grep -q '^Requests/sec' "$scratch/wrk" && echo none; } ||
        echo 'wrk has failed')"
awk '/Requests\/sec/ { rate = $2 } $1 == "50%" { half = $2 } $1 == "99%" { most = $2 }
     END { printf "requests per second %s, latency p50 %s, p99 %s\n", rate, half, most }' "$scratch/wrk"

# --- the end: idle connections, and a request that is running ---------------------------------------

hold $held 'HEAD /small HTTP/1.1\r\nHost: h\r\n\r\n'
# Both requests are sent together: when the first is answered, the second is running.
printf '%s /slow?ms=%s HTTP/1.1\r\nHost: h\r\n\r\n' HEAD 0 GET 1000 >"$scratch/both"
exec {busy}<>"/dev/tcp/127.0.0.1/$port"
cat "$scratch/both" >&"$busy"
read -r -t 5 -u "$busy" || die 'the server does not answer'

echo
printf '%-46s %-28s %s\n' "SIGTERM" 'promised' 'found'
begin=$(now_ms)
kill -TERM "$server"
ended=0
for connection in "${held_connections[@]}"; do
    # The rest of the answer, until the server closes the connection.
    if timeout 5 cat <&"$connection" >/dev/null 2>&1; then ended=$((ended + 1)); fi
    exec {connection}>&-
done
answer=$(timeout 10 cat <&"$busy" | tr -d '\r' | tail -n 1 || true)
exec {busy}>&-
server_status=0
wait "$server" || server_status=$?
server=
took=$(($(now_ms) - begin))
row "$held idle connections" "$held closed" "$ended closed"
row 'a request that needs another second' '1000 ms' "$answer"
row "the server, after $took ms" 'exit status 0, in time' \
    "exit status $server_status, $( ((took <= stop_within_ms)) && echo 'in time' || echo 'too late')"
sed 's/^/server: /' "$scratch/stderr"
echo 'from its access log, which request was ended by which limit:'
sed -n 's/^[^]]*] \("[^ "]*\)[^"]*" \([-0-9]*\) .*ms \(.* timeout\)$/\3, \1 ..." answered \2/p' "$scratch/log" |
    sed 's/^idle timeout, "- ..."/idle timeout, between requests,/; s/"- ..."/before a complete header,/
         s/answered -/not answered/' | sort | uniq -c

# --- hostile clients hold as many connections as there is room for -----------------------------------

if [[ $timer == pawl ]]; then
    echo
    start --max-connections 100 --idle 60s
    hold 100 'HEAD /small HTTP/1.1\r\nHost: h\r\n\r\n'
    begin=$(now_ms)
    printf '%-46s %-28s %s\n' '--max-connections 100, --idle 60s' 'promised' 'found'
    row 'a request while 100 connections are idle' 200 "$(code "http://127.0.0.1:$port/small")"
    ended=0
    for connection in "${held_connections[@]}"; do
        if timeout 30 cat <&"$connection" >/dev/null 2>&1; then ended=$((ended + 1)); fi
        exec {connection}>&-
    done
    took=$(($(now_ms) - begin))
    row "they are closed, the last after $took ms" '100 closed, before 30 s' \
        "$ended closed, $( ((took < 30000)) && echo 'before 30 s' || echo 'later')"
    kill -TERM "$server"
    wait "$server" || failures=$((failures + 1))
    server=
fi

# --- hostile clients drip a body: slowly, but never silent -------------------------------------------

if [[ $timer == pawl ]]; then
    echo
    start --body-timeout 60s --min-rate 100 --grace ${limit_ms}ms
    clients_status=0
    "$programs/http_clients" --port "$port" --body-timeout ${limit_ms}ms --pace 50ms \
        --tolerance $((tolerance_ms + limit_ms / 2))ms --slow-bodies 50 >"$scratch/clients" 2>&1 || clients_status=$?
    printf '%-46s %-28s %s\n' "--min-rate 100, --grace $limit_ms ms" 'promised' 'found'
    row '50 clients with 20 bytes a second' "closed after $limit_ms ms" \
        "$( ((clients_status == 0)) && echo "closed after $limit_ms ms" || cat "$scratch/clients")"
    kill -TERM "$server"
    wait "$server" || failures=$((failures + 1))
    server=
fi

# --- the same over TLS, in short --------------------------------------------------------------------

echo
openssl req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=localhost \
    -keyout "$scratch/key" -out "$scratch/cert" 2>"$scratch/openssl" || die "$(<"$scratch/openssl")"
start --tls --cert "$scratch/cert" --key "$scratch/key" --header-timeout ${limit_ms}ms
printf '%-46s %-28s %s\n' 'with --tls' 'promised' 'found'
row 'two files over one connection' '200 on 1, 200 on 0 new ones' \
    "$(ask -o /dev/null -o /dev/null -w '%{http_code} on %{num_connects}, ' \
        "https://127.0.0.1:$port/small" "https://127.0.0.1:$port/medium" | sed 's/, $/ new ones/')"
clients_status=0
"$programs/http_clients" --port "$port" --header-timeout ${limit_ms}ms \
    --tolerance ${tolerance_ms}ms --mute 50 >"$scratch/clients" 2>&1 || clients_status=$?
row '50 clients that never begin the handshake' "closed at $limit_ms ms" \
    "$( ((clients_status == 0)) && echo "closed at $limit_ms ms" || cat "$scratch/clients")"
kill -TERM "$server"
server_status=0
wait "$server" || server_status=$?
server=
row 'SIGTERM' 'exit status 0' "exit status $server_status"

echo
if ((failures == 0)); then
    echo 'demo: PASSED'
else
    echo "demo: FAILED ($failures)"
    exit 1
fi
