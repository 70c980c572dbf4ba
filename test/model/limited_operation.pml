/* Copyright (c) 2026 The Pawl authors
 * SPDX-License-Identifier: BSL-1.0
 *
 * Purpose
 *   Which parties hold an operation under a limit, and which invokes its handler:
 *   include/pawl/detail/limit/limited_operation.hpp and limit_parties.hpp, with the parts of service/wait_ledger.hpp
 *   (withdraw) and wait/wait_state.hpp. Each inline names the function that it models.
 *
 * Model
 *   One operation. It is started by a thread outside of the handler's executor, which runs one function at a time, or
 *   by that executor itself. It completes there, by itself or when it is signalled, inside the signal or later; or in
 *   its initiating function; or in a third thread, if it needs no executor; or its handler is destroyed uncalled. The
 *   limit may be lifted, and be moved once while it is due. On a timer lent to cancel_after, it is reached instead of
 *   lifted. Its wait is ended on the executor, or destroyed anywhere when the context is shut down; then the functions in the executor's queue are destroyed, too. The caller cancels at
 *   any time after the start, on the executor. Each access to `parties` is one step, and so is everything under the
 *   lock of the shard.
 *
 * Properties
 *   exactly once          deliver(), destroy(); the end of init
 *   no freed memory       touch(), at every access
 *   handler's executor    deliver(): no other function of the executor is running
 *   emitted in time       emit(): no thread is connecting the operation to the signal at that time
 *   emitted once          the end of init
 *   not lost, never stuck no process is blocked at the end, although an operation may complete only
 *                         if it is signalled
 *
 * Left out
 *   The caller's timer and its shard, which orders/limited_operation_test.cpp covers, and lack of memory.
 */

#define OPERATION 1
#define WAIT      2
#define START     4
#define OUTER     8
#define EVERYBODY 15
#define FIRED     16

mtype = { armed, due, cancelled, started, idle }     /* wait_phase */

/* limit_parties */
byte parties = OPERATION | WAIT | START;

/* limited_operation */
bool alive = true;
bool stored;            /* result_ */
byte verdict;           /* 0 none, 1 the limit, 2 the caller */

/* its wait, under the lock of the shard */
mtype phase = armed;
bool carried;

/* the operation itself */
bool listening;         /* its initiating function has connected it to the signal */
bool pending = true;    /* its handler has neither been called nor destroyed */
bool wants_out;         /* it was signalled, and will complete */
bool obeys;
bool inside;            /* in the signal */
bool early;             /* it completes in its initiating function */
bool elsewhere;         /* it completes in a thread of its own */
bool waits;             /* it completes only if it is signalled */
bool lent;              /* any_end_counts */

/* the executor of the handler */
bool busy;
bool initiating = true; /* a thread is in the initiating function */
bool late;              /* done_late is queued */
bool shut_down;

bool cancels;           /* the caller will cancel */
bool moves = true;      /* the limit may be moved */
bool launched;          /* launch() has returned, or has passed the rest to the executor */

/* ghost */
bool delivered;
bool destroyed;
byte signals;           /* of the limit */

inline touch() { assert(alive) }

inline invoke() {                       /* deliver */
    assert(!delivered && !destroyed);
    alive = false;
    delivered = true
}

inline destroy() {                      /* destroy */
    assert(!delivered && !destroyed);
    alive = false;
    destroyed = true
}

inline leave(who, may_deliver) {        /* leave, limit_parties::leave */
    atomic {
        touch();
        before = parties & EVERYBODY;
        assert((before & (who)) == (who));
        parties = parties - (who);
        if
        :: before == (who) && stored && may_deliver -> assert(busy || elsewhere); invoke()
        :: before == (who) && !(stored && may_deliver) -> destroy()
        :: before != (who)
        fi;
        before = 0
    }
}

inline withdraw() {                     /* wait_ledger::withdraw; with: the wait has no user any more */
    if
#ifdef MUTANT_CARRIED_IS_WITHDRAWN      /* its carrier is queued, and finds freed memory */
    :: phase == armed -> phase = idle; with = WAIT
#else
    :: phase == armed && !carried -> phase = idle; with = WAIT
    :: phase == armed && carried -> phase = cancelled
#endif
    :: phase == due -> phase = cancelled
    :: phase == cancelled || phase == started || phase == idle
    fi
}

inline leave_with_wait() {              /* leave_with_wait, limit_parties::has */
    touch();
    wait_is_there = ((parties & WAIT) != 0);
    atomic {
        with = 0;
        if
        :: wait_is_there -> touch(); withdraw()
        :: else
        fi;
        wait_is_there = false
    }
}

inline operation_ended() {              /* operation_ended, limit_parties::is_all */
    leave_with_wait();
    atomic {
        touch();
        if
#ifdef MUTANT_DELIVERS_WITH_OTHERS_LEFT /* another party still holds on to the object */
        :: true -> invoke()
#else
        :: (parties & EVERYBODY) == (OPERATION | with) -> assert(busy || elsewhere); invoke()
        :: (parties & EVERYBODY) != (OPERATION | with) ->
#ifdef MUTANT_PARKS_AFTER_IT_LEFT       /* the last party to leave finds no result */
            skip
#else
            stored = true
#endif
#endif
        fi
    }
    if
    :: !delivered ->
        leave((OPERATION | with), true);
#ifdef MUTANT_PARKS_AFTER_IT_LEFT
        stored = true
#endif
    :: else
    fi;
    with = 0
}

inline operation_destroyed() {          /* operation_destroyed */
    leave_with_wait();
    leave((OPERATION | with), false);
    with = 0
}

