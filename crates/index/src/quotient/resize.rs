//! Growing and shrinking: bits move between quotient and remainder, and fingerprints stay what they are.
//!
//! Nothing is hashed again. A filter over more quotients has shorter remainders and shorter clusters; one over
//! fewer takes less RAM for the same fingerprints. Since fingerprints stay, so does the rate of false
//! positives, n over the universe's size: a filter that grows without end needs a universe for its end.

use super::{Builder, QuotientFilter};
use crate::Result;

impl QuotientFilter {
    /// The same entries over another number of quotients, full at the same share of them.
    ///
    /// Cost: one pass over both; both are in RAM until then.
    ///
    /// # Errors
    /// [`Error::FilterFull`](crate::Error::FilterFull) where they do not fit, and those of
    /// [`Shape::new`](super::Shape::new).
    pub fn resized(&self, quotients: u64) -> Result<Self> {
        let mut builder = Builder::new(self.shape.resized(quotients)?);
        self.iter().try_for_each(|entry| builder.append(entry))?;
        Ok(builder.finish())
    }
}
