/* Copyright (c) 2026 The Pawl authors
 * SPDX-License-Identifier: BSL-1.0
 *
 * Purpose
 *   P9: run() does not return while a wait is outstanding, and returns afterwards; and no wait is forgotten. This is
 *   the joint work of include/pawl/detail/service/wakeup_state.hpp, wakeup.hpp, driver.hpp, shard.hpp and dispatcher.hpp. Each
 *   inline names the function that it models.
 *
 * Model
 *   Two timers with a wait each, in one shard or in two. One thread or two run the context, which counts its work
 *   like Asio (units, waits of its timers, running handlers, and reported work) and stops when there is none. Two more
 *   threads start, cancel, re-arm and withdraw; other work keeps the context running for any time. Everything under the
 *   lock of a shard is one step; so is everything under the lock of the driver, except for arm(), which asks for two
 *   facts that others change without that lock.
 *
 *   The context counts the busy shards and not the driver; or it cannot be told of work, and counts the driver; or a
 *   thread finds out at run time which of these holds. Units are queued natively, or by waking the driver. The driver's
 *   first wait may lack memory. One wait may be that of an alarm that does not keep the context running. An expiry may stop at its limit, and leave the rest to a unit. Time passes when the
 *   wait of the driver expires: it stands still while no wait needs it, unless the driver's wait is no work. init
 *   chooses among these; a `small` model has one wait, which one thread starts and both end.
 *
 * Properties
 *   P9                    finish(): no wait whose start has returned is left when the work is done, except an armed
 *                         one that does not keep the context running
 *   never the last        work_finished(): work that Pawl gives back is not the last work of the context
 *   one handler           schedule(): the driver has at most one in flight (one-handler invariant)
 *   exactly once          shard_take(): a taken wait has not started
 *   busy, driver-set      watches(): the invariants of wakeup_state.hpp; and the driver comes for each armed wait
 *   never stuck           no process is blocked at the end: there is no work without a thread that does it, and no
 *                         driver that is set, and counted, for a time that no wait needs
 *   returns               the context stops, if every thread continues
 *
 * Left out
 *   Handlers that run the context, and the driver's canceller (nested_loop.pml). The part of a wait behind take() (wait_protocol.pml): its handler ends with it. Waits that start in handlers,
 *   set-backs, rings, expire_all(), wakeup::collect(), shards that are added later. Turns of several waits, and handlers that
 *   throw. rearm(), hurry() and collect() when the driver lacks memory. A process of one thread, which pins nothing. A
 *   wait for tick::never(), the only reason for will_collect_. The end of the context. Memory orders.
 *   By hand, without `small`: a context that cannot be told of work, and an unknown one.
 */

#define WAITS 2
#define NEVER 3                         /* ticks: 0 .. 2 */

mtype = { idle, armed, due, cancelled, begun, done }

/* waits, each the only one of its timer */
mtype phase[WAITS] = idle;
bool queued[WAITS];                     /* it has an entry in the due queue */
byte older;                             /* if both have one: whose entry is the first */
byte due_at[WAITS];
byte resting = WAITS;                   /* the wait that does not keep the context running, if any */

/* shards */
bool two;
byte wake[2] = NEVER;
byte pins[2];
bool busy[2];
bool counted[2];
byte on_way[2];                         /* errands: errands_ - ended_ */
byte runners[2];
bool backlog[2];                        /* the last expiry has stopped at its limit */
byte halts;                             /* how many may still stop */
byte crowds;                            /* how often the driver may still find that it is late, and what is due a crowd */

/* shared by the shards */
bool native;                            /* it is known; then units are queued natively, */
bool counts;                            /* work is counted for each shard that becomes busy */
bool counts_work;                       /* and not for the driver */
bool tells = true;                      /* the context can be told of work, if it is known */
bool stays = true;                      /* driver::stays_set */
bool seldom = true;                     /* driver_wait_traits::polls_seldom */

/* driver */
mtype = { off, set, hurries }
mtype driver = off;
bool uncounted;
bool locked;                            /* for more than a step */
byte armed_at;
bool has_memory = true;                 /* Asio's timer queue finds room for its first wait */

