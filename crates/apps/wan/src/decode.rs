//! The decoder: turns frames back into segments, and adds what is new to its cache.
//!
//! 1. A frame is registered when it comes: the numbers that it gives to containers are counted from its plain fields,
//!    so both sides count alike, whatever the decoder has.
//! 2. It is decoded when all segments before it are. What its containers lack is told, and nothing of it is passed on.
//! 3. A segment is passed on only if its digest is that of the chunks it was put together from. Each chunk's key is
//!    computed from its bytes, of copied ones when their container is read from flash.

use std::collections::HashMap;
use std::sync::Arc;

use crate::anchors::anchors;
use crate::cache::Cache;
use crate::container::{Container, Key, NAME_BYTES, container_count, containers_of, key_of};
use crate::dictionary::Dictionary;
use crate::encode::{PREFIX_BYTES_MAX, PREFIX_CONTAINERS_MAX};
use crate::fields::Fields;
use crate::frame::{Frame, Kind};
use crate::pack::unpack;
use crate::plan::{Digest, Digester};
use crate::segment::{SEGMENT_BYTES_MAX, SEGMENT_CHUNKS_MAX};
use crate::steps::{self, Step};
use crate::{Error, Result};

/// Bytes of encoded steps, at most: a copy or a length for each chunk.
const STEPS_BYTES_MAX: u64 = 2 << 20;

/// Names that a frame introduces, at most.
const INTRODUCED_MAX: u64 = (SEGMENT_CHUNKS_MAX + PREFIX_CONTAINERS_MAX) as u64;

/// A frame whose numbers are counted.
#[derive(Debug)]
pub(crate) struct Registered {
    frame: Frame,
    fields: Plain,
    /// The number of the first container that it introduces; those that it makes follow.
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
    /// Where the packed part begins.
    packed_at: usize,
}

/// What a frame gives.
#[derive(PartialEq, Eq, Debug)]
pub(crate) enum Decoded {
    /// The bytes of the segment.
    Segment(Vec<u8>),
    /// Containers of these numbers are not there.
    Missing(Vec<u64>),
}

/// Decodes one stream.
#[derive(Debug)]
pub(crate) struct Decoder<'c> {
    cache: &'c Cache,
    dictionary: Dictionary,
}

impl<'c> Decoder<'c> {
    pub(crate) fn new(cache: &'c Cache) -> Self {
        Self { cache, dictionary: Dictionary::default() }
    }

    /// Counts the numbers that a frame gives. Frames are registered in the order in which they were sent.
    pub(crate) fn register(&mut self, frame: Frame) -> Result<Registered> {
        let (fields, names) = Plain::decode(&frame)?;
        let first_number = self.dictionary.next();
        let (names, _) = names.as_chunks::<NAME_BYTES>();
        for name in names {
            self.dictionary.push(Some(*name));
        }
        for _ in 0..fields.containers {
            self.dictionary.push(None);
        }
        Ok(Registered { frame, fields, first_number })
    }

    /// The segment of a frame; adds its containers to the cache.
    pub(crate) fn decode(&mut self, registered: &Registered) -> Result<Decoded> {
        let Registered { frame, fields, first_number } = registered;
        let mut needed = Needed::new(self);
        let introduced = *first_number..first_number + fields.introduced as u64;
        needed.load(fields.prefix.iter().copied().chain(introduced))?;
        if let Some(missing) = needed.missing() {
            return Ok(Decoded::Missing(missing));
        }
        let refuse = |reason: String| Error::frame(frame.sequence, reason);
        let bytes = fields.steps_bytes + fields.new_bytes;
        let packed = frame.body.get(fields.packed_at..).unwrap_or_default();
        let prefix = needed.prefix(&fields.prefix).ok_or_else(|| {
            refuse(format!("expected a prefix of at most {PREFIX_BYTES_MAX} bytes, found more"))
        })?;
        let unpacked = unpack(&prefix, packed, bytes)?.ok_or_else(|| {
            refuse(format!("its packed part does not give the {bytes} bytes that it promises"))
        })?;
        let (steps, new_bytes) = unpacked.split_at(fields.steps_bytes);
        let steps = steps::decode(steps, frame.sequence)?;
        let of_copy = |step: &Step<u64>| match step {
            Step::Copy(number, _) => Some(*number),
            Step::New(_) => None,
        };
        needed.load(steps.iter().filter_map(of_copy))?;
        if let Some(missing) = needed.missing() {
            return Ok(Decoded::Missing(missing));
        }
        let assembly = Assembly::new(frame.sequence).put(&steps, &needed.found, new_bytes)?;
        let Assembly { bytes, new, digester, .. } = assembly;
        if digester.finish() != fields.digest {
            return Err(refuse("its chunks have another digest than it says".into()));
        }
        self.add(registered, &new)?;
        Ok(Decoded::Segment(bytes))
    }

