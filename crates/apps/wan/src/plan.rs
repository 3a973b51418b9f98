//! The plan of a segment: the places of copied chunks, and the new chunks.

use crate::anchors::anchors;
use crate::cache::Place;
use crate::container::{Container, Key, beginning, containers_of};
use crate::steps::Step;

/// The digest that verifies a segment: of the keys and lengths of its chunks.
pub(crate) type Digest = [u8; 20];

/// A computation of a segment's digest.
#[derive(Debug)]
pub(crate) struct Digester(blake3::Hasher);

impl Digester {
    pub(crate) fn new() -> Self {
        Self(blake3::Hasher::new_derive_key("nandex wan 1 segment"))
    }

    pub(crate) fn add(&mut self, key: &Key, bytes: usize) {
        self.0.update(key);
        self.0.update(&(bytes as u32).to_le_bytes());
    }

    pub(crate) fn finish(&self) -> Digest {
        beginning(self.0.finalize().as_bytes())
    }
}

/// The plan of sending a segment.
#[derive(Debug)]
pub(crate) struct Plan {
    pub(crate) digest: Digest,
    /// Its steps.
    pub(crate) steps: Vec<Step<Place>>,
    /// The containers of the new chunks, in order, with their anchors.
    pub(crate) containers: Vec<(Container, Vec<u64>)>,
    pub(crate) known_chunks: u64,
    pub(crate) known_bytes: u64,
}

impl Plan {
    /// Creates the plan of a segment whose chunks are at these places, if known.
    pub(crate) fn new(chunks: &[(Key, &[u8])], places: &[Option<Place>]) -> Self {
        let mut digester = Digester::new();
        let mut steps: Vec<Step<Place>> = Vec::new();
        let mut new = Vec::new();
        let (mut known_chunks, mut known_bytes) = (0, 0);
        for ((key, bytes), place) in chunks.iter().zip(places) {
            digester.add(key, bytes.len());
            match place {
                Some(place) => {
                    (known_chunks, known_bytes) =
                        (known_chunks + 1, known_bytes + bytes.len() as u64);
                    copy(&mut steps, *place);
                }
                None => {
                    new.push((*key, *bytes));
                    match steps.last_mut() {
                        Some(Step::New(lengths)) => lengths.push(bytes.len()),
                        _ => steps.push(Step::New(vec![bytes.len()])),
                    }
                }
            }
        }
        let with_anchors = |it: Container| (anchors(it.content()), it);
        let containers = containers_of(&new).into_iter().map(with_anchors);
        let containers = containers.map(|(anchors, it)| (it, anchors)).collect();
        Self { digest: digester.finish(), steps, containers, known_chunks, known_bytes }
    }

    /// Returns the number of bytes of all new chunks.
    pub(crate) fn new_bytes(&self) -> usize {
        self.containers.iter().map(|(container, _)| container.content().len()).sum()
    }
}

/// Adds a copy: to the last step if it continues that.
fn copy(steps: &mut Vec<Step<Place>>, place: Place) {
    let index = usize::from(place.index);
    match steps.last_mut() {
        Some(Step::Copy(last, chunks)) if last.name == place.name && chunks.end == index => {
            chunks.end += 1;
        }
        _ => steps.push(Step::Copy(place, index..index + 1)),
    }
}
