//! Keys and values as text: hexadecimal, plain text, or a number.
//!
//! A table of fixed widths accepts keys of one width. A key of another width is an error, never padded or cut.

use std::fmt;

use clap::ValueEnum;

/// The text format of a key or a value.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, ValueEnum)]
pub enum FieldFormat {
    /// Two hexadecimal digits for each byte, with or without `0x` in front
    #[default]
    Hex,
    /// The bytes themselves, as UTF-8
    Text,
    /// A number from 0 to 2^64 - 1, stored as 8 bytes, little-endian
    U64,
}

/// The number of bytes in a number.
const NUMBER_BYTES: usize = 8;

/// The role of a field, for error messages.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Role {
    /// A key.
    Key,
    /// A value.
    Value,
}

impl fmt::Display for Role {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Key => "key",
            Self::Value => "value",
        })
    }
}

/// One column of a table: its role, its width, and its format.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Column {
    /// Key or value.
    pub role: Role,
    /// The bytes of each; `None` if they may have any size.
    pub bytes: Option<usize>,
    /// The format.
    pub format: FieldFormat,
}

impl Column {
    /// Creates a column of this width and format.
    ///
    /// # Errors
    /// The u64 format for a width other than 8 bytes.
    pub fn new(role: Role, bytes: Option<usize>, format: FieldFormat) -> Result<Self, String> {
        match bytes.filter(|bytes| format == FieldFormat::U64 && *bytes != NUMBER_BYTES) {
            Some(bytes) => Err(format!(
                "this table has {role}s of {bytes} bytes; the u64 format is for {NUMBER_BYTES}, use hex or text"
            )),
            None => Ok(Self { role, bytes, format }),
        }
    }

    /// Reads one field.
    ///
    /// # Errors
    /// A sentence with the fault of the text and the expected one.
    pub fn parse(&self, text: &str) -> Result<Vec<u8>, String> {
        let bytes = match self.format {
            FieldFormat::Hex => self.parse_hex(text)?,
            FieldFormat::Text => text.as_bytes().to_vec(),
            FieldFormat::U64 => self.parse_number(text)?.to_le_bytes().to_vec(),
        };
        self.check_width(bytes)
    }

    /// Formats one field so that `parse` returns the same bytes.
    ///
    /// # Errors
    /// Bytes that are not text in the text format.
    pub fn show(&self, bytes: &[u8]) -> Result<String, String> {
        match self.format {
            FieldFormat::Hex => Ok(hex(bytes)),
            FieldFormat::Text => self.show_text(bytes),
            FieldFormat::U64 => self.show_number(bytes),
        }
    }

    fn show_text(&self, bytes: &[u8]) -> Result<String, String> {
        let role = self.role;
        std::str::from_utf8(bytes).map(str::to_owned).map_err(|_| {
            format!("the {role} {} is not UTF-8; show {role}s with --{role}-format hex", hex(bytes))
        })
    }

    fn show_number(&self, bytes: &[u8]) -> Result<String, String> {
        let role = self.role;
        bytes.try_into().map(|bytes| u64::from_le_bytes(bytes).to_string()).map_err(|_| {
            format!(
                "the {role} {} has {} bytes and is not a number of {NUMBER_BYTES}; show {role}s with \
                 --{role}-format hex or text",
                hex(bytes),
                bytes.len()
            )
        })
    }

    fn check_width(&self, bytes: Vec<u8>) -> Result<Vec<u8>, String> {
        let (role, found) = (self.role, bytes.len());
        match self.bytes.filter(|expected| *expected != found) {
            Some(expected) => Err(format!(
                "a {role} of {found} bytes: this table has {role}s of {expected} bytes"
            )),
            None => Ok(bytes),
        }
    }

    fn parse_number(&self, text: &str) -> Result<u64, String> {
        let role = self.role;
        text.trim().parse().map_err(|_| {
            format!("`{text}` is not a {role} in the u64 format: a whole number from 0 to 2^64 - 1")
        })
    }