    /// Adds the containers that a frame's new chunks make, and gives them their names.
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
            self.dictionary.set(number, container.name());
            let anchors = anchors(container.content());
            self.cache.insert(container, &anchors)?;
        }
        Ok(())
    }
}

impl Plain {
    /// Reads the fields of a segment, and the names that it introduces.
    fn decode(frame: &Frame) -> Result<(Self, &[u8])> {
        let mut fields = Fields::new(&frame.body, frame.sequence);
        let digest = fields.array()?;
        let steps_bytes = fields.at_most("bytes of steps", STEPS_BYTES_MAX)?;
        let new_bytes = fields.at_most("bytes of new chunks", SEGMENT_BYTES_MAX as u64)?;
        let containers = fields.at_most("containers", SEGMENT_CHUNKS_MAX as u64)?;
        let introduced = fields.at_most("names", INTRODUCED_MAX)?;
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
}

/// Containers that a frame refers to.
struct Needed<'d, 'c> {
    decoder: &'d Decoder<'c>,
    found: HashMap<u64, Arc<Container>>,
    missing: Vec<u64>,
}

impl<'d, 'c> Needed<'d, 'c> {
    fn new(decoder: &'d Decoder<'c>) -> Self {
        Self { decoder, found: HashMap::new(), missing: Vec::new() }
    }

    fn load(&mut self, numbers: impl Iterator<Item = u64>) -> Result<()> {
        for number in numbers {
            if self.found.contains_key(&number) || self.missing.contains(&number) {
                continue;
            }
            let name = self.decoder.dictionary.name(number);
            let found = match name {
                Some(name) => self.decoder.cache.named(&name)?,
                None => None,
            };
            match found {
                Some(found) => drop(self.found.insert(number, found)),
                None => self.missing.push(number),
            }
        }
        Ok(())
    }

    fn missing(&self) -> Option<Vec<u64>> {
        (!self.missing.is_empty()).then(|| self.missing.clone())
    }

    /// The prefix of zstd; `None` if it is longer than an encoder makes it.
    fn prefix(&self, numbers: &[u64]) -> Option<Vec<u8>> {
        let containers = numbers.iter().filter_map(|number| self.found.get(number));
        let bytes: usize = containers.clone().map(|it| it.content().len()).sum();
        (bytes <= PREFIX_BYTES_MAX)
            .then(|| containers.flat_map(|it| it.content()).copied().collect())
    }
}

/// A segment that is being put together.
struct Assembly<'n> {
    sequence: u64,
    bytes: Vec<u8>,
    new: Vec<(Key, &'n [u8])>,
    digester: Digester,
}

impl<'n> Assembly<'n> {
    fn new(sequence: u64) -> Self {
        Self { sequence, bytes: Vec::new(), new: Vec::new(), digester: Digester::new() }
    }

    /// Does all steps.
    fn put(
        mut self,
        steps: &[Step<u64>],
        containers: &HashMap<u64, Arc<Container>>,
        mut new_bytes: &'n [u8],
    ) -> Result<Self> {
        for step in steps {
            match step {
                Step::Copy(number, range) => {
                    let container = containers.get(number);
                    let found =
                        container.and_then(|it| Some((it, it.chunks().get(range.clone())?)));
                    let Some((container, chunks)) = found else {
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
        if self.bytes.len() + chunk.len() > SEGMENT_BYTES_MAX {
            let reason =
                format!("expected at most {SEGMENT_BYTES_MAX} bytes of chunks, found more");
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
