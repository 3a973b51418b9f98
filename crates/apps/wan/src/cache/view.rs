//! The view of one owner on a cache: its own content only.

use std::ops::Deref;
use std::sync::Arc;

use nandex::raw::store::values::ValueRef;

use super::place::key_of_name;
use super::{Cache, Place, StreamLimits};
use crate::Result;
use crate::container::{Container, Key, Name};
use crate::owner::Owner;

/// A cache and the owner of the view.
#[derive(Clone, Debug)]
pub(crate) struct View<C> {
    pub(super) cache: C,
    pub(super) owner: Owner,
}

impl<C: Deref<Target = Cache>> View<C> {
    pub(crate) fn new(cache: C, owner: Owner) -> Self {
        Self { cache, owner }
    }

    /// Returns the limits of a stream that is encoded.
    pub(crate) fn stream_limits(&self) -> StreamLimits {
        self.cache.stream_limits()
    }

    /// Returns the places of chunks whose content still exists.
    pub(crate) fn find(&self, keys: &[Key]) -> Result<Vec<Option<Place>>> {
        let keys: Vec<Key> = keys.iter().map(|key| self.owner.key(key)).collect();
        self.cache.find(&keys)
    }

    /// Returns the places of the existing containers with these anchors. A container of another owner is found with a
    /// probability of the cache's number of anchors in 2^64; [`load`](Self::load) rejects it.
    pub(crate) fn find_anchors(&self, anchors: &[u64]) -> Result<Vec<Option<ValueRef>>> {
        self.cache.find_anchors(&self.anchors(anchors))
    }

    /// Returns the places of containers that still exist.
    pub(crate) fn find_named(&self, names: &[Name]) -> Result<Vec<Option<Place>>> {
        let keys: Vec<Key> = names.iter().map(key_of_name).collect();
        let found = self.find(&keys)?.into_iter().zip(names);
        Ok(found.map(|(place, name)| place.filter(|place| place.name == *name)).collect())
    }

    /// Returns the container of a place, by its name; `None` if it is absent.
    pub(crate) fn load_named(&self, place: &Place) -> Result<Option<Arc<Container>>> {
        Ok(self.load(place.reference)?.filter(|found| found.name() == place.name))
    }

    /// Returns the container in a place; `None` if it was recycled, is damaged or is another owner's.
    pub(crate) fn load(&self, reference: ValueRef) -> Result<Option<Arc<Container>>> {
        let found = self.cache.load(reference)?;
        Ok(found.filter(|container| container.tag() == self.owner.tag()))
    }

    /// Adds a container, unless it exists.
    pub(crate) fn insert(&self, container: Container, anchors: &[u64]) -> Result<()> {
        let anchors = self.anchors(anchors);
        self.cache.insert(&self.owner, container.owned_by(&self.owner), &anchors)
    }

    fn anchors(&self, anchors: &[u64]) -> Vec<u64> {
        anchors.iter().map(|anchor| self.owner.anchor(*anchor)).collect()
    }
}
