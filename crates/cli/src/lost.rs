//! Damaged pages of saved write buffers, whose entries are missing from the figures of an open structure.

use anyhow::Result;
use nandex::raw::device::PageId;
use serde::Serialize;

use crate::exit::{DAMAGE, Quiet};
use crate::size::show_count;

/// The most pages that are named for people; programs get all.
const NAMED_MAX: usize = 20;

/// The numbers of these pages.
#[derive(Clone, Debug, Default, Serialize)]
#[serde(transparent)]
pub struct LostPages(Vec<u64>);

impl LostPages {
    /// Returns the pages that the figures of a structure name.
    pub fn of(pages: &[PageId]) -> Self {
        Self(pages.iter().map(|page| page.0).collect())
    }

    /// Returns whether nothing is lost.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns a line for a list of figures, if something is lost.
    pub fn row(&self) -> Option<(&'static str, String)> {
        if self.is_empty() {
            return None;
        }
        let named: Vec<_> = self.0.iter().take(NAMED_MAX).map(u64::to_string).collect();
        let (named, left_out) = (named.join(", "), self.0.len().saturating_sub(NAMED_MAX));
        let more = match left_out {
            0 => String::new(),
            _ => format!(" and {} more", show_count(left_out as u64)),
        };
        let text = format!(
            "page {named}{more}: entries of saved buffers are lost there, and the figures do not count them; run \
             `nandex check` to see all damage"
        );
        Some(("damaged", text))
    }

    /// Ends a verb that has shown the figures.
    ///
    /// # Errors
    /// Fails silently if something is lost.
    pub fn result(&self) -> Result<()> {
        if self.is_empty() { Ok(()) } else { Err(Quiet(DAMAGE).into()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_are_named_up_to_a_limit() {
        assert!(LostPages::default().row().is_none() && LostPages::default().result().is_ok());
        let one = LostPages::of(&[PageId(7)]);
        assert!(one.row().unwrap().1.starts_with("page 7: ") && one.result().is_err());
        let many: Vec<_> = (100..130).map(PageId).collect();
        assert!(LostPages::of(&many).row().unwrap().1.contains("118, 119 and 10 more: "));
    }
}
