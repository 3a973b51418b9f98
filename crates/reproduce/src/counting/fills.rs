//! Filled tables that several experiments look at, so that each stream runs once.

use std::sync::{Arc, Mutex};

use super::design::Kind;
use super::lab::{Filled, Lab, RAM_PERCENTS, TableSetup};
use super::shape::DataSet;
use crate::Scale;

/// The tables of a data set at a scale.
struct Made {
    set: DataSet,
    scale: Scale,
    tables: Arc<Vec<Filled>>,
}

/// Tables that were filled so far.
#[derive(Default)]
pub struct Fills {
    made: Mutex<Vec<Made>>,
}

impl Fills {
    /// The designs with each RAM buffer after all tokens: all of Table 2 for Wiki, and those with the change segment
    /// that the figures fix for Meme.
    ///
    /// # Panics
    /// Never: no holder of the lock does.
    #[must_use]
    pub fn of(&self, set: DataSet, scale: Scale) -> Arc<Vec<Filled>> {
        let mut made = self.made.lock().expect("no holder of this lock panics");
        if let Some(made) = made.iter().find(|it| (it.set, it.scale) == (set, scale)) {
            return Arc::clone(&made.tables);
        }
        let kinds: &[Kind] = if set == DataSet::WIKI { &Kind::ALL } else { &Kind::SMALL };
        let tables = Arc::new(Lab::new(set, scale).fill(&TableSetup::all(kinds, &RAM_PERCENTS)));
        made.push(Made { set, scale, tables: Arc::clone(&tables) });
        tables
    }
}
