/* Copyright (c) 2026 The Pawl authors
 * SPDX-License-Identifier: BSL-1.0
 *
 * Purpose
 *   The protocol of one wait, from its start to its handler: include/pawl/detail/wait/wait_state.hpp,
 *   wait/wait_handler.hpp, service/wait_ledger.hpp, service/shard.hpp and
 *   service/dispatcher.hpp (turn, empty). Each inline names the function that it models.
 *
 * Model
 *   One timer, two waits. One or two threads run the context; each is the driver when it wakes up and a runner when
 *   it takes a unit. Another thread runs another executor, to which waits that are not direct are handed over, and
 *   where a carrier may be destroyed instead of run. Two threads cancel: one by a cancellation slot, if the wait has
 *   one; the other one owns the timer, starts the second wait, and destroys the timer. One re-arms. The first handler
 *   may start the second wait, or destroy the timer, too. The context ends when everything is done, or at any time.
 *   Everything under the shard's lock is one atomic step; the rest is interleaved.
 *   A wait's number stands for its address with a generation: a block that was freed and serves another wait has
 *   another number, so that any use of a stale pointer is caught.
 *   Time: a wake-up makes the timer due if it is filed; a re-arm or a new wait makes it wait again.
 *
 *   check.sh also explores the variant ALARM: one alarm (alarm.hpp), whose wait is number 0. Its owner arms it some
 *   times, may disarm it, and ends it at any time, also after the context; so may its function. Another thread disarms
 *   it, another one calls expire_all(). Two threads run carriers, in the context or elsewhere, so that one may have
 *   arrived and not begun while the alarm is armed again and falls due again.
 *
 * Properties
 *   exactly once          outcome() and the end of init: each wait that was started has one
 *   cancel's answer       outcome(): aborted if and only if a cancel has counted the wait;
 *                         shard_cancel(): it counts each wait whose handler has not begun (P4)
 *   never early           arrive()
 *   no freed memory       touch(), of waits; the assertions on timer_alive and shard_alive
 *   never stuck           no process is blocked at the end
 *   of an alarm           carrier_begins(): the function is called at most once for an arming, not after a disarm that
 *                         has counted, not after the end of the alarm, not early, and is told why it is called;
 *                         owns_context(): it is called; free_alarm() and the end of init: its block is freed once
 *
 * Left out
 *   The driver is assumed to wake up while a wait is armed: wakeup.pml shows that. More than one wait per turn,
 *   backlogs, set-backs, expire_all() of timers, rings, and the driver's lack of memory (withdraw).
 */

#define WAITS 2
#define ALL WAITS

mtype = { idle, armed, due, cancelled, started }     /* wait_phase */
mtype = { unborn, alive, freed }                     /* the block of a wait */

/* wait_operation */
mtype memory[WAITS] = unborn;
mtype phase[WAITS] = idle;
bool carried[WAITS];
bool owned[WAITS];    /* owner() is the timer */
bool has_result[WAITS];
bool direct[WAITS];
bool linked[WAITS];   /* it and its cancellation slot point at each other */

/* timer_core */
bool timer_alive = true;
bool listed[WAITS];   /* in its list, in the order of their numbers */
bool one_armed;       /* user, the two facts of wait_ledger */
bool unobserved;
bool filed;
bool left;            /* it is not due yet */

/* shard */
bool shard_alive = true;
byte users = 1;
chan due_queue = [WAITS] of { byte, bool };
byte live;
byte armed_count;
byte runners;
byte untold;
bool closed;
bool draining;
bool late[WAITS];     /* late_ */

/* the contexts */
byte units;                             /* queued on the context */
chan elsewhere = [WAITS] of { byte };   /* carriers, on the other executor */
bool stopping;
byte running = 1;
bool context_alive = true;
bool orderly;                           /* the context ends when all is done */

/* knowledge and actions of the users */
byte at_timer = 1;                      /* threads that still use the timer; then it may go */
bool leaving;                           /* a user destroys the timer */
bool second;                            /* the second wait was started, or will not be */

/* ghosts: the promises */
bool begun[WAITS];                      /* it has reached a thread that invokes or destroys the handler */
bool counted[WAITS];                    /* a cancel has counted it as ended by that call */
bool shut_down[WAITS];                  /* the end of the context has cancelled it */
byte answers;                           /* the sum of the cancels' results, minus the waits aborted */

