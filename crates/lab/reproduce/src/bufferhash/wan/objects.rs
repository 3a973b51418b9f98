//! The objects that an optimizer sends, and their chunks that it has sent before.

use nandex_sim::workload::SplitMix64;

/// Bytes of a chunk. Section 3 has some 10,000 fingerprints each second at 500 Mb/s.
pub const CHUNK_BYTES: u64 = 6_250;

/// The bytes that replace a chunk that was sent before: its SHA-1.
const REFERENCE_BYTES: u64 = 20;

/// The chunks of the shortest object and of the longest: 50 KB and 8 MB. Chosen.
const OBJECT_CHUNKS: (f64, f64) = (8.0, 1_280.0);

/// The distribution of repeated chunks over objects. Not published.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Spread {
    /// Every chunk is repeated with the same probability.
    Evenly,
    /// An object's probability is uniform between zero and twice the trace's.
    ByObject,
}

/// A trace of objects.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Trace {
    /// The objects, in the order of their arrival.
    pub objects: Vec<Object>,
}

/// An object: for each of its chunks, whether it was sent before.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Object {
    /// The flags in the order of its bytes, at least one.
    pub is_repeated: Vec<bool>,
}

/// The redundancy of a trace, in percent of its bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Redundancy(pub u32);

impl Trace {
    /// Creates objects with `chunks` chunks together, or a few more. Lengths follow a power law: objects of
    /// at least twice the bytes are half as frequent.
    pub fn new(redundancy: Redundancy, spread: Spread, chunks: u64, seed: u64) -> Self {
        let mut rng = SplitMix64::stream(seed, 8 + u64::from(redundancy.0));
        let (mut objects, mut made) = (Vec::new(), 0);
        while made < chunks {
            let object = Object::draw(redundancy, spread, &mut rng);
            made += object.is_repeated.len() as u64;
            objects.push(object);
        }
        Self { objects }
    }

    /// Returns the bytes of all objects.
    pub fn bytes(&self) -> u64 {
        self.objects.iter().map(Object::bytes).sum()
    }

    /// Returns the bytes that remain for the link.
    pub fn sent_bytes(&self) -> u64 {
        self.objects.iter().map(Object::sent_bytes).sum()
    }

    /// Returns the improvement by an index that takes no time.
    pub fn ideal(&self) -> f64 {
        self.bytes() as f64 / self.sent_bytes() as f64
    }

    /// Returns the chunks of all objects.
    pub fn chunks(&self) -> u64 {
        self.bytes() / CHUNK_BYTES
    }

    /// Returns the share of its bytes that repeat, 0 to 1.
    pub fn repeated(&self) -> f64 {
        let all = self.objects.iter().flat_map(|object| &object.is_repeated);
        all.filter(|it| **it).count() as f64 / self.chunks() as f64
    }
}

impl Object {
    fn draw(redundancy: Redundancy, spread: Spread, rng: &mut SplitMix64) -> Self {
        let (least, most) = OBJECT_CHUNKS;
        let chunks = (least / (1.0 - rng.unit() * (1.0 - least / most))) as usize;
        let mean = f64::from(redundancy.0) / 100.0;
        let chance = match spread {
            Spread::Evenly => mean,
            Spread::ByObject => 2.0 * mean * rng.unit(),
        };
        let is_repeated = (0..chunks.max(1)).map(|_| rng.unit() < chance).collect();
        Self { is_repeated }
    }

    /// Returns its bytes.
    pub fn bytes(&self) -> u64 {
        self.is_repeated.len() as u64 * CHUNK_BYTES
    }

    /// Returns its bytes after compression.
    pub fn sent_bytes(&self) -> u64 {
        let sent = |is_repeated: &bool| if *is_repeated { REFERENCE_BYTES } else { CHUNK_BYTES };
        self.is_repeated.iter().map(sent).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_trace_has_its_redundancy_and_long_objects_that_are_few() {
        for (percent, ideal) in [(50, 2.0), (15, 1.18)] {
            let trace = Trace::new(Redundancy(percent), Spread::Evenly, 100_000, 1);
            assert!((trace.repeated() * 100.0 - f64::from(percent)).abs() < 1.0);
            assert!((trace.ideal() / ideal - 1.0).abs() < 0.02, "{}", trace.ideal());
            assert!((100_000..101_280).contains(&trace.chunks()));
            let longer = |chunks| {
                trace.objects.iter().filter(|it| it.is_repeated.len() > chunks).count() as f64
            };
            assert!((1.5..2.5).contains(&(longer(20) / longer(40))));
        }
    }

    #[test]
    fn objects_differ_in_their_redundancy_where_it_is_spread_by_object() {
        let all = |spread| {
            let trace = Trace::new(Redundancy(50), spread, 100_000, 1);
            let long = trace.objects.into_iter().filter(|it| it.is_repeated.len() > 60);
            let extreme = |it: &Object| {
                let ratio = it.bytes() as f64 / it.sent_bytes() as f64;
                !(1.25..5.0).contains(&ratio)
            };
            let (some, all) =
                long.fold((0, 0), |(some, all), it| (some + u32::from(extreme(&it)), all + 1));
            f64::from(some) / f64::from(all)
        };
        assert_eq!(all(Spread::Evenly), 0.0);
        assert!((0.3..0.5).contains(&all(Spread::ByObject)), "{}", all(Spread::ByObject));
    }
}