/* the context */
byte work = 1;                          /* other work, which keeps it running for any time */
byte units[2];
mtype = { unset, pending, ready }
mtype alarm = unset;                    /* the wait of the driver's Asio timer */
byte alarm_at;
byte now;
bool stopped;

/* ghosts */
bool started[WAITS];                    /* async_wait() has returned */
bool attaching;                         /* attach() has yet to call the driver */
byte seen_to[2];                        /* units, or a thread that is pinned elsewhere, that will set the driver */

#define commitment byte out_units, out_wake; bool out_arm, out_pinned, out_quiet, out_give_back, out_errand

#define here(w, s) ((two -> w : 0) == s)
#define armed_in(s) ((phase[0] == armed && here(0, s)) + (phase[1] == armed && here(1, s)))
#define keeps_in(s) (armed_in(s) - (resting < WAITS && phase[resting] == armed && here(resting, s)))
#define entries(s) ((queued[0] && here(0, s)) + (queued[1] && here(1, s)))
#define due_of(w, s) (phase[w] == armed && here(w, s) -> due_at[w] : NEVER)
#define next_wake(s) (due_of(0, s) <= due_of(1, s) -> due_of(0, s) : due_of(1, s))
#define may_rest (stays && counts_work)  /* dispatcher::driver_stays */
#ifndef MUTANT_RESTS_IN_AN_UNKNOWN_CONTEXT
#define active(s) (keeps_in(s) > 0 || runners[s] > 0 || (armed_in(s) > 0 && !may_rest))
#else
#define active(s) (keeps_in(s) > 0 || runners[s] > 0)
#endif
#define errands_done(s) (pins[s] == 0 && on_way[s] == 0)

/* --- the context ------------------------------------------------------------------------------------------- */

inline finish() {                       /* a unit ends, or the other work of the context */
    assert(work > 0);
    work--;
    if
    :: work == 0 && !stopped ->
        stopped = true;
        assert(!started[0] || phase[0] == done || (resting == 0 && phase[0] == armed));
        assert(!started[1] || phase[1] == done || (resting == 1 && phase[1] == armed))
    :: else
    fi
}

inline work_finished() {                /* native_context::work_finished */
    assert(work > 1);
    work--
}

/* --- wakeup_state: under the lock of the shard ------------------------------------------------------------- */

inline begin(s) {                       /* wakeup_state::begin, dispatcher::work_started */
    if
    :: !busy[s] ->
        busy[s] = true;
        counted[s] = counts;
        work = work + counts
    :: else
    fi
}

inline arm_pinned(s, t) {               /* wakeup_state::arm_pinned */
#ifndef MUTANT_PIN_OF_THE_RESTING_IS_NO_WORK
    begin(s);
#endif
    wake[s] = (t < wake[s] -> t : wake[s]);
    out_arm = true;
    out_wake = wake[s];
#ifndef MUTANT_PIN_IS_NOT_COUNTED
    pins[s]++;
#endif
    out_pinned = true
}

inline begin_errand(s) {              /* wakeup_state::begin_errand */
#ifndef MUTANT_ERRAND_IS_MISSING         /* no trace of a thread that is about to queue or to set the driver */
    if
    :: out_units > 0 && !out_pinned && !out_errand -> on_way[s]++; out_errand = true
    :: else
    fi
#else
    skip
#endif
}

#define wants_more(s) (runners[s] < entries(s) + backlog[s]) /* runner_pool */

inline settle(s) {                      /* shard::settle, wakeup_state::settle */
    do
    :: wants_more(s) -> runners[s]++; out_units++
    :: else -> break
    od;
    if
#ifndef MUTANT_SETTLE_DOES_NOT_BEGIN    /* a runner is claimed for timers whose waits have ended */
    :: active(s) -> begin(s)
#endif
#ifndef MUTANT_GIVES_BACK_ANYWHERE      /* and not in a unit */
    :: !active(s) && pins[s] == 0 && busy[s] && counted[s] && !inside ->    /* dispatcher::may_go_quiet_here */
#ifndef MUTANT_SETTLE_CLAIMS_NO_RUNNER
        runners[s]++; out_units++
#else
        skip
#endif
    :: !active(s) && pins[s] == 0 && busy[s] && !(counted[s] && !inside) ->
#else
    :: !active(s) && pins[s] == 0 && busy[s] ->
#endif
        if
#ifndef MUTANT_STAYS_BEFORE_ALL_ARE_COUNTED
        :: counted[s] && may_rest
#else
        :: counted[s] && stays
#endif
        :: else -> wake[s] = NEVER
        fi;
        busy[s] = false;
        out_quiet = true;
        out_give_back = counted[s];
#ifndef MUTANT_ERRAND_IS_MISSING
        on_way[s] = on_way[s] + !counted[s];
        out_errand = !counted[s];
#endif
        counted[s] = false
    :: else
    fi
}