/* scratch, in atomic steps only */
hidden byte i;
hidden byte n;
hidden byte flag;

#ifdef ALARM
#define ARMINGS 2

/* alarm_wait */
byte holds = 1;
bool condemned;
bool takes_code;

/* knowledge of the users */
byte armings;
bool ended;                             /* the alarm has gone, or is about to */
bool delivers;                          /* shutdown_policy::deliver */

/* ghosts: the promises */
bool promised;                          /* the function is to be called */
bool told;                              /* with a code */

#define OBSERVED(w) true                /* wait_operation::shared */
#else
#define OBSERVED(w) linked[w]
#endif

inline touch(w) { assert(memory[w] == alive) }

inline lock() { assert(shard_alive) }

inline drop_user() {                    /* shard::user_leaves, dispatcher::follow_up */
    assert(users > 0);
    users--;
    if
    :: users == 0 -> shard_alive = false
    :: else
    fi
}

/* --- wait_ledger ------------------------------------------------------------------------------ */

inline push(w, lone) {                  /* due_queue::push */
    assert(len(due_queue) < live);      /* room invariant of due_queue.hpp */
    due_queue!w, lone
}

inline fall_due_or_cancel(w, to, lone) { /* wait_state::fall_due, cancel; and the entry, if one is made */
    phase[w] = to;
    if
    :: !carried[w] -> carried[w] = true; push(w, lone)
    :: else
#ifdef MUTANT_CANCEL_FORGETS_CARRIER    /* a cancel of a due wait makes an entry of its own */
        -> if
           :: to == cancelled -> due_queue!w, lone
           :: else
           fi
#endif
    fi
}

inline detach(w) {                      /* wait_ledger::detach */
    assert(timer_alive && owned[w]);
    listed[w] = false;
    one_armed = false;
    unobserved = false
}

inline set_result(w) {                  /* wait_operation::set_result */
    has_result[w] = true;
    owned[w] = false
}

inline unlink_slot(w) { linked[w] = false } /* wait_ledger::unlink_slot */

inline cancel_wait(w) {                 /* wait_ledger::cancel(wait_operation&) */
    touch(w);
    assert(phase[w] == armed || phase[w] == due);
    if
    :: phase[w] == armed -> armed_count--
    :: else
    fi;
    fall_due_or_cancel(w, cancelled, false);
    detach(w);
    set_result(w)
}

inline cancel_waits(limit, count) {     /* wait_ledger::cancel(timer_core&) */
    count = 0;
    i = 0;
    if
    :: one_armed && (unobserved
#ifdef MUTANT_LONE_CANCEL_OF_SLOTTED    /* the entry says "cancelled" though a slot points at the wait */
                     || true
#endif
                    ) ->
        do
        :: !listed[i] -> i++
        :: else -> break
        od;
        push(i, true);                  /* the wait itself is not read */
        listed[i] = false;
        one_armed = false;
        unobserved = false;
        armed_count--;
        counted[i] = true;
        count = 1
    :: else ->
        do
        :: i < WAITS && listed[i] && count < limit ->
            assert(!counted[i]);
            cancel_wait(i);
            counted[i] = true;
            count++;
            i++
        :: i < WAITS && !(listed[i] && count < limit) -> i++
        :: i == WAITS -> break
        od
    fi
}

inline arrive(w, own) {                 /* wait_ledger::arrive */
    touch(w);
    assert(carried[w]);
    if
    :: phase[w] == armed || phase[w] == idle -> own = false
    :: else ->
        assert(phase[w] == due || phase[w] == cancelled);
        assert(phase[w] == cancelled || !left);  /* never early (P1) */
        phase[w] = started;
#ifndef MUTANT_ALARM_ARRIVAL_LEAVES_CARRIED
        carried[w] = false;
#endif
        unlink_slot(w);
        if
        :: owned[w] -> detach(w)
        :: else
        fi;
        live--;
#if defined ALARM && !defined MUTANT_ALARM_ARRIVAL_WITHOUT_HOLD  /* the end of the alarm frees it meanwhile */
        holds++;
#endif
        own = true
    fi
}

