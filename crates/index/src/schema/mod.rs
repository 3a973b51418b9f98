//! Schemas of configurations: each parameter of a structure is declared once, in the order of its bytes on flash.
//!
//! From a declaration, the `parameters!` macro generates the structure's `Config`, its smallest limits, its encoding
//! and decoding, the range check of each parameter, parsing and formatting of values as text, and the list of its
//! parameters for people and programs.

mod choice;
mod spec;
mod when_full;

use std::ops::RangeInclusive;

use nandex_store::bytes::Reader;

pub use crate::options::OptionSpec;
pub(crate) use choice::{Choice, choice, word, word_of};
use spec::{NUMBER, NUMBER_OR_NONE};
pub use spec::{ParameterSpec, Range, unknown};
pub(crate) use when_full::{FifoOrReject, GrowOrRefuse};

use crate::{Error, Result};

/// A value of a configuration, as it is stored on flash.
pub trait Stored: Sized {
    /// The texts that [`parse`](Self::parse) accepts, for people.
    const FORM: &'static str;

    /// Appends its bytes.
    fn put(&self, out: &mut Vec<u8>);

    /// Decodes it from untrusted bytes.
    ///
    /// # Errors
    /// Corruption, reported by the reader.
    fn take(reader: &mut Reader<'_>) -> Result<Self>;

    /// The number that a range applies to.
    fn number(&self) -> Option<u64> {
        None
    }

    /// Fails for a value of its type that this parameter does not allow.
    ///
    /// # Errors
    /// A description of the allowed values.
    fn check_value(&self) -> std::result::Result<(), String> {
        Ok(())
    }

    /// Formats the value as text, which [`parse`](Self::parse) accepts.
    fn show(&self) -> String;

    /// Parses a value.
    ///
    /// # Errors
    /// A description of the allowed values.
    fn parse(text: &str) -> std::result::Result<Self, String>;

    /// Sets the value, or the part of it that `path` names, from text.
    ///
    /// # Errors
    /// No part of that name, or a description of the allowed values.
    fn set(&mut self, path: &str, text: &str) -> std::result::Result<(), String> {
        if !path.is_empty() {
            return Err(format!("it has no part {path:?}"));
        }
        *self = Self::parse(text)?;
        Ok(())
    }

    /// Appends its values by name; the first name is its own.
    fn list(&self, name: &str, out: &mut Vec<(String, String)>) {
        out.push((name.to_owned(), self.show()));
    }
}

/// A value whose bytes are in two places.
pub trait StoredInParts: Stored {
    /// Appends the bytes that [`put`](Stored::put) has left out.
    fn put_rest(&self, out: &mut Vec<u8>);

