//! The encoder: turns segments into frames, and adds new content to its cache.
//!
//! Level 1 puts references in place of chunks that the cache has. Level 2 gives zstd as prefix the containers that most
//! of the new chunks' anchors lead to, and those with copied neighbours.

use std::collections::{HashMap, HashSet};
use std::ops::{Deref, Range};
use std::sync::Arc;

use nandex::raw::store::values::ValueRef;
use nandex_chunk::Chunker;

use crate::cache::{Cache, StreamLimits, View};
use crate::container::{Container, Key, NAME_BYTES, Name};
use crate::dictionary::Dictionary;
use crate::fields::{put_difference, put_varint};
use crate::frame::{Frame, Kind};
use crate::pack::pack;
use crate::plan::Plan;
use crate::segment::{CHUNK_BYTES_DEFAULT, Cuts, SEGMENT_BYTES_DEFAULT, Segment};
use crate::steps::{self, Step};
use crate::{EncodeStats, Error, Result};

/// The fastest level of zstd.
pub const LEVEL_MIN: i32 = 1;

/// The strongest level of zstd.
pub const LEVEL_MAX: i32 = 19;

/// The number of containers of a prefix, for each started 256 KiB of new chunks.
const PREFIX_CONTAINERS_EACH: usize = 16;
const PREFIX_EACH_BYTES: usize = 256 << 10;

/// The most containers of a prefix.
pub(crate) const PREFIX_CONTAINERS_MAX: usize = 64;

/// The number of consecutive segments with missing content after which the other side is assumed to have lost its
/// cache.
const MISSES_MAX: u32 = 4;

/// The number of segments after that, which refer only to content sent in this stream.
const DOUBT_SEGMENTS: u32 = 64;

/// The votes of a copy for its container, at each end next to new chunks.
const NEIGHBOUR_VOTES: u32 = 2;

/// The options of encoding a stream. The other side does not need them.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct EncodeOptions {
    /// The chunker of the stream. Default FastCDC; streams share chunks only if they use the same chunker.
    pub chunker: Chunker,
    /// The average chunk, a power of two from 1 KiB to 64 KiB. Default 4 KiB.
    pub chunk_bytes: usize,
    /// The bytes collected before they become a frame, up to 7.5 MiB. Default 1 MiB.
    pub segment_bytes: usize,
    /// The level of zstd, 1 to 19. Default 3.
    pub level: i32,
}

impl Default for EncodeOptions {
    fn default() -> Self {
        Self {
            chunker: Chunker::FastCdc,
            chunk_bytes: CHUNK_BYTES_DEFAULT,
            segment_bytes: SEGMENT_BYTES_DEFAULT,
            level: 3,
        }
    }
}

impl EncodeOptions {
    /// Checks the values, and returns how a stream is cut: with segments within the limits.
    pub(crate) fn cuts(&self, limits: StreamLimits) -> Result<Cuts> {
        if !(LEVEL_MIN..=LEVEL_MAX).contains(&self.level) {
            let reason = format!("{}; expected {LEVEL_MIN} to {LEVEL_MAX}", self.level);
            return Err(Error::Options { field: "level", reason });
        }
        let cuts = Cuts::new(self.chunker, self.chunk_bytes, self.segment_bytes)?;
        Ok(cuts.within(limits.segment_bytes))
    }
}

/// An encoder of one stream.
#[derive(Debug)]
pub(crate) struct Encoder<C> {
    cache: View<C>,
    level: i32,
    limits: StreamLimits,
    dictionary: Dictionary,
    /// The containers that the other side lacks.
    lacking: HashSet<Name>,
    /// The number of consecutive segments with missing content.
    misses: u32,
    /// The number of segments that must refer to this stream alone.
    doubt: u32,
    /// The number of the next segment.
    sequence: u64,
    pub(crate) stats: EncodeStats,
}

impl<C: Deref<Target = Cache>> Encoder<C> {
    pub(crate) fn new(cache: View<C>, options: &EncodeOptions) -> Self {
        Self {
            dictionary: Dictionary::keeping(cache.stream_limits().names),
            limits: cache.stream_limits(),
            cache,
            level: options.level,
            lacking: HashSet::new(),
            misses: 0,
            doubt: 0,
            sequence: 0,
            stats: EncodeStats::default(),
        }
    }