    fn parse_hex(&self, text: &str) -> Result<Vec<u8>, String> {
        let role = self.role;
        let digits = text.trim();
        let digits = digits.strip_prefix("0x").unwrap_or(digits).as_bytes();
        let pairs = digits.chunks(2).map(|pair| match pair {
            [high, low] => Some(nibble(*high)? << 4 | nibble(*low)?),
            _ => None,
        });
        pairs.collect::<Option<Vec<u8>>>().ok_or_else(|| {
            format!(
                "`{text}` is not a {role} in the hex format: two digits from 0-9a-f for each byte \
                 (text and u64 are other formats)"
            )
        })
    }
}

fn nibble(digit: u8) -> Option<u8> {
    let value = char::from(digit).to_digit(16)?;
    u8::try_from(value).ok()
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(bytes: usize, format: FieldFormat) -> Column {
        Column::new(Role::Key, Some(bytes), format).unwrap()
    }

    #[test]
    fn what_is_shown_is_read_back() {
        let bytes = [0, 1, 0xfe, 0xff, b'a', b'b', b'c', b'd'];
        for format in [FieldFormat::Hex, FieldFormat::U64] {
            let column = key(8, format);
            assert_eq!(column.parse(&column.show(&bytes).unwrap()), Ok(bytes.to_vec()));
        }
        let column = key(4, FieldFormat::Text);
        assert_eq!(column.parse(&column.show(b"word").unwrap()), Ok(b"word".to_vec()));
    }

    #[test]
    fn hexadecimal_may_begin_with_0x() {
        assert_eq!(key(2, FieldFormat::Hex).parse("0x01aB"), Ok(vec![0x01, 0xab]));
        assert_eq!(key(2, FieldFormat::Hex).parse("01ab"), Ok(vec![0x01, 0xab]));
    }

    #[test]
    fn a_number_is_little_endian() {
        assert_eq!(key(8, FieldFormat::U64).parse("258"), Ok(vec![2, 1, 0, 0, 0, 0, 0, 0]));
    }

    #[test]
    fn a_field_of_the_wrong_width_is_refused_and_never_padded() {
        let error = key(8, FieldFormat::Text).parse("short").unwrap_err();
        assert_eq!(error, "a key of 5 bytes: this table has keys of 8 bytes");
        assert!(key(2, FieldFormat::Hex).parse("01").is_err());
        assert!(Column::new(Role::Value, Some(4), FieldFormat::U64).is_err());
    }

    #[test]
    fn a_field_of_any_size_is_read_and_shown() {
        let column = |format| Column::new(Role::Value, None, format).unwrap();
        for text in ["", "short", "longer than eight bytes"] {
            let bytes = column(FieldFormat::Text).parse(text).unwrap();
            assert_eq!(bytes, text.as_bytes());
            let shown = column(FieldFormat::Hex).show(&bytes).unwrap();
            assert_eq!(column(FieldFormat::Hex).parse(&shown).unwrap(), bytes);
        }
        assert_eq!(column(FieldFormat::U64).parse("7").unwrap(), [7, 0, 0, 0, 0, 0, 0, 0]);
        let error = column(FieldFormat::U64).show(b"seven").unwrap_err();
        assert!(error.contains("the value 736576656e has 5 bytes"), "{error}");
    }

    #[test]
    fn bytes_that_are_no_text_are_refused_rather_than_replaced() {
        let error = key(2, FieldFormat::Text).show(&[0xff, b'a']).unwrap_err();
        assert_eq!(error, "the key ff61 is not UTF-8; show keys with --key-format hex");
    }

    #[test]
    fn what_is_no_field_is_refused_with_a_reason() {
        assert!(key(2, FieldFormat::Hex).parse("0x1").unwrap_err().contains("two digits"));
        assert!(key(2, FieldFormat::Hex).parse("zz").unwrap_err().contains("two digits"));
        assert!(key(8, FieldFormat::U64).parse("-1").unwrap_err().contains("whole number"));
    }
}
