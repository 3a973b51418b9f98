//! Keys of any bytes on lines of text, so that they can be read back and contain no terminal control sequences.
//!
//! A key is printed unchanged, unless it begins with a double quote, is not UTF-8, or contains control characters or
//! line ends. Then it is in double quotes, in which `\"`, `\\`, `\t`, `
//! ` and `\r` have their meaning in C, and `\x` with two digits is any other byte.

use std::fmt::Write;

use anyhow::{Context, Result, bail};

/// Returns the key as it is printed on a line.
pub fn quoted(key: &[u8]) -> String {
    match std::str::from_utf8(key) {
        Ok(text) if !text.starts_with('"') && !text.contains(nandex_dedup::is_hidden) => {
            text.into()
        }
        _ => in_quotes(key),
    }
}

fn in_quotes(key: &[u8]) -> String {
    let mut out = String::from("\"");
    for chunk in key.utf8_chunks() {
        for char in chunk.valid().chars() {
            match char {
                '"' => out.push_str("\\\""),
                '\\' => out.push_str("\\\\"),
                '\t' => out.push_str("\\t"),
                '\n' => out.push_str("\\n"),
                '\r' => out.push_str("\\r"),
                _ if nandex_dedup::is_hidden(char) => {
                    push_hex(&mut out, char.encode_utf8(&mut [0; 4]).as_bytes());
                }
                _ => out.push(char),
            }
        }
        push_hex(&mut out, chunk.invalid());
    }
    out.push('"');
    out
}

fn push_hex(out: &mut String, bytes: &[u8]) {
    for byte in bytes {
        write!(out, "\\x{byte:02x}").expect("a text takes everything");
    }
}

/// Returns the key that is written in this way.
///
/// # Errors
/// A quote without its end, an invalid escape.
pub fn unquoted(written: &[u8]) -> Result<Vec<u8>> {
    let Some(rest) = written.strip_prefix(b"\"") else { return Ok(written.to_vec()) };
    let Some(inside) = rest.strip_suffix(b"\"") else {
        bail!(
            "the key begins with a quote and does not end with one; write it in quotes, and its quotes as \\\""
        )
    };
    let mut key = Vec::with_capacity(inside.len());
    let mut bytes = inside.iter().copied();
    while let Some(byte) = bytes.next() {
        key.push(match byte {
            b'\\' => unescaped(&mut bytes)?,
            b'"' => bail!("a quote within the key; write it as \\\""),
            byte => byte,
        });
    }
    Ok(key)
}

/// Returns the byte of an escape.
fn unescaped(bytes: &mut impl Iterator<Item = u8>) -> Result<u8> {
    match bytes.next() {
        Some(byte @ (b'"' | b'\\')) => Ok(byte),
        Some(b't') => Ok(b'\t'),
        Some(b'n') => Ok(b'\n'),
        Some(b'r') => Ok(b'\r'),
        Some(b'x') => {
            let mut digit = || char::from(bytes.next()?).to_digit(16);
            let byte = digit().and_then(|high| Some((high << 4 | digit()?) as u8));
            byte.context(
                "\\x without two digits from 0-9a-f; a backslash in quotes is written \\\\",
            )
        }
        other => {
            let shown = other.map(|byte| char::from(byte).escape_default().to_string());
            bail!(
                "\\{} is not an escape; known are \\\", \\\\, \\t, \\n, \\r and \\x with two digits",
                shown.unwrap_or_default()
            )
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_common_stands_as_it_is_and_all_is_read_back() {
        for (key, written) in [
            (&b"a word"[..], "a word"),
            (b"", ""),
            (b"C:\\new", "C:\\new"),
            (b"5\" pipe", "5\" pipe"),
            ("größer".as_bytes(), "größer"),
            (b"\"said\" \\", "\"\\\"said\\\" \\\\\""),
            (b"a\tb\nc\r", "\"a\\tb\\nc\\r\""),
            (b"\x1b[2J\x7f", "\"\\x1b[2J\\x7f\""),
            (b"\xff\x00caf\xc3\xa9", "\"\\xff\\x00café\""),
            ("\u{202e}x\u{9b}".as_bytes(), "\"\\xe2\\x80\\xaex\\xc2\\x9b\""),
        ] {
            assert_eq!(quoted(key), written);
            assert_eq!(unquoted(written.as_bytes()).unwrap(), key);
        }
        let all: Vec<u8> = (0..=255).collect();
        assert_eq!(unquoted(quoted(&all).as_bytes()).unwrap(), all);
    }

    #[test]
    fn what_is_not_quoted_well_is_refused() {
        for (written, reason) in [
            ("\"", "does not end with one"),
            ("\"a", "does not end with one"),
            ("\"a\"b\"", "a quote within"),
            ("\"\\q\"", "\\q is not an escape"),
            ("\"\\x1\"", "two digits"),
            ("\"\\x+1\"", "two digits"),
            ("\"a\\\"", "is not an escape"),
        ] {
            let error = unquoted(written.as_bytes()).unwrap_err().to_string();
            assert!(error.contains(reason), "{written}: {error}");
        }
    }
}