    /// Returns the frame of the next segment, and the numbers of the containers that it creates.
    pub(crate) fn encode(&mut self, segment: &Segment) -> Result<(Frame, Range<u64>)> {
        let chunks = segment.keyed();
        let keys: Vec<Key> = chunks.iter().map(|(key, _)| *key).collect();
        let places = self.cache.find_in_order(&keys, |name| self.may_refer_to(name))?;
        let plan = Plan::new(&chunks, &places);
        let prefix = self.prefix(&plan)?;
        self.stats.stream_bytes += segment.bytes().len() as u64;
        self.stats.segments += 1;
        self.stats.chunks += chunks.len() as u64;
        self.stats.known_chunks += plan.known_chunks;
        self.stats.known_bytes += plan.known_bytes;
        let made = plan.containers.len() as u64;
        let body = self.body(plan, &prefix)?;
        let sequence = self.sequence;
        self.sequence += 1;
        self.doubt = self.doubt.saturating_sub(1);
        let next = self.dictionary.next();
        Ok((Frame { kind: Kind::Segment, sequence, body }, next - made..next))
    }

    /// Returns whether the other side may have this container.
    fn may_refer_to(&self, name: &Name) -> bool {
        !self.lacking.contains(name) && (self.doubt == 0 || self.dictionary.number(name).is_some())
    }

    /// Returns the frame of a segment that the other side requests again; it contains no references.
    pub(crate) fn encode_again(&mut self, sequence: u64, segment: &Segment) -> Result<Frame> {
        let chunks = segment.keyed();
        let plan = Plan::new(&chunks, &vec![None; chunks.len()]);
        self.stats.again_segments += 1;
        Ok(Frame { kind: Kind::Again, sequence, body: self.body(plan, &[])? })
    }

    /// Returns the frame of the end.
    pub(crate) fn end(&self) -> Frame {
        let mut body = Vec::new();
        put_varint(&mut body, self.stats.stream_bytes);
        Frame { kind: Kind::End, sequence: self.sequence, body }
    }

    /// Counts a segment that is sent unencoded, and returns its number.
    pub(crate) fn note_plain(&mut self, bytes: usize) -> u64 {
        self.stats.stream_bytes += bytes as u64;
        self.stats.segments += 1;
        self.sequence += 1;
        self.sequence - 1
    }

    /// Notes that the other side does not have the containers of these numbers.
    pub(crate) fn note_missing(&mut self, numbers: impl Iterator<Item = u64>) {
        for number in numbers {
            let Some(name) = self.dictionary.name(number) else { continue };
            self.dictionary.forget(&name);
            self.lacking.insert(name);
        }
        self.misses += 1;
        if self.misses == MISSES_MAX {
            (self.misses, self.doubt) = (0, DOUBT_SEGMENTS);
        }
    }

    /// Notes that the other side lacked nothing of a segment.
    pub(crate) fn note_taken(&mut self) {
        self.misses = 0;
    }

    /// Returns the containers that are most similar to the new chunks, the best last, so that it is nearest to them.
    fn prefix(&self, plan: &Plan) -> Result<Vec<Arc<Container>>> {
        let most = plan.new_bytes().div_ceil(PREFIX_EACH_BYTES) * PREFIX_CONTAINERS_EACH;
        let most = most.min(PREFIX_CONTAINERS_MAX);
        let mut prefix = Vec::new();
        let mut bytes = 0;
        for reference in self.candidates(plan)? {
            if prefix.len() == most {
                break;
            }
            let found = self.cache.load(reference)?;
            let Some(found) = found.filter(|it| self.may_refer_to(&it.name())) else { continue };
            if bytes + found.content().len() <= self.limits.prefix_bytes {
                bytes += found.content().len();
                prefix.push(found);
            }
        }
        prefix.reverse();
        Ok(prefix)
    }

