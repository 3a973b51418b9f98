//! The common part of experiments on full drives: the pages that a drive programs for each written one, the
//! tape of a small table repeated in other places, and a table that writes its flash as a ring.
//!
//! A drive cannot be as small as a table of a small scale: its blocks and planes have fixed sizes. So the
//! table grows instead, and its flushes are those of the small table.

use nandex_sim::{Model, RequestKind, Ssd};

use crate::Scale;
use crate::tape::{Act, Step, Tape};

/// The name of a row with the result of [`programmed`].
pub const PROGRAMMED: &str = "pages that the drive programs for each written";

/// The part of a drive that a table does not take.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Rest {
    /// The rest was never written, or does not exist.
    Unwritten,
    /// The rest was written once, before the table.
    Written,
}

/// Returns the amount of use of a drive: `short` from a scale of 4096 on.
pub fn by_scale<E>(scale: Scale, long: E, short: E) -> E {
    if scale.times() >= 4096 { short } else { long }
}

/// Writes `laps` rounds, and returns the ratio of the last one as [`programmed`] does.
pub fn last_programmed(drive: &mut Ssd, laps: u32, mut lap: impl FnMut(&mut Ssd)) -> f64 {
    (0..laps).fold(0.0, |_, _| programmed(drive, &mut lap))
}

/// Returns the pages that the drive programs for each page that is written meanwhile.
fn programmed(drive: &mut Ssd, write: impl FnOnce(&mut Ssd)) -> f64 {
    let page_units = drive.spec().flash.page_units();
    let before = drive.counters().ftl;
    write(drive);
    let after = drive.counters().ftl;
    let written = after.host_writes - before.host_writes;
    let programmed = (after.programs - before.programs) * u64::from(page_units);
    programmed as f64 / written.max(1) as f64
}

/// Repeats the operations of a small table's tape, until `flushes` of the inserts have requests. `moved`
/// gives the requests of each operation their places.
///
/// # Panics
/// Panics if no insert of the tape has requests.
pub fn again(small: &Tape, flushes: u64, mut moved: impl FnMut(Act, &[Step]) -> Vec<Step>) -> Tape {
    let is_flush = |it: &(Act, &[Step])| it.0 == Act::Insert && !it.1.is_empty();
    assert!(small.operations().any(|it| is_flush(&it)), "a tape without flushes");
    let mut tape = Tape::default();
    let mut made = 0;
    while made < flushes {
        for (act, steps) in small.operations() {
            if is_flush(&(act, steps)) {
                made += 1;
            }
            tape.push(act, &moved(act, steps));
        }
    }
    tape
}

/// A ring of segments that are written one after another, from the first page of a drive to the last of the
/// ring, and again.
#[derive(Debug)]
pub struct Ring {
    segment_pages: u32,
    segments: u64,
    next: u64,
}

impl Ring {
    /// Creates a ring of as many segments as these pages have space for, each as long as the longest write of
    /// the tape.
    ///
    /// # Panics
    /// Panics if they have space for none, or the tape writes nothing.
    fn new(pages: u64, small: &Tape) -> Self {
        let steps = small.operations().flat_map(|(_, steps)| steps);
        let writes = steps.filter(|step| step.kind == RequestKind::Write);
        let segment_pages = writes.map(|step| step.pages).max().expect("a tape that writes");
        let segments = pages / u64::from(segment_pages);
        assert!(segments > 0, "{pages} pages have no place for a segment of {segment_pages}");
        Self { segment_pages, segments, next: 0 }
    }

    /// Creates a ring on the first `percent` per cent of a drive, written `laps` times in no time. Also
    /// returns the pages that the drive programmed for each written one, in the last of these rounds.
    ///
    /// # Panics
    /// Panics as [`new`](Self::new) does.
    pub fn aged(
        drive: &mut Ssd,
        (percent, rest): (u64, Rest),
        small: &Tape,
        laps: u32,
    ) -> (Self, f64) {
        let pages = drive.page_count();
        if rest == Rest::Written {
            (0..pages).for_each(|page| drive.write_at_once(page, 1));
        }
        let mut ring = Self::new(pages * percent / 100, small);
        let programmed = last_programmed(drive, laps, |drive| {
            for _ in 0..ring.segments {
                drive.write_at_once(ring.next(), ring.segment_pages);
            }
        });
        (ring, programmed)
    }

    /// Returns the first page of the next segment.
    fn next(&mut self) -> u64 {
        let segment = self.next;
        self.next = (segment + 1) % self.segments;
        segment * u64::from(self.segment_pages)
    }

    /// Repeats the inserts of a small table's tape, until `flushes` of them have written. They write the next
    /// segments of this ring.
    ///
    /// # Panics
    /// Panics if the tape has anything but inserts that write.
    pub fn tape(&mut self, small: &Tape, flushes: u64) -> Tape {
        again(small, flushes, |act, steps| {
            let moved = |step: &Step| {
                assert!(act == Act::Insert && step.kind == RequestKind::Write, "{act:?}, {step:?}");
                Step { page: self.next(), ..*step }
            };
            steps.iter().map(moved).collect()
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Drive;

    const SEGMENT_PAGES: u32 = 35;

    /// Returns nine inserts; every third writes a segment.
    fn small() -> Tape {
        let mut tape = Tape::default();
        let write = [Step { kind: RequestKind::Write, page: 7, pages: SEGMENT_PAGES, wave: 0 }];
        (0..9).for_each(|n| tape.push(Act::Insert, if n % 3 == 2 { &write } else { &[] }));
        tape
    }

    #[test]
    fn a_ring_writes_its_segments_in_order_and_begins_again() {
        let mut ring = Ring::new(4 * 35 + 34, &small());
        let tape = ring.tape(&small(), 5);
        let pages = tape.operations().flat_map(|(_, steps)| steps).map(|step| step.page);
        assert_eq!(pages.collect::<Vec<_>>(), [0, 35, 70, 105, 0, 35]);
        assert_eq!(tape.len(), 18);
    }

    #[test]
    fn a_ring_is_written_without_cleaning_and_pages_in_any_order_are_not() {
        let mut drive = Drive::CRUCIAL.ssd().unwrap();
        let (_, in_order) = Ring::aged(&mut drive, (100, Rest::Unwritten), &small(), 2);
        assert!((1.0..1.05).contains(&in_order), "{in_order}");
        let pages = drive.page_count();
        let in_any_order = programmed(&mut drive, |drive| {
            for n in 0..pages / 2 {
                drive.write_at_once(n * 7919 % pages / 2 * 2, 2);
            }
        });
        assert!(in_any_order > 1.5, "{in_any_order}");
    }
}
