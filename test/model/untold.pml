/* Copyright (c) 2026 The Pawl authors
 * SPDX-License-Identifier: BSL-1.0
 *
 * Purpose
 *   P9: run() does not return while a wait is outstanding, and returns then; and no wait is forgotten. That is what
 *   include/pawl/service/shard.hpp (effects, told, need, still_idle), service/driver.hpp and service/dispatcher.hpp (go_on)
 *   do together. Each inline names the function that it models.
 *
 * Model
 *   Two timers with a wait each. One or two threads run the context, which counts its work as Asio does (units, the
 *   driver's wait, and what runs) and stops when there is none. Two or three more threads start, cancel and re-arm,
 *   and need not run the context; something else keeps it at work as long as it likes. What happens under the shard's
 *   lock is one step, and so is what happens under the driver's: the shard, which is asked there, does not look at
 *   the driver. The driver's first wait may lack memory. Units are queued natively, or by waking the driver. Time
 *   goes on when the driver's wait expires. An expiry may stop at its limit, and leave the rest to a unit.
 *
 * Properties
 *   P9                    finish(): no wait whose start has returned is left when the work is done
 *   one handler           schedule(): the driver has one at most on its way (driver.hpp, I1)
 *   exactly once          shard_take(): what is taken has not begun
 *   until then            withdraw(): the context does not stop before a thread has queued what it has to
 *   never stuck           no process is blocked at the end: there is no work without somebody who does it, and no
 *                         driver that is set, and counted, for a time that nobody needs
 *   returns               the context stops, if every thread goes on
 *
 * Left out
 *   What a wait does behind take() (wait_protocol.pml): its handler ends with it. Several shards, set-backs,
 *   clock_moved(), rings. That what the driver asks of the shard is read without the shard's lock: a wheel's count of
 *   armed waits goes one way while that is held, and whoever changes it comes to the driver afterwards. rearm() and collect() when the driver lacks memory.
 *
 * Cost
 *   check.sh looks for mutants with -DT_REVERSE, the last option of a choice first: three times faster.
 */

#define WAITS 2
#define NEVER 3                         /* ticks: 0 .. 2 */

mtype = { idle, armed, due, cancelled, begun, done }

/* waits, each the only one of its timer */
mtype phase[WAITS] = idle;
bool queued[WAITS];                     /* it has an entry in the due queue */
byte older;                             /* if both have one: whose entry is the first */
byte due_at[WAITS];

/* shard */
byte runners;
byte wake = NEVER;
byte untold;
byte arming;
bool driver_told;
mtype = { no_matter, nothing, something }
mtype armed_since[7] = no_matter;       /* shard::armings_ since a process was to let the driver rest, by _pid */
bool backlog;                           /* the last expiry has stopped at its limit */
byte halts;                             /* how many may yet */

/* driver */
bool outstanding;
bool resting;                           /* the context does not count it */
byte armed_at;
bool has_memory;                        /* Asio's timer queue finds room for its first wait */

/* the context */
bool native;
byte work = 1;                          /* what keeps it at work until it likes no more */
byte units;
mtype = { unset, pending, ready }
mtype driver_wait = unset;
byte now;
bool stopped;

bool both_cancel;

/* ghost */
bool started[WAITS];                    /* async_wait() has returned */

/* Else time stands still: nobody may have to wait for a time that is set for nobody. */
#define somebody_needs_it (armed_count > 0 || untold > 0 || arming > 0)
#define armed_count ((phase[0] == armed) + (phase[1] == armed))
#define entries (queued[0] + queued[1])
#define next_due (phase[0] == armed && (phase[1] != armed || due_at[0] <= due_at[1]) -> due_at[0] : due_at[1])

inline finish() {                       /* a unit ends, or what has kept the context at work */
    assert(work > 0);
    work--;
    if
    :: work == 0 ->
        stopped = true;
        assert(!started[0] || phase[0] == done);
        assert(!started[1] || phase[1] == done)
    :: else
    fi
}

/* --- shard: under the lock --------------------------------------------------------------------------------- */

inline note_arming(i) {
    if
    :: armed_since[i] == nothing -> armed_since[i] = something
    :: else
    fi
}

inline count_arming() {                 /* in shard::arm */
    driver_told = true;
#ifndef MUTANT_ARMINGS_ARE_NOT_COUNTED  /* somebody has started a wait before the driver is sent to rest */
    note_arming(1);
    note_arming(2);
    note_arming(3);
    note_arming(4);
    note_arming(5);
    note_arming(6)
#endif
}

inline arm_from_outside(t) {            /* shard::arm_from_outside */
    wake = t;
    count_arming();
    out_arm = true;
    out_wake = t;
#ifndef MUTANT_ARMING_IS_NOT_COUNTED
    arming++
#endif
}

