//! Untrusted words, made harmless.

use std::fmt::{self, Display, Formatter, Write};

/// Words without markup. Control characters are left out, except line ends.
#[derive(Clone, Copy, Debug)]
pub struct Escaped<'a>(pub &'a str);

impl Display for Escaped<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        for c in self.0.chars() {
            match c {
                '&' => f.write_str("&amp;")?,
                '<' => f.write_str("&lt;")?,
                '>' => f.write_str("&gt;")?,
                '"' => f.write_str("&quot;")?,
                '\'' => f.write_str("&#39;")?,
                c if c.is_control() && c != '\n' => {}
                c => f.write_char(c)?,
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_in_words_is_markup() {
        assert_eq!(
            Escaped("<a b='\"&\u{1b}'>\n").to_string(),
            "&lt;a b=&#39;&quot;&amp;&#39;&gt;\n"
        );
    }
}
