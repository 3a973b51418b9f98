//! The specification of a parameter, for people and programs: its name, its meaning, and its allowed values.

use crate::{Error, Result};

/// Counts bytes on flash.
pub type CountBytes = fn() -> usize;

/// A parameter that a structure is created with.
#[derive(Clone, Copy, Debug)]
pub struct ParameterSpec {
    /// Its name, as errors and reports give it.
    pub name: &'static str,
    /// Its meaning, in the words of the field's documentation.
    pub meaning: &'static str,
    /// The texts that it accepts, such as `true or false`.
    pub form: &'static str,
    /// Its allowed values, if they do not depend on other parameters.
    pub range: Range,
    /// The bytes that it takes on flash; for one without a fixed length, those of the smallest configuration.
    pub bytes: CountBytes,
    /// An earlier parameter whose remaining bytes follow it, and their number.
    pub then: Option<(&'static str, CountBytes)>,
}

impl ParameterSpec {
    /// Describes its allowed values, for people.
    #[must_use]
    pub fn values(&self) -> String {
        let or_none = if self.form == NUMBER_OR_NONE { ", or none" } else { "" };
        match self.range {
            Range::Any => self.form.to_owned(),
            Range::Within(least, most) => format!("{} to {}{or_none}", shown(least), shown(most)),
            Range::PowerOfTwo(most) => format!("a power of two up to {}{or_none}", shown(most)),
        }
    }
}

/// The description of numbers.
pub(super) const NUMBER: &str = "a number";
pub(super) const NUMBER_OR_NONE: &str = "a number, or none";

/// Formats a bound of a range, for people.
fn shown(number: u64) -> String {
    match number {
        _ if number == u64::from(u32::MAX) => "2^32 - 1".to_owned(),
        _ if number.is_power_of_two() && number > 1 << 16 => format!("2^{}", number.ilog2()),
        _ => crate::model::text::count(number),
    }
}

/// The allowed values of a parameter.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Range {
    /// Any value: it is not a number, or depends on other parameters, which are checked together.
    Any,
    /// The numbers from the first to the second, both included.
    Within(u64, u64),
    /// The powers of two up to this one.
    PowerOfTwo(u64),
}

impl Range {
    /// Fails for a number out of range; `None` is a value that is not a number.
    ///
    /// # Errors
    /// [`Error::Config`], naming the field.
    pub fn check(self, field: &'static str, found: Option<u64>) -> Result<()> {
        let Some(found) = found else { return Ok(()) };
        let reason = match self {
            Self::Within(least, most) if !(least..=most).contains(&found) => {
                format!("{found} is not in {least}..={most}")
            }
            Self::PowerOfTwo(most) if !found.is_power_of_two() || found > most => {
                format!("{found} is no power of two up to {most}")
            }
            _ => return Ok(()),
        };
        Err(Error::Config { field, reason })
    }
}

/// Returns the reason for rejecting an unknown name: a list of all parameters, with the allowed values and the default
/// of each.
#[must_use]
pub fn unknown(name: &str, specs: &[ParameterSpec], values: &[(String, String)]) -> String {
    let shown = |(path, value): &(String, String)| {
        let spec = specs.iter().find(|spec| spec.name == path);
        let can_be = spec.map_or_else(String::new, |spec| format!("{}; ", spec.values()));
        format!("{path} ({can_be}{value} unless stated)")
    };
    let all: Vec<_> = values.iter().map(shown).collect();
    format!("{name:?} is not a parameter; the parameters are {}", all.join(", "))
}