    /// Returns the containers that may be similar to the new chunks, those with the most votes first.
    fn candidates(&self, plan: &Plan) -> Result<Vec<ValueRef>> {
        let anchors: Vec<u64> =
            plan.containers.iter().flat_map(|(_, anchors)| anchors).copied().collect();
        let mut votes: HashMap<ValueRef, u32> = HashMap::new();
        for place in self.cache.find_anchors(&anchors)?.into_iter().flatten() {
            *votes.entry(place).or_default() += 1;
        }
        for pair in plan.steps.windows(2) {
            if let [Step::Copy(place, _), Step::New(_)] | [Step::New(_), Step::Copy(place, _)] =
                pair
            {
                *votes.entry(place.reference).or_default() += NEIGHBOUR_VOTES;
            }
        }
        let mut candidates: Vec<(u32, ValueRef)> =
            votes.into_iter().map(|(place, votes)| (votes, place)).collect();
        // Equal votes are in the order of the ring, so that equal runs give equal bytes.
        candidates.sort_unstable_by_key(|(votes, place)| (u32::MAX - votes, *place));
        Ok(candidates.into_iter().map(|(_, place)| place).collect())
    }

    /// Returns the bytes of a plan; adds its containers to the cache and to the dictionary.
    fn body(&mut self, plan: Plan, prefix: &[Arc<Container>]) -> Result<Vec<u8>> {
        let mut referred = References::new(&mut self.dictionary);
        let steps: Vec<Step<u64>> =
            plan.steps.iter().map(|step| step.map(|place| referred.number(place.name))).collect();
        let prefix_numbers: Vec<u64> =
            prefix.iter().map(|container| referred.number(container.name())).collect();
        let introduced = referred.introduced;
        let steps = steps::encode(&steps);
        let (steps_bytes, new_bytes) = (steps.len(), plan.new_bytes());
        let packed = self.pack(steps, &plan, prefix)?;

        let mut body = Vec::with_capacity(packed.len() + 64 + introduced.len() * NAME_BYTES);
        body.extend_from_slice(&plan.digest);
        for number in [steps_bytes, new_bytes, plan.containers.len(), introduced.len()] {
            put_varint(&mut body, number as u64);
        }
        introduced.iter().for_each(|name| body.extend_from_slice(name));
        put_varint(&mut body, prefix_numbers.len() as u64);
        let mut last = 0;
        for number in prefix_numbers {
            put_difference(&mut body, number, last);
            last = number;
        }
        body.extend_from_slice(&packed);
        self.add(plan.containers)?;
        Ok(body)
    }

    /// Compresses the steps and the new chunks after the prefix. The buffers of both are gone when it returns.
    fn pack(&mut self, steps: Vec<u8>, plan: &Plan, prefix: &[Arc<Container>]) -> Result<Vec<u8>> {
        let content = prefix.iter().map(|it| it.content()).collect::<Vec<_>>().concat();
        self.stats.prefix_containers += prefix.len() as u64;
        self.stats.prefix_bytes += content.len() as u64;
        let mut data = steps;
        data.reserve_exact(plan.new_bytes());
        plan.containers.iter().for_each(|(it, _)| data.extend_from_slice(it.content()));
        pack(&content, &data, (self.level, self.limits.tables_log))
    }

    fn add(&mut self, containers: Vec<(Container, Vec<u64>)>) -> Result<()> {
        for (container, anchors) in containers {
            let name = container.name();
            self.lacking.remove(&name);
            self.dictionary.push(name);
            self.cache.insert(container, &anchors)?;
        }
        Ok(())
    }
}

/// The numbers of containers that a frame refers to, and the names that it must introduce for that.
struct References<'d> {
    dictionary: &'d mut Dictionary,
    introduced: Vec<Name>,
}

impl<'d> References<'d> {
    fn new(dictionary: &'d mut Dictionary) -> Self {
        Self { dictionary, introduced: Vec::new() }
    }

    fn number(&mut self, name: Name) -> u64 {
        if let Some(number) = self.dictionary.number(&name) {
            return number;
        }
        self.introduced.push(name);
        self.dictionary.push(name)
    }
}