#define wants_more (entries == 0 -> backlog && runners == 0 : runners < entries)   /* runner_pool::wants_more */

inline claim_runners() {                /* shard::claim_runners */
    do
    :: wants_more -> runners++; out_units++
    :: else -> break
    od
}

inline announce() {                     /* shard::announce */
    out_untold = out_units > 0;
#ifdef MUTANT_UNTOLD_IS_NOT_COUNTED     /* nothing is outstanding between the lock and the queueing */
    out_untold = false;
#endif
    untold = untold + out_untold
}

inline check_idle() {                   /* shard::check_idle */
    if
    :: armed_count == 0 && driver_told && runners == 0 ->
        driver_told = false;
        out_idle = true;
        armed_since[_pid] = nothing
    :: else
    fi
}

inline shard_start(w, t) {              /* shard::start */
    first = (armed_count == 0);
    was = (first -> t : wake);
    phase[w] = armed;
    due_at[w] = t;
    if
    :: first || t < was || arming > 0 -> arm_from_outside((t < was -> t : was))
    :: else
    fi
}

inline enter(w) {                       /* due_queue::push, unless it is there */
    if
    :: !queued[w] -> queued[w] = true; older = (queued[1 - w] -> 1 - w : w)
    :: else
    fi
}

inline shard_cancel(w) {                /* shard::cancel */
    if
    :: w < WAITS && (phase[w] == armed || phase[w] == due) ->
        phase[w] = cancelled;
        enter(w)
    :: else
    fi;
    claim_runners();
    check_idle();
    announce()
}

inline shard_rearm(w, t) {              /* shard::rearm */
    if
    :: phase[w] == armed || phase[w] == due ->
        first = (armed_count == 0);
        phase[w] = armed;
        due_at[w] = t;
        if
        :: first || t < wake -> arm_from_outside(t)
        :: else
        fi
    :: else
    fi
}

inline fall_due(w) {                    /* wait_ledger::fall_due */
    if
    :: phase[w] == armed && due_at[w] <= now -> phase[w] = due; enter(w)
    :: else
    fi
}

inline wait_for_untold() {              /* shard::wait_for_untold */
    if
    :: untold > 0 -> out_arm = true; out_wake = 0
    :: else
    fi
}

inline shard_collect(claim) {           /* shard::collect */
    if
    :: halts > 0 ->
        halts--;
        backlog = true;
        if
        :: true -> fall_due(0)
        :: true -> fall_due(1)
        :: true
        fi
    :: true ->
        backlog = false;
        fall_due(0);
        fall_due(1)
    fi;
    if
    :: !backlog && armed_count > 0 -> wake = next_due; count_arming(); out_arm = true; out_wake = wake
#ifndef MUTANT_COLLECT_FORGETS_UNTOLD   /* the driver goes to sleep before they have queued their units */
    :: !backlog && armed_count == 0 -> wait_for_untold()
#endif
#ifndef MUTANT_BACKLOG_FORGETS_UNTOLD   /* or before they have queued the one that it relies on */
    :: backlog -> wake = 0; wait_for_untold()
#endif
    :: else -> wake = (backlog -> 0 : wake)
    fi;
    if
    :: claim && wants_more -> runners++; claimed = true
    :: else
    fi;
    claim_runners();
    check_idle();
    announce()
}

inline shard_take(collected) {          /* shard::take with last */
    if
    :: entries == 2 -> w = older
    :: entries == 1 -> w = (queued[0] -> 0 : 1)
    :: entries == 0 -> w = WAITS; behind = backlog && !collected
    fi;
    if
    :: w < WAITS ->
        queued[w] = false;
        if
        :: phase[w] == armed ->         /* pulled back */
#ifndef MUTANT_PARK_DOES_NOT_ARM        /* whoever pulled it back may not have come to that */
            count_arming();
            out_arm = true;
            out_wake = wake;
#endif
            w = WAITS
        :: else -> assert(phase[w] == due || phase[w] == cancelled); phase[w] = begun
        fi
    :: else
    fi;
    if
    :: !behind ->                       /* shard::retire_locked */
        runners--;
        claim_runners();
        check_idle();
#ifndef MUTANT_RETIRED_FORGETS_UNTOLD   /* the last runner leaves a backlog to one that is not queued yet */
        if
        :: backlog -> wait_for_untold()
        :: else
        fi
#endif
    :: else
    fi
}

inline shard_withdraw(w) {              /* shard::withdraw */
    wake = NEVER;
    if
    :: phase[w] == armed -> phase[w] = idle
    :: else -> started[w] = true
    fi;
    claim_runners();
#ifndef MUTANT_WITHDRAWN_NOT_IDLE       /* the wait was the last one, and the driver armed by another start */
    check_idle();
#endif
    announce()
}