/* --- shard: under the lock --------------------------------------------------------------------------------- */

inline settle_outside(s) {              /* shard::settle, elsewhere */
    settle(s);
    begin_errand(s)
}

inline arm_for(s, t) {                  /* shard::was_filed, wakeup_state::must_arm */
    if
#ifndef MUTANT_MUST_ARM_IGNORES_PINS    /* the pinned thread may fail */
    :: t < wake[s] || pins[s] > 0 -> arm_pinned(s, t)
#else
    :: t < wake[s] -> arm_pinned(s, t)
#endif
    :: else
    fi
}

inline begin_for(s, w) {
    if
#ifndef MUTANT_RESTING_IS_WORK
    :: w != resting -> begin(s)
#else
    :: true -> begin(s)
#endif
    :: else
    fi
}

inline shard_start(s, w, t) {           /* shard::start, shard::arm */
    begin_for(s, w);
    phase[w] = armed;
    due_at[w] = t;
    arm_for(s, t)
}

inline enter_queue(w) {                 /* due_queue::push, unless it is there already */
    if
    :: !queued[w] -> queued[w] = true; older = (queued[1 - w] -> 1 - w : w)
    :: else
    fi
}

inline shard_cancel(s, w) {             /* shard::cancel */
    if
    :: phase[w] == armed || phase[w] == due -> phase[w] = cancelled; enter_queue(w)
    :: else
    fi;
    settle_outside(s)
}

inline shard_rearm(s, w, t) {           /* shard::rearm */
    if
    :: phase[w] == armed || phase[w] == due -> begin_for(s, w); phase[w] = armed; due_at[w] = t; arm_for(s, t)
    :: else
    fi
}

inline shard_withdraw_held(s, w) {      /* shard::withdraw of a limit */
    if
    :: phase[w] == armed && !queued[w] -> phase[w] = done           /* its end is not reported */
    :: phase[w] == armed && queued[w] -> phase[w] = cancelled
    :: phase[w] == due -> phase[w] = cancelled
    :: else
    fi;
    settle_outside(s)
}

inline shard_withdraw(w) {              /* shard::take_back */
    if
    :: phase[w] == armed -> phase[w] = idle
    :: else -> started[w] = true
    fi
}

inline fall_due(s, w) {                 /* wait_ledger::fall_due */
    if
    :: phase[w] == armed && here(w, s) && due_at[w] <= now -> phase[w] = due; enter_queue(w)
    :: else
    fi
}

inline shard_collect(s, offers_to_take) {          /* shard::collect */
    if
    :: halts > 0 ->
        halts--;
        backlog[s] = true;
        if
        :: true -> fall_due(s, 0)
        :: true -> fall_due(s, 1)
        :: true
        fi
    :: true ->
        backlog[s] = false;
        fall_due(s, 0);
        fall_due(s, 1)
    fi;
    if
    :: backlog[s] -> wake[s] = 0
#ifndef MUTANT_NOBODY_LOOKS_FOR_THE_RESTING
    :: !backlog[s] && armed_in(s) > 0 ->                            /* shard::collect_next_at */
#else
    :: !backlog[s] && keeps_in(s) > 0 ->
#endif
        wake[s] = next_wake(s);
        out_arm = true;
        out_wake = wake[s]
    :: else -> wake[s] = NEVER
    fi;
    if
    :: offers_to_take && crowds > 0 && (entries(s) > 0 || backlog[s]) ->    /* late_candidate */
        crowds--;
        runners[s]++;
        claimed = 1 + s;
        begin(s);
#ifndef MUTANT_A_CROWD_SETS_NO_DRIVER
        out_arm = true;
#else
        out_arm = false;
#endif
        out_wake = 0                                                /* wakeup::collect */
    :: else ->
        if
        :: offers_to_take && wants_more(s) && (!native || (runners[s] == 0 && entries(s) + backlog[s] <= 1)) ->  /* lone_candidate: gives up its turn if it has queued others */
            runners[s]++;
            claimed = 1 + s
        :: else
        fi;
        settle(s)
    fi
}

