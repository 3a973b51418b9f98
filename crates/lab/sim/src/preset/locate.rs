//! The positions of fields in a TOML text.

use std::ops::Range;

use toml::de::{DeTable, DeValue};

/// The fields of a text and their positions.
pub(super) struct Tree<'t> {
    text: &'t str,
    /// The names with their tables, and the bytes from the name to the value's end.
    fields: Vec<(String, Range<usize>)>,
}

impl<'t> Tree<'t> {
    /// Returns the fields of a text, if it is TOML.
    pub fn new(text: &'t str) -> Option<Self> {
        let table = DeTable::parse(text).ok()?;
        let mut fields = Vec::new();
        collect(table.get_ref(), "", &mut fields);
        Some(Self { text, fields })
    }

    /// Returns the innermost field at this byte; empty if there is none.
    pub fn field_at(&self, at: usize) -> String {
        let around = self.fields.iter().filter(|(_, range)| range.contains(&at));
        around.max_by_key(|(name, _)| name.len()).map_or(String::new(), |(name, _)| name.clone())
    }

    /// Returns a field's full name, and its line: the line of the field with this name or ending, or of the
    /// innermost of its tables; else the first line.
    pub fn find(&self, field: &str) -> (String, usize) {
        let ends = |name: &str| name.strip_suffix(field).is_some_and(|rest| rest.ends_with('.'));
        let known = self.fields.iter().find(|(name, _)| name == field || ends(name));
        if let Some((name, range)) = known {
            return (name.clone(), self.line(range.start));
        }
        let line = field.rsplit_once('.').map_or(1, |(table, _)| self.find(table).1);
        (field.to_owned(), line)
    }

    /// Returns the line of a byte, counted from 1.
    pub fn line(&self, at: usize) -> usize {
        line(self.text, at)
    }
}

/// Returns the line of a byte, counted from 1.
pub(super) fn line(text: &str, at: usize) -> usize {
    1 + text.bytes().take(at).filter(|&byte| byte == b'\n').count()
}

fn collect(table: &DeTable<'_>, path: &str, fields: &mut Vec<(String, Range<usize>)>) {
    for (key, value) in table {
        let key_name = key.get_ref();
        let name =
            if path.is_empty() { key_name.to_string() } else { format!("{path}.{key_name}") };
        let (key, span) = (key.span(), value.span());
        if let DeValue::Table(inner) = value.get_ref() {
            collect(inner, &name, fields);
        }
        fields.push((name, key.start.min(span.start)..key.end.max(span.end)));
    }
}
