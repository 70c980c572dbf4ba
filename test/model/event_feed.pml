/* Copyright (c) 2026 The Pawl authors
 * SPDX-License-Identifier: BSL-1.0
 *
 * Purpose
 *   How a reader of the feed goes to sleep, and how the next event wakes it: the invariants of
 *   include/pawl/detail/watch/event_hub.hpp, with service/observer.hpp, and settle() of service/shard.hpp,
 *   and of dispatcher.hpp in a turn. Each inline names the function that it models.
 *
 * Model
 *   One shard, a thread in which EVENTS things happen, and a thread that runs the units. Two readers, which read
 *   until they have everything. Two threads in turn start the reads of the first: the handler of a wait may run, and
 *   start the next wait, before the call that started it has returned. Its wait is cancelled once. Steps under a lock
 *   are merged if no other thread could see the difference.
 *
 * Properties
 *   no wake-up is lost    at the end each reader has read all events: none is left asleep (invalid end states)
 *   listed once           sleep(): a reader is not on the list already
 *   nothing to do         at the end no unit is left, and no reader has to be notified
 *
 * Left out
 *   Other shards, which are published in turn. The ring itself (broadcast_ring.pml). Names, statistics. Readers that
 *   leave or are suspended: they unlist themselves like one whose wait was cancelled. Other work of a unit
 *   (wakeup.pml).
 *
 * check.sh looks for mutants with -DBFS
 */

#define EVENTS 2

bool locked;                            /* the shard */
byte batch;
bool must_tell;
bool turn_is_news;                       /* read without the lock */
byte runners;
byte units;                             /* queued */

bool hub;                               /* its lock */
byte ring;                              /* events that were published */
bool sleeping;
bool listed[2];                         /* readers */
bool woken[2];
byte number[2];
bool waits[2];
bool handler[2];                        /* the handler of its wait is queued */
byte position[2];
byte done;

inline lock() { atomic { !locked -> locked = true } }
inline unlock() { locked = false }
inline lock_hub() { atomic { !hub -> hub = true } }
inline unlock_hub() { hub = false }

/* shard_probe::publish() */
inline publish() { atomic { ring = ring + batch; batch = 0 } }

/* shard::settle() */
inline settle() {
    atomic {
        if
#ifndef MUTANT_NOBODY_IS_SENT
        :: must_tell && runners == 0 -> runners++; units++
#endif
        :: else
        fi
    }
}

/* event_hub::unlist() */
inline unlist(r) {
    atomic {
        if
        :: listed[r] ->
           listed[r] = false;
#ifndef MUTANT_THE_OTHER_SLEEPER_IS_FORGOTTEN
           sleeping = listed[1 - r]
#else
           sleeping = false
#endif
        :: else
        fi
    }
}

/* event_hub::wake() */
inline wake(r) {
    atomic {
        unlist(r);
        woken[r] = true;
        if
        :: waits[r] -> waits[r] = false; handler[r] = true
        :: else
        fi
    }
}

/* attention::note(), shard_probe::note(): in any thread */
active proctype happens() {
    byte left = EVENTS;
    bool seen;
    do
    :: left != 0 ->
       left--;
       atomic { !locked -> locked = true; seen = sleeping };
       atomic {
           batch++;
           must_tell = must_tell || seen;
           turn_is_news = turn_is_news || must_tell;
           seen = false;
           settle();
           locked = false
       }
    :: else -> break
    od;
    done++
}

/* dispatcher::turn() */
active proctype unit() {
    bool tells;
end:
    do
    :: units != 0 ->
       units--;
       /* attention::begin_turn() */
       if
       :: turn_is_news ->
          atomic {
              !locked ->
              turn_is_news = false;
              tells = must_tell;
              if
              :: tells -> publish()
              :: else
              fi;
#ifndef MUTANT_FORGETS_AFTER_TELLING
              must_tell = false
#endif
          }
       :: else
       fi;
       /* event_hub::wake_all() */
       if
       :: tells ->
          atomic {
              !hub ->
              if
              :: listed[0] -> wake(0)
              :: else
              fi;
              if
              :: listed[1] -> wake(1)
              :: else
              fi
          }
       :: else
       fi;
#ifdef MUTANT_FORGETS_AFTER_TELLING
       must_tell = false;
#endif
       tells = false;
       /* shard::take(), which finds nothing */
       atomic {
           !locked ->
           runners--;
#ifndef MUTANT_A_RUNNER_LEAVES_WITHOUT_A_LOOK
           settle()
#endif
       }
    od
}

/* event_hub::publish_all() */
inline publish_all() {
#ifndef MUTANT_LOOKS_WITHOUT_THE_LOCK
    lock();
    publish();
    unlock()
#else
    if
    :: batch != 0 -> lock(); publish(); unlock()
    :: else
    fi
#endif
}

/* event_hub::flush() */
inline flush() {
    lock_hub();
    if
    :: batch != 0 -> lock(); publish(); unlock()
    :: else
    fi;
    unlock_hub()
}

/* event_hub::sleep() */
inline sleep(r, mine, at) {
    lock_hub();
    if
#ifndef MUTANT_A_WAIT_THAT_IS_OVER_IS_LISTED
    :: number[r] == mine ->
#else
    :: true ->
#endif
#ifdef MUTANT_LOOKS_BEFORE_IT_IS_LISTED
       publish_all();
       if
       :: ring != at -> wake(r)
       :: else -> atomic { listed[r] = true; sleeping = true }
       fi
#else
       atomic { assert(!listed[r]); listed[r] = true; sleeping = true };
       publish_all();
       if
       :: ring != at -> wake(r)
       :: else
       fi
#endif
    :: else
    fi;
    unlock_hub()
}

/* event_feed::reader::read_operation, in one thread. For the first reader two threads take turns. */
active [3] proctype reads() {
    byte r = (_pid == 4 -> 1 : 0);
    byte mine;
    byte at;
    /* async_read(), once for each reader */
    if
    :: _pid != 3 -> goto looks
    :: else
    fi;
end:
    do
    :: atomic { handler[r] -> handler[r] = false; mine = number[r] };
       /* event_hub::end_sleep(): its result matters only to the caller, who reads again */
       atomic { !hub -> number[r]++; unlist(r) };
looks:
       if
       :: ring == position[r] -> flush()
       :: else
       fi;
       position[r] = ring;
       if
       :: position[r] == EVENTS -> done++
       :: else ->
          /* state::async_wait() */
          atomic {
              !hub ->
              unlist(r);
              woken[r] = false;
              number[r]++;
              mine = number[r];
              at = position[r]
          };
          waits[r] = true;
          /* from here on the other thread may have it */
          sleep(r, mine, at)
       fi;
       mine = 0;
       at = 0
    od
}

/* a cancellation slot */
active proctype cancels() {
    if
    :: atomic { waits[0] -> waits[0] = false; handler[0] = true }
    :: true
    fi;
    done++;
    done == 4;
    units + runners == 0;
    assert(position[0] == EVENTS && position[1] == EVENTS);
    assert(!sleeping && !listed[0] && !listed[1])
}
