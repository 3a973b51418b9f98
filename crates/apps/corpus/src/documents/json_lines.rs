//! Documents that are JSON objects, one in each line, with the text or the vector in a field.

use std::fmt;
use std::io::BufRead;

use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, Visitor};
use serde_json::Value;

use super::vector::Content;
use super::{Document, Fields, Lines, Reading};
use crate::{Error, Result};

/// The objects of a reader, one in each line; lines of white space are left out. If an object has a field twice, the
/// last one counts, as in Python.
#[derive(Debug)]
pub struct JsonLines<R> {
    lines: Lines<R>,
    fields: Fields,
}

impl<R: BufRead> JsonLines<R> {
    /// Creates a source of the objects of `reader`, which errors call `name`.
    pub fn new(reader: R, name: impl Into<String>, fields: Fields, reading: Reading) -> Self {
        Self { lines: Lines::new(reader, name, reading), fields }
    }

    fn document(&self, number: u64, bytes: Vec<u8>) -> Result<Document> {
        let place = || self.lines.place(number);
        let line = self.lines.reading().decoding.decode(bytes, place)?;
        let malformed = |reason: String| Error::Malformed { document: place(), reason };
        let mut reader = serde_json::Deserializer::from_str(&line);
        let parsed = FieldsSeed(&self.fields).deserialize(&mut reader);
        let (text, id) = parsed
            .and_then(|found| reader.end().map(|()| found))
            .map_err(|error| malformed(format!("{error}; expected one JSON object in a line")))?;
        let content = self.lines.reading().content;
        let text = match (text, content) {
            (Some(Value::String(text)), Content::Text) => text,
            (Some(Value::Array(numbers)), Content::Vector { .. }) => {
                let numbers = numbers_of(&numbers).map_err(malformed)?;
                content.text_of(&numbers).map_err(malformed)?
            }
            (other, content) => {
                let expected = match content {
                    Content::Text => "a string",
                    Content::Vector { .. } => "an array of numbers",
                };
                return Err(malformed(unfit(&self.fields.text, other.as_ref(), expected)));
            }
        };
        let id = match (&self.fields.id, id) {
            (None, _) => number.to_string(),
            (Some(_), Some(Value::String(id))) => id,
            (Some(_), Some(Value::Number(id))) if !id.is_f64() => id.to_string(),
            (Some(field), other) => {
                let expected = "a string or a whole number";
                return Err(malformed(unfit(field, other.as_ref(), expected)));
            }
        };
        Ok(Document { id, text })
    }
}

/// Returns the numbers of an array.
fn numbers_of(values: &[Value]) -> std::result::Result<Vec<f32>, String> {
    let number = |(place, value): (usize, &Value)| {
        value.as_f64().map(|number| number as f32).ok_or_else(|| {
            format!("expected numbers, found {value} at place {}; leave the line out", place + 1)
        })
    };
    values.iter().enumerate().map(number).collect()
}

/// Returns the reason why a field cannot be used.
fn unfit(field: &str, found: Option<&Value>, expected: &str) -> String {
    let found = match found {
        None => "no such field",
        Some(Value::Null) => "null",
        Some(Value::Bool(_)) => "a truth value",
        Some(Value::Number(_)) => "a number",
        Some(Value::String(_)) => "a string",
        Some(Value::Array(_)) => "an array",
        Some(Value::Object(_)) => "an object",
    };
    format!(
        "expected {expected} in the field {field:?}, found {found}; name another field, or leave the line out"
    )
}

impl<R: BufRead> Iterator for JsonLines<R> {
    type Item = Result<Document>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            match self.lines.next_line()? {
                Ok((_, bytes)) if bytes.trim_ascii().is_empty() => {}
                Ok((number, bytes)) => return Some(self.document(number, bytes)),
                Err(error) => return Some(Err(error)),
            }
        }
    }
}

/// The values of the text field and the id field.
type Found = (Option<Value>, Option<Value>);

/// Reads the wanted fields of an object and skips all others without keeping them.
struct FieldsSeed<'f>(&'f Fields);

impl<'de> DeserializeSeed<'de> for FieldsSeed<'_> {
    type Value = Found;

    fn deserialize<D: Deserializer<'de>>(
        self,
        deserializer: D,
    ) -> std::result::Result<Found, D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for FieldsSeed<'_> {
    type Value = Found;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> std::result::Result<Found, A::Error> {
        let (mut text, mut id) = (None, None);
        while let Some(name) = map.next_key::<String>()? {
            let (is_text, is_id) = (name == self.0.text, self.0.id.as_ref() == Some(&name));
            if !is_text && !is_id {
                map.next_value::<IgnoredAny>()?;
                continue;
            }
            let value: Value = map.next_value()?;
            if is_id {
                id = Some(value.clone());
            }
            if is_text {
                text = Some(value);
            }
        }
        Ok((text, id))
    }
}