inline park(w) {                        /* wait_state::park */
    assert(carried[w] && (phase[w] == armed || phase[w] == idle));
    carried[w] = false
}

inline next(w) {                        /* wait_ledger::next */
    due_queue?w, flag;
    touch(w);
    if
    :: flag ->
        assert(phase[w] == armed && !carried[w]);  /* the entry is its only carrier */
        phase[w] = cancelled;
        carried[w] = true;
        set_result(w)
    :: else
    fi
}

inline arrive_or_park(w, own) {         /* wait_ledger::arrive_or_park */
    arrive(w, own);
    if
    :: own
#ifndef MUTANT_ALARM_PARKED_STAYS_LIVE
    :: !own && phase[w] == idle -> live--; park(w)
    :: !own && phase[w] != idle -> park(w)
#else
    :: !own -> park(w)
#endif
    fi
}

inline ledger_start(w) {                /* wait_ledger::start */
    assert(phase[w] != armed && phase[w] != due);
    phase[w] = armed;
    flag = !listed[0] && !listed[1];    /* alone */
    listed[w] = true;
    owned[w] = true;
    one_armed = flag;
    unobserved = flag && !OBSERVED(w);
    if
#ifndef MUTANT_ALARM_CARRIED_COUNTS_TWICE
    :: carried[w]                       /* the entry of an alarm */
#endif
    :: !carried[w] -> live++
    fi;
    armed_count++;
    filed = true
}

#ifdef ALARM
inline disarm_wait(w, done) {           /* wait_ledger::disarm */
    touch(w);
    done = phase[w] == armed || phase[w] == due;
    if
    :: done ->
        if
        :: phase[w] == armed -> armed_count--
        :: else
        fi;
        if
#ifndef MUTANT_ALARM_DISARM_FORGETS_ENTRY   /* its entry still takes room */
        :: carried[w]
        :: !carried[w] -> live--
#else
        :: live--
#endif
        fi;
#ifdef MUTANT_ALARM_DISARM_TAKES_CARRIER    /* as if its entry were gone */
        carried[w] = false;
#endif
        phase[w] = idle;
        detach(w);
        promised = false
    :: else
    fi
}

inline condemn(w) {                     /* wait_ledger::condemn, wait_state::condemn */
    disarm_wait(w, flag);
    if
#ifndef MUTANT_ALARM_CONDEMN_FREES_CARRIED
    :: carried[w] ->
        phase[w] = cancelled;
        set_result(w);
        condemned = true
    :: !carried[w] ->
#else
    :: true ->
#endif
#ifndef MUTANT_ALARM_CONDEMN_LEAVES_STARTED /* a thread has arrived, and calls the function of an alarm that has gone */
        phase[w] = idle
#endif
    fi;
    promised = false
}

inline carrier_begins(w, calls, leaves) { /* shard::begin, wait_state::begin */
    touch(w);
    if
#ifndef MUTANT_ALARM_BEGINS_UNSEEN      /* the alarm may be armed again, or another thread has begun */
    :: phase[w] == started ->
#else
    :: true ->
#endif
#ifndef MUTANT_ALARM_BEGUN_STAYS_STARTED
        phase[w] = idle;
#endif
        if
#ifndef MUTANT_ALARM_CONDEMNED_IS_CALLED
        :: condemned -> leaves++; calls = false
        :: !condemned ->
#else
        :: true ->
#endif
            assert(promised);           /* once, and neither disarmed nor gone */
            promised = false;
            assert(has_result[w] == told && (told || !left))
        fi
    :: else -> calls = false
    fi
}
#endif

inline finish(w, disarms) {             /* wait_ledger::finish */
#ifdef ALARM
    if
    :: disarms || !takes_code -> disarm_wait(w, flag)
    :: else -> cancel_wait(w); told = true
    fi
#else
    cancel_wait(w);
    shut_down[w] = true
#endif
}

/* --- shard: under the lock --------------------------------------------------------------------- */

inline claim_runners(count) {           /* shard::settle, runner_pool::claim */
    count = 0;
    do
    :: !closed && runners < len(due_queue) -> runners++; count++
    :: else -> break
    od
}

inline announce(count) {                /* shard::settle */
    if
    :: count > 0 -> untold++
    :: else
    fi
}

