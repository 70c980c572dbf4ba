/* Copyright (c) 2026 The Pawl authors
 * SPDX-License-Identifier: BSL-1.0
 *
 * Purpose
 *   A handler that runs its context in a loop of its own. Where the context is made for one thread, the loop does not
 *   find what the frames around it hold. These are units and cancelled waits of Asio's timers that their handlers have
 *   queued, which Asio keeps in a queue of the frame until the handler returns, and the rest of their turns. This is
 *   include/pawl/detail/service/runner_pool.hpp with driver.hpp, wakeup::collect(), and the parts of shard.hpp and
 *   dispatcher.hpp that claim and take. wakeup.pml explores the same parts without such loops.
 *
 * Model
 *   One shard or two. A frame is one call of the context: a unit, the driver's wake-up, the driver's canceller, or a
 *   function of the user. Functions and handlers cancel and start waits, and may then run a loop until a wait that they
 *   have started before completes, or is cancelled in the loop. DEPTH limits how many do. Time passes when the driver's
 *   Asio timer expires.
 *
 *   One thread runs the context, or two that take turns, so that one begins what a loop of the other has queued. The
 *   pool of runners may take the context for one that several threads run, from what it has seen before. init chooses.
 *
 * Properties
 *   never stuck           no process is blocked at the end: in each loop something runs until its wait completes
 *   nothing is left       at the end no entry is left, and no runner
 *
 * Left out
 *   The backlog of an expiry, whose unit runs no handler. More entries than there may be runners: there a unit queues
 *   its successor, and a loop in its handler waits for that one until the driver wakes up. Waits that move, contexts of other types, turns that
 *   are stopped. Two threads at a time: then Asio holds nothing in frames.
 */

#define WAITS 4                         /* 2 * d and 2 * d + 1: cancelled, and awaited, by the user's code at depth d */
#define DEPTH 2
#define FRAMES 6
#define ROOM 8
#define NONE 2

mtype = { idle, armed, due, done }
mtype = { unit, wake, canceller, function }
mtype = { off, set, hurries }

bool changing;                          /* two threads take turns */
byte homes;                             /* 0: one shard; 1 and 2: two, see home() */
#define two (homes != 0)
#define home(w) (homes == 0 -> 0 : (homes == 1 -> (w) & 1 : (w) != 1))

mtype phase[WAITS] = idle;
byte due_at[WAITS];

/* shards */
typedef queue_of_due { chan entries = [WAITS] of { byte } }
queue_of_due shard[2];
byte per_turn = 1;                      /* completions_per_turn */
byte count[2], aside[2], tickets[2], oldest[2], passed[2];      /* runner_pool */
bool shared[2];
byte overtaker[2];                      /* a thread */
byte queued_in[2] = 255;                /* the frame that has queued the last one */
byte queued_by[2] = 255;                /* its thread */

mtype driver = off;
byte armed_at;
bool cancels_soon;                      /* the canceller is due: Asio's reactor has it */
byte now;

chan queue = [ROOM] of { byte, byte, byte };       /* of the context */
typedef queue_of_held { chan held = [5] of { byte, byte, byte } }
queue_of_held frames[FRAMES];
chan returned = [0] of { byte };
byte users;                             /* functions and handlers that run a loop, or have */

inline post(kind, s, ticket) {          /* scheduler::post_immediate_completion, post_deferred_completion */
    frames[f].held!kind, s, ticket
}

#define due_in(s) len(shard[s].entries)
#define coming(s) (count[s] - aside[s])
#define wants_more(s) (due_in(s) > 0 && coming(s) * per_turn < due_in(s) + per_turn - 1)
#define beside_other_frame(s) (queued_by[s] == thread && queued_in[s] != f)

inline claim_one_more(s) {              /* runner_pool::append_one */
    count[s]++;
    post(unit, s, tickets[s]);
    if
    :: per_turn > 1 || shared[s] ->     /* note_frame */
        if
#ifndef MUTANT_WHAT_SEVERAL_THREADS_RAN_ONCE_IS_RELIED_ON
        :: shared[s] && beside_other_frame(s) ->
            shared[s] = false;
            aside[s] = aside[s] + passed[s];
            overtaker[s] = thread
#endif
        :: else
        fi;
        queued_in[s] = f;
        queued_by[s] = thread
    :: else
    fi;
    tickets[s]++
}

inline claim_if_held(s) {               /* runner_pool::claim_if_held */
    if
#ifndef MUTANT_WHAT_A_LOOP_CANCELS_RELIES_ON_THE_FRAME_AROUND_IT
    :: per_turn > 1 && beside_other_frame(s) && count[s] != 0 && !wants_more(s) -> claim_one_more(s)
#endif
    :: else
    fi
}