inline shard_withdraw_held(w) {         /* shard::withdraw(wait_operation&), leave */
    if
    :: phase[w] == armed && !queued[w] -> phase[w] = done           /* nobody is told */
    :: phase[w] == armed && queued[w] -> phase[w] = cancelled
    :: phase[w] == due -> phase[w] = cancelled
    :: else
    fi;
    claim_runners();
    check_idle();
    announce();
#ifdef MUTANT_WITHDRAW_IS_NOT_COUNTED   /* nothing is outstanding before its runner is queued */
    untold = untold - out_untold;
    out_untold = false
#endif
}

/* --- driver ------------------------------------------------------------------------------------------------ */

inline get_up() {                       /* driver::get_up */
    if
    :: resting -> resting = false; work++
    :: else
    fi
}

inline driver_cancel() {                /* driver::cancel */
    if
    :: armed_at != 0 ->
        armed_at = 0;
        if
        :: driver_wait == pending -> driver_wait = ready
        :: else
        fi
    :: else
    fi
}

inline schedule(t) {                    /* driver::schedule */
    assert(driver_wait == unset);
    driver_wait = pending;
    work++;
    armed_at = t;
    outstanding = true
}

inline hasten(t) {                      /* driver::hasten */
    if
    :: resting && armed_count == 0 && untold == 0
    :: else ->
#ifndef MUTANT_UP_FOR_LONG              /* nobody needs it for its time, and nobody says so any more */
        need_soon = (resting && armed_count == 0);
#endif
#ifndef MUTANT_RESTS_ON                 /* what it is armed for is no work */
        get_up();
#endif
        if
        :: t < armed_at || need_soon -> driver_cancel()
        :: else
        fi;
        need_soon = false
    fi
}

inline driver_arm(t) {                  /* driver::arm; failed: it has thrown */
    if
    :: atomic { outstanding -> hasten(t) }
    :: !outstanding ->
        atomic {                        /* the clock was read meanwhile */
            need_in_time = (armed_count > 0);           /* shard::need */
#ifndef MUTANT_NEED_IS_NEVER_SOON       /* a thread that is about to queue a unit needs nobody */
            need_soon = (!need_in_time && untold > 0);
#endif
            if
            :: outstanding -> hasten(t)
            :: !outstanding && (need_in_time || need_soon) && !has_memory -> failed = true; has_memory = true
            :: !outstanding && need_in_time && has_memory -> schedule(t)
            :: !outstanding && need_soon && has_memory -> schedule(0)
            :: !outstanding && !need_in_time && !need_soon
            fi;
            need_in_time = false;
            need_soon = false
        }
    fi
}

inline kick() {                         /* driver::kick */
    atomic {
        if
        :: outstanding -> get_up(); driver_cancel()
        :: else -> schedule(0)
        fi
    }
}

inline rest() {                         /* driver::rest; timer_service::idle */
    if
    :: outstanding && !resting && armed_at != 0 && armed_since[_pid] == nothing ->      /* shard::still_idle */
        if
        :: inside && native -> resting = true; finish()
        :: else -> driver_cancel()
        fi
    :: outstanding && !resting && armed_at != 0 && armed_since[_pid] == something && armed_count == 0 ->
        if
#ifndef MUTANT_RESTS_BESIDE_UNTOLD      /* another thread has yet to queue its units */
        :: inside && untold > 0 -> driver_cancel()
        :: inside && untold == 0 && native -> resting = true; finish()
#else
        :: inside && native -> resting = true; finish()
#endif
        :: inside && untold == 0 && !native -> driver_cancel()
        :: !inside -> driver_cancel()
        fi
    :: else
    fi;
    armed_since[_pid] = no_matter
}

/* --- dispatcher -------------------------------------------------------------------------------------------- */

inline enqueue() {                      /* dispatcher::enqueue */
    do
    :: atomic { out_units > 0 && native -> out_units--; units++; work++ }
    :: atomic { out_units > 0 && !native -> out_units--; runners-- }   /* shard::unclaim */
        kick()
    :: out_units == 0 -> break
    od
}

inline go_on() {                        /* dispatcher::go_on; context_port::idle */
    enqueue();
    if
    :: atomic { out_idle -> out_idle = false; rest() }
    :: !out_idle
    fi
}

inline arm_if_asked() {
    if
    :: out_arm -> driver_arm(out_wake)
    :: else
    fi
}

inline told() {                         /* shard::told */
    atomic {
        untold = untold - out_untold;
        out_untold = false;
        out_units = 0;
        out_arm = false;
        out_wake = 0;
        out_idle = false;
        armed_since[_pid] = no_matter
    }
}

