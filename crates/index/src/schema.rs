//! Schemas of configurations: each parameter of a structure is declared once, in the order of its bytes on flash.
//!
//! From a declaration, the `parameters!` macro makes the structure's `Config`, its smallest limits, its bytes in
//! both directions, the check of each range, its values as text in both directions, and the list of its parameters for
//! people and programs.

use nandex_store::bytes::Reader;

use crate::{Error, Result};

/// A parameter that a structure is created with.
#[derive(Clone, Copy, Debug)]
pub struct ParameterSpec {
    /// Its name, as errors and reports give it.
    pub name: &'static str,
    /// Its meaning, in the words of the field's documentation.
    pub meaning: &'static str,
    /// The values that it can have, if that does not depend on other parameters.
    pub range: Range,
}

/// The values that a parameter can have.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Range {
    /// It is not a number, or depends on other parameters, which are checked together.
    Any,
    /// At least and at most these.
    Within(u64, u64),
    /// The powers of two up to this one.
    PowerOfTwo(u64),
}

impl Range {
    /// Refuses a number out of range; `None` is a value that is no number.
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

/// A value of a configuration, as it is kept on flash.
pub trait Stored: Sized {
    /// Appends its bytes.
    fn put(&self, out: &mut Vec<u8>);

    /// Reads it from bytes that may be anything.
    ///
    /// # Errors
    /// Corruption, told by the reader.
    fn take(reader: &mut Reader<'_>) -> Result<Self>;

    /// The number that a range is about.
    fn number(&self) -> Option<u64> {
        None
    }

    /// Its value as text, which [`parse`](Self::parse) takes.
    fn show(&self) -> String;

    /// Reads a value from text.
    ///
    /// # Errors
    /// What a value can be.
    fn parse(text: &str) -> std::result::Result<Self, String>;

    /// Sets it, or the part of it that `path` names, from text.
    ///
    /// # Errors
    /// No part of that name; what a value can be.
    fn set(&mut self, path: &str, text: &str) -> std::result::Result<(), String> {
        if !path.is_empty() {
            return Err(format!("it has no part {path:?}"));
        }
        *self = Self::parse(text)?;
        Ok(())
    }

    /// Appends its values by their names, of which the first is this one.
    fn list(&self, name: &str, out: &mut Vec<(String, String)>) {
        out.push((name.to_owned(), self.show()));
    }
}

/// Reads one of several words.
///
/// # Errors
/// The words.
pub(crate) fn word<T: Copy>(text: &str, words: &[(&str, T)]) -> std::result::Result<T, String> {
    let found = words.iter().find(|(word, _)| *word == text).map(|(_, value)| *value);
    found.ok_or_else(|| {
        let words: Vec<_> = words.iter().map(|(word, _)| *word).collect();
        format!("{text:?} is none of {}", words.join(", "))
    })
}

/// The word of a value.
pub(crate) fn word_of<T: PartialEq>(value: &T, words: &[(&str, T)]) -> String {
    words
        .iter()
        .find(|(_, it)| it == value)
        .map_or_else(String::new, |(word, _)| (*word).to_owned())
}

/// A value whose bytes are in two places.
pub trait StoredInParts: Stored {
    /// Appends the bytes that [`put`](Stored::put) has left out.
    fn put_rest(&self, out: &mut Vec<u8>);