inline settle(s) {                      /* shard::settle */
    do
    :: wants_more(s) -> claim_one_more(s)
    :: else -> break
    od
}

inline begin(s, ticket) {               /* runner_pool::begin */
    if
    :: ticket == oldest[s] -> oldest[s]++
    :: ticket > oldest[s] ->
        passed[s] = passed[s] + ticket - oldest[s];
        if
#ifndef MUTANT_RELIES_ON_WHAT_WAS_OVERTAKEN
        :: !shared[s] ->
            aside[s] = aside[s] + ticket - oldest[s];
            overtaker[s] = thread;
            overtakes = true
#endif
        :: else
        fi;
        oldest[s] = ticket + 1
    :: ticket < oldest[s] ->            /* it comes after all */
        if
#ifndef MUTANT_RELIES_ON_WHAT_WAS_OVERTAKEN
        :: !shared[s] && overtaker[s] == thread -> aside[s]--
        :: !shared[s] && overtaker[s] != thread ->
#ifndef MUTANT_OTHER_THREADS_BRING_ONE_RUNNER_BACK
            aside[s] = aside[s] - passed[s];
#else
            aside[s]--;
#endif
            shared[s] = true
#endif
        :: else
        fi;
        passed[s]--
    fi
}

inline driver_cancel() {                /* driver::cancel, driver::cancel_soon */
    if
    :: armed_at != 0 ->
        driver = hurries;
        armed_at = 0;
#ifndef MUTANT_CANCELS_IN_THE_FRAME
        cancels_soon = true
#else
        post(wake, 0, 0)
#endif
    :: else
    fi
}

inline arm(t) {                         /* driver::arm */
    if
    :: driver == off -> driver = set; armed_at = t
    :: driver != off && t < armed_at -> driver_cancel()
    :: else
    fi
}

#define due_of(w) (phase[w] == armed -> due_at[w] : 255)
#define earlier(a, b) (a < b -> a : b)
#define next_wake earlier(earlier(due_of(0), due_of(1)), earlier(due_of(2), due_of(3)))

inline start(w, t) {                    /* shard::start */
    phase[w] = armed;
    due_at[w] = t;
    arm(t)
}

inline cancel(w) {                      /* shard::cancel */
    if
    :: phase[w] == armed ->
        at = home(w);
        phase[w] = due;
        shard[at].entries!w;
        claim_if_held(at);
        settle(at)
    :: else
    fi
}

inline fall_due(s, w) {
    if
    :: phase[w] == armed && home(w) == s && due_at[w] <= now ->
        phase[w] = due;
        shard[s].entries!w;
        fallen = true
    :: else
    fi
}

inline give_up_turn(s) { count[s]--; settle(s) }   /* dispatcher::give_up_turn */

inline collect_in(s) {                  /* shard::collect for a lone_candidate, wakeup::wake */
    fallen = false;
    fall_due(s, 0);
    fall_due(s, 1);
    fall_due(s, 2);
    fall_due(s, 3);
    if
#ifdef MUTANT_A_WAKE_UP_THAT_HAS_CLAIMED_A_TURN_FINDS_NOTHING_OUT_IN_ANOTHER_SHARD
    :: claimed != NONE -> queued = queued || fallen
    :: claimed == NONE &&
#else
    ::
#endif
#ifndef MUTANT_A_WAKE_UP_RUNS_A_HANDLER_FIRST
        count[s] == 0 && due_in(s) == 1 ->
#else
        wants_more(s) ->
#endif
        count[s]++;
        if
        :: claimed == NONE -> claimed = s
        :: else -> give_up_turn(s); queued = queued || fallen
        fi
    :: else ->
        queued = queued || fallen;
        if
#ifndef MUTANT_A_WAKE_UP_FINDS_NOTHING_OUT
        :: fallen && count[s] != 0 && !wants_more(s) -> claim_one_more(s)
#endif
        :: else
        fi
    fi;
    settle(s)
}

inline collect() {                      /* wakeup::collect, wakeup::wake */
    claimed = NONE;
    collect_in(0);
    if
    :: two -> collect_in(1)
    :: else
    fi;
    if
    :: next_wake != 255 -> w = next_wake; arm(w)
    :: else
    fi;
    if
#ifndef MUTANT_A_WAKE_UP_RUNS_A_HANDLER_BEFORE_WHAT_IT_HAS_QUEUED
    :: claimed != NONE && queued -> at = claimed; give_up_turn(at); claimed = NONE
#endif
    :: else
    fi
}