inline shard_start(w, ok) {             /* shard::start */
    lock();
    if
    :: closed ->
        users++;
        unlink_slot(w);
        late[w] = true;
        ok = false
    :: else ->
        if
        :: linked[w] -> users++         /* the link */
        :: else
        fi;
        ledger_start(w);
        left = left || flag;      /* the waits of a timer share its expiry */
        ok = true
    fi
}

inline shard_cancel(limit, count) {     /* shard::cancel(timer_core&); count: the units to queue */
    lock();
    assert(timer_alive);
    cancel_waits(limit, n);
    answers = answers + n;
    /* P4: no wait is left, or the requested number was cancelled. */
    assert(n == limit || (!listed[0] && !listed[1]));
    i = 0;
    do
    :: i < WAITS ->
        assert(n == limit || memory[i] != alive || counted[i] || shut_down[i] ||
               phase[i] == idle || begun[i]);
        i++
    :: else -> break
    od;
    claim_runners(count);
    announce(count)
}

inline shard_cancel_link(w, count) {    /* shard::cancel(slot_link&) */
    lock();
    count = 0;
    if
    :: linked[w] ->
        touch(w);
        if
        :: phase[w] == armed || phase[w] == due ->
            assert(!counted[w]);
            cancel_wait(w);
            counted[w] = true;
            answers++;
            claim_runners(count);
            announce(count)
        :: else -> assert(counted[w] || shut_down[w])
        fi
    :: else -> assert(begun[w] || memory[w] == freed)   /* P4 */
    fi
}

inline shard_forget(w) {                /* shard::forget */
    lock();
    if
    :: linked[w] -> touch(w); linked[w] = false
    :: else
    fi;
    drop_user()
}

inline shard_rearm() {                  /* shard::rearm, wait_ledger::pull_back */
    lock();
    assert(timer_alive);
    if
    :: (listed[0] || listed[1]) && !closed ->
        if
        :: one_armed
        :: else ->
            i = 0;
            n = 0;
            do
            :: i < WAITS && listed[i] ->
                touch(i);
                n++;
                if
                :: phase[i] == due ->
                    assert(carried[i]);
                    phase[i] = armed;   /* wait_state::pull_back */
#ifdef MUTANT_SECOND_CARRIER            /* the queued carrier is forgotten */
                    carried[i] = false;
#endif
                    armed_count++
                :: else
                fi;
                i++
            :: i < WAITS && !listed[i] -> i++
            :: i == WAITS -> break
            od;
            one_armed = (n == 1);
#ifdef MUTANT_PULLED_BACK_IS_UNOBSERVED /* its carrier points at it */
            unobserved = (n == 1);
#else
            unobserved = false
#endif
        fi;
        filed = true;
        left = true
    :: else
    fi
}

inline shard_release_timer() {          /* shard::leave(timer_core&) */
    lock();
    assert(!listed[0] && !listed[1]);
#ifndef MUTANT_RELEASE_LEAVES_FILED     /* the time structure keeps a destroyed timer */
    filed = false;
#endif
    timer_alive = false;
    drop_user()
}

inline shard_collect(claimed, count) {  /* shard::collect with claim, wait_ledger::fall_due */
    lock();
    if
    :: filed && !closed ->
        assert(timer_alive);
        left = false;
        filed = false;
        one_armed = false;
        unobserved = false;
        i = 0;
        do
        :: i < WAITS && listed[i] ->
            touch(i);
            if
            :: phase[i] == armed -> fall_due_or_cancel(i, due, false); armed_count--
            :: else
            fi;
            i++
        :: i < WAITS && !listed[i] -> i++
        :: i == WAITS -> break
        od
    :: else
    fi;
    claimed = !closed && runners < len(due_queue);  /* runner_pool::claim_one */
    if
    :: claimed -> runners++
    :: else
    fi;
    claim_runners(count);
    announce(count)
}

inline shard_take(w, got, count) {      /* shard::take with last, wait_ledger::take */
    lock();
    got = false;
    if
    :: len(due_queue) > 0 ->
        next(w);
        if
        :: direct[w] || phase[w] == armed ->
            arrive_or_park(w, got);
            begun[w] = got
        :: else ->
            got = true;
#ifdef MUTANT_LET_GO_AT_HAND_OVER       /* as if the handler had started */
            if
            :: owned[w] -> detach(w); owned[w] = false
            :: else
            fi;
#endif
#ifndef MUTANT_CARRIER_IS_NO_USER       /* the shard may be destroyed before the carrier arrives */
            users++
#endif
        fi
    :: else
    fi;
    runners--;                          /* shard::retire_locked */
    claim_runners(count)
}