    /// Reads these.
    ///
    /// # Errors
    /// Corruption, told by the reader.
    fn take_rest(self, reader: &mut Reader<'_>) -> Result<Self>;
}

macro_rules! stored_numbers {
    ($($number:ident),*) => {$(
        impl Stored for $number {
            fn put(&self, out: &mut Vec<u8>) {
                out.extend_from_slice(&self.to_le_bytes());
            }

            fn take(reader: &mut Reader<'_>) -> Result<Self> {
                Ok(reader.$number()?)
            }

            fn number(&self) -> Option<u64> {
                Some((*self).into())
            }

            fn show(&self) -> String {
                self.to_string()
            }

            fn parse(text: &str) -> std::result::Result<Self, String> {
                let most = Self::MAX;
                let number = crate::size::parse(text)?;
                number.try_into().map_err(|_| format!("{number} is more than {most}"))
            }
        }

        /// Zero stands for `None`.
        impl Stored for Option<$number> {
            fn put(&self, out: &mut Vec<u8>) {
                self.unwrap_or(0).put(out);
            }

            fn take(reader: &mut Reader<'_>) -> Result<Self> {
                Ok(Some($number::take(reader)?).filter(|number| *number > 0))
            }

            fn number(&self) -> Option<u64> {
                self.map(Into::into)
            }

            fn show(&self) -> String {
                self.map_or_else(|| "none".to_owned(), |number| number.show())
            }

            fn parse(text: &str) -> std::result::Result<Self, String> {
                if text == "none" { Ok(None) } else { $number::parse(text).map(Some) }
            }
        }
    )*};
}

stored_numbers!(u8, u32, u64);

/// A width in bytes, in a 32-bit number.
impl Stored for usize {
    fn put(&self, out: &mut Vec<u8>) {
        u32::try_from(*self).expect("a width that was checked is small").put(out);
    }

    fn take(reader: &mut Reader<'_>) -> Result<Self> {
        Ok(reader.u32()? as usize)
    }

    fn number(&self) -> Option<u64> {
        Some(*self as u64)
    }

    fn show(&self) -> String {
        self.to_string()
    }

    fn parse(text: &str) -> std::result::Result<Self, String> {
        u32::parse(text).map(|number| number as Self)
    }
}

/// A width in bytes, in one byte.
#[derive(Debug)]
pub struct Byte;

impl Byte {
    /// Appends its byte.
    pub fn put(bytes: &usize, out: &mut Vec<u8>) {
        out.push(u8::try_from(*bytes).expect("a width that was checked is at most 64"));
    }

    /// Reads it.
    ///
    /// # Errors
    /// Corruption: no byte is left.
    pub fn take(reader: &mut Reader<'_>) -> Result<usize> {
        Ok(reader.u8()?.into())
    }
}

impl Stored for f64 {
    fn put(&self, out: &mut Vec<u8>) {
        self.to_bits().put(out);
    }

    fn take(reader: &mut Reader<'_>) -> Result<Self> {
        Ok(Self::from_bits(reader.u64()?))
    }

    fn show(&self) -> String {
        self.to_string()
    }

    fn parse(text: &str) -> std::result::Result<Self, String> {
        text.parse().map_err(|_| format!("{text:?} is no number"))
    }
}

impl Stored for bool {
    fn put(&self, out: &mut Vec<u8>) {
        out.push(u8::from(*self));
    }

    fn take(reader: &mut Reader<'_>) -> Result<Self> {
        choice(reader, &[false, true], "0 or 1")
    }

    fn show(&self) -> String {
        self.to_string()
    }