inline shard_take(s, collected) {       /* shard::take with last */
    if
    :: entries(s) == 2 -> w = older
    :: entries(s) == 1 -> w = (queued[0] && here(0, s) -> 0 : 1)
    :: entries(s) == 0 -> w = WAITS; behind = backlog[s] && !collected
    fi;
    if
    :: w < WAITS ->
        queued[w] = false;
        if
        :: phase[w] == armed -> w = WAITS                           /* pulled back */
        :: else -> assert(phase[w] == due || phase[w] == cancelled); phase[w] = begun
        fi
    :: else
    fi;
    if
    :: !behind -> runners[s]--; settle(s)                           /* shard::retire_locked */
    :: else
    fi
}

/* --- driver: under its lock -------------------------------------------------------------------------------- */

inline driver_cancel() {                /* driver::cancel */
    if
    :: armed_at != 0 ->
        driver = hurries;
        armed_at = 0;
        if
        :: alarm == pending -> alarm = ready; alarm_at = 0
        :: else
        fi
    :: else
    fi
}

inline schedule(t, is_no_work) {        /* driver::schedule */
    assert(alarm == unset);
    alarm = pending;
    alarm_at = t;
    armed_at = t;
    driver = set;
    uncounted = is_no_work;
    work++;
    if
#ifndef MUTANT_DRIVER_IS_COUNTED_TOO
    :: is_no_work -> work_finished()
#endif
    :: else
    fi
}

#define any_busy (busy[0] || busy[1])   /* wakeup::any_busy */
#define counted_by counts_work          /* wakeup::counted_by */

inline driver_arm(t) {                  /* driver::arm; failed: it has thrown */
    if
    :: atomic { !locked && driver != off ->
            if
            :: t < armed_at -> driver_cancel()
            :: else
            fi
        }
    :: atomic { !locked && driver == off -> 
            locked = true;
#ifndef MUTANT_ARM_ASKS_WHO_COUNTS_FIRST        /* and attach() and a shard that becomes quiet intervene */
            is_needed = any_busy
#elif !defined(MUTANT_ARM_ASKS_TOO_EARLY)
            is_uncounted = counted_by
#endif
        }
        atomic {
#ifdef MUTANT_ARM_ASKS_WHO_COUNTS_FIRST
            is_needed = any_busy;
#elif !defined(MUTANT_ARM_ASKS_TOO_EARLY)
            is_uncounted = counted_by;
#endif
#ifdef MUTANT_ARM_FOR_QUIET_SHARDS      /* go_idle(), while a unit was about to set it */
            is_needed = true;
#endif
            if
            :: !((is_uncounted && stays) || is_needed)
            :: ((is_uncounted && stays) || is_needed) && !has_memory -> failed = true; has_memory = true
            :: ((is_uncounted && stays) || is_needed) && has_memory -> schedule(t, is_uncounted)
            fi;
            is_uncounted = false;
            is_needed = false;
            locked = false
        }
    fi
}

inline hurry() {                        /* driver::hurry */
    if
    :: driver == off -> schedule(0, false)
    :: else -> driver_cancel()
    fi
}

inline driver_go_idle() {               /* driver::go_idle, wakeup::any_busy */
    if
    :: driver == set && uncounted && seldom -> armed_at = NEVER
    :: driver == set && !(uncounted && seldom) && !any_busy -> driver_cancel()
    :: else
    fi
}

