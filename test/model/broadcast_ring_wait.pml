/* Copyright (c) 2026 The Pawl authors
 * SPDX-License-Identifier: BSL-1.0
 *
 * Purpose
 *   Writers that wait for room, of include/pawl/detail/feed/ring_core.hpp: reserve_or_wait() and tell_writers(), policy block.
 *   Each inline names the function that it models.
 *
 * Model
 *   Every access to shared memory is a step of its own. moved is its count and its flag, one word. Room is a number
 *   of slots: each reader adds one and notifies; each writer needs one. The wait is a futex: in one step, a writer
 *   falls asleep if moved still has the value that it saw.
 *
 * Properties
 *   no writer sleeps forever     the end states: as many slots are given as are needed
 *
 * Left out
 *   Spin's memory is sequentially consistent: see test/orders. broadcast_ring.pml has the conditions for room.
 */

#define WRITERS 2
#define READERS 3

byte room;
byte count;
bool waits;             /* the flag */
bool sleeps[WRITERS];

inline notify_all() {
    d_step {
        sleeps[0] = false;
#ifndef MUTANT_NOTIFY_ONE               /* the other writer has room, too */
        sleeps[1] = false
#endif
    }
}

inline tell_writers() {
    atomic {                            /* fetch_add(2) */
        told = waits;
#ifdef MUTANT_COUNT_BY_NOTIFIER         /* a writer sets the flag, and sleeps, in between */
        skip
#else
        count++
#endif
    }
    if
    :: told ->
#ifdef MUTANT_CLEARS_AFTER_NOTIFYING    /* the flag of a later wait */
        notify_all();
        waits = false
#elif defined MUTANT_DOES_NOT_NOTIFY
        waits = false
#else
        waits = false;                  /* fetch_and */
        notify_all()
#endif
    :: else
    fi
}

proctype reads() {
    bool told;

    atomic { room++ }                   /* move_claim() and so on */
    tell_writers()
}

inline reserve() {                      /* reserve() */
    atomic {
        if
        :: room > 0 -> room--; got = true
        :: else
        fi
    }
}

proctype writes(bit me) {               /* reserve_or_wait() */
    bool got, seen, seen_flag;
    byte seen_count;

    do
    :: reserve();
        if
        :: got -> break
        :: else
        fi;
        if
        :: seen ->                      /* moved_.wait() */
            atomic {
                if
                :: count == seen_count && waits == seen_flag -> sleeps[me] = true
                :: else
                fi
            }
            !sleeps[me]
        :: else
        fi;
#ifdef MUTANT_SLEEPS_UNMARKED
        atomic { seen_count = count; seen_flag = waits; seen = true }
#else
        atomic { waits = true; seen_count = count; seen_flag = true; seen = true }
#endif
#ifdef MUTANT_LOOKS_ONCE                /* there was room before the flag */
        atomic {
            if
            :: count == seen_count && waits == seen_flag -> sleeps[me] = true
            :: else
            fi
        }
        !sleeps[me]
#endif
    od;
}

init {
    byte i;
    atomic {
        run writes(0);
        run writes(1);
        i = 0;
        do
        :: i < READERS -> run reads(); i++
        :: else -> break
        od
    }
    _nr_pr == 1 -> assert(room == READERS - WRITERS)
}
