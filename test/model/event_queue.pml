/* Copyright (c) 2026 The Pawl authors
 * SPDX-License-Identifier: BSL-1.0
 *
 * Purpose
 *   The wait of a timer of an event queue: who starts it, who moves it, and its block of memory. And the end of the
 *   timer: the mark, the last event, and the function and its destruction. In include/pawl/detail/queue/ these are arm(),
 *   move_wait(), unstall() and wait_ended() of timer_waits.hpp, and disarm(), destroy(), take(), goes_on() and end_run() of
 *   queue_core.hpp; queue_timer.hpp has the state. Each inline names the function that it models.
 *
 * Model
 *   One interval, in a queue with room for one tick. A thread runs the timers' context: it takes a wait that is due,
 *   frees its block, emits a tick or stalls the timer, and arms the wait again, until TICKS are emitted. The host takes
 *   events, emits the tick of a stalled timer, moves its wait, and runs the function, which may destroy its own timer.
 *   One more thread disarms the timer, and two may destroy it. expire_all() may end one wait before it is due, and
 *   one start of a wait may find no memory. Everything under the lock of the queue is one step, and so is a call of the
 *   wait; the lock of the wait is held for several.
 *
 * Properties
 *   the last is the last  push(): nothing of a timer comes behind its last event, of which there is one
 *   once destroyed        destroy(): when it has returned, the function does not run, and is destroyed, unless it is the
 *                         caller
 *   never gone            run(): the function is there while it runs; drop(): it is destroyed once
 *   nothing is left       host(): when the timer has ended, its function is destroyed and no wait of it is armed
 *   one block             start(): the block of the last wait is free, and no wait is armed
 *   never stuck           no process is blocked at the end: an armed timer has emitted all ticks
 *
 * Left out
 *   One-offs, whose only event is both a tick and the last one. The order of timers among each other. Time limits.
 *     The protocol of the wait (wait_protocol.pml).
 */

#define TICKS 3
#define ROOM 1

mtype = { armed, ending, ended }
mtype = { a_tick, a_last }
mtype = { no_wait, due, at_the_end_of_time }

mtype phase = armed;
chan slots = [TICKS + 2] of { mtype };
bool last_there;
bool running;                           /* queue_timer::run_by is a thread */
bool runs;                              /* the function is running, in fact */
bool dropped;

mtype wait = due;
bool block_used = true;                 /* by a wait, until its handler is called */
bool wait_locked;
byte there;                             /* ticks in the queue */
byte emitted;                           /* ticks */
bool stalled;                           /* for want of room or of memory */
bool adrift;                            /* stalled without a wait: the host starts the next one */
bool expired;                           /* expire_all() was called */
bool failed;                            /* there was no memory */
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

/* timer_waits::stop_wait() */
inline stop_wait() {
    lock_wait();
    wait = no_wait;
    unlock_wait()
}

/* event_buffer::emit() */
inline emit() {
    if
    :: emitted == TICKS                 /* no tick is due any more */
    :: emitted < TICKS && there < ROOM -> push(a_tick); there++; emitted++
    :: emitted < TICKS && there == ROOM -> stalled = true
    fi
}

/* timer_waits::due_now() */
inline due_now(when) {
    if
    :: stalled -> when = at_the_end_of_time
    :: else -> when = due
    fi
}

/* basic_waitable_timer::async_wait() */
inline start(when) {
    atomic {
        assert(!block_used);
        assert(wait == no_wait);
        block_used = true;
        wait = when
    }
}

/* timer_waits::arm_or_stall(). The caller is the one who starts the next wait. */
inline arm(when) {
#ifdef MUTANT_THE_DUE_TIME_IS_OLD
    due_now(when);
#endif
    lock_wait();
    if
#ifndef MUTANT_AN_ENDED_TIMER_IS_ARMED
    :: phase == armed ->
#else
    :: true ->
#endif
#ifndef MUTANT_THE_DUE_TIME_IS_OLD
       due_now(when);
#endif
       if
       :: start(when); unlock_wait()
       :: atomic { !failed -> failed = true; wait_locked = false };
          atomic {
              if
              :: phase == armed ->
                 stalled = true;
#ifndef MUTANT_A_TIMER_WITHOUT_MEMORY_IS_FORGOTTEN
                 adrift = true
#endif
              :: else
              fi
          }
       fi
    :: else -> unlock_wait()
    fi
}

/* timer_waits::move_wait(). A wait whose handler is on its way does not move. */
inline move_wait(when) {
    lock_wait();
    if
    :: phase == armed ->
       due_now(when);
       if
       :: atomic { wait != no_wait -> wait = when }
#ifdef MUTANT_THE_HOST_STARTS_A_WAIT
       :: atomic { wait == no_wait -> start(when) }
#else
       :: wait == no_wait
#endif
       fi
    :: else
    fi;
    unlock_wait()
}

/* timer_waits::unstall() */
inline unstall(when, starts) {
    atomic {
        stalled && there < ROOM ->
        starts = adrift;
        adrift = false;
        stalled = false;
        emit()
    };
    if
    :: starts -> arm(when)
#ifndef MUTANT_THE_HOST_DOES_NOT_MOVE_THE_WAIT
    :: else -> move_wait(when)
#else
    :: else
#endif
    fi
}

#define all_is_emitted (phase != armed || emitted == TICKS)

/* the end of the wait: timer_waits::wait_ended() */
active proctype context() {
    bool next;
    mtype when;
    do
    :: atomic {
           if
           :: wait == due && emitted < TICKS -> wait = no_wait
           :: wait != no_wait && !expired && emitted < TICKS -> expired = true; wait = no_wait
           fi
       };
       block_used = false;
       atomic {
           next = false;
           if
#ifndef MUTANT_A_MARKED_TIMER_EMITS
           :: phase == armed ->
#else
           :: phase != ended ->
#endif
              stalled = false;
              emit();
              next = true
           :: else
           fi
       };
       if
       :: next -> arm(when)
       :: else
       fi
    :: atomic { disarmed && destroyed == 2 && all_is_emitted -> context_over = true; break }
    od
}

active proctype disarmer() {
    bool mine;
    if
    :: true ->
       atomic {
           if
#ifndef MUTANT_DISARM_TWICE
           :: phase == armed -> phase = ending; stalled = false; push(a_last); mine = true
#else
           :: phase != ended -> phase = ending; stalled = false; push(a_last); mine = true
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
           stalled = false;
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
    :: atomic { phase != ended -> phase = ended; stalled = false }; stop_wait()
    :: atomic { phase == armed -> phase = ending; stalled = false; push(a_last) }; stop_wait()
    :: true
    fi
}

/* process(), take() */
active proctype host() {
    mtype what;
    bool taken;
    bool drops;
    bool starts;
    mtype when;
    do
    :: unstall(when, starts)
    :: atomic {
           slots ? what ->
           there = there - (what == a_tick);
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
    :: atomic { empty(slots) && disarmed && destroyed == 2 && all_is_emitted -> break }
    od;
    context_over;
    assert(phase == armed || (phase == ended && dropped && !running && wait == no_wait))
}
