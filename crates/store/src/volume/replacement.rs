//! A structure that is made to take the place of another one, and does so at once.

use std::collections::HashSet;
use std::sync::PoisonError;

use super::{Volume, check_name, is_part_of};
use crate::Result;

/// What the name of a replacement ends with, behind that of the structure.
const SUFFIX: &str = "/new";

/// A structure in the making under a name of its own, which takes the place of another one when it is complete.
///
/// Until then a crash leaves the other one, and what was made is removed by the next replacement of it, by
/// [`Volume::drop_replacements`], or with the structure.
#[derive(Debug)]
pub struct Replacement {
    volume: Volume,
    owner: String,
    is_done: bool,
}

impl Volume {
    /// Begins to replace a structure. Structures of the [name](Replacement::name) that this gives, and of names that
    /// begin with it, may be created from now on.
    ///
    /// # Errors
    /// No structure of that name, a replacement of it that has begun, a failed write.
    pub fn replace(&self, owner: &str) -> Result<Replacement> {
        self.inner.poison.check()?;
        self.inner.refuse_read_only()?;
        self.inner.root().kind_of(owner)?;
        let is_first = self.replaced().insert(owner.to_owned());
        if !is_first {
            return Err(crate::Error::Busy { name: owner.into() });
        }
        let replacement = Replacement { volume: self.clone(), owner: owner.into(), is_done: false };
        replacement.remove_made()?;
        Ok(replacement)
    }

    /// Removes what replacements have left that a crash has ended.
    ///
    /// # Errors
    /// A failed write.
    pub fn drop_replacements(&self) -> Result<()> {
        let names: Vec<_> = self.structures().into_iter().map(|it| it.name).collect();
        let owners: HashSet<_> = names.iter().filter_map(|name| owner_of(name)).collect();
        owners.into_iter().try_for_each(|owner| self.replace(owner).map(drop))
    }

    fn replaced(&self) -> std::sync::MutexGuard<'_, HashSet<String>> {
        self.inner.replaced.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Refuses a name that is no structure's own, unless it belongs to a replacement that has begun.
    pub(super) fn check_own_name(&self, name: &str) -> Result<()> {
        let owner = owner_of(name).filter(|owner| self.replaced().contains(*owner));
        match owner.and_then(|owner| final_name(name, owner)) {
            Some(own) => check_name(&own),
            None => check_name(name),
        }
    }
}

/// Returns whether a structure of this name is made to take the place of another one.
#[must_use]
pub fn is_replacement(name: &str) -> bool {
    owner_of(name).is_some()
}

fn owner_of(name: &str) -> Option<&str> {
    name.split_once(SUFFIX).map(|(owner, _)| owner)
}

/// The name that a structure of a replacement gets.
fn final_name(name: &str, owner: &str) -> Option<String> {
    let rest = name.strip_prefix(owner)?.strip_prefix(SUFFIX)?;
    Some(format!("{owner}{rest}"))
}

impl Replacement {
    /// The name under which it is made.
    #[must_use]
    pub fn name(&self) -> String {
        format!("{}{SUFFIX}", self.owner)
    }

    /// Puts what was made in the place of the `replaced` structures, with all parts of both, durably and at once.
    ///
    /// # Errors
    /// A structure that is open, a failed write.
    pub fn finish(mut self, replaced: &[&str]) -> Result<()> {
        let volume = self.volume.clone();
        let names: Vec<_> = volume.structures().into_iter().map(|it| (it.name, it.kind)).collect();
        let (mut old, mut new) = (Vec::new(), Vec::new());
        for (name, kind) in names {
            let is_old = |owner: &&str| name == *owner || is_part_of(&name, owner);
            if let Some(own) = final_name(&name, &self.owner) {
                new.push((volume.open_structure(&name, &kind)?.id, own));
            } else if replaced.iter().any(is_old) {
                old.push(volume.open_structure(&name, &kind)?.id);
            }
        }
        {
            let mut root = volume.inner.root();
            old.into_iter().for_each(|id| root.remove(id));
            new.into_iter().for_each(|(id, name)| root.rename(id, name));
        }
        self.is_done = true;
        volume.replaced().remove(&self.owner);
        volume.checkpoint()
    }

    fn remove_made(&self) -> Result<()> {
        let structures = self.volume.structures();
        let made = structures.iter().filter(|it| final_name(&it.name, &self.owner).is_some());
        let mut is_any = false;
        for structure in made {
            let id = self.volume.open_structure(&structure.name, &structure.kind)?.id;
            self.volume.inner.root().remove(id);
            is_any = true;
        }
        if is_any { self.volume.checkpoint() } else { Ok(()) }
    }
}

impl Drop for Replacement {
    fn drop(&mut self) {
        if !self.is_done {
            // What cannot be removed now is removed when the volume is opened the next time.
            let _ = self.remove_made();
            self.volume.replaced().remove(&self.owner);
        }
    }
}
