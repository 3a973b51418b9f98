//! Which field stands where in a TOML text.

use std::ops::Range;

use toml::de::{DeTable, DeValue};

/// The fields of a text and where they stand.
pub(super) struct Tree<'t> {
    text: &'t str,
    /// Names with the tables they are in, and the bytes from the name to the value's end.
    fields: Vec<(String, Range<usize>)>,
}

impl<'t> Tree<'t> {
    /// The fields of a text, if it is TOML.
    pub fn new(text: &'t str) -> Option<Self> {
        let table = DeTable::parse(text).ok()?;
        let mut fields = Vec::new();
        collect(table.get_ref(), "", &mut fields);
        Some(Self { text, fields })
    }

    /// The innermost field at that byte; nothing where there is none.
    pub fn field_at(&self, at: usize) -> String {
        let around = self.fields.iter().filter(|(_, range)| range.contains(&at));
        around.max_by_key(|(name, _)| name.len()).map_or(String::new(), |(name, _)| name.clone())
    }

    /// The line of a field, or of the innermost of the tables it would be in; else the first.
    pub fn line_of(&self, field: &str) -> usize {
        let mut name = field;
        loop {
            if let Some((_, range)) = self.fields.iter().find(|(known, _)| known == name) {
                return self.line(range.start);
            }
            let Some((table, _)) = name.rsplit_once('.') else { return 1 };
            name = table;
        }
    }

    /// The line of a byte, counted from 1.
    pub fn line(&self, at: usize) -> usize {
        line(self.text, at)
    }
}

/// The line of a byte, counted from 1.
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
