//! Parameters that a builder was told by their names.

use crate::any::Configuration;
use crate::{AnyConfig, Error, Result};

/// Parameters that calls of a builder state, by their names, each with the call.
pub(super) type Calls = &'static [(&'static str, &'static str)];

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

    /// The same, where calls of the builder state these parameters, at whatever depth they are.
    ///
    /// # Errors
    /// As [`on`](Self::on); a statement that differs from what the calls led to.
    pub(super) fn on_with(&self, config: &AnyConfig, calls: Calls) -> Result<AnyConfig> {
        let made = self.on(config)?;
        let differs = |(had, has): &((String, String), (String, String))| had != has;
        for ((name, had), (_, has)) in
            config.values().into_iter().zip(made.values()).filter(differs)
        {
            let own = name.rsplit('.').next();
            if let Some((_, call)) = calls.iter().find(|(it, _)| Some(*it) == own) {
                let reason = format!(
                    "{name} is {had} by `{call}`, and was stated as {has}; state it with `{call}`"
                );
                return Err(Error::Config { field: "parameter", reason });
            }
        }
        Ok(made)
    }

    /// The same for the configuration of one structure.
    ///
    /// # Errors
    /// As [`on_with`](Self::on_with).
    pub(super) fn on_one<C: Configuration + Clone>(&self, config: C, calls: Calls) -> Result<C> {
        self.on_with(&config.into(), calls)?.of().cloned()
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
