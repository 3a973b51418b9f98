//! The frame of every page: its head, which forbids it to load anything, and its end.

use std::fmt::{self, Write};

use crate::Escaped;

/// Colours, type, cards, tables and drawings that every report shares, light and dark. A page may add its own
/// rules after them.
pub const BASE_STYLE: &str = include_str!("base.css");

/// The frame of one page.
#[derive(Clone, Copy, Debug)]
pub struct Frame<'a> {
    /// The title of the window; [`Frame::open`] escapes it.
    pub title: &'a str,
    /// Style sheets, in order.
    pub styles: &'a [&'a str],
}

impl Frame<'_> {
    /// Opens the page, up to where its content begins.
    ///
    /// # Errors
    /// Returns the writer's error; writing to a string never fails.
    pub fn open(&self, out: &mut impl Write) -> fmt::Result {
        write!(
            out,
            "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
             <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
             <meta http-equiv=\"Content-Security-Policy\" \
             content=\"default-src 'none'; style-src 'unsafe-inline'\">\n<title>{}</title>\n<style>\n",
            Escaped(self.title)
        )?;
        self.styles.iter().try_for_each(|style| out.write_str(style))?;
        out.write_str("</style>\n</head>\n<body>\n<main>\n")
    }

    /// Closes the page with a footer, which is markup already.
    ///
    /// # Errors
    /// Fails as [`open`](Self::open) does.
    pub fn close(&self, out: &mut impl Write, footer: &str) -> fmt::Result {
        write!(out, "<footer>{footer}</footer>\n</main>\n</body>\n</html>\n")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_forbids_itself_to_load_anything_and_its_title_is_harmless() {
        let frame = Frame { title: "a <b>", styles: &["p {}\n", "q {}\n"] };
        let mut out = String::new();
        frame.open(&mut out).unwrap();
        frame.close(&mut out, "The end.").unwrap();
        assert!(out.contains("default-src 'none'"));
        assert!(out.contains("<title>a &lt;b&gt;</title>\n<style>\np {}\nq {}\n</style>"));
        assert!(out.ends_with("<footer>The end.</footer>\n</main>\n</body>\n</html>\n"));
    }
}
