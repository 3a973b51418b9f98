//! Parameters that a builder was told by their names.

use crate::{AnyConfig, Configuration, Error, Result};

/// The parameters that were stated for a structure, as text, in their order.
#[derive(Clone, Debug, Default)]
pub(super) struct Stated(Vec<(String, String)>);

impl Stated {
    pub(super) fn add(&mut self, name: impl Into<String>, value: impl Into<String>) {
        self.0.push((name.into(), value.into()));
    }

    /// The configuration with the stated values in place of its own.
    ///
    /// # Errors
    /// As [`AnyConfig::with`].
    pub(super) fn on(&self, config: &AnyConfig) -> Result<AnyConfig> {
        config.with(self.0.iter().map(|(name, value)| (&name[..], &value[..])))
    }

    /// The same for the configuration of one structure.
    ///
    /// # Errors
    /// As [`on`](Self::on).
    pub(super) fn on_one<C: Configuration + Clone>(&self, config: C) -> Result<C> {
        self.on(&config.into())?.of().cloned()
    }

    /// Refuses a structure that exists with other values, and names both.
    ///
    /// # Errors
    /// [`Error::Config`]: a value that differs; as [`on`](Self::on).
    pub(super) fn check(&self, structure: &str, found: &AnyConfig) -> Result<()> {
        let (has, required) = (found.values(), self.on(found)?.values());
        let Some((has, required)) = has.iter().zip(&required).find(|(has, it)| has != it) else {
            return Ok(());
        };
        let ((name, has), (_, required)) = (has, required);
        let reason = format!(
            "{structure:?} exists with {name} = {has}, and was required with {required}; ask with what it has, or \
             choose another name"
        );
        Err(Error::Config { field: "parameter", reason })
    }
}
