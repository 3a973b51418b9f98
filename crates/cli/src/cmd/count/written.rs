//! The format of keys in inputs, on the command line, and in the output.

use std::borrow::Cow;

use anyhow::{Context, Result, anyhow};
use serde::Serialize;

use super::form::KeyForm;
use super::quoted::quoted;
use crate::field::{Column, FieldFormat, Role};
use crate::refuse;

/// Reads and shows the keys of a table.
#[derive(Clone, Copy, Debug)]
pub struct WrittenKeys {
    pub form: KeyForm,
    format: FieldFormat,
}

impl WrittenKeys {
    /// Creates a reader of this format; the default is u64 for numbers, hex for other keys of fixed width, and text for
    /// all others.
    ///
    /// # Errors
    /// The u64 format for keys that are not numbers.
    pub fn new(form: KeyForm, format: Option<FieldFormat>) -> Result<Self> {
        let format = format.unwrap_or(match form {
            KeyForm::Numbers => FieldFormat::U64,
            KeyForm::Fixed(_) => FieldFormat::Hex,
            KeyForm::Texts(_) | KeyForm::Fingerprints(_) => FieldFormat::Text,
        });
        if format == FieldFormat::U64 && form.width().is_none() {
            refuse!(
                "this table has keys of any length; the u64 format is for 8 bytes, use hex or text"
            );
        }
        Column::new(Role::Key, form.width().map(usize::from), format)
            .map_err(|why| anyhow!(why))?;
        Ok(Self { form, format })
    }

    /// Returns whether a key is written as plain text.
    pub fn is_text(&self) -> bool {
        self.format == FieldFormat::Text
    }

    /// Returns the key that is written in this way.
    ///
    /// # Errors
    /// A text that is not a key in the format.
    pub fn read<'w>(&self, written: &'w [u8]) -> Result<Cow<'w, [u8]>> {
        if self.is_text() {
            return Ok(Cow::Borrowed(written));
        }
        let column = Column { role: Role::Key, bytes: None, format: self.format };
        let text = std::str::from_utf8(written)
            .with_context(|| format!("`{}` is not UTF-8", String::from_utf8_lossy(written)))?;
        column.parse(text).map(Cow::Owned).map_err(|why| anyhow!(why))
    }

    /// Returns the stored bytes of the key that is written in this way.
    ///
    /// # Errors
    /// A text that is not a key in the format; a key of a length that the table does not accept.
    pub fn stored(&self, written: &[u8]) -> Result<Vec<u8>> {
        self.form.store(&self.read(written)?)
    }

    /// Returns the key of stored bytes, for a line of text: `build --weights` reads the same key.
    ///
    /// # Errors
    /// A stored key that this command did not make.
    pub fn line(&self, stored: &[u8]) -> Result<String> {
        self.shown().key_line(self.form.key_of(stored)?)
    }

    /// Returns the format in which stored keys are shown: hex for fingerprints.
    fn shown(self) -> Self {
        match self.form {
            KeyForm::Fingerprints(_) => Self { format: FieldFormat::Hex, ..self },
            _ => self,
        }
    }

    /// Returns a key, as a user has it, for a line of text.
    ///
    /// # Errors
    /// None that can occur with keys that were read in the format.
    pub fn key_line(&self, key: &[u8]) -> Result<String> {
        if self.is_text() {
            return Ok(quoted(key));
        }
        let column = Column { role: Role::Key, bytes: None, format: self.format };
        column.show(key).map_err(|why| anyhow!(why))
    }

    /// Returns the same for JSON, with a count.
    ///
    /// # Errors
    /// As [`line`](Self::line).
    pub fn json(&self, stored: &[u8], count: i64) -> Result<String> {
        let key = self.shown().json_key(self.form.key_of(stored)?)?;
        Ok(serde_json::to_string(&CountLine { key, count })?)
    }

    /// Returns a key, as a user has it, for JSON.
    ///
    /// # Errors
    /// As [`key_line`](Self::key_line).
    pub fn json_key(&self, key: &[u8]) -> Result<JsonKey> {
        match self.is_text() {
            true => Ok(JsonKey::of(key)),
            false => Ok(JsonKey::of(self.key_line(key)?.as_bytes())),
        }
    }
}

/// A key, for programs.
#[derive(Debug, Serialize)]
pub struct JsonKey {
    /// The key; bytes that are not UTF-8 are shown as U+FFFD.
    key: String,
    /// Its bytes, if they are not UTF-8.
    #[serde(skip_serializing_if = "Option::is_none")]
    key_hex: Option<String>,
}

impl JsonKey {
    fn of(key: &[u8]) -> Self {
        let hex = || key.iter().map(|byte| format!("{byte:02x}")).collect();
        let key_hex = std::str::from_utf8(key).is_err().then(hex);
        Self { key: String::from_utf8_lossy(key).into_owned(), key_hex }
    }
}

/// A key and its count, for programs.
#[derive(Debug, Serialize)]
struct CountLine<N> {
    #[serde(flatten)]
    key: JsonKey,
    count: N,
}

/// Returns a key and its count as JSON.
///
/// # Errors
/// None that can occur with numbers and texts.
pub fn json_of(key: &[u8], count: impl Serialize) -> Result<String> {
    Ok(serde_json::to_string(&CountLine { key: JsonKey::of(key), count })?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_shown_as_they_are_read() {
        let keys = |form, format| WrittenKeys::new(form, format).unwrap();
        let hex = Some(FieldFormat::Hex);
        for (keys, written) in [
            (keys(KeyForm::Numbers, None), "18446744073709551615"),
            (keys(KeyForm::Numbers, hex), "0100000000000000"),
            (keys(KeyForm::Fixed(3), None), "00ff7f"),
            (keys(KeyForm::Fixed(3), Some(FieldFormat::Text)), "abc"),
            (keys(KeyForm::Texts(31), None), "a word"),
            (keys(KeyForm::Texts(31), hex), "ff00"),
        ] {
            let stored = keys.stored(written.as_bytes()).unwrap();
            assert_eq!(keys.line(&stored).unwrap(), written);
        }
        assert!(keys(KeyForm::Numbers, None).stored(b"-1").is_err());
        assert!(keys(KeyForm::Fixed(3), None).stored(b"00ff").is_err());
        assert!(WrittenKeys::new(KeyForm::Texts(31), Some(FieldFormat::U64)).is_err());
        assert!(WrittenKeys::new(KeyForm::Fixed(7), Some(FieldFormat::U64)).is_err());
    }

    #[test]
    fn json_has_the_bytes_of_what_is_no_text() {
        let shown = json_of("\u{1b}é".as_bytes(), 1).unwrap();
        assert_eq!(shown, "{\"key\":\"\\u001bé\",\"count\":1}");
        let shown = json_of(b"a\xff", -2).unwrap();
        assert_eq!(shown, "{\"key\":\"a\u{fffd}\",\"key_hex\":\"61ff\",\"count\":-2}");
    }
}
