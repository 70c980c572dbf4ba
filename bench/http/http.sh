#!/usr/bin/env bash
# Copyright (c) 2026 The Pawl authors
# SPDX-License-Identifier: BSL-1.0
#
# usage: http.sh EXAMPLES BENCH [REPETITIONS [SECONDS [IDLE-CONNECTIONS [SECONDS-AT-REST]]]]
#
# examples/http_server on pawl::tcp_stream against the same server on boost::beast::tcp_stream, in turn, under wrk with
# 1, 10 and 100 connections, then with idle connections. EXAMPLES and BENCH are the folders of the programs. Prints
# Markdown tables. See bench/README.md.

set -Eeuo pipefail

numbers=${*:3}
[[ $# -ge 2 && $# -le 6 && $numbers =~ ^([1-9][0-9]*( |$))*$ ]] || { sed -n '1,10s/^# usage/usage/p' "$0" >&2; exit 2; }
for program in wrk strace pgrep; do
    command -v "$program" >/dev/null || { echo "http.sh: needs $program" >&2; exit 1; }
done
examples=$1
bench=$2
repetitions=${3:-31}
seconds=${4:-2}
idle=${5:-20000}
rest=${6:-80} # more than twice the period of a ring of 10 minutes
loads=(1 10 100) # connections: the server waits for each request, for some, for none

ulimit -Sn "$(ulimit -Hn)"
files=$(ulimit -Sn)
# One process needs a descriptor for each connection, and some more.
if [[ $files != unlimited ]] && ((idle > files - 50)); then
    idle=$((files - 50))
fi

scratch=$(mktemp -d)
server=
clients=
clean_up() {
    if [[ -n $server ]]; then kill -KILL "$server" 2>/dev/null || true; fi
    if [[ -n $clients ]]; then kill -KILL "$clients" 2>/dev/null || true; fi
    rm -rf "$scratch"
}
trap clean_up EXIT

die() {
    printf 'http.sh: %s\n' "$*" >&2
    exit 1
}

mkdir "$scratch/root"
printf '<!doctype html><title>Pawl</title><p>A pawl is the catch that lets a wheel turn forward only.\n' \
    >"$scratch/root/index.html"

# start TIMER [COMMAND...]: the server on the first CPU; under a command if there is one.
start() {
    local timer=$1
    shift
    : >"$scratch/stdout"
    taskset -c 0 "$@" "$examples/http_server" --port 0 --root "$scratch/root" --timer="$timer" --idle 10min \
        >"$scratch/stdout" 2>"$scratch/stderr" &
    server=$!
    port=
    while [[ -z $port ]]; do
        kill -0 "$server" 2>/dev/null || { cat "$scratch/stderr" >&2; die 'the server did not start'; }
        sleep 0.05
        port=$(sed -n 's/^listening on .*://p' "$scratch/stdout")
    done
}

stop() {
    kill -TERM "$server"
    wait "$server" || die "the server ended with $?"
    server=
}

# usage: sets ticks (CPU, hundredths of a second), switches and kilobytes of the server until now.
usage() {
    local stat status
    stat=$(<"/proc/$server/stat")
    read -r -a status <<<"${stat##*) }"
    ticks=$((status[11] + status[12]))
    switches=$(awk '/ctxt_switches/ { sum += $2 } END { print sum }' "/proc/$server/status")
    kilobytes=$(awk '/^VmRSS/ { print $2 }' "/proc/$server/status")
}

# load SECONDS: wrk on the second CPU. With one connection, client and server take turns, so wrk runs on the server's
# CPU; otherwise the time to wake another CPU would be measured.
load() {
    taskset -c $((connections > 1)) wrk -t1 -c"$connections" -d"${1}s" --latency "http://127.0.0.1:$port/" >"$scratch/wrk" ||
        die "wrk failed: $(<"$scratch/wrk")"
    ! grep -E 'Socket errors|Non-2xx' "$scratch/wrk" || die 'requests failed'
    requests=$(awk '/requests in/ { print $1 }' "$scratch/wrk")
}

# milliseconds PERCENTILE: of the last load.
milliseconds() {
    awk -v p="$1%" '$1 == p { v = $2; if (v ~ /us$/) f = 0.001; else if (v ~ /ms$/) f = 1; else f = 1000; print v * f }' \
        "$scratch/wrk"
}

hz=$(getconf CLK_TCK)
load=$(cut -d" " -f1 /proc/loadavg)

for connections in "${loads[@]}"; do
    for ((r = 0; r < repetitions; ++r)); do
        timers=(asio pawl)
        ((r % 2 == 0)) || timers=(pawl asio)
        for timer in "${timers[@]}"; do
            start "$timer"
            load 1 # warm
            usage
            before=($ticks $switches)
            load "$seconds"
            usage
            awk -v t="$timer" -v n="$requests" -v s="$seconds" -v c=$((ticks - before[0])) \
                -v w=$((switches - before[1])) -v p50="$(milliseconds 50)" -v p99="$(milliseconds 99)" -v hz="$hz" \
                'BEGIN { print t, n / s, 1e6 * c / hz / n, w / n, p50, p99 }' >>"$scratch/samples.$connections"
            stop
        done
    done

    # System calls, in separate runs. Only the traced calls are slowed down.
    for timer in asio pawl; do
        start "$timer" strace -f --seccomp-bpf -c -o "$scratch/strace" -e trace=timerfd_settime
        load 8
        kill -TERM "$(pgrep -P "$server")"
        wait "$server" || die "the server ended with $?"
        server=
        awk -v t="$timer" -v n="$requests" '$NF == "timerfd_settime" { s = $4 } END { print t, s + 0, n }' \
            "$scratch/strace" >>"$scratch/settime.$connections"
    done
done

# Idle connections.
for timer in asio pawl; do
    start "$timer"
    usage
    base=$kilobytes
    mkfifo "$scratch/input"
    : >"$scratch/ready"
    taskset -c 1 "$bench/pawl_bench_idle_clients" 127.0.0.1 "$port" "$idle" <"$scratch/input" >"$scratch/ready" &
    clients=$!
    exec {input}>"$scratch/input"
    until grep -q ready "$scratch/ready"; do
        kill -0 "$clients" 2>/dev/null || die 'the idle clients failed'
        sleep 0.1
    done
    sleep 20 # the limits of the first request expire, for which a stream may read its clock once more
    usage
    before=($ticks $switches)
    held=$kilobytes
    sleep "$rest"
    usage
    awk -v t="$timer" -v n="$idle" -v kb=$((held - base)) -v c=$((ticks - before[0])) -v w=$((switches - before[1])) \
        -v s="$rest" -v hz="$hz" 'BEGIN { print t, 1024 * kb / n, 100 * c / hz / s, w / s }' >>"$scratch/idle"
    exec {input}>&-
    wait "$clients" || die 'an idle connection was closed'
    clients=
    rm "$scratch/input"
    stop
done

# --- the report -----------------------------------------------------------------------------------

echo "# examples/http_server: pawl::tcp_stream against boost::beast::tcp_stream"
echo
echo "- date: $(date +%F)"
echo "- cpu: $(sed -n 's/^model name[^:]*: //p' /proc/cpuinfo | head -n 1), $(nproc) CPUs; server on one, wrk on another, on the same with one connection"
echo "- load before the run: $load"
echo "- compiler: $(c++ --version | head -n 1)"
echo "- $repetitions repetitions of $seconds s, a file of $(stat -c %s "$scratch/root/index.html") bytes"
echo
echo "Median (min - max); the ratio is that of neighbouring runs, asio / pawl, and pawl / asio for requests per second: above"
echo "1 pawl is better. The calls of timerfd_settime are those of a run of 8 s of its own under strace."
for connections in "${loads[@]}"; do
    echo
    echo "| connections: $connections | asio | pawl | ratio |"
    echo "|---|---|---|---|"
    awk '
        function median(list, n,    i, j, t) {
            for (i = 2; i <= n; ++i)
                for (j = i; j > 1 && list[j - 1] > list[j]; --j) { t = list[j]; list[j] = list[j - 1]; list[j - 1] = t }
            return n % 2 ? list[(n + 1) / 2] : (list[n / 2] + list[n / 2 + 1]) / 2
        }
        { n[$1]++; for (f = 2; f <= 6; ++f) v[$1, f, n[$1]] = $f }
        END {
            split("requests/s|CPU us/request|context switches/request|p50 ms|p99 ms", names, "|")
            for (f = 2; f <= 6; ++f) {
                line = "| " names[f - 1]
                for (k = 1; k <= 2; ++k) {
                    t = k == 1 ? "asio" : "pawl"
                    for (i = 1; i <= n[t]; ++i) list[i] = v[t, f, i]
                    m = median(list, n[t])
                    line = line sprintf(" | %.4g (%.4g - %.4g)", m, list[1], list[n[t]])
                }
                for (i = 1; i <= n["pawl"]; ++i) {
                    a = v["asio", f, i]; p = v["pawl", f, i]
                    list[i] = f == 2 ? p / a : (p > 0 ? a / p : 1)
                }
                m = median(list, n["pawl"])
                print line sprintf(" | **%.3f** (%.3f - %.3f) |", m, list[1], list[n["pawl"]])
            }
        }' "$scratch/samples.$connections"
    awk '{ calls[$1] = $2; n[$1] = $3 }
        END {
            printf "| timerfd_settime: calls, requests | %d, %d | %d, %d | ", calls["asio"], n["asio"], calls["pawl"], n["pawl"]
            if (calls["pawl"] == 0) print "|"
            else printf "**%.1f** |\n", calls["asio"] / n["asio"] / (calls["pawl"] / n["pawl"])
        }' "$scratch/settime.$connections"
done
echo
awk -v n="$idle" '{ m[$1] = $2; c[$1] = $3; w[$1] = $4 }
    END {
        printf "| %d idle connections | asio | pawl | ratio |\n|---|---|---|---|\n", n
        printf "| bytes each | %.0f | %.0f | **%.3f** |\n", m["asio"], m["pawl"], m["asio"] / m["pawl"]
        printf "| CPU at rest, %% of a core | %.2f | %.2f | |\n", c["asio"], c["pawl"]
        printf "| wake-ups/s at rest | %.2f | %.2f | |\n", w["asio"], w["pawl"]
    }' "$scratch/idle"