/* The frame `f` in `thread`: one call of the context. */
proctype frame(byte f, thread, kind, s, ticket) {
    bool fallen, queued, last, overtakes;
    byte claimed, w, n, next_kind, next_shard, next_ticket, own, at;

    if
    :: kind == canceller ->             /* driver::on_cancel */
        atomic {
            cancels_soon = false;
            if
            :: driver == hurries -> post(wake, 0, 0)
            :: else
            fi
        }
        goto ends
    :: kind == wake ->                  /* driver::on_wake */
        atomic {
            driver = off;
            armed_at = 0;
            collect();
            if
            :: claimed == NONE -> goto ends
            :: else -> s = claimed
            fi
        }
    :: kind == unit ->
        atomic {
            begin(s, ticket);
            if
#ifndef MUTANT_A_UNIT_THAT_OVERTAKES_RUNS_A_HANDLER
            :: overtakes -> count[s]--; settle(s); goto ends
#endif
            :: else
            fi
        }
    :: kind == function -> goto user
    fi;

turn:                                   /* dispatcher::turn, shard::take */
    atomic {
        n++;
        w = WAITS;
        if
        :: shard[s].entries?w
        :: empty(shard[s].entries)
        fi;
        last = n == per_turn || empty(shard[s].entries);
        if
        :: last -> count[s]--
        :: else -> aside[s]++
        fi;
        settle(s);
        if
        :: w < WAITS -> phase[w] = done
        :: else
        fi
    }
    if
    :: w == WAITS -> goto ends
    :: else
    fi;

user:
    if
    :: users < DEPTH && f < FRAMES - 1 ->
        atomic {
            own = 2 * users;
            users++;
            if
            :: cancel(own)
            :: true
            fi;
            if
            :: users < DEPTH -> cancel(own + 2)
            :: true
            fi;
            if
            :: phase[own + 1] == idle -> start(own + 1, now + 1)
            :: phase[own + 1] == idle -> start(own + 1, now + 3)
            :: phase[own + 1] != idle       /* started before */
            fi
        }
        do
        :: phase[own + 1] == done -> break
        :: phase[own + 1] != done ->
            atomic {
                if
                :: queue?next_kind, next_shard, next_ticket ->
                    run frame(f + 1, thread, next_kind, next_shard, next_ticket)
                :: cancels_soon -> run frame(f + 1, thread, canceller, 0, 0)
                :: driver == set ->
                    now = (armed_at > now -> armed_at : now);
                    run frame(f + 1, thread, wake, 0, 0)
                fi
            }
            returned?eval(f + 1)
        od
    :: users != 0 -> atomic { cancel(2 * users - 1) }   /* the last loop awaits it */
    :: true
    fi;
    if
    :: kind != function && !last ->
        atomic { aside[s]-- }
        goto turn
    :: else
    fi;

ends:                                   /* scheduler: work_cleanup */
    atomic {
        do
        :: frames[f].held?next_kind, next_shard, next_ticket -> queue!next_kind, next_shard, next_ticket
        :: empty(frames[f].held) -> break
        od;
        returned!f
    }
}

init {
    byte f = FRAMES - 1;                /* no handler: what it posts is queued at once */
    byte thread, kind, s, ticket;

    atomic {
        if
        :: homes = 1
        :: homes = 2
        :: true
        fi;
        if
        :: changing = true
        :: changing = true; shared[0] = true; shared[1] = true
        :: true
        fi;
        if
        :: per_turn = 1
        :: per_turn = 3
        fi;
        phase[0] = armed;
        due_at[0] = 9;
        phase[2] = armed;
        due_at[2] = 9;
        driver = set;
        armed_at = 9;
        if
        :: start(3, 2)                  /* expires beside another one */
        :: true
        fi;
        if
        :: start(1, 2)
        :: true
        fi;
        queue!function, 0, 0;
        if
        :: queue!function, 0, 0                 /* from outside: no frame holds it */
        :: true
        fi
    }
    do
    :: atomic {
            if
            :: queue?kind, s, ticket
            :: cancels_soon -> kind = canceller
            :: driver == set && next_wake != 255 ->
                now = (armed_at > now -> armed_at : now);
                kind = wake
            fi;
            if
            :: changing -> thread = 1 - thread
            :: true
            fi;
            run frame(0, thread, kind, s, ticket)
        }
        returned?0
    :: empty(queue) && !cancels_soon && next_wake == 255 -> break
    od;
    assert(empty(shard[0].entries) && empty(shard[1].entries));
    assert(count[0] == 0 && count[1] == 0 && aside[0] == 0 && aside[1] == 0 && passed[0] == 0 && passed[1] == 0)
}