    /// Decodes these bytes.
    ///
    /// # Errors
    /// Corruption, reported by the reader.
    fn take_rest(self, reader: &mut Reader<'_>) -> Result<Self>;
}

/// Stores a parameter of type `$value` as a `$kept`, which wraps it: `name: $value as $kept`.
macro_rules! kept_as {
    ($kept:ident, $value:ty) => {
        impl From<$value> for $kept {
            fn from(value: $value) -> Self {
                Self(value)
            }
        }

        impl From<$kept> for $value {
            fn from(kept: $kept) -> Self {
                kept.0
            }
        }
    };
}

use kept_as;

macro_rules! stored_numbers {
    ($($number:ident),*) => {$(
        impl Stored for $number {
            const FORM: &'static str = NUMBER;

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
            const FORM: &'static str = NUMBER_OR_NONE;

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
    const FORM: &'static str = NUMBER;

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
pub struct Byte(usize);

kept_as!(Byte, usize);

impl Stored for Byte {
    const FORM: &'static str = NUMBER;

    fn put(&self, out: &mut Vec<u8>) {
        out.push(u8::try_from(self.0).expect("a width that was checked is at most 64"));
    }

    fn take(reader: &mut Reader<'_>) -> Result<Self> {
        Ok(Self(reader.u8()?.into()))
    }

    fn number(&self) -> Option<u64> {
        self.0.number()
    }

    fn show(&self) -> String {
        self.0.show()
    }

    fn parse(text: &str) -> std::result::Result<Self, String> {
        usize::parse(text).map(Self)
    }
}

impl Stored for f64 {
    const FORM: &'static str = NUMBER;

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

/// Reads the version that a configuration begins with: the latest, or an earlier one that lacks parameters.
///
/// # Errors
/// Corruption: another version.
pub fn take_version(
    kind: &str,
    versions: RangeInclusive<u8>,
    reader: &mut Reader<'_>,
) -> Result<u8> {
    let found = reader.u8()?;
    if versions.contains(&found) {
        return Ok(found);
    }
    let (first, last) = (versions.start(), versions.end());
    let earlier = if first < last { format!("{first} to ") } else { String::new() };
    Err(reader.refuse(format!("{kind} configuration {earlier}{last}"), found).into())
}

/// Declares the configuration of a structure: the name of its kind and the version of its bytes, then its parameters in
/// the order of their bytes. A parameter has a type, the smallest value that works in `tiny`, and, after `in`, its
/// allowed values. `as` names the type that defines its bytes and texts, if that is another one, and `then` a parameter
/// whose remaining bytes follow here. `since` is the version that introduced it: configurations of the version before
/// are read too, and have its value in `tiny`. `tiny [const]` makes `tiny` a constant function.
///
/// The type's own `validate` checks how the values of several parameters work together; it calls `check_ranges` first.
#[doc(hidden)]
#[macro_export]
macro_rules! parameters {
    (
        $(#[$meta:meta])*
        pub struct $config:ident: $kind:expr, version $version:literal, tiny [$($const:tt)?];
        $(
            $(#[doc = $doc:literal])*
            $field:ident: $type:ty $(as $stored:ty)? = $tiny:expr
            $(, in $range:expr)? $(, then $rest:ident)? $(, since $since:literal)?;
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
                    form: $crate::parameters!(@form $type $(, $stored)?),
                    range: $crate::parameters!(@range $($range)?),
                    bytes: || {
                        let mut out = Vec::new();
                        $crate::parameters!(@put Self::tiny().$field, &mut out $(, $stored)?);
                        out.len()
                    },
                    then: $crate::parameters!(@then $($rest)?),
                },
            )*];

            /// The smallest limits that work, so that tests reach every one of them.
            #[must_use]
            pub $($const)? fn tiny() -> Self {
                Self { $($field: $tiny,)* }
            }

            /// Fails for a parameter that is out of its range.
            fn check_ranges(&self) -> $crate::Result<()> {
                use $crate::raw::schema::Stored;
                let checked = [$({
                    let kept = $crate::parameters!(@kept self.$field $(, $stored)?);
                    (kept.number(), kept.check_value())
                },)*];
                let mut all = Self::PARAMETERS.iter().zip(checked);
                all.try_for_each(|(it, (number, checked))| {
                    checked.map_err(|reason| $crate::Error::Config { field: it.name, reason })?;
                    it.range.check(it.name, number)
                })
            }

            /// Encodes it as the catalog stores it.
            pub(crate) fn encode(&self) -> Vec<u8> {
                let mut out = vec![$version];
                $(
                    $crate::parameters!(@put self.$field, &mut out $(, $stored)?);
                    $($crate::raw::schema::StoredInParts::put_rest(&self.$rest, &mut out);)?
                )*
                out
            }

            /// Decodes a configuration from untrusted bytes.
            pub(crate) fn decode(
                reader: &mut $crate::raw::store::bytes::Reader<'_>,
            ) -> $crate::Result<Self> {
                let first = [$($($since - 1,)?)* $version].into_iter().min().unwrap_or($version);
                let versions = first..=$version;
                let version = $crate::raw::schema::take_version($kind, versions, reader)?;
                $(
                    let $field: $type = if version >= $crate::parameters!(@since $($since)?) {
                        $crate::parameters!(@take reader $(, $stored)?)
                    } else {
                        $tiny
                    };
                    $(let $rest = $crate::raw::schema::StoredInParts::take_rest($rest, reader)?;)?
                )*
                let config = Self { $($field,)* };
                config.validate().map_err(|it| reader.refuse("a configuration that works", it))?;
                Ok(config)
            }
        }

        /// Stores it as part of another configuration, with its version.
        impl $crate::raw::schema::Stored for $config {
            const FORM: &'static str = "parameters of its own, after a dot";

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
                        $crate::parameters!(@set self.$field, part, text $(, $stored)?)
                    })*
                    _ => {
                        let mut values = Vec::new();
                        $crate::raw::schema::Stored::list(self, "", &mut values);
                        Err($crate::raw::schema::unknown(name, Self::PARAMETERS, &values))
                    }
                }
            }

            fn list(&self, name: &str, out: &mut Vec<(String, String)>) {
                let at = if name.is_empty() { String::new() } else { format!("{name}.") };
                $($crate::raw::schema::Stored::list(
                    $crate::parameters!(@kept self.$field $(, $stored)?),
                    &format!("{at}{}", stringify!($field)),
                    out,
                );)*
            }
        }
    };
    (@form $type:ty) => { <$type as $crate::raw::schema::Stored>::FORM };
    (@form $type:ty, $stored:ty) => { <$stored as $crate::raw::schema::Stored>::FORM };
    (@kept $value:expr) => { &$value };
    (@kept $value:expr, $stored:ty) => { &<$stored>::from($value) };
    (@put $value:expr, $out:expr $(, $stored:ty)?) => {
        $crate::raw::schema::Stored::put($crate::parameters!(@kept $value $(, $stored)?), $out)
    };
    (@take $reader:expr) => { $crate::raw::schema::Stored::take($reader)? };
    (@take $reader:expr, $stored:ty) => {
        <$stored as $crate::raw::schema::Stored>::take($reader)?.into()
    };
    (@set $value:expr, $part:expr, $text:expr) => {
        $crate::raw::schema::Stored::set(&mut $value, $part, $text)
    };
    (@set $value:expr, $part:expr, $text:expr, $stored:ty) => {{
        let mut kept = <$stored>::from($value);
        $crate::raw::schema::Stored::set(&mut kept, $part, $text)?;
        $value = kept.into();
        Ok(())
    }};
    (@then) => { None };
    (@then $rest:ident) => {
        Some((stringify!($rest), || {
            let mut out = Vec::new();
            $crate::raw::schema::StoredInParts::put_rest(&Self::tiny().$rest, &mut out);
            out.len()
        }))
    };
    (@since) => { 1 };
    (@since $since:literal) => { $since };
    (@range) => { $crate::raw::schema::Range::Any };
    (@range $range:expr) => { $range };
}

pub use crate::parameters;

/// Implements what [`Configuration`](crate::Configuration) requires of a configuration declared with `parameters!`.
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

/// Returns the error for a value that was stated for a parameter.
#[must_use]
pub fn refusal(name: &str, reason: String) -> Error {
    Error::Config { field: "parameter", reason: format!("{name}: {reason}") }
}

#[cfg(test)]
mod tests;