    fn parse(text: &str) -> std::result::Result<Self, String> {
        word(text, &[("false", false), ("true", true)])
    }
}

/// Reads a choice that is stored as its number in `all`.
///
/// # Errors
/// Corruption: another number, where `expected` was.
pub(crate) fn choice<T: Copy>(
    reader: &mut Reader<'_>,
    all: &[T],
    expected: &'static str,
) -> Result<T> {
    let number = reader.u8()?;
    let found = all.get(usize::from(number)).copied();
    found.ok_or_else(|| reader.refuse(expected, number).into())
}

/// Reads the version that a configuration begins with.
///
/// # Errors
/// Corruption: another version.
pub fn check_version(kind: &str, version: u8, reader: &mut Reader<'_>) -> Result<()> {
    match reader.u8()? {
        found if found == version => Ok(()),
        found => Err(reader.refuse(format!("{kind} configuration {version}"), found).into()),
    }
}

/// Declares the configuration of a structure: the name of its kind and the version of its bytes, then its parameters
/// in the order of their bytes. A parameter has a type, the smallest value that works in `tiny`, and, after `in`,
/// the values that it can have; `then` names a parameter, the rest of whose bytes follow here. `tiny [const]` makes
/// `tiny` a constant function.
///
/// What the values of several parameters have to do with one another is the type's own `validate`, which calls
/// `check_ranges` first.
#[doc(hidden)]
#[macro_export]
macro_rules! parameters {
    (
        $(#[$meta:meta])*
        pub struct $config:ident: $kind:expr, version $version:literal, tiny [$($const:tt)?];
        $(
            $(#[doc = $doc:literal])*
            $field:ident: $type:ty $(as $stored:ty)? = $tiny:expr
            $(, in $range:expr)? $(, then $rest:ident)?;
        )*
    ) => {
        $(#[$meta])*
        pub struct $config {
            $($(#[doc = $doc])* pub $field: $type,)*
        }

        impl $config {
            /// The parameters, in the order of their bytes on flash.
            pub const PARAMETERS: &'static [$crate::raw::schema::ParameterSpec] = &[$(
                $crate::raw::schema::ParameterSpec {
                    name: stringify!($field),
                    meaning: concat!($($doc, "\n"),*),
                    range: $crate::parameters!(@range $($range)?),
                },
            )*];

            /// The smallest limits that work, so that tests reach every one of them.
            #[must_use]
            pub $($const)? fn tiny() -> Self {
                Self { $($field: $tiny,)* }
            }

            /// Refuses a parameter that is out of its range.
            fn check_ranges(&self) -> $crate::Result<()> {
                use $crate::raw::schema::Stored;
                let numbers = [$(self.$field.number(),)*];
                let mut all = Self::PARAMETERS.iter().zip(numbers);
                all.try_for_each(|(it, number)| it.range.check(it.name, number))
            }

            /// Its bytes, as the catalog keeps them.
            pub(crate) fn encode(&self) -> Vec<u8> {
                let mut out = vec![$version];
                $(
                    $crate::parameters!(@put &self.$field, &mut out $(, $stored)?);
                    $($crate::raw::schema::StoredInParts::put_rest(&self.$rest, &mut out);)?
                )*
                out
            }

            /// Reads a configuration from bytes that may be anything.
            pub(crate) fn decode(
                reader: &mut $crate::raw::store::bytes::Reader<'_>,
            ) -> $crate::Result<Self> {
                $crate::raw::schema::check_version($kind, $version, reader)?;
                $(
                    let $field: $type = $crate::parameters!(@take reader $(, $stored)?);
                    $(let $rest = $crate::raw::schema::StoredInParts::take_rest($rest, reader)?;)?
                )*
                let config = Self { $($field,)* };
                config.validate().map_err(|it| reader.refuse("a configuration that works", it))?;
                Ok(config)
            }
        }

        /// As part of another configuration, with its version.
        impl $crate::raw::schema::Stored for $config {
            fn put(&self, out: &mut Vec<u8>) {
                out.extend(self.encode());
            }

            fn take(reader: &mut $crate::raw::store::bytes::Reader<'_>) -> $crate::Result<Self> {
                Self::decode(reader)
            }

            fn show(&self) -> String {
                format!("{self:?}")
            }

            fn parse(_text: &str) -> std::result::Result<Self, String> {
                Err("state its own parameters, one by one, after a dot".to_owned())
            }

            fn set(&mut self, path: &str, text: &str) -> std::result::Result<(), String> {
                let (name, part) = path.split_once('.').unwrap_or((path, ""));
                match name {
                    $(stringify!($field) => {
                        $crate::raw::schema::Stored::set(&mut self.$field, part, text)
                    })*
                    _ => {
                        let names: Vec<_> = Self::PARAMETERS.iter().map(|it| it.name).collect();
                        Err(format!("{name:?} is no parameter; there are {}", names.join(", ")))
                    }
                }
            }

            fn list(&self, name: &str, out: &mut Vec<(String, String)>) {
                let at = if name.is_empty() { String::new() } else { format!("{name}.") };
                $($crate::raw::schema::Stored::list(
                    &self.$field,
                    &format!("{at}{}", stringify!($field)),
                    out,
                );)*
            }
        }
    };
    (@put $value:expr, $out:expr) => { $crate::raw::schema::Stored::put($value, $out) };
    (@put $value:expr, $out:expr, $stored:ty) => { <$stored>::put($value, $out) };
    (@take $reader:expr) => { $crate::raw::schema::Stored::take($reader)? };
    (@take $reader:expr, $stored:ty) => { <$stored>::take($reader)? };
    (@range) => { $crate::raw::schema::Range::Any };
    (@range $range:expr) => { $range };
}

pub use crate::parameters;

/// What [`Configuration`](crate::Configuration) asks of every configuration that is declared by `parameters!`.
macro_rules! configuration {
    ($kind:expr) => {
        fn kind(&self) -> &'static str {
            $kind
        }

        fn encode(&self) -> Vec<u8> {
            Self::encode(self)
        }

        fn validate(&self) -> $crate::Result<()> {
            Self::validate(self)
        }

        fn specs(&self) -> &'static [$crate::raw::schema::ParameterSpec] {
            Self::PARAMETERS
        }

        fn values(&self) -> Vec<(String, String)> {
            let mut out = Vec::new();
            $crate::raw::schema::Stored::list(self, "", &mut out);
            out
        }

        fn with(&self, name: &str, value: &str) -> $crate::Result<$crate::AnyConfig> {
            let mut config = self.clone();
            $crate::raw::schema::Stored::set(&mut config, name, value)
                .map_err(|reason| $crate::raw::schema::refusal(name, reason))?;
            Ok(config.into())
        }
    };
}

pub(crate) use configuration;

/// The refusal of a value that was stated for a parameter.
#[must_use]
pub fn refusal(name: &str, reason: String) -> Error {
    Error::Config { field: "parameter", reason: format!("{name}: {reason}") }
}

#[cfg(test)]
mod tests {
    use nandex_device::PageId;

    use super::*;

    const KIND: &str = "example";

    parameters! {
        /// An example.
        #[derive(Clone, PartialEq, Debug)]
        pub struct Config: KIND, version 3, tiny [const];

        /// Whether it is.
        flag: bool = true;

        /// Partitions.
        /// Each has two halves.
        partitions: u32 = 4, in Range::PowerOfTwo(64);

        /// Bytes at most.
        bytes_max: Option<u64> = None, in Range::Within(10, 20);

        /// Bytes in a key.
        key_bytes: usize = 8, in Range::Within(8, 32);
    }

    impl Config {
        fn validate(&self) -> Result<()> {
            self.check_ranges()
        }
    }

    fn read_back(bytes: &[u8]) -> Result<Config> {
        Config::decode(&mut Reader::new(bytes, "configuration", PageId(0)))
    }

    #[test]
    fn a_configuration_is_its_version_and_its_parameters_in_their_order() {
        let bytes = Config::tiny().encode();
        assert_eq!(bytes, [3, 1, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 8, 0, 0, 0]);
        for bytes_max in [None, Some(12)] {
            let config = Config { bytes_max, flag: false, ..Config::tiny() };
            assert_eq!(read_back(&config.encode()).unwrap(), config);
        }
        assert!((0..bytes.len()).all(|length| read_back(&bytes[..length]).is_err()));
        for (at, value) in [(0, 2), (1, 2), (2, 5), (6, 9), (14, 33)] {
            let mut bad = bytes.clone();
            bad[at] = value;
            assert!(read_back(&bad).is_err(), "{at}");
        }
    }

    #[test]
    fn a_parameter_out_of_its_range_is_refused_by_its_name() {
        let refusal = |config: Config| config.validate().unwrap_err().to_string();
        assert!(
            refusal(Config { partitions: 0, ..Config::tiny() }).starts_with("partitions: 0 is")
        );
        assert!(refusal(Config { partitions: 128, ..Config::tiny() }).contains("up to 64"));
        assert!(refusal(Config { bytes_max: Some(9), ..Config::tiny() }).contains("10..=20"));
        assert!(refusal(Config { key_bytes: 7, ..Config::tiny() }).starts_with("key_bytes: 7"));
    }

    #[test]
    fn parameters_are_listed_with_their_meaning_and_range() {
        let names: Vec<_> = Config::PARAMETERS.iter().map(|it| it.name).collect();
        assert_eq!(names, ["flag", "partitions", "bytes_max", "key_bytes"]);
        assert_eq!(Config::PARAMETERS[1].meaning, " Partitions.\n Each has two halves.\n");
        assert_eq!(Config::PARAMETERS[1].range, Range::PowerOfTwo(64));
    }
}
