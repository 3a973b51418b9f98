//! Lookups while another thread inserts at a steady rate: what a flush costs those who only look up.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::Result;
use serde::Serialize;

use crate::drive::{Expect, Pass, Tally, Worker, on_threads};
use crate::subject::Subject;
use crate::workload::{Picker, Rng};

/// The inserting thread sleeps this long when it is ahead of its rate.
const NAP: Duration = Duration::from_micros(500);
/// Lookup calls between two looks at whether the inserts have ended.
const CALLS_PER_LOOK: u64 = 16;

/// Inserts at a steady rate.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
pub struct Flow {
    /// How many.
    pub inserts: u64,
    /// How many per second; where the engine cannot, as many as it can.
    pub inserts_per_s: u64,
}

impl Flow {
    /// Inserts that should have been made after `time`.
    fn due(self, time: Duration) -> u64 {
        let due = time.as_nanos() * u128::from(self.inserts_per_s) / 1_000_000_000;
        u64::try_from(due).unwrap_or(u64::MAX).min(self.inserts)
    }
}

/// Tells lookups to end, whatever way the inserts end.
struct Ends<'a>(&'a AtomicBool);

impl Drop for Ends<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Looks up keys that are there on the threads of `pass`, for as long as one thread more inserts `flow`.
/// New entries take the indices from `next` on, which is moved.
///
/// # Errors
/// The engine's, or a wrong value.
pub fn lookups_beside_inserts(
    subject: &dyn Subject,
    pass: Pass,
    picker: &Picker,
    flow: Flow,
    next: &AtomicU64,
) -> Result<Tally> {
    let ended = AtomicBool::new(false);
    on_threads(subject, pass.threads + 1, |thread, worker| {
        if thread == pass.threads as u64 {
            let _ends = Ends(&ended);
            return insert_steadily(worker, pass, flow, next);
        }
        let mut rng = Rng::new(pass.seed, pass.number, thread);
        while !ended.load(Ordering::Relaxed) {
            let count = CALLS_PER_LOOK * pass.batch as u64;
            worker.lookups(pass, count, Expect::Here, || pass.keys.key(picker.pick(&mut rng)))?;
        }
        Ok(())
    })
}

/// One call per insert, so that an insert that waits is seen.
fn insert_steadily(
    worker: &mut Worker<'_>,
    pass: Pass,
    flow: Flow,
    next: &AtomicU64,
) -> Result<()> {
    let (start, single) = (Instant::now(), Pass { batch: 1, ..pass });
    let mut done = 0;
    while done < flow.inserts {
        let due = flow.due(start.elapsed());
        if due == done {
            thread::sleep(NAP);
            continue;
        }
        worker.inserts(single, due - done, || {
            let key = pass.keys.key(next.fetch_add(1, Ordering::Relaxed));
            (key, pass.keys.value(key, 0))
        })?;
        done = due;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::drive;
    use crate::percentiles::Latency;
    use crate::subject::TableSubject;
    use crate::workload::KeySpace;
    use nandex::oracle::MapTable;

    #[test]
    fn all_inserts_are_made_at_their_rate_and_lookups_last_as_long() {
        let subject = TableSubject(MapTable::new(8, 8));
        for batch in [1, 8] {
            let keys = KeySpace::new(3);
            let latency = Latency::On;
            let pass = Pass { keys, seed: 3, number: 1, threads: 2, batch, latency };
            drive::load(&subject, pass, 1000, None).unwrap();
            let next = AtomicU64::new(1000);
            let flow = Flow { inserts: 500, inserts_per_s: 10_000 };
            let picker = Picker::new(1000, None);
            let tally = lookups_beside_inserts(&subject, pass, &picker, flow, &next).unwrap();
            assert_eq!((tally.inserts, next.into_inner()), (500, 1500));
            assert!(tally.lookups > 0 && tally.hits == tally.lookups);
            assert!(tally.seconds > 0.0);
            assert_eq!(tally.insert_ns.summary().unwrap().count, 500);
            let all = drive::lookup_hits(&subject, pass, 500, &Picker::new(1500, None)).unwrap();
            assert_eq!(all.hits, 500);
        }
    }

    #[test]
    fn what_is_due_grows_with_time_up_to_the_whole() {
        let flow = Flow { inserts: 100, inserts_per_s: 10 };
        let due = [0, 99, 100, 5000, 20_000].map(|ms| flow.due(Duration::from_millis(ms)));
        assert_eq!(due, [0, 0, 1, 50, 100]);
    }
}
