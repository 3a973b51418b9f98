//! Requests like those of the IBM Cloud Object Store traces, for use when the traces are unavailable.
//!
//! The set (SNIA IOTTA 36305, of Eytan et al., "It's Time to Revisit LRU vs. FIFO", HotStorage 2020) has 98 traces of a
//! bucket each, over one week: 1.6 billion requests (GET, PUT, HEAD and DELETE) to 342 million objects. RHIK's paper
//! replays eight of them. It names four whose index fits into 10 MB; that of the other four does not. This is
//! published. The number of objects of each of the eight, the mix of its requests and the popularity of its objects
//! were not found; they are chosen here.
//!
//! Objects are put one after another over the week. After each follow the set's mean number of requests for an object,
//! to existing objects: to an older one more often, by a power law. Any of them may be deleted next.

use std::fmt;

use crate::TraceOperation;

/// The number of requests of the whole set.
const SET_REQUESTS: u64 = 1_600_000_000;

/// The number of objects of the whole set.
const SET_OBJECTS: u64 = 342_000_000;

/// The number of traces of the whole set.
const SET_TRACES: u64 = 98;

/// The duration of a trace, in milliseconds: a week.
const WEEK_MS: u64 = 7 * 24 * 3600 * 1000;

/// The percentages of requests to existing objects by kind; the rest are GETs. Chosen.
const HEAD_PERCENT: u64 = 20;
const OVERWRITE_PERCENT: u64 = 3;
const DELETE_PERCENT: u64 = 2;

/// The power of popularity: the object at a share `x` of all from the oldest on is requested as `x^-0.6`. Chosen.
const POPULARITY: f64 = 0.6;

/// The bytes of objects; each power of two between is equally likely. Chosen.
const OBJECT_BYTES: (u64, u64) = (512, 1 << 20);

/// One of the traces that RHIK's paper replays.
///
/// ```
/// use nandex_kvssd::Cluster;
///
/// let lines: Vec<String> = Cluster::ALL[0].workload(100, 1).map(|it| it.to_string()).collect();
/// assert_eq!(lines.len(), 467); // 100 objects, and the set's mean of 4.68 requests for each
/// assert!(lines[0].starts_with("0 REST.PUT.OBJECT "));
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Cluster {
    /// Its number in the set; a letter if the paper does not name it.
    pub name: &'static str,
    /// Whether the paper says that its index fits into 10 MB.
    pub fits: bool,
    /// The number of its objects. Chosen, within what the paper says of its index.
    pub objects: u64,
}

impl Cluster {
    /// All eight, from small to large. The larger ones are around the set's mean of 3.5 million objects.
    pub const ALL: [Self; 8] = [
        Self { name: "022", fits: true, objects: 10_000 },
        Self { name: "026", fits: true, objects: 20_000 },
        Self { name: "052", fits: true, objects: 40_000 },
        Self { name: "072", fits: true, objects: 80_000 },
        Self { name: "A", fits: false, objects: 1_000_000 },
        Self { name: "B", fits: false, objects: 2_000_000 },
        Self { name: "C", fits: false, objects: SET_OBJECTS / SET_TRACES },
        Self { name: "D", fits: false, objects: 8_000_000 },
    ];

    /// Returns its requests, with the number of its objects divided by `times`. The same seed gives the same requests.
    ///
    /// Takes 8 bytes of RAM for each object.
    #[must_use]
    pub fn workload(self, times: u64, seed: u64) -> ClusterWorkload {
        let objects = (self.objects / times.max(1)).max(1);
        let requests = objects * SET_REQUESTS / SET_OBJECTS;
        let state = nandex::raw::store::hash::mix(seed ^ self.objects);
        ClusterWorkload { requests, objects, made: 0, put: 0, live: Vec::new(), state }
    }
}

/// A request of a cluster. Shown, it is a line of [`TraceFormat::Ibm`](crate::TraceFormat::Ibm).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ClusterRequest {
    /// The time in milliseconds since the first request.
    pub time_ms: u64,
    /// The operation: `Get`, `Put`, `Exist` (a HEAD) or `Delete`.
    pub operation: TraceOperation,
    /// The object's id.
    pub object: u64,
    /// The bytes of the object.
    pub object_bytes: u64,
}

/// The requests of a cluster, in order.
#[derive(Clone, Debug)]
pub struct ClusterWorkload {
    requests: u64,
    objects: u64,
    made: u64,
    put: u64,
    /// The numbers of existing objects.
    live: Vec<u64>,
    state: u64,
}

impl ClusterWorkload {
    /// The total number of requests.
    #[must_use]
    pub fn requests(&self) -> u64 {
        self.requests
    }

    fn draw(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        nandex::raw::store::hash::mix(self.state)
    }

    /// Returns the place of a requested object in the list of live objects.
    fn place(&mut self) -> usize {
        let share = (self.draw() >> 11) as f64 / (1_u64 << 53) as f64;
        let place = share.powf(1.0 / (1.0 - POPULARITY)) * self.live.len() as f64;
        (place as usize).min(self.live.len() - 1)
    }

