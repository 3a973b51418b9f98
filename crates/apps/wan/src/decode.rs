//! The decoder: turns frames back into segments, and adds new content to its cache.
//!
//! 1. A frame is registered on arrival: the numbers that it assigns to containers are counted from its plain fields, so
//!    both sides count alike, whatever the decoder has.
//! 2. It is decoded when all segments before it are. Missing containers are reported, and nothing of it is passed on.
//! 3. A segment is passed on only if its digest is that of the chunks it was assembled from. Each chunk's key is
//!    computed from its bytes, for copied chunks when their container is read from flash.
//! 4. Containers are looked up all at once, and loaded one after the other: a frame of a few bytes may refer to many.

use std::collections::{BTreeSet, HashMap};
use std::ops::Deref;
use std::sync::Arc;

use crate::anchors::anchors;
use crate::cache::{Cache, PREFIX_BYTES_MAX, Place, View};
use crate::container::{
    Container, Key, NAME_BYTES, Name, container_count, container_count_max, containers_of, key_of,
};
use crate::dictionary::Names;
use crate::encode::PREFIX_CONTAINERS_MAX;
use crate::fields::Fields;
use crate::frame::{Frame, Kind};
use crate::pack::unpack;
use crate::plan::{Digest, Digester};
use crate::segment::SegmentLimits;
use crate::steps::{self, Step};
use crate::{Error, Result};

/// The most bytes of encoded steps: a copy or a length for each chunk.
const STEPS_BYTES_MAX: u64 = 2 << 20;

/// A frame with its numbers counted.
#[derive(Debug)]
pub(crate) struct Registered {
    frame: Frame,
    fields: Plain,
    /// The number of the first container that it introduces; those that it creates follow.
    first_number: u64,
}

/// The fields before the packed part.
#[derive(Clone, PartialEq, Eq, Debug)]
struct Plain {
    digest: Digest,
    steps_bytes: usize,
    new_bytes: usize,
    containers: usize,
    introduced: usize,
    prefix: Vec<u64>,
    /// The beginning of the packed part.
    packed_at: usize,
}

/// The result of a frame.
#[derive(PartialEq, Eq, Debug)]
pub(crate) enum Decoded {
    /// The bytes of the segment.
    Segment(Vec<u8>),
    /// The numbers of containers that are missing.
    Missing(Vec<u64>),
}

/// A decoder of one stream.
#[derive(Debug)]
pub(crate) struct Decoder<C> {
    cache: View<C>,
    names: Names,
    limits: SegmentLimits,
    /// Whether a stream continues without a failed cache.
    outlives_cache: bool,
    /// The reason that it continues without one.
    pub(crate) failure: Option<Error>,
}

impl<C: Deref<Target = Cache>> Decoder<C> {
    pub(crate) fn new(cache: View<C>) -> Self {
        let (names, limits) = (Names::default(), SegmentLimits::default());
        Self { cache, names, limits, outlives_cache: false, failure: None }
    }

    /// Creates a decoder of shorter segments, which continues without its cache if that fails: referenced content is
    /// then missing.
    pub(crate) fn of_live(cache: View<C>, limits: SegmentLimits) -> Self {
        Self { limits, outlives_cache: true, ..Self::new(cache) }
    }

    /// Counts the numbers that a frame assigns. Frames are registered in the order in which they were sent.
    pub(crate) fn register(&mut self, frame: Frame) -> Result<Registered> {
        let (fields, names) = Plain::decode(&frame, self.limits)?;
        let first_number = self.names.next();
        let (names, _) = names.as_chunks::<NAME_BYTES>();
        for name in names {
            self.names.push(Some(*name));
        }
        for _ in 0..fields.containers {
            self.names.push(None);
        }
        Ok(Registered { frame, fields, first_number })
    }

    /// Returns the segment of a frame; adds its containers to the cache.
    pub(crate) fn decode(&mut self, registered: &Registered) -> Result<Decoded> {
        match self.decoded(registered) {
            Err(error) if self.may_outlive(&error) => {
                self.failure.get_or_insert(error);
                Ok(Decoded::Missing(Vec::new()))
            }
            other => other,
        }
    }

    fn may_outlive(&self, error: &Error) -> bool {
        self.outlives_cache && error.is_of_cache()
    }