inline end_counted() {                  /* driver::end_counted */
    if
#ifndef MUTANT_ONLY_A_COUNTED_DRIVER_LOOKS_AGAIN
    :: driver == set -> driver_cancel()
#else
    :: driver == set && !uncounted -> driver_cancel()
#endif
#ifndef MUTANT_A_DRIVER_THAT_IS_OFF_STAYS_SO    /* a wake-up that has looked at the shards sets it */
    :: driver == off && any_busy -> schedule(0, false)
#endif
    :: else
    fi
}

inline on_wake() {                      /* driver::on_wake */
    driver = off;
    armed_at = 0;
#ifndef MUTANT_WORK_IS_NOT_MADE_UP_FOR  /* before the context counts the handler off */
    work = work + uncounted;
#endif
    uncounted = false
}

/* --- wakeup ------------------------------------------------------------------------------------------------ */

inline attached() { native = true; counts = tells; counts_work = tells }

inline count_work(s) {                  /* shard::count_work, wakeup_state::count */
    atomic {
        if
        :: busy[s] && !counted[s] -> counted[s] = counts; work = work + counts
        :: else
        fi
    }
}

inline attach() {                       /* wakeup::attach, by one thread */
    atomic { native = true; counts = tells }
    if
    :: tells ->
#ifdef MUTANT_DRIVER_IS_UNCOUNTED_FIRST /* the busy shards are no work then */
        counts_work = true;
#endif
#ifndef MUTANT_ATTACH_COUNTS_NO_SHARD
        count_work(0);
        if
        :: two -> count_work(1)
        :: else
        fi;
#endif
        atomic { counts_work = true; attaching = true }
#ifndef MUTANT_COUNTED_DRIVER_STAYS     /* set for a time that no wait needs */
        atomic { !locked; end_counted() }
#endif
        attaching = false
    :: else
    fi
}

inline arm_failed(s) {                  /* shard::arm_failed */
#ifndef MUTANT_ARM_FAILED_IS_FORGOTTEN  /* the next start relies on a driver that is not set */
    wake[s] = NEVER
#else
    skip
#endif
}

inline wakeup_arm(t) {                  /* wakeup::arm; failed: it has thrown */
#ifdef MUTANT_ARM_ASKS_TOO_EARLY
    is_uncounted = counted_by;           /* attach(), before it has the lock */
#endif
    driver_arm(t);
    if
    :: failed ->
        arm_failed(0);
        if
        :: two -> arm_failed(1)
        :: else
        fi
    :: else
    fi
}

inline wakeup_go_quiet() {              /* wakeup::go_quiet */
    if
    :: atomic { (!out_give_back || !stays) && !locked -> driver_go_idle() }
    :: out_give_back && stays
    fi;
    atomic {
        if
        :: out_give_back -> work_finished()
        :: else
        fi;
        out_quiet = false;
        out_give_back = false
    }
}

/* --- dispatcher -------------------------------------------------------------------------------------------- */

inline enqueue(s) {                     /* dispatcher::enqueue, for one of a list */
    if
    :: atomic { native -> out_units--; units[s]++; work++ }
    :: atomic { !native -> out_units--; runners[s]--; seen_to[s]++ }        /* shard::unclaim */
        atomic { !locked; hurry(); seen_to[s]-- }                  /* wakeup::hurry */
    fi
}

inline go_on(s) {                       /* dispatcher::enqueue, dispatcher::follow_up */
    do
    :: out_units > 0 -> enqueue(s)
    :: else -> break
    od;
    if
    :: out_quiet -> wakeup_go_quiet()
    :: else
    fi;
    if
    :: atomic { out_errand -> on_way[s]--; out_errand = false }   /* wakeup_state::end_errand */
    :: else
    fi
}

inline unpin(s) {                       /* dispatcher::unpin, shard::unpin, wakeup_state::unpin */
    atomic {
#ifndef MUTANT_PIN_IS_NOT_COUNTED
        assert(pins[s] > 0);
        pins[s]--;
#endif
        out_arm = false;
        out_wake = 0;
        out_pinned = false;
#ifndef MUTANT_UNPIN_SETTLES_NOTHING    /* the wait has ended in the meantime, and left that to the pin */
        settle_outside(s)
#endif
    }
    go_on(s)
}

inline linger() {                       /* driver::linger */
    atomic {
        !locked;
        if
        :: driver == off -> schedule(0, false)
        :: else
        fi
    }
}