inline shard_arrive(w, own) {           /* shard::arrive */
    lock();
    arrive(w, own);
    if
    :: own -> begun[w] = true; drop_user()
    :: else
    fi
}

inline shard_park(w, own) {             /* shard::arrive_or_park; own: it fell due in the meantime */
    lock();
#ifdef MUTANT_PARK_WITHOUT_LOOKING      /* it may have fallen due again since arrive() */
    carried[w] = false;
    own = false;
#else
    arrive_or_park(w, own);
#endif
    begun[w] = own;
    drop_user()
}

inline shard_drain() {                  /* shard::empty_batch, wait_ledger::take_over, finish */
    lock();
    do
    :: nempty(due_queue) ->
        next(i);
        arrive_or_park(i, flag);
        if
        :: flag -> begun[i] = true; chain[i] = true
        :: else
        fi
    :: empty(due_queue) && filed ->
        assert(timer_alive);
        filed = false;
        n = 0;
        do
        :: n < WAITS && listed[n] && phase[n] == armed -> finish(n, false); n++
        :: n < WAITS && !(listed[n] && phase[n] == armed) -> n++
        :: n == WAITS -> break
        od
    :: empty(due_queue) && !filed -> break
    od
}

#ifdef ALARM
inline shard_arm(w) {                   /* shard::arm */
    lock();
    if
    :: closed
    :: !closed && listed[w] -> shard_rearm(); promised = true
    :: !closed && !listed[w] ->
#ifndef MUTANT_ALARM_KEEPS_RESULT       /* of an expire_all() before */
        has_result[w] = false;
#endif
        ledger_start(w);
        left = true;
        told = false;
        promised = true
    fi
}

inline shard_disarm(w, count) {         /* shard::disarm */
    lock();
    disarm_wait(w, flag);
    claim_runners(count);
    announce(count)
}

inline shard_condemn(w, leaves, count) { /* shard::condemn */
    lock();
    condemn(w);
    leaves = (condemned -> 0 : 1);
    claim_runners(count);
    announce(count)
}

inline shard_expire_all(disarms, count) { /* shard::expire_all */
    lock();
    count = 0;
    if
    :: filed ->
        filed = false;
        if
        :: listed[0] && phase[0] == armed -> finish(0, disarms)
        :: else
        fi;
        claim_runners(count);
        announce(count)
    :: else
    fi
}
#endif

/* --- dispatcher: outside of the lock ------------------------------------------------------------ */

inline queue_units(count) {             /* dispatcher::enqueue */
    assert(count == 0 || context_alive);
    units = units + count;
    count = 0
}

inline tell(count) {                    /* dispatcher::carry_out */
    if
    :: atomic { count > 0 -> queue_units(count); untold-- }
    :: else
    fi
}

inline tell_and_leave(count) {          /* the same, and the timer is no longer used */
    if
    :: atomic { count > 0 -> queue_units(count); untold--; at_timer-- }
    :: else -> at_timer--
    fi
}

#ifdef ALARM
inline free_alarm(w, leaves) {          /* alarm_block::leave, free */
    if
    :: atomic { leaves > 0 ->
            touch(w);
            assert(holds >= leaves);
            holds = holds - leaves;
            leaves = (holds == 0 -> 1 : 0)
        }
        if
        :: atomic { leaves > 0 -> leaves = 0; touch(w); memory[w] = freed; shard_release_timer() }
        :: else
        fi
    :: else
    fi
}

inline end_alarm(w, leaves, count) {    /* ~basic_alarm */
    tell(count);
    free_alarm(w, leaves)
}