inline told_arming() {                  /* shard::told */
#ifndef MUTANT_ARMING_IS_NOT_COUNTED
    arming = arming - out_arm;
#endif
    out_arm = false;
    out_wake = 0
}

inline turn() {                         /* dispatcher::turn */
    atomic { claimed = false; shard_take(false) }
    if
    :: behind ->
        atomic { behind = false; shard_collect(false) }     /* dispatcher::collect */
        go_on();
        arm_if_asked();
        told();
        atomic { shard_take(true) }
    :: else
    fi;
    go_on();
    arm_if_asked();
    atomic {                            /* the handler, and the end of the unit */
        if
        :: w < WAITS -> phase[w] = done
        :: else
        fi;
        finish();
        out_arm = false;
        out_wake = 0;
        w = 0
    }
}

inline start(w, t) {                    /* dispatcher::start */
    atomic { shard_start(w, t); first = false; was = 0 }
    arm_if_asked();
    if
    :: atomic { failed -> failed = false; shard_withdraw(w) }
        go_on();
        atomic { untold = untold - out_untold; out_untold = false }
    :: else -> started[w] = true
    fi;
    atomic { told_arming() }
}

inline rearm(w, t) {                    /* dispatcher::rearm */
    atomic { shard_rearm(w, t); first = false }
    arm_if_asked();
    atomic { told_arming() }
}

inline cancel(w) {                      /* dispatcher::cancel */
    atomic { shard_cancel(w) }
    go_on();
    told()
}

inline withdraw(w) {                    /* dispatcher::withdraw, leave */
    atomic { shard_withdraw_held(w); ran = !stopped && out_units > 0 }
    if
    :: out_units > 0 || out_idle -> assert(!(ran && stopped)); ran = false; go_on()
    :: else
    fi;
    told()
}

/* --- the threads ------------------------------------------------------------------------------------------- */

proctype runs_context() {
    byte w, out_units, out_wake;
    bool inside = true;
    bool out_arm, out_idle, out_untold, claimed, behind, need_in_time, need_soon, failed;

    do
    :: atomic { !stopped && units > 0 -> units--; claimed = true }
        goto turns
    :: atomic { !stopped && driver_wait != unset && (driver_wait == ready || armed_at <= now || somebody_needs_it) ->
            if
            :: driver_wait == pending && now < armed_at -> now = armed_at
            :: else
            fi;
            driver_wait = unset
        }
#ifndef MUTANT_WAKES_UNCOUNTED          /* the handler is counted off twice */
        atomic { get_up(); outstanding = false }            /* driver::on_wake */
#else
        atomic { resting = false; outstanding = false }
#endif
        atomic { shard_collect(true) }                          /* timer_service::wake, dispatcher::collect */
        go_on();
        arm_if_asked();
        told();
    turns:
        if
        :: claimed -> turn()
        :: atomic { else -> finish() }
        fi
    :: stopped -> break
    od
}

proctype starts_and_cancels() {
    byte out_units, out_wake, was;
    bool inside, ran, out_arm, out_idle, out_untold, need_in_time, need_soon, failed, first;

    start(0, 1);
    if
    :: true -> cancel(0)
    :: started[0] -> withdraw(0)
    :: !both_cancel
    fi
}

proctype ends_others() {                /* or nothing, for a timer without waits: it queues what others should have */
    byte w, out_units, out_wake;
    bool inside, out_arm, out_idle, out_untold;

    if
    :: w = 0                            /* expire_all(): its start may not have returned */
    :: w = 1
    :: w = WAITS
    fi;
    atomic { shard_cancel(w) }
    go_on();
    told()
}

proctype starts_and_rearms(bool starts) {
    byte out_units, out_wake, was;
    bool inside, out_arm, out_idle, out_untold, need_in_time, need_soon, failed, first;

    if
    :: starts -> start(1, 2)
    :: !both_cancel
    fi;
    if
    :: started[0] && !both_cancel -> rearm(0, 2)
    :: true -> cancel(1)
    fi
}

init {
    atomic {
        run runs_context();
        run starts_and_cancels();
        if                              /* all at once are too many for a test */
#ifndef FAIR                            /* fairness is dear */
        :: native = true; has_memory = true; both_cancel = true; run starts_and_rearms(true); run ends_others()
        :: native = true; run starts_and_rearms(true)
        :: has_memory = true; run starts_and_rearms(true)
        :: has_memory = true; run starts_and_rearms(false); run runs_context()
#endif
        :: native = true; has_memory = true; run starts_and_rearms(false); run runs_context()
#ifndef FAIR
        :: native = true; has_memory = true; both_cancel = true; halts = 1; run starts_and_rearms(true)
#endif
        fi
    }
    atomic { finish() }
}

ltl returns { <> stopped }