    fn choose(&mut self) -> (TraceOperation, u64) {
        let due = u128::from(self.made) * u128::from(self.objects) / u128::from(self.requests);
        if self.live.is_empty() || u128::from(self.put) <= due && self.put < self.objects {
            self.put += 1;
            self.live.push(self.put);
            return (TraceOperation::Put, self.put);
        }
        let kind = self.draw() % 100;
        let kinds = [
            (DELETE_PERCENT, TraceOperation::Delete),
            (OVERWRITE_PERCENT, TraceOperation::Put),
            (HEAD_PERCENT, TraceOperation::Exist),
        ];
        let mut below = 0;
        let chosen = kinds.iter().find(|(percent, _)| {
            below += percent;
            kind < below
        });
        match chosen.map_or(TraceOperation::Get, |(_, operation)| *operation) {
            TraceOperation::Delete => {
                let place = (self.draw() % self.live.len() as u64) as usize;
                (TraceOperation::Delete, self.live.swap_remove(place))
            }
            operation => {
                let place = self.place();
                (operation, self.live[place])
            }
        }
    }
}

impl Iterator for ClusterWorkload {
    type Item = ClusterRequest;

    fn next(&mut self) -> Option<ClusterRequest> {
        if self.made == self.requests {
            return None;
        }
        let (operation, number) = self.choose();
        let object = nandex::raw::store::hash::mix(number);
        let time_ms = u128::from(self.made) * u128::from(WEEK_MS) / u128::from(self.requests);
        self.made += 1;
        let object_bytes = object_bytes(object);
        Some(ClusterRequest { time_ms: time_ms as u64, operation, object, object_bytes })
    }
}

/// Returns the size of an object, which is the same for all of its requests.
fn object_bytes(object: u64) -> u64 {
    let (least, most) = OBJECT_BYTES;
    let powers = u64::from((most / least).ilog2());
    let size = least << (object % powers);
    size + (object >> 32) % size
}

impl fmt::Display for ClusterRequest {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { time_ms, operation, object, object_bytes } = self;
        match operation {
            TraceOperation::Put => {
                write!(out, "{time_ms} REST.PUT.OBJECT {object:016x} {object_bytes}")
            }
            TraceOperation::Exist => {
                write!(out, "{time_ms} REST.HEAD.OBJECT {object:016x} {object_bytes}")
            }
            TraceOperation::Delete => write!(out, "{time_ms} REST.DELETE.OBJECT {object:016x}"),
            _ => {
                let last = object_bytes.saturating_sub(1);
                write!(out, "{time_ms} REST.GET.OBJECT {object:016x} {object_bytes} 0 {last}")
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;
    use crate::{TraceFormat, TraceReader};

    #[test]
    fn a_cluster_has_its_objects_and_the_sets_mean_of_requests_for_each() {
        for cluster in Cluster::ALL {
            let workload = cluster.workload(100, 1);
            let objects = cluster.objects / 100;
            assert_eq!(workload.requests(), objects * 1_600 / 342);
            let all: Vec<_> = workload.collect();
            let puts = all.iter().filter(|it| it.operation == TraceOperation::Put);
            let different: HashSet<_> = puts.clone().map(|it| it.object).collect();
            assert_eq!(different.len() as u64, objects, "{}", cluster.name);
            assert!(puts.count() as u64 > objects, "some are put again");
            assert!(all.is_sorted_by_key(|it| it.time_ms));
        }
        assert_eq!(Cluster::ALL.iter().filter(|cluster| cluster.fits).count(), 4);
    }

    #[test]
    fn only_objects_that_are_there_are_asked_for_and_older_ones_more_often() {
        let (mut there, mut old, mut young) = (HashSet::new(), 0, 0);
        let early: HashSet<_> = (1..=2_000).map(nandex::raw::store::hash::mix).collect();
        let workload = Cluster::ALL[4].workload(250, 9);
        let last_part = workload.requests() * 9 / 10;
        for (number, request) in (0..).zip(workload) {
            match request.operation {
                TraceOperation::Put => drop(there.insert(request.object)),
                TraceOperation::Delete => assert!(there.remove(&request.object)),
                _ => assert!(there.contains(&request.object)),
            }
            if number > last_part {
                *if early.contains(&request.object) { &mut old } else { &mut young } += 1;
            }
        }
        assert!(old > young, "{old} requests to the first half and {young} to the other");
    }

    #[test]
    fn its_lines_are_those_of_the_traces_and_a_seed_gives_the_same() {
        let lines = |seed: u64| {
            let all = Cluster::ALL[0].workload(40, seed);
            all.map(|request| format!("{request}\n")).collect::<String>()
        };
        let text = lines(3);
        assert_eq!(text, lines(3));
        assert_ne!(text, lines(4));
        let mut reader = TraceReader::new(text.as_bytes(), "made", TraceFormat::Ibm);
        let wanted = Cluster::ALL[0].workload(40, 3);
        for request in wanted {
            let read = reader.next_requests().unwrap().unwrap().remove(0);
            assert_eq!(read.operation, request.operation);
            assert_eq!(read.key, format!("{:016x}", request.object).into_bytes());
            let is_delete = request.operation == TraceOperation::Delete;
            assert_eq!(read.value_bytes, (!is_delete).then_some(request.object_bytes));
        }
        assert_eq!(reader.next_requests().unwrap(), None);
    }
}