inline outcome(w, called) {             /* alarm_block::carrier_ends */
    atomic { lock(); leaves = 1; calls = called; carrier_begins(w, calls, leaves) }
    if
    :: calls ->
        calls = false;
        begun[w] = false;               /* reduces the number of states */
        touch(w);                       /* the function */
        if
        :: atomic { !ended && armings < ARMINGS -> armings++; shard_arm(w) }
        :: atomic { !ended && at_timer == 0 -> ended = true; shard_condemn(w, gone, count) }
            end_alarm(w, gone, count);
            touch(w)                    /* it goes on */
        :: true
        fi
    :: else
    fi;
    free_alarm(w, leaves)
}
#else
inline outcome(w, called) {             /* wait_handler::perform: frees, then invokes if `called` */
    atomic {
        touch(w);                       /* exactly once: its memory has no other end */
        assert(!called || has_result[w] == (counted[w] || shut_down[w]));
        answers = answers - counted[w];
        memory[w] = freed;
        phase[w] = idle;                /* the rest reduces the number of states */
        carried[w] = false;
        direct[w] = false;
        has_result[w] = false;
        counted[w] = false;
        shut_down[w] = false;
        begun[w] = false
    }
}
#endif

#ifdef ALARM
#define DELIVERS delivers
#define CHAIN bool again; bool chain[WAITS]; byte leaves; byte gone; bool calls
#else
#define DELIVERS false
#define CHAIN bool again; bool chain[WAITS]
#endif

inline destroy_chain() {                /* dispatcher::end_all */
    if
    :: chain[0] -> chain[0] = false; outcome(0, DELIVERS)
    :: else
    fi;
    if
    :: chain[1] -> chain[1] = false; outcome(1, DELIVERS)
    :: else
    fi
}

inline empty_shard() {                  /* dispatcher::empty */
    atomic { lock(); again = !draining; draining = true }
    do
    :: again ->
        do
        :: atomic { shard_drain() }
            if
            :: chain[0] || chain[1] -> destroy_chain()
            :: else -> break
            fi
        od;
        atomic {                        /* shard::end_emptying */
            lock();
            chain[0] = late[0];
            chain[1] = late[1];
            late[0] = false;
            late[1] = false;
            again = chain[0] || chain[1];
            draining = again
        }
        destroy_chain()
    :: else -> break
    od
}

inline start(w) {                       /* wait_handler::make, dispatcher::start */
    atomic {
        memory[w] = alive;
        shard_start(w, ok)
    }
    if
    :: !ok ->
        empty_shard();
        atomic { lock(); drop_user() }  /* dispatcher::leave */
    :: else -> ok = false
    fi
}

inline destroy_timer(count) {           /* timer_handle::leave */
    atomic { shard_cancel(ALL, count) }
    tell(count);
    atomic { shard_release_timer() }
}

inline start_second() {                 /* by a user, with the timer in use until it has returned */
    start(1);
    at_timer--
}

inline complete(w, count) {             /* wait_operation::complete, and a user's handler */
    outcome(w, true)
#ifndef ALARM
    ;
    if
    :: atomic { w == 0 && !second && !leaving -> second = true; at_timer++ }
        start_second()
    :: atomic { w == 0 && !leaving && at_timer == 0 -> leaving = true; second = true }
        destroy_timer(count)
    :: true
    fi
#endif
}

/* --- the threads -------------------------------------------------------------------------------- */

proctype runs_context() {
    byte w;
    byte count;
    bool claimed;
    bool got;
    bool ok;
    CHAIN;

    do
    :: atomic { !stopping && armed_count > 0 -> shard_collect(claimed, count) }  /* wakeup::wake */
        tell(count);
        if
        :: claimed -> goto turn
        :: else
        fi
    :: atomic { !stopping && units > 0 -> units-- };
    turn:                                                              /* dispatcher::turn */
        atomic { claimed = false; shard_take(w, got, count); queue_units(count) }
        if
        :: got && direct[w] -> complete(w, count)
        :: got && !direct[w] ->
            touch(w);                   /* wait_handler::perform(hand_over): its work and executor */
            elsewhere!w
#ifdef MUTANT_EXECUTOR_NOT_COPIED       /* dispatch() is called through the executor in the wait */
            ; touch(w)
#endif
        :: else
        fi;
        w = 0;
        got = false
    :: stopping -> break
    od;
    running--
}

