//! A new structure that replaces other ones atomically.

use std::collections::HashSet;
use std::sync::{MutexGuard, PoisonError};

use super::{StructureInfo, Volume, check_name, is_part_of};
use crate::{Error, Result};

/// The suffix of a replacement's name, after that of the structure.
const SUFFIX: &str = "/new";

/// A structure that is created under a temporary name, and replaces others when it is complete.
///
/// Until then a crash leaves the others, and the new structure is removed by the next replacement of them, by
/// [`Volume::drop_replacements`], or with the first of them. The others cannot be opened meanwhile, so that none of
/// their updates is lost; existing handles stay usable until they are closed.
#[derive(Debug)]
pub struct Replacement {
    volume: Volume,
    /// The structures that are replaced; the new structure takes the name of the first one.
    replaced: Vec<String>,
}

impl Volume {
    /// Begins to replace structures. Structures of the [name](Replacement::name) of the result, and of names that begin
    /// with it, may be created from now on.
    ///
    /// # Errors
    /// No structure of the first name, a replacement of it that is in progress, a failed write.
    ///
    /// # Panics
    /// If `names` is empty.
    pub fn replace(&self, names: &[&str]) -> Result<Replacement> {
        self.inner.poison.check()?;
        self.inner.refuse_read_only()?;
        self.inner.root().kind_of(names[0])?;
        let mut replaced = self.replaced();
        if replaced.contains(names[0]) {
            return Err(Error::Busy { name: names[0].into() });
        }
        replaced.extend(names.iter().map(|name| (*name).to_owned()));
        drop(replaced);
        let replaced = names.iter().map(|name| (*name).to_owned()).collect();
        let replacement = Replacement { volume: self.clone(), replaced };
        replacement.remove_made()?;
        Ok(replacement)
    }

    /// Removes the remains of replacements that a crash interrupted.
    ///
    /// # Errors
    /// A failed write.
    pub fn drop_replacements(&self) -> Result<()> {
        let names: Vec<_> = self.structures().into_iter().map(|it| it.name).collect();
        let owners: HashSet<_> = names.iter().filter_map(|name| owner_of(name)).collect();
        owners.into_iter().try_for_each(|owner| self.replace(&[owner]).map(drop))
    }

    fn replaced(&self) -> MutexGuard<'_, HashSet<String>> {
        self.inner.replaced.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Rejects a name that no user's structure has, unless it belongs to a replacement that has begun.
    pub(super) fn check_own_name(&self, name: &str) -> Result<()> {
        let owner = owner_of(name).filter(|owner| self.replaced().contains(*owner));
        match owner.and_then(|owner| final_name(name, owner)) {
            Some(own) => check_name(&own),
            None => check_name(name),
        }
    }

    /// Fails if a structure is being replaced, or a part of one is.
    pub(super) fn check_not_replaced(&self, name: &str) -> Result<()> {
        let replaced = self.replaced();
        let is_of = |owner: &String| name == owner || is_part_of(name, owner);
        if !replaced.iter().any(is_of) || is_replacement(name) {
            return Ok(());
        }
        Err(Error::Busy { name: name.into() })
    }
}

/// Returns whether a structure of this name is the replacement of another one.
#[must_use]
pub fn is_replacement(name: &str) -> bool {
    owner_of(name).is_some()
}

fn owner_of(name: &str) -> Option<&str> {
    name.split_once(SUFFIX).map(|(owner, _)| owner)
}

/// Returns the final name of a structure of a replacement.
fn final_name(name: &str, owner: &str) -> Option<String> {
    let rest = name.strip_prefix(owner)?.strip_prefix(SUFFIX)?;
    Some(format!("{owner}{rest}"))
}

impl Replacement {
    /// The name under which the new structure is created.
    #[must_use]
    pub fn name(&self) -> String {
        format!("{}{SUFFIX}", self.replaced[0])
    }

    /// Puts the new structure in the place of the old ones, with all parts of both, durably and at once. The names in
    /// `keeping` keep the configurations of the structures that they replace.
    ///
    /// # Errors
    /// An open structure, a failed write.
    pub fn finish(self, keeping: &[&str]) -> Result<()> {
        let volume = &self.volume;
        let (mut old, mut new) = (Vec::new(), Vec::new());
        for StructureInfo { name, kind, .. } in volume.structures() {
            let is_old = |owner: &String| name == *owner || is_part_of(&name, owner);
            if let Some(own) = final_name(&name, &self.replaced[0]) {
                new.push((volume.find_closed(&name, &kind)?.id, own));
            } else if self.replaced.iter().any(is_old) {
                old.push(volume.find_closed(&name, &kind)?.id);
            }
        }
        {
            let mut root = volume.inner.root();
            let kept = |name: &str| {
                let of = keeping.contains(&name).then(|| root.catalog.find(name));
                of.flatten().map(|entry| entry.config.clone())
            };
            let new: Vec<_> = new.into_iter().map(|(id, name)| (id, kept(&name), name)).collect();
            old.into_iter().for_each(|id| root.remove(id));
            new.into_iter().for_each(|(id, config, name)| root.take_place(id, name, config));
        }
        volume.checkpoint()
    }

    fn remove_made(&self) -> Result<()> {
        let structures = self.volume.structures();
        let is_made = |name: &str| final_name(name, &self.replaced[0]).is_some();
        let mut is_any = false;
        for structure in structures.iter().filter(|it| is_made(&it.name)) {
            let id = self.volume.find_closed(&structure.name, &structure.kind)?.id;
            self.volume.inner.root().remove(id);
            is_any = true;
        }
        if is_any { self.volume.checkpoint() } else { Ok(()) }
    }
}

impl Drop for Replacement {
    fn drop(&mut self) {
        // Anything that cannot be removed now is removed when the volume is opened the next time.
        let _ = self.remove_made();
        self.volume.replaced().retain(|name| !self.replaced.contains(name));
    }
}