inline unit_ends() {                    /* wakeup::unit_ends */
    if
    :: !counts_work ->
        if                              /* wakeup::anybody_comes */
        :: !errands_done(0) -> linger()
        :: two && !errands_done(1) -> linger()
        :: else
        fi
    :: else
    fi
}

inline turn(s) {                        /* dispatcher::turn */
    atomic { claimed = 0; shard_take(s, false) }
    if
    :: behind ->
        atomic { behind = false; shard_collect(s, false); seen_to[s] = seen_to[s] + out_arm }
        go_on(s);
        if
        :: out_arm ->
            wakeup_arm(out_wake);
            atomic { assert(!failed); seen_to[s]--; out_arm = false; out_wake = 0 }
        :: else
        fi;
        atomic {
            if
            :: native -> w = WAITS; runners[s]--; settle(s)         /* it may nest: turn_end */
            :: !native -> shard_take(s, true)
            fi
        }
    :: else
    fi;
    go_on(s);
#ifndef MUTANT_TURN_WAITS_FOR_NO_THREAD /* which has pulled back the wait of this unit, and sets the driver */
    unit_ends();
#endif
    atomic {                            /* the handler, and the end of the unit */
        if
        :: w < WAITS -> phase[w] = done
        :: else
        fi;
        w = 0;
        finish()
    }
}

inline collect_in(s) {                  /* dispatcher::collect, for wakeup::collect */
    atomic {
        shard_collect(s, claimed == 0);
        if
        :: out_arm && (!needed || out_wake < earliest) -> earliest = out_wake
        :: else
        fi;
        needed = needed || out_arm;
        out_arm = false;
        out_wake = 0
    }
    go_on(s)
}

inline wake_up() {                      /* wakeup::wake */
    do
    :: collect_in(at);
        if
        :: two && at == 0 -> at = 1
        :: else -> break
        fi
    od;
    if
    :: needed -> wakeup_arm(earliest)
    :: else
    fi;
    atomic { assert(!failed); needed = false; earliest = 0; seen_to[0]--; seen_to[1]--; at = 0 }
#ifndef MUTANT_WAKE_WAITS_FOR_NO_THREAD /* which still has to queue a unit */
    unit_ends()
#endif
}

inline start(s, w, t) {                 /* dispatcher::start */
    atomic { shard_start(s, w, t) }
    if
    :: out_arm -> wakeup_arm(out_wake)
    :: else
    fi;
    atomic {
        if
        :: failed -> failed = false; shard_withdraw(w)
        :: else
        fi
    }
    if
    :: out_pinned -> unpin(s)
    :: else
    fi;
    started[w] = (phase[w] != idle)
}

inline rearm(s, w, t) {                 /* dispatcher::rearm */
    atomic { shard_rearm(s, w, t) }
    if
    :: out_arm -> wakeup_arm(out_wake); assert(!failed)
    :: else
    fi;
    if
    :: out_pinned -> unpin(s)
    :: else
    fi
}

inline cancel(s, w) {                   /* dispatcher::cancel */
    atomic { shard_cancel(s, w) }
    go_on(s)
}

inline withdraw(s, w) {                 /* dispatcher::withdraw */
    atomic { shard_withdraw_held(s, w) }
    go_on(s)
}

/* --- the threads ------------------------------------------------------------------------------------------- */

/* Otherwise time stands still: no thread may have to wait for a time that is set for no wait. */
#define time_goes_on (phase[0] == armed || phase[1] == armed || uncounted)

proctype runs_context() {
    byte at, w, claimed, earliest;
    bool inside = true;
    bool behind, failed, is_uncounted, is_needed, needed;
    commitment;

    do
    :: stopped -> break
    :: atomic { !stopped && (units[0] > 0 || units[1] > 0) ->
            if
            :: units[0] > 0 -> at = 0
            :: units[1] > 0 -> at = 1
            fi;
            units[at]--;
            claimed = 1 + at
        }
        turn(at)
    :: atomic { !stopped && alarm != unset && (alarm == ready || alarm_at <= now || time_goes_on) ->
            if
            :: alarm == pending && now < alarm_at -> now = alarm_at
            :: else
            fi;
            alarm_at = 0;
            alarm = unset
        }
        atomic { !locked; on_wake(); seen_to[0]++; seen_to[1]++; at = 0 }
        wake_up();
        atomic {
            if
            :: claimed == 0 -> finish()
            :: else -> units[claimed - 1]++; claimed = 0                /* it continues as that unit */
            fi
        }
    od
}

