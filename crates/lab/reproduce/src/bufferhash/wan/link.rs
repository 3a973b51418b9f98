//! The optimizer in front of a link: the time at which each object has been sent.

use super::index::ObjectTimes;
use super::objects::Trace;

/// A link by its speed, in Mb/s.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Link(pub u64);

/// An object that was sent through the optimizer.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Sent {
    /// Its bytes before compression.
    pub bytes: u64,
    /// The time from its arrival to its last byte.
    pub time_ns: u64,
    /// The time without the optimizer.
    pub plain_ns: u64,
}

impl Sent {
    /// Returns its throughput over that without the optimizer.
    pub fn improvement(&self) -> f64 {
        self.plain_ns as f64 / self.time_ns.max(1) as f64
    }
}

impl Link {
    /// Returns the time of `bytes` bytes.
    pub fn ns(self, bytes: u64) -> u64 {
        bytes * 8_000 / self.0
    }

    /// Returns the improvement in scenario 1: all objects are there at once, and the last one is sent sooner
    /// than without the optimizer.
    pub fn improvement(self, trace: &Trace, times: &ObjectTimes) -> f64 {
        let arrives_ns = vec![0; trace.objects.len()];
        let last_ns = self.send(trace, times, &arrives_ns).last().copied().unwrap_or(0);
        self.ns(trace.bytes()) as f64 / last_ns.max(1) as f64
    }

    /// Sends the objects of scenario 2: they arrive one after another, at the speed of the link. So without
    /// the optimizer each is sent as it arrives, and none waits.
    pub fn accelerated(self, trace: &Trace, times: &ObjectTimes) -> Vec<Sent> {
        let mut bytes = 0;
        let arrives_ns: Vec<u64> = trace
            .objects
            .iter()
            .map(|object| {
                bytes += object.bytes();
                self.ns(bytes - object.bytes())
            })
            .collect();
        let ends_ns = self.send(trace, times, &arrives_ns);
        let all = trace.objects.iter().zip(arrives_ns.into_iter().zip(ends_ns));
        all.map(|(object, (arrives_ns, end_ns))| Sent {
            bytes: object.bytes(),
            time_ns: end_ns - arrives_ns,
            plain_ns: self.ns(object.bytes()),
        })
        .collect()
    }

    /// Returns the time at which the last byte of each object is sent. The engine takes one object after
    /// another: its lookups, and when it is on its way, its inserts.
    fn send(self, trace: &Trace, times: &ObjectTimes, arrives_ns: &[u64]) -> Vec<u64> {
        let (mut engine_ns, mut link_ns) = (0, 0);
        let objects = trace.objects.iter().zip(&times.0).zip(arrives_ns);
        objects
            .map(|((object, time), arrives_ns)| {
                let looked_up_ns = arrives_ns.max(&engine_ns) + time.lookups_ns;
                engine_ns = looked_up_ns + time.inserts_ns;
                link_ns = looked_up_ns.max(link_ns) + self.ns(object.sent_bytes());
                link_ns
            })
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::super::index::ObjectTime;
    use super::super::objects::{CHUNK_BYTES, Object};
    use super::*;

    /// Returns two objects of four chunks: none repeated, and all but one.
    fn trace() -> Trace {
        let object = |is_repeated: [bool; 4]| Object { is_repeated: is_repeated.to_vec() };
        Trace { objects: vec![object([false; 4]), object([true, true, false, true])] }
    }

    fn times(lookups_ns: u64, inserts_ns: u64) -> ObjectTimes {
        ObjectTimes(vec![ObjectTime { lookups_ns, inserts_ns }; 2])
    }

    #[test]
    fn the_slower_of_engine_and_link_decides_and_an_object_waits_for_the_one_before() {
        let link = Link(10);
        // 6,250 bytes take 5 ms.
        assert_eq!(link.ns(CHUNK_BYTES), 5_000_000);
        assert!((link.improvement(&trace(), &times(0, 0)) - trace().ideal()).abs() < 1e-3);
        // The second object is looked up at 60 ms, when the link has long been idle.
        let slow = link.improvement(&trace(), &times(20_000_000, 20_000_000));
        assert!((slow - 40.0 / (60.0 + 5.048)).abs() < 1e-3, "{slow}");
        let sent = link.accelerated(&trace(), &times(2_000_000, 30_000_000));
        // It arrives at 20 ms, waits until 32 ms, and takes 2 and 5 ms.
        assert_eq!(sent[0], Sent { bytes: 25_000, time_ns: 22_000_000, plain_ns: 20_000_000 });
        assert_eq!((sent[1].time_ns, sent[1].plain_ns), (19_048_000, 20_000_000));
        assert!(sent[0].improvement() < 1.0 && sent[1].improvement() > 1.0);
    }
}
