#: soak [--minutes N] [--seed S] [--preset P] [--compiler C]
#:                                  run everything at once in real time, with faults: allocations that fail, too few descriptors,
#:                                  a clock that is set, processes that are stopped, CPUs that are taken away, a slow log;
#:                                  beside it the HTTP server with hostile clients. N: 1 (default), or any number from 0.1 on.
#:                                  The result also goes to build/evidence/soak.json
#:                                  P: as for test, optimised (default); C: g++ (default), clang++-19, ...

minutes=1 seed=$((SRANDOM % 1000000)) preset=optimised compiler=g++
take_options "minutes seed preset compiler" "$@"
((${#rest[@]} == 0)) || does_not_know "${rest[0]}"
[[ $minutes =~ ^([1-9][0-9]{0,4}(\.[0-9]+)?|0\.[1-9][0-9]*)$ ]] || misused "not a number of minutes from 0.1 on: $minutes"
[[ $seed =~ ^[0-9]{1,15}$ ]] || misused "not a seed, which is a number: $seed"
preset_start "$preset"
need python3:python3 taskset:util-linux
build "$preset" "$compiler" soak http_server http_clients
unlock
commit=$(git describe --always --dirty --abbrev=7) # later there may be another one
export ASAN_OPTIONS="quarantine_size_mb=8 ${ASAN_OPTIONS-}"

programs=$dir/examples
scratch=$(mktemp -d)
set -m # each of these is a group of processes
own=()
clean_up() {
    local each
    for each in "${own[@]}"; do kill -KILL -- "-$each" 2>/dev/null || true; done # also what is stopped
    wait 2>/dev/null || true
    rm -rf "$scratch"
}
trap clean_up EXIT
trap 'exit 130' INT
trap 'exit 143' TERM HUP
RANDOM=$((seed % 32768))
pause() { sleep "$(printf '%d.%03d' $(($1 / 1000)) $(($1 % 1000)))"; }

# The server writes its log to a pipe that is read slowly.
mkfifo "$scratch/log"
while head -c 10000 && pause $((RANDOM % 300)); do :; done <>"$scratch/log" >/dev/null &
own+=($!)
mkdir "$scratch/root" && printf 'hello\n' >"$scratch/root/index.html"
"${steady[@]}" "$programs/http_server" --port 0 --root "$scratch/root" --header-timeout 3s --body-timeout 3s --idle 60s \
    --write-timeout 60s --threads 2 --access-log "$scratch/log" >"$scratch/stdout" 2>"$scratch/stderr" &
server=$!
own+=("$server")
port=
until port=$(sed -n 's/^listening on .*://p' "$scratch/stdout") && [[ -n $port ]]; do
    kill -0 "$server" 2>/dev/null || die "the server does not start: $(<"$scratch/stderr")"
    sleep 0.05
done

"${steady[@]}" "$dir/test/soak/soak" --minutes "$minutes" --seed "$seed" --beside "$server" --result "$scratch/result" &
soak=$!
own+=("$soak")

# Only "early", wrong answers and errors count: how late the server is depends on what happens to it here.
clients() {
    local n=0
    while kill -0 "$soak" 2>/dev/null; do
        "$programs/http_clients" --port "$port" --header-timeout 3s --body-timeout 3s --tolerance 60s --slow-headers 30 \
            --mute 10 --slow-bodies 10 --vanishing 10 --ordinary 10 --length 2s --seed $((seed + n)) >"$scratch/clients" 2>&1 ||
            { printf 'dev: the clients of the HTTP server:\n' && cat "$scratch/clients" && return 1; } >&2
        echo $((n += 60)) >"$scratch/connections"
    done
}
clients &
clients=$!
own+=("$clients")

# Stops a process for a moment; now and then takes a CPU away for some seconds.
disturb() {
    local stalls=0 stolen=0 thief= target
    while :; do
        pause $((1500 + RANDOM % 4000))
        target=$soak
        ((RANDOM % 3)) || target=$server
        kill -STOP "$target" 2>/dev/null || return 0
        pause $((100 + RANDOM % 500))
        kill -CONT "$target" 2>/dev/null || return 0
        if ((++stalls % 3 == 0)) && { [[ -z $thief ]] || ! kill -0 "$thief" 2>/dev/null; }; then
            timeout --foreground $((1 + RANDOM % 4)) taskset -c $((RANDOM % $(nproc))) bash -c 'while :; do :; done' &
            thief=$!
            : $((++stolen))
        fi
        echo "stalls=$stalls stolen_cpus=$stolen" >"$scratch/disturbances"
    done
}
disturb &
disturber=$!
own+=("$disturber")

status=0
wait -f "$soak" || status=$? # -f: not when it is stopped
{ kill -KILL -- "-$disturber" && wait -f "$disturber" || true; } 2>/dev/null # first: it stops the server
kill -CONT "$server"
wait "$clients" || status=1
kill -TERM "$server"
wait -f "$server" || { status=1 && printf 'dev: the server: %s\n' "$(<"$scratch/stderr")" >&2; }
[[ -e $scratch/result ]] || die "the soak has ended early, with status $status."
mapfile -t found <"$scratch/result"
disturbances=$(cat "$scratch/disturbances" 2>/dev/null || echo stalls=0 stolen_cpus=0)
# shellcheck disable=SC2086
evidence soak "${found[@]}" $disturbances "http_connections=$(cat "$scratch/connections" 2>/dev/null || echo 0)" \
    "passed=$( ((status == 0)) && echo true || echo false)"
printf 'dev: soak: %s, %s connections of HTTP clients: %s\n' "$disturbances" "$(cat "$scratch/connections" 2>/dev/null || echo 0)" \
    "$( ((status == 0)) && echo passed || echo FAILED)"
exit "$status"
