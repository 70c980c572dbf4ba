/* Copyright (c) 2026 The Pawl authors
 * SPDX-License-Identifier: BSL-1.0
 *
 * Purpose
 *   The end of a timer of an event queue: the mark, the last event, and the function and its destruction. In
 *   include/pawl/queue/queue_core.hpp these are disarm(), destroy(), wait_ended(), take(), goes_on() and end_run();
 *   queue_timer.hpp has the state. Each inline names the function that it models.
 *
 * Model
 *   One interval. A thread runs the timers' context: it expires the wait, emits a tick and arms the wait again, TICKS
 *   times. The host takes events and runs the function, which may destroy its own timer, until the timer has ended. One
 *   more thread disarms the timer, and two may destroy it. Everything under the lock of the queue is one step; the lock
 *   of the wait is held for two.
 *
 * Properties
 *   the last is the last  push(): nothing of a timer comes behind its last event, of which there is one
 *   once destroyed        destroy(): when it has returned, the function does not run, and is destroyed, unless it is the
 *                         caller
 *   never gone            run(): the function is there while it runs; drop(): it is destroyed once
 *   nothing is left       host(): when the timer has ended, its function is destroyed and no wait of it is armed
 *   never stuck           no process is blocked at the end
 *
 * Left out
 *   One-offs, whose only event is both a tick and the last one. Room, and timers that wait for it. The order of timers
 *     among each other. Time limits. The protocol of the wait (wait_protocol.pml).
 */

#define TICKS 2

mtype = { armed, ending, ended }
mtype = { a_tick, a_last }

mtype phase = armed;
chan slots = [TICKS + 2] of { mtype };
bool last_there;
bool running;                           /* queue_timer::runner is a thread */
bool runs;                              /* the function is running, in fact */
bool dropped;

bool wait_armed = true;
bool wait_locked;
byte ticks;
bool disarmed;
byte destroyed;
bool context_over;

inline lock_wait() { atomic { !wait_locked -> wait_locked = true } }
inline unlock_wait() { wait_locked = false }

inline push(what) {
    assert(!last_there);
    last_there = (what == a_last);
    slots ! what
}

inline drop() {
    atomic {
        assert(!dropped);
        assert(!runs);
        dropped = true
    }
}

/* queue_core::stop_wait() */
inline stop_wait() {
    lock_wait();
    wait_armed = false;
    unlock_wait()
}

/* queue_core::arm() */
inline arm() {
    lock_wait();
    if
#ifndef MUTANT_AN_ENDED_TIMER_IS_ARMED
    :: phase == armed -> wait_armed = true
    :: else
#else
    :: true -> wait_armed = true
#endif
    fi;
    unlock_wait()
}

/* the end of the wait: queue_core::wait_ended() */
active proctype context() {
    bool next;
    do
    :: atomic { wait_armed && ticks < TICKS && !wait_locked -> wait_armed = false; ticks++ };
       atomic {
           next = false;
           if
#ifndef MUTANT_A_MARKED_TIMER_EMITS
           :: phase == armed -> push(a_tick); next = true
#else
           :: phase != ended -> push(a_tick); next = true
#endif
           :: else
           fi
       };
       if
       :: next -> arm()
       :: else
       fi
    :: atomic { disarmed && destroyed == 2 -> context_over = true; break }
    od
}

active proctype disarmer() {
    bool mine;
    if
    :: true ->
       atomic {
           if
#ifndef MUTANT_DISARM_TWICE
           :: phase == armed -> phase = ending; push(a_last); mine = true
#else
           :: phase != ended -> phase = ending; push(a_last); mine = true
#endif
           :: else
           fi
       };
       if
#ifndef MUTANT_DISARM_LEAVES_THE_WAIT
       :: mine -> stop_wait()
#endif
       :: else
       fi
    :: true
    fi;
    disarmed = true
}

/* queue_core::destroy(), by other threads than the host's */
active [2] proctype destroyer() {
    bool drops;
    if
    :: true -> goto over
    :: true
    fi;
    atomic {
        if
        :: phase != ended ->
           phase = ended;
#ifndef MUTANT_DESTROY_DROPS_WHAT_RUNS
           drops = !running
#else
           drops = true
#endif
           ;
#ifndef MUTANT_A_SECOND_DESTROY_DOES_NOT_WAIT
           running = running || drops
#endif
        :: else
        fi
    };
#ifndef MUTANT_DESTROY_DOES_NOT_WAIT
    drops || !running;
#endif
    /* end_run() */
    if
    :: drops -> drop(); running = false
    :: else
    fi;
    stop_wait();
    assert(!runs && dropped);
over:
    destroyed++
}

/* inside the function: queue_core::destroy() and disarm() by the host */
inline function_ends_its_timer() {
    if
    :: atomic { phase != ended -> phase = ended }; stop_wait()
    :: atomic { phase == armed -> phase = ending; push(a_last) }; stop_wait()
    :: true
    fi
}

/* process(), take(), run_end */
active proctype host() {
    mtype what;
    bool taken;
    bool drops;
    do
    :: atomic {
           slots ? what ->
           taken = (phase != ended);
           if
           :: taken ->
              running = true;
              if
              :: what == a_last -> phase = ended
              :: else
              fi
           :: else
           fi
       };
       if
       :: taken ->
          if
          :: what == a_tick ->
             atomic { assert(!dropped); runs = true };
             function_ends_its_timer();
             atomic { assert(!dropped); runs = false }
          :: else
          fi;
          /* goes_on() */
#ifndef MUTANT_A_FUNCTION_GOES_ON_IN_TWO_STEPS
          atomic {
              drops = (phase == ended);
              if
              :: !drops -> running = false
              :: else
              fi
          };
#else
          drops = (phase == ended);
          if
          :: !drops -> running = false
          :: else
          fi;
#endif
          /* end_run() */
          if
#ifndef MUTANT_RESTS_BEFORE_THE_DROP
          :: drops -> drop(); running = false
#else
          :: drops -> running = false; drop()
#endif
          :: else
          fi
       :: else
       fi
    :: atomic { empty(slots) && disarmed && destroyed == 2 -> break }
    od;
    context_over;
    assert(phase == armed || (phase == ended && dropped && !running && !wait_armed))
}
