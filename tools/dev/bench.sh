#: bench [ARGUMENTS]                build and run the benchmark; its options: ./dev bench -h
#: bench backends [ARGUMENTS]       the same for the time structures alone, without a service
#: bench capacity [ARGUMENTS]       predict the cost of more timers and threads than fit on this machine, by a model that is
#:                                  checked against measurements; half an hour, 5 GB; ARGUMENTS: of bench/capacity.py;
#:                                  results go to build/capacity/
#: bench feed [ARGUMENTS]           compare pawl::broadcast_ring with hand-written broadcasts
#: bench peers [ARGUMENTS]          compare Pawl with Asio's timers, libuv, libevent and libev: timers, and small echo servers
#: bench queue [ARGUMENTS]          compare pawl::event_queue with hand-written queues
#: bench tails [ARGUMENTS]          latency of other work while a million timers expire, lateness under load, wake-ups of heartbeats
#: bench tails_picture [ARGUMENTS]  draw the output of bench tails --json; ARGUMENTS: of tools/tails_picture.py
#: bench locks                      count the locked instructions of each operation, instruction by instruction (x86-64)
#: bench timeout_memory             measure what an operation under a timeout allocates
#: bench compile_time [ARGUMENTS]   measure the cost of including Pawl; ARGUMENTS: of bench/compile_time.py
#: bench http [ARGUMENTS]           compare the HTTP server on Pawl with the same on Beast's stream; ARGUMENTS: of bench/http/http.sh

program=pawl_bench
case ${1-} in
    backends | feed | locks | peers | timeout_memory | queue | tails)
        program=pawl_bench_$1
        shift
        ;;
    capacity)
        shift
        need python3:python3
        build optimised g++ pawl_bench pawl_bench_capacity
        unlock
        mkdir -p build/capacity
        "$dir/bench/pawl_bench_capacity" --json build/capacity/counts.json
        "$dir/bench/pawl_bench" -w '^(churn|idle_rearm|jump|two_threads)$' -v '^pawl$' -n 1e3 -n 1e4 -n 1e5 -n 1e6 -n 1e7 \
            -r 3 --json build/capacity/costs.json >build/capacity/costs.md
        bench/capacity.py build/capacity/counts.json build/capacity/costs.json "$@"
        exit
        ;;
    tails_picture)
        shift
        # Debian's matplotlib depends on the system's default Boost, which conflicts with libboost1.81-dev.
        need gnuplot:gnuplot-nox python3:python3
        tools/tails_picture.py "$@"
        exit
        ;;
    compile_time)
        shift
        need g++:g++ clang++-19:clang-19 python3:python3 "libboost${system_boost:-1.81}-dev"
        bench/compile_time.py "$@"
        exit
        ;;
    http)
        shift
        need wrk:wrk strace:strace
        build optimised g++ pawl_bench_idle_clients http_server
        unlock
        bench/http/http.sh "$dir/examples" "$dir/bench" "$@"
        exit
        ;;
esac
build optimised g++ "$program"
unlock
"$dir/bench/$program" "$@"