proctype runs_elsewhere() {             /* wait_carrier */
    byte w;
    byte count;
    bool own;
    bool ok;
    CHAIN;

    do
    :: users == 0 -> break
    :: elsewhere?w ->
        if
        :: atomic { shard_arrive(w, own) }      /* operator() */
            if
            :: !own ->
                touch(w);                       /* wait_operation::regain_work */
                atomic { shard_park(w, own) }
            :: else
            fi;
            if
            :: own -> complete(w, count)
            :: else
            fi
        :: atomic { shard_park(w, own) }        /* ~wait_carrier, dispatcher::abandon */
            if
            :: own -> outcome(w, false)
            :: else
            fi
        fi;
        w = 0;
        own = false
    od
}

proctype cancels_one() {
    byte count;

    atomic { shard_cancel(1, count) }
    tell_and_leave(count)
}

proctype emits() {                      /* slot_link */
    byte count;

    atomic { shard_cancel_link(0, count) }
    tell(count);
    atomic { shard_forget(0) }
}

proctype rearms() {
    atomic { shard_rearm(); at_timer-- }
}

proctype owns_timer() {
    byte count;
    bool ok;
    CHAIN;

    if
    :: atomic { !leaving -> at_timer++; shard_cancel(ALL, count) }  /* expires_after() */
        tell_and_leave(count)
    :: true
    fi;
    if
    :: atomic { !second && !leaving -> second = true; at_timer++ }
        start_second()
    :: true
    fi;
    if
    :: atomic { !leaving && at_timer == 0 -> leaving = true; second = true }
        destroy_timer(count)
    :: leaving
    fi
}

proctype owns_context() {               /* ~execution_context */
    byte count;
    CHAIN;

    if
#ifdef ALARM
    :: orderly -> !promised
#else
    :: orderly -> memory[0] == freed && memory[1] != alive
#endif
    :: !orderly
    fi;
    stopping = true;
    atomic { running == 0; lock(); closed = true }      /* dispatcher::shutdown, shard::close */
#ifndef MUTANT_SHUTDOWN_DOES_NOT_WAIT   /* for a thread that is about to queue units */
    untold == 0;
#endif
    empty_shard();
    atomic { context_alive = false; lock(); drop_user() }   /* dispatcher::leave */
}

#ifdef ALARM
proctype owns_alarm() {
    byte count;
    byte gone;

    do
    :: atomic { !ended && armings < ARMINGS -> armings++; shard_arm(0) }
    :: break
    od;
    if
    :: true
    :: !context_alive
    fi;
    if
    :: atomic { !ended && at_timer == 0 -> ended = true; shard_condemn(0, gone, count) }
        end_alarm(0, gone, count)
    :: ended
    fi
}

proctype disarms() {
    byte count;

    if
    :: atomic { shard_disarm(0, count) }
        tell_and_leave(count)
    :: at_timer--
    fi
}

proctype expires_all() {
    byte count;

    if
    :: atomic { !stopping -> shard_expire_all(false, count) }
        tell(count)
    :: atomic { !stopping -> shard_expire_all(true, count) }
        tell(count)
    :: true
    fi
}

init {
    atomic {
        if
        :: orderly = true
        :: delivers = true
        fi;
        if
        :: direct[0] = true; run runs_context(); running++
        :: run runs_elsewhere()
        fi;
        if
        :: takes_code = true
        :: true
        fi;
        users++;
        memory[0] = alive;
        run runs_context();
        run runs_elsewhere();
        run owns_alarm();
        run disarms();
        run expires_all();
        run owns_context()
    }
    atomic {
        _nr_pr == 1;
        assert(!shard_alive && !timer_alive && live == 0 && armed_count == 0);
        assert(memory[0] == freed)
    }
}
#else
init {
    atomic {
        if
        :: orderly = true; run runs_context(); running++
        :: orderly = true; run runs_context(); running++; direct[1] = true
        :: orderly = false
        fi;
        if
        :: direct[0] = true
        :: direct[0] = false
        fi;
        if
        :: linked[0] = true; run emits()
        :: at_timer++; run cancels_one()
        fi;
        users++;                        /* the timer, by its first wait */
        memory[0] = alive;
        shard_start(0, flag);
        run runs_context();
        run runs_elsewhere();
        run rearms();
        run owns_timer();
        run owns_context()
    }
    atomic {
        _nr_pr == 1;
        assert(!shard_alive && !timer_alive && live == 0 && armed_count == 0);
        assert(memory[0] == freed && memory[1] != alive && answers == 0)
    }
}
#endif