    fn decoded(&mut self, registered: &Registered) -> Result<Decoded> {
        let Registered { frame, fields, first_number } = registered;
        let mut needed = Needed::new(self);
        let introduced = *first_number..first_number + fields.introduced as u64;
        needed.find(fields.prefix.iter().copied().chain(introduced))?;
        let prefix = needed.prefix(&fields.prefix, frame.sequence)?;
        if let Some(missing) = needed.missing() {
            return Ok(Decoded::Missing(missing));
        }
        let unpacked = fields.unpack(frame, &prefix)?;
        let (steps, new_bytes) = unpacked.split_at(fields.steps_bytes);
        let steps = steps::decode(steps, self.limits, frame.sequence)?;
        let of_copy = |step: &Step<u64>| match step {
            Step::Copy(number, _) => Some(*number),
            Step::New(_) => None,
        };
        needed.find(steps.iter().filter_map(of_copy))?;
        let assembly = Assembly::new(frame.sequence, self.limits.bytes_max);
        let assembly = assembly.put(&steps, &mut needed, new_bytes)?;
        if let Some(missing) = needed.missing() {
            return Ok(Decoded::Missing(missing));
        }
        let Assembly { bytes, new, digester, .. } = assembly;
        if digester.finish() != fields.digest {
            let reason = "its chunks have another digest than it says";
            return Err(Error::frame(frame.sequence, reason));
        }
        match self.add(registered, &new) {
            Err(error) if self.may_outlive(&error) => {
                self.failure.get_or_insert(error);
            }
            other => other?,
        }
        Ok(Decoded::Segment(bytes))
    }

    /// Adds the containers of a frame's new chunks, and assigns their names.
    fn add(&mut self, registered: &Registered, new: &[(Key, &[u8])]) -> Result<()> {
        let Registered { frame, fields, first_number } = registered;
        let lengths: Vec<usize> = new.iter().map(|(_, chunk)| chunk.len()).collect();
        let (expected, found) = (container_count(&lengths), fields.containers);
        if expected != found {
            let reason = format!("expected {expected} containers of its new chunks, found {found}");
            return Err(Error::frame(frame.sequence, reason));
        }
        let first = first_number + fields.introduced as u64;
        for (number, container) in (first..).zip(containers_of(new)) {
            self.names.set(number, container.name());
            let anchors = anchors(container.content());
            self.cache.insert(container, &anchors)?;
        }
        Ok(())
    }
}

impl Plain {
    /// Decodes the fields of a segment, and the names that it introduces.
    fn decode(frame: &Frame, limits: SegmentLimits) -> Result<(Self, &[u8])> {
        let mut fields = Fields::new(&frame.body, frame.sequence);
        let digest = fields.array()?;
        let steps_bytes = fields.at_most("bytes of steps", STEPS_BYTES_MAX)?;
        let new_bytes = fields.at_most("bytes of new chunks", limits.bytes_max as u64)?;
        let containers_max = container_count_max(new_bytes, limits.chunks_max);
        let containers = fields.at_most("containers", containers_max as u64)?;
        let introduced_max = limits.chunks_max + PREFIX_CONTAINERS_MAX;
        let introduced = fields.at_most("names", introduced_max as u64)?;
        let names = fields.take(introduced * NAME_BYTES)?;
        let count = fields.at_most("containers of a prefix", PREFIX_CONTAINERS_MAX as u64)?;
        let mut prefix = Vec::with_capacity(count);
        let mut last = 0;
        for _ in 0..count {
            last = fields.difference(last)?;
            prefix.push(last);
        }
        if frame.kind == Kind::Again && (introduced > 0 || count > 0) {
            return Err(fields.refuse("expected no references in what was asked for again".into()));
        }
        let packed_at = frame.body.len() - fields.rest().len();
        let plain =
            Self { digest, steps_bytes, new_bytes, containers, introduced, prefix, packed_at };
        Ok((plain, names))
    }

    /// Returns the steps and the new chunks of a frame.
    fn unpack(&self, frame: &Frame, prefix: &[u8]) -> Result<Vec<u8>> {
        let bytes = self.steps_bytes + self.new_bytes;
        let packed = frame.body.get(self.packed_at..).unwrap_or_default();
        unpack(prefix, packed, bytes)?.ok_or_else(|| {
            let reason =
                format!("its packed part does not give the {bytes} bytes that it promises");
            Error::frame(frame.sequence, reason)
        })
    }
}

/// The places of the containers that a frame refers to. One of them is held in RAM at a time.
struct Needed<'d, C> {
    decoder: &'d Decoder<C>,
    places: HashMap<u64, Place>,
    missing: BTreeSet<u64>,
    /// The last one loaded.
    last: Option<(u64, Arc<Container>)>,
}

impl<'d, C: Deref<Target = Cache>> Needed<'d, C> {
    fn new(decoder: &'d Decoder<C>) -> Self {
        Self { decoder, places: HashMap::new(), missing: BTreeSet::new(), last: None }
    }

