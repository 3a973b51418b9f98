//! Filled tables that several experiments use, so that each stream runs once.

use std::sync::{Arc, Mutex};

use super::design::Kind;
use super::lab::{Filled, Lab, RAM_PERCENTS, TableSetup};
use super::shape::DataSet;
use crate::{Scale, fits, vary};

/// The tables of a data set at a scale.
struct Made {
    set: DataSet,
    scale: Scale,
    /// The variations of the two constants of the tokens.
    varied: [f64; 2],
    tables: Arc<Vec<Filled>>,
}

/// Tables that were filled so far.
#[derive(Default)]
pub struct Fills {
    made: Mutex<Vec<Made>>,
}

impl Fills {
    /// Returns the designs with each RAM buffer after all tokens: all of Table 2 for Wiki, and those with the
    /// change segment that the figures fix for Meme.
    ///
    /// # Panics
    /// Never panics: no holder of the lock does.
    #[must_use]
    pub fn of(&self, set: DataSet, scale: Scale) -> Arc<Vec<Filled>> {
        let mut made = self.made.lock().expect("no holder of this lock panics");
        let varied = [&fits::TOKEN_OFFSET, &fits::TOKEN_POWER].map(vary::factor);
        let is_it = |it: &&Made| (it.set, it.scale, it.varied) == (set, scale, varied);
        if let Some(made) = made.iter().find(is_it) {
            return Arc::clone(&made.tables);
        }
        let kinds: &[Kind] = if set == DataSet::WIKI { &Kind::ALL } else { &Kind::SMALL };
        let tables = Arc::new(Lab::new(set, scale).fill(&TableSetup::all(kinds, &RAM_PERCENTS)));
        made.push(Made { set, scale, varied, tables: Arc::clone(&tables) });
        tables
    }
}
