//! The parameters of a structure, as the command line gives them and as figures list them.

use anyhow::{Context, Result};
use nandex::AnyConfig;
use nandex::raw::{Configuration, Stated};
use serde_json::{Map, Value};

use crate::refuse;

/// The parameters given by name.
#[derive(Clone, Debug, Default, clap::Args)]
pub struct StatedArgs {
    /// Parameter of the structure, such as spare_buffers=4 or filter.bits=14, or option of this run, such as
    /// read_depth=64; may be given several times. A new structure is created with it in place of the value that the
    /// limits lead to; an existing one must have it. An unknown name is rejected with a list of all; `nandex
    /// parameters` lists them
    #[arg(long, value_name = "NAME=VALUE", value_parser = stated)]
    set: Vec<(String, String)>,
}

fn stated(text: &str) -> Result<(String, String), String> {
    let split = text.split_once('=');
    let stated = split.map(|(name, value)| (name.trim().to_owned(), value.trim().to_owned()));
    stated.ok_or_else(|| "write it as NAME=VALUE, such as partitions=64".to_owned())
}

impl StatedArgs {
    /// Returns the given parameters.
    pub fn stated(&self) -> Stated {
        self.set.iter().cloned().collect()
    }

    /// Returns whether no parameter was given.
    pub fn is_empty(&self) -> bool {
        self.set.is_empty()
    }

    /// Rejects these parameters, at any depth.
    ///
    /// # Errors
    /// One of them was given; the message adds `why` it cannot be.
    pub fn refuse(&self, names: &[&str], why: &str) -> Result<()> {
        let is_one = |path: &str| path.rsplit('.').next().is_some_and(|it| names.contains(&it));
        match self.set.iter().find(|(path, _)| is_one(path)) {
            Some((path, _)) => refuse!("--set {path}: {why}"),
            None => Ok(()),
        }
    }

    /// Returns the configuration with the given values in place of its own.
    ///
    /// # Errors
    /// As [`Stated::on_one`].
    pub fn on_one<C: Configuration + Clone>(&self, config: C) -> Result<C> {
        self.stated().on_one(config).context("--set")
    }
}

/// All parameters of a structure and their values, by the names that `--set` takes.
#[derive(Clone, Debug, serde::Serialize)]
#[serde(transparent)]
pub struct Values(Map<String, Value>);

impl Values {
    /// Returns the values of a configuration, in the order of their bytes.
    pub fn of(config: &AnyConfig) -> Self {
        Self(config.values().into_iter().map(|(name, value)| (name, value.into())).collect())
    }

    /// Returns a line of a list of figures.
    pub fn row(&self) -> (&'static str, String) {
        let shown = |(name, value): (&String, &Value)| {
            format!("{name}={}", value.as_str().unwrap_or_default())
        };
        ("parameters", self.0.iter().map(shown).collect::<Vec<_>>().join(" "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use nandex::cascade;

    #[test]
    fn what_was_stated_takes_the_place_of_what_was_advised_and_is_listed() {
        let args = |words: &[&str]| StatedArgs {
            set: words.iter().map(|it| stated(it).unwrap()).collect(),
        };
        let config = args(&["fan_out=8", "parts = 2"]).on_one(cascade::Config::tiny()).unwrap();
        assert_eq!((config.fan_out, config.parts), (Some(8), 2));
        let (_, shown) = Values::of(&config.into()).row();
        assert!(shown.contains("parts=2") && shown.contains("fan_out=8"), "{shown}");
        let refused = args(&["parts=0"]).on_one(config).unwrap_err();
        assert!(format!("{refused:#}").starts_with("--set: "), "{refused:#}");
    }
}