    /// Looks up the places of these, without loading any.
    fn find(&mut self, numbers: impl Iterator<Item = u64>) -> Result<()> {
        let asked: BTreeSet<u64> =
            numbers.filter(|number| !self.places.contains_key(number)).collect();
        let of_names: Vec<_> =
            asked.iter().map(|number| (*number, self.decoder.names.name(*number))).collect();
        let names: Vec<Name> = of_names.iter().filter_map(|(_, name)| *name).collect();
        let mut found = self.decoder.cache.find_named(&names)?.into_iter();
        for (number, name) in of_names {
            match name.and_then(|_| found.next().flatten()) {
                Some(place) => {
                    self.places.insert(number, place);
                }
                None => {
                    self.missing.insert(number);
                }
            }
        }
        Ok(())
    }

    /// Loads one that was found; otherwise notes that it is missing.
    fn load(&mut self, number: u64) -> Result<Option<Arc<Container>>> {
        if let Some((_, last)) = self.last.as_ref().filter(|(last, _)| *last == number) {
            return Ok(Some(Arc::clone(last)));
        }
        let place = self.places.get(&number);
        let found = place.map(|place| self.decoder.cache.load_named(place)).transpose()?.flatten();
        match &found {
            Some(found) => self.last = Some((number, Arc::clone(found))),
            None => {
                self.missing.insert(number);
            }
        }
        Ok(found)
    }

    fn missing(&self) -> Option<Vec<u64>> {
        (!self.missing.is_empty()).then(|| self.missing.iter().copied().collect())
    }

    /// Returns the prefix for zstd. It is useless if a container is missing, and nothing more is loaded then.
    fn prefix(&mut self, numbers: &[u64], frame: u64) -> Result<Vec<u8>> {
        let mut prefix = Vec::new();
        for number in numbers {
            let found = if self.missing.is_empty() { self.load(*number)? } else { None };
            let Some(found) = found else { break };
            if prefix.len() + found.content().len() > PREFIX_BYTES_MAX {
                let reason =
                    format!("expected a prefix of at most {PREFIX_BYTES_MAX} bytes, found more");
                return Err(Error::frame(frame, reason));
            }
            prefix.extend_from_slice(found.content());
        }
        Ok(prefix)
    }
}

/// A segment being assembled.
struct Assembly<'n> {
    sequence: u64,
    bytes_max: usize,
    bytes: Vec<u8>,
    new: Vec<(Key, &'n [u8])>,
    digester: Digester,
}

impl<'n> Assembly<'n> {
    fn new(sequence: u64, bytes_max: usize) -> Self {
        let (bytes, new) = (Vec::new(), Vec::new());
        Self { sequence, bytes_max, bytes, new, digester: Digester::new() }
    }

    /// Takes all steps, until a container is missing.
    fn put<C: Deref<Target = Cache>>(
        mut self,
        steps: &[Step<u64>],
        needed: &mut Needed<'_, C>,
        mut new_bytes: &'n [u8],
    ) -> Result<Self> {
        for step in steps {
            match step {
                Step::Copy(number, range) => {
                    let is_whole = needed.missing.is_empty();
                    let found = if is_whole { needed.load(*number)? } else { None };
                    let Some(container) = found else { return Ok(self) };
                    let Some(chunks) = container.chunks().get(range.clone()) else {
                        let reason = format!("container {number} has no chunks {range:?}");
                        return Err(self.refuse(reason));
                    };
                    for chunk in chunks {
                        self.push(&chunk.key, container.bytes_of(chunk))?;
                    }
                }
                Step::New(lengths) => {
                    for length in lengths {
                        let (chunk, rest) = self.split(new_bytes, *length)?;
                        new_bytes = rest;
                        let key = key_of(chunk);
                        self.new.push((key, chunk));
                        self.push(&key, chunk)?;
                    }
                }
            }
        }
        match new_bytes.len() {
            0 => Ok(self),
            left => Err(self.refuse(format!("{left} bytes are of no chunk"))),
        }
    }

    fn push(&mut self, key: &Key, chunk: &[u8]) -> Result<()> {
        let bytes_max = self.bytes_max;
        if self.bytes.len() + chunk.len() > bytes_max {
            let reason = format!("expected at most {bytes_max} bytes of chunks, found more");
            return Err(self.refuse(reason));
        }
        self.digester.add(key, chunk.len());
        self.bytes.extend_from_slice(chunk);
        Ok(())
    }

    fn split(&self, bytes: &'n [u8], length: usize) -> Result<(&'n [u8], &'n [u8])> {
        let found = bytes.len();
        bytes.split_at_checked(length).ok_or_else(|| {
            self.refuse(format!("expected {length} more bytes of new chunks, found {found}"))
        })
    }

    fn refuse(&self, reason: String) -> Error {
        Error::frame(self.sequence, reason)
    }
}