proctype uses(bool attaches; byte home, own, until) {
    byte other = 1 - own;
    bool inside, failed, is_uncounted, is_needed;
    commitment;

    if
    :: attaches -> attach()
    :: else
    fi;
    if
    :: until != 0 -> start(home, own, until)
    :: else
    fi;
    if
    :: until != 0 || !attaches -> cancel(home, own)
    :: until != 0 && started[own] -> withdraw(home, own)
    :: started[other] && !two -> rearm(home, other, 2)
    :: true
    fi
}

/* The busy invariant; and the driver comes for each time on which a shard relies (driver-set invariant), and for each
/* wait. */
#define comes(s, t) (pins[s] > 0 || seen_to[s] > 0 || (backlog[s] && runners[s] > 0) || \
                     (driver != off && (alarm != pending || alarm_at <= t)))
#define relied_on(s) (wake[s] == NEVER || comes(s, wake[s]))
#define busy_rightly(s) ((busy[s] || !(active(s) || pins[s] > 0)) && \
                         (!busy[s] || active(s) || pins[s] > 0 || entries(s) > 0 || backlog[s] || !counted[s] || \
                          (armed_in(s) > 0 && (attaching || comes(s, 0)))))
#define will_be_collected(w) (phase[w] != armed || !started[w] || comes((two -> w : 0), due_at[w]))

proctype watches() {
end:
    atomic {
        !(busy_rightly(0) && busy_rightly(1) && relied_on(0) && relied_on(1) && will_be_collected(0) && will_be_collected(1)) ->
            assert(busy_rightly(0) && busy_rightly(1));
            assert(relied_on(0) && relied_on(1));
            assert(will_be_collected(0) && will_be_collected(1))
    }
}

init {
    bool small, attaches, late, rests;
    atomic {
        if
        :: attached(); small = true; halts = 1
        :: attached(); small = true; stays = false
        :: attached(); small = true; stays = false; seldom = false
        :: tells = false; attached(); small = true
        :: small = true
        :: attached(); small = true; resting = 0
        :: attached(); small = true; halts = 1; crowds = 2
        :: attaches = true; small = true; stays = false
#ifndef FAIR                            /* fairness is expensive */
        :: small = true; two = true
        :: attached()
        :: attached(); crowds = 1
        :: attached(); has_memory = false
        :: attached(); resting = 1
        :: attaches = true
        :: late = true
        :: rests = true
        :: rests = true; two = true
#endif
        fi;
#ifndef FAIR
        run watches();
#endif
        run runs_context();
        if
        :: late ->                      /* as after start(0, 1, 2); start(0, 0, 1); withdraw(0, 1) */
            phase[0] = armed;
            due_at[0] = 1;
            started[0] = true;
            phase[1] = done;
            busy[0] = true;
            wake[0] = 1;
            driver = hurries;
            alarm = ready;
            work++;
            run runs_context();
            run uses(true, 0, 0, 0);
            run uses(false, 0, 0, 0)
        :: rests ->                     /* as after start(two, 1, 2) */
            resting = 1;
            phase[1] = armed;
            due_at[1] = 2;
            started[1] = true;
            busy[two] = true;
            wake[two] = 2;
            driver = set;
            armed_at = 2;
            alarm = pending;
            alarm_at = 2;
            work++;
            run uses(true, 0, 0, 0);
            run uses(false, 0, 0, 1)
        :: !late && !rests && small ->
            run uses(attaches, 0, 0, 1);
            if
            :: run uses(false, 0, 0, 0)
            :: run uses(false, 0, 1, 0)
            fi
        :: !late && !rests && !small ->
            run uses(false, 0, 0, 1);
            run uses(attaches, two, 1, 2)
        fi
    }
    atomic { finish() }
}

ltl returns { <> stopped }