inline emit() {                         /* cancellation_signal::emit */
    atomic {
        touch();
        assert(!initiating);
        if
        :: pending && listening && obeys && inside -> pending = false; completes = true
        :: pending && listening && obeys && !inside -> wants_out = true
        :: !(pending && listening && obeys)
        fi
    }
    if
    :: completes -> completes = false; operation_ended()
    :: else
    fi
}

inline judge(who) {                     /* judge */
    verdict = (verdict == 0 -> who : verdict)
}

inline wait_ended() {                   /* wait_ended, of a wait that counts as reached; limit_parties::fire */
    atomic {
        touch();
        before = parties;
        parties = parties | FIRED
    }
    if
    :: before & OPERATION ->
        judge(1);
        if
#ifdef MUTANT_EMITS_DURING_THE_START    /* another thread connects the operation at that moment */
        :: true
#else
        :: !(before & START)
#endif
            -> before = 0; signals++; emit()
#ifndef MUTANT_EMITS_DURING_THE_START
        :: before & START -> before = 0
#endif
        fi
    :: else -> before = 0
    fi;
    leave(WAIT, true)
}

inline run_late() {                     /* done_late, limit_parties::fired_during_start */
    touch();
    atomic { before = parties }
    if
#ifndef MUTANT_START_IGNORES_FIRED      /* the signal came before the operation could listen, and is lost */
    :: (before & FIRED) && (before & OPERATION) -> before = 0; signals++; emit()
#endif
    :: else -> before = 0
    fi;
    leave(START, true)
}

/* --- the threads ------------------------------------------------------------------------------- */

proctype initiates() {                  /* launch, starting_party::done, limit_parties::leave_start */
    byte before, with;
    bool wait_is_there, completes;

    listening = true;
    if
    :: early -> pending = false; operation_ended()
    :: else
    fi;
    atomic {
        initiating = false;
        touch();
        if
        :: parties == (OPERATION | WAIT | START) -> parties = OPERATION | WAIT
        :: else -> late = true
        fi;
        launched = true
    }
}

proctype third_thread() {
    byte before, with;
    bool wait_is_there;

    if
    :: atomic { pending && launched && (!waits || wants_out) -> pending = false }
        operation_ended()
    :: !pending && launched
    fi
}

proctype shard() {                      /* the limit falls due, is moved, and is lifted */
    do
    :: atomic { phase == armed && !shut_down -> phase = due; carried = true }
    :: atomic { phase == due && moves && !shut_down -> phase = armed; moves = false }
    :: atomic { (phase == armed || phase == due) && (lent || !waits) && !shut_down -> phase = cancelled; carried = true }
    :: atomic { phase == armed && !carried && shut_down -> phase = cancelled; carried = true }
    :: delivered || destroyed -> break
    od
}

proctype executor() {
    byte before, with;
    bool wait_is_there, completes;

    do
    :: atomic { carried && !shut_down && !busy ->                   /* wait_carrier */
            busy = true;
            assert(alive);
            if
            :: phase == armed -> carried = false; busy = false      /* park */
            :: phase == idle -> assert(false)
            :: phase == due -> phase = started; carried = false; goto reached
#ifdef MUTANT_LENT_TIMER_LIFTS          /* the operation waits for a signal that does not come */
            :: phase == cancelled -> phase = started; carried = false; goto is_over
#else
            :: phase == cancelled && lent -> phase = started; carried = false; goto reached
            :: phase == cancelled && !lent -> phase = started; carried = false; goto is_over
#endif
            fi
        }
    :: atomic { pending && launched && !elsewhere && (!waits || wants_out) && !shut_down ->
            pending = false;
            busy = true
        }
        operation_ended();
        busy = false
    :: atomic { late && !shut_down -> late = false; busy = true }
        run_late();
        busy = false
    :: atomic { cancels && launched && !shut_down ->
            cancels = false;
            if
            :: !alive -> goto next                                  /* outer_link was cut */
            :: else -> busy = true; before = parties
            fi
#ifndef MUTANT_OUTER_IS_NO_PARTY        /* the operation may complete in the signal, and free it */
            ;
            parties = parties | OUTER                               /* forward, limit_parties::enter */
#endif
        }
        if
        :: before & OPERATION -> judge(2); emit()
        :: else
        fi;
        before = 0;
#ifdef MUTANT_OUTER_IS_NO_PARTY
        touch();
#else
        leave(OUTER, true);
#endif
        busy = false
    :: atomic { shut_down && carried && phase == armed -> carried = false }
    :: atomic { shut_down && carried && phase != armed -> carried = false; phase = started; busy = true }
        leave(WAIT, false);                                         /* wait_destroyed */
        busy = false
    :: atomic { shut_down && late -> late = false; busy = true }
        leave(START, false);                                        /* ~starting_party */
        busy = false
    :: atomic { shut_down && pending && launched -> pending = false; busy = true }
        operation_destroyed();
        busy = false
    :: (delivered || destroyed) && !carried && !late -> break
    reached:
        wait_ended();
        busy = false;
        goto next;
    is_over:
        leave(WAIT, true);
        busy = false;
    next:
        skip
    od
}

init {
    atomic {
        if :: obeys = true :: obeys = false fi;
        if :: inside = true :: inside = false fi;
        if :: early = true :: early = false fi;
        if :: !early -> elsewhere = true; run third_thread() :: true fi;
        if :: obeys && !early -> waits = true :: true fi;
        if :: cancels = true :: cancels = false fi;
        if :: lent = true :: lent = false fi;
        run initiates();
        run shard();
        run executor()
    }
    if
    :: true -> atomic { launched -> shut_down = true }
    :: true
    fi
    atomic {
        (delivered || destroyed) && launched && !carried && !late;
        assert(delivered != destroyed);
        assert(signals <= 1);
        assert(shut_down || delivered);
        assert(!alive)
    }
}
