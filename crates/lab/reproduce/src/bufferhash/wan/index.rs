//! The time that each object takes in an index of fingerprints.

use nandex_sim::RequestKind;
use nandex_sim::workload::SplitMix64;

use super::super::berkeley::Berkeley;
use super::super::direct::share_of;
use super::super::lab::{Setup, aged, incarnations_only};
use super::super::player;
use super::objects::{Object, Trace};
use crate::tape::{Act, Step, Tape};
use crate::{Drive, Filled, Result, Scale};

/// The time of an object in the index.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct ObjectTime {
    /// The lookups of all its chunks, before it can be sent.
    pub lookups_ns: u64,
    /// Their inserts, after that.
    pub inserts_ns: u64,
}

/// The time of each object of a trace, in its order.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ObjectTimes(pub Vec<ObjectTime>);

impl ObjectTimes {
    /// Returns times with the same time for each operation.
    pub fn constant(trace: &Trace, operation_ns: u64) -> Self {
        let time = |object: &Object| {
            let each_ns = object.is_repeated.len() as u64 * operation_ns;
            ObjectTime { lookups_ns: each_ns, inserts_ns: each_ns }
        };
        Self(trace.objects.iter().map(time).collect())
    }

    /// Returns the mean time of a chunk: its lookup and its insert, in milliseconds.
    pub fn chunk_ms(&self, trace: &Trace) -> f64 {
        let ns: u64 = self.0.iter().map(|it| it.lookups_ns + it.inserts_ns).sum();
        ns as f64 / trace.chunks() as f64 / 1e6
    }

    /// Computes the times from the latencies of all operations: for each object its lookups, then its
    /// inserts.
    fn from_latencies(trace: &Trace, latencies_ns: &[u64]) -> Self {
        let mut left = latencies_ns;
        let mut take = |count: usize| {
            let (those, rest) = left.split_at(count.min(left.len()));
            left = rest;
            those.iter().sum::<u64>()
        };
        let time = |object: &Object| {
            let chunks = object.is_repeated.len();
            ObjectTime { lookups_ns: take(chunks), inserts_ns: take(chunks) }
        };
        Self(trace.objects.iter().map(time).collect())
    }
}

/// A full BufferHash that a trace went through, on a tape.
pub struct BufferHashRun<'t> {
    trace: &'t Trace,
    scale: Scale,
    /// The requests: reads and incarnations alone, as the paper's table writes them.
    tape: Tape,
    /// The first operation of the trace.
    from: usize,
    /// The share of lookups that found their key.
    pub success_rate: f64,
}

impl<'t> BufferHashRun<'t> {
    /// Runs the trace on the paper's table, filled twice over. A repeated chunk is a random one of the latest
    /// chunks, as many as half of the table's entries.
    pub fn new(trace: &'t Trace, scale: Scale) -> Result<Self> {
        let setup = Setup::paper(scale);
        let mut taped = setup.open()?;
        let mut next = 2 * setup.capacity();
        for key in 0..next {
            taped.insert(key, key)?;
        }
        let from = taped.tape().len();
        let mut rng = SplitMix64::stream(scale.seed(), 9);
        for object in &trace.objects {
            let first = next;
            let mut key = |is_repeated: &bool| match is_repeated {
                true => first - 1 - rng.below(setup.capacity() / 2),
                false => {
                    next += 1;
                    next - 1
                }
            };
            let keys: Vec<u64> = object.is_repeated.iter().map(&mut key).collect();
            keys.iter().try_for_each(|key| taped.lookup(*key).map(drop))?;
            keys.iter().try_for_each(|key| taped.insert(*key, *key))?;
        }
        let success_rate = taped.counts().success_rate();
        Ok(Self { trace, scale, tape: incarnations_only(taped.tape()), from, success_rate })
    }

    /// Returns its times on a drive.
    pub fn on(&self, drive: Drive) -> Result<ObjectTimes> {
        let mut model = aged(drive, self.scale, &self.tape)?;
        let played = player().play(&self.tape, &mut *model);
        Ok(ObjectTimes::from_latencies(self.trace, &played.latencies_ns[self.from..]))
    }
}

/// A drive, its bytes, and its initial state.
#[derive(Clone, Copy, Debug)]
pub struct DirectDrive {
    /// The drive.
    pub drive: Drive,
    /// The bytes that it offers; the index takes 32 GiB of them.
    pub bytes: f64,
    /// Its initial content.
    pub filled: Filled,
}

/// Returns the times of a table without buffers: one page of the drive read for each lookup, and one read and
/// written for each insert.
pub fn direct(trace: &Trace, on: DirectDrive, scale: Scale) -> Result<ObjectTimes> {
    let mut model = on.drive.model(scale, on.filled, 0)?;
    let pages = ((model.page_count() as f64 * share_of(on.bytes)) as u64).max(1);
    let mut rng = SplitMix64::stream(scale.seed(), 10);
    let mut tape = Tape::default();
    for object in &trace.objects {
        let places: Vec<u64> = object.is_repeated.iter().map(|_| rng.below(pages)).collect();
        let step = |kind, page, wave| Step { kind, page, pages: 1, wave };
        for page in &places {
            tape.push(Act::Lookup, &[step(RequestKind::Read, *page, 0)]);
        }
        for page in places {
            let (read, write) = (RequestKind::Read, RequestKind::Write);
            tape.push(Act::Insert, &[step(read, page, 0), step(write, page, 1)]);
        }
    }
    let played = player().play(&tape, &mut *model);
    Ok(ObjectTimes::from_latencies(trace, &played.latencies_ns))
}

/// Returns the times of Berkeley DB's hash table: a repeated chunk is any key of the table, and another chunk
/// is a new one.
pub fn berkeley(trace: &Trace, on: DirectDrive, scale: Scale) -> Result<ObjectTimes> {
    let mut model = on.drive.model(scale, on.filled, 0)?;
    let (drive_share, seed) = (share_of(on.bytes), scale.seed());
    let mut table = Berkeley { drive_share, success_rate: 0.4, seed }.filled(&*model);
    let mut rng = SplitMix64::stream(seed, 14);
    let mut tape = Tape::default();
    for object in &trace.objects {
        let (known, mut next) = (table.entries(), table.entries());
        let mut key = |is_repeated: &bool| {
            next += u64::from(!is_repeated);
            if *is_repeated { rng.below(known) } else { next - 1 }
        };
        let keys: Vec<u64> = object.is_repeated.iter().map(&mut key).collect();
        keys.iter().for_each(|key| tape.push(Act::Lookup, &table.lookup(*key)));
        keys.iter().for_each(|key| tape.push(Act::Insert, &table.insert(*key)));
    }
    let played = player().play(&tape, &mut *model);
    Ok(ObjectTimes::from_latencies(trace, &played.latencies_ns))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_objects_time_is_that_of_its_own_operations() {
        let object = |chunks: usize| Object { is_repeated: vec![false; chunks] };
        let trace = Trace { objects: vec![object(1), object(2)] };
        let times = ObjectTimes::from_latencies(&trace, &[1, 10, 2, 3, 20, 30]);
        let time = |lookups_ns, inserts_ns| ObjectTime { lookups_ns, inserts_ns };
        assert_eq!(times.0, [time(1, 10), time(5, 50)]);
        assert_eq!(times.chunk_ms(&trace), 22e-6);
        assert_eq!(ObjectTimes::constant(&trace, 7).0, [time(7, 7), time(14, 14)]);
    }
}
