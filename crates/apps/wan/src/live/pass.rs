//! Decides which segments are sent unencoded: short ones, and those of an incompressible stream.

/// Shorter segments are sent unencoded: a reference would hardly be shorter, and they would fill the cache.
pub(super) const PLAIN_BYTES_MAX: usize = 512;

/// The unencoded bytes between two trials, as a multiple of the bytes after which a stream counts as incompressible.
const PASSED_EACH: u64 = 4;

/// Segments from this size on determine whether a stream shrinks.
const TRIED_BYTES_MIN: usize = 4 << 10;

/// The decision for one direction of a connection.
#[derive(Debug)]
pub(super) struct Pass {
    /// The number of consecutive bytes that did not shrink after which segments are sent unencoded. 0 means never.
    after_bytes: u64,
    /// The number of consecutive bytes that did not shrink.
    stubborn_bytes: u64,
    /// The number of bytes to send unencoded before the next trial.
    left_bytes: u64,
}

impl Pass {
    pub(super) fn new(after_bytes: u64) -> Self {
        Self { after_bytes, stubborn_bytes: 0, left_bytes: 0 }
    }

    /// Returns whether a segment of this length is sent unencoded.
    pub(super) fn passes(&self, bytes: usize) -> bool {
        bytes < PLAIN_BYTES_MAX || self.left_bytes > 0
    }

    /// Notes a segment that was sent unencoded.
    pub(super) fn note_passed(&mut self, bytes: usize) {
        self.left_bytes = self.left_bytes.saturating_sub(bytes as u64);
    }

    /// Notes the result of a trial. A segment has shrunk if it lost a twentieth.
    pub(super) fn note_tried(&mut self, bytes: usize, encoded_bytes: usize) {
        if bytes < TRIED_BYTES_MIN || self.after_bytes == 0 {
            return;
        }
        if encoded_bytes + bytes / 20 <= bytes {
            self.stubborn_bytes = 0;
            return;
        }
        self.stubborn_bytes += bytes as u64;
        if self.stubborn_bytes >= self.after_bytes {
            // One more segment that does not shrink is enough next time.
            self.stubborn_bytes = self.after_bytes;
            self.left_bytes = PASSED_EACH * self.after_bytes;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_segments_pass_and_others_only_once_enough_of_them_did_not_shrink() {
        let mut pass = Pass::new(20_000);
        assert!(pass.passes(100) && !pass.passes(512));
        pass.note_tried(10_000, 9_900);
        assert!(!pass.passes(10_000));
        pass.note_tried(10_000, 5_000);
        pass.note_tried(10_000, 9_900);
        assert!(!pass.passes(10_000));
        pass.note_tried(10_000, 10_050);
        for _ in 0..8 {
            assert!(pass.passes(10_000));
            pass.note_passed(10_000);
        }
        assert!(!pass.passes(10_000));
        pass.note_tried(10_000, 10_050);
        assert!(pass.passes(10_000));
    }

    #[test]
    fn nothing_passes_for_its_size_where_it_never_should() {
        let mut pass = Pass::new(0);
        (0..100).for_each(|_| pass.note_tried(1 << 20, 1 << 20));
        assert!(!pass.passes(1 << 20));
    }
}
