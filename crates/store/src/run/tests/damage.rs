//! Pages that differ from what was written are rejected, by lookups and streams, each with its number.

use proptest::prelude::*;

use nandex_device::PAGE_BYTES;

use super::*;
use crate::bytes::{Reader, put_u64};
use crate::page::{PAGE_HEADER_BYTES, seal};
use crate::run::RunPage;
use crate::run::encode::{Candidates, fill};

struct Victim {
    device: MemoryDevice,
    universe: Universe,
    entries: Vec<Entry>,
    run: Run,
}

fn victim() -> Victim {
    let (device, universe) = (MemoryDevice::new(), universe(3_000_000));
    let mut entries = spread(universe, 12_000, 4);
    entries.iter_mut().step_by(100).for_each(|entry| entry.count = -3);
    let run = written(&device, universe, &entries);
    assert!(run.used_pages() > 3);
    Victim { device, universe, entries, run }
}

impl Victim {
    /// Changes one page, and reads it: its lookups and the stream reject it by its number.
    fn refused(&self, page: u64, change: impl FnOnce(&mut PageBuf), story: &str) {
        let page = self.run.page(page);
        let whole = self.device.read(page, PageBuf::zeroed(1)).unwrap();
        let mut buf = self.device.read(page, PageBuf::zeroed(1)).unwrap();
        change(&mut buf);
        self.device.write(page, buf).unwrap();
        let is_there =
            |error: Error| matches!(error, Error::Corrupt { page: at, .. } if at == page);
        assert!(is_there(read(&self.device, &self.run).unwrap_err()), "{story}");
        let on_page = self.entries.iter().find(|it| self.run.page_of(it.fingerprint) == page);
        if let Some(entry) = on_page {
            let error = lookup(&self.device, &self.run, entry.fingerprint).unwrap_err();
            assert!(is_there(error), "{story}");
        }
        self.device.write(page, whole).unwrap();
    }
}

#[test]
fn a_flipped_bit_a_stale_page_and_one_from_elsewhere_are_refused_at_each_page() {
    let victim = victim();
    let label = |page| victim.run.place().label(page);
    let mut rng = Rng(1);
    for page in 0..victim.run.used_pages() {
        for _ in 0..20 {
            let bit = rng.below(PAGE_BYTES as u64 * 8) as usize;
            let flip = |buf: &mut PageBuf| buf[bit / 8] ^= 1 << (bit % 8);
            victim.refused(page, flip, &format!("bit {bit} of page {page}"));
        }
        let stale = PageLabel { generation: 4, ..label(page) };
        victim.refused(page, |buf| seal(buf, stale), "an older run");
        let foreign = PageLabel { structure: StructureId(8), ..label(page) };
        victim.refused(page, |buf| seal(buf, foreign), "another structure");
        let slice = PageLabel { kind: PageKind::Slice, ..label(page) };
        victim.refused(page, |buf| seal(buf, slice), "a page of another kind");
        victim.refused(page, |buf| buf.fill(0), "zeros");
        let other = victim.run.page((page + 1) % victim.run.used_pages());
        let other = victim.device.read(other, PageBuf::zeroed(1)).unwrap();
        victim.refused(page, |buf| buf.copy_from_slice(&other), "a page from elsewhere");
    }
    assert_eq!(read(&victim.device, &victim.run).unwrap(), victim.entries);
}

/// A mark that was too high once made a lookup subtract below 0.
#[test]
fn lookups_in_a_page_whose_head_and_marks_say_anything_end() {
    let victim = victim();
    let whole = victim.device.read(victim.run.page(1), PageBuf::zeroed(1)).unwrap();
    let (mut rng, mut parsed) = (Rng(5), 0);
    for _ in 0..4000 {
        let mut body = whole[PAGE_HEADER_BYTES..].to_vec();
        // Entries, bits, kind of counts, words, marks.
        for _ in 0..=rng.below(3) {
            body[rng.below(14) as usize] = rng.below(256) as u8;
        }
        let Some(page) = RunPage::parse(&body) else { continue };
        parsed += 1;
        for entry in victim.entries.iter().step_by(97) {
            let _ = page.count(entry.fingerprint);
        }
        let _ = page.read(&mut Vec::new());
    }
    assert!(parsed > 1000, "{parsed}");
}

/// The page's checksum is correct, but it is not the page that belongs there.
#[test]
fn a_stream_notices_that_pages_do_not_join() {
    let victim = victim();
    for page in 0..victim.run.used_pages() {
        let label = victim.run.place().label(page);
        for (field, change) in [(48, 1), (48, u64::MAX), (56, u64::MAX), (56, 1)] {
            let moved = |buf: &mut PageBuf| {
                let value = crate::bytes::get_u64(buf, field).wrapping_add(change);
                put_u64(buf, field, value);
                seal(buf, label);
            };
            let found = victim.run.page(page);
            let whole = victim.device.read(found, PageBuf::zeroed(1)).unwrap();
            let mut buf = victim.device.read(found, PageBuf::zeroed(1)).unwrap();
            moved(&mut buf);
            victim.device.write(found, buf).unwrap();
            read(&victim.device, &victim.run).expect_err("a base or a limit has moved");
            victim.device.write(found, whole).unwrap();
        }
    }
}

#[test]
fn a_run_reads_back_from_a_checkpoint_as_it_was() {
    let victim = victim();
    let mut bytes = Vec::new();
    victim.run.encode(&mut bytes);
    let decode = |bytes: &[u8]| {
        let mut reader = Reader::new(bytes, "state", PageId(1));
        let run = Run::decode(STRUCTURE, victim.universe, &mut reader)?;
        assert_eq!(reader.left(), 0);
        Ok::<_, Error>(run)
    };
    assert_eq!(decode(&bytes).unwrap(), victim.run);
    for length in 0..bytes.len() {
        assert!(decode(&bytes[..length]).is_err());
    }
    // The version; slots; pages in use; entries; tombstones; bytes of counts; the sum.
    for (at, value) in [(0, 9), (32, 255), (40, 255), (48, 255), (56, 255), (64, 255), (80, 127)] {
        let mut damaged = bytes.clone();
        let at = if at == 0 { 0 } else { at };
        damaged[at] = value;
        assert!(decode(&damaged).is_err(), "byte {at}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..Default::default() })]

    #[test]
    fn a_state_of_any_bytes_is_refused_or_that_of_a_run(
        mut bytes in prop::collection::vec(any::<u8>(), 81), high in 0..9_usize,
    ) {
        bytes[0] = RUN_VERSION;
        // Small numbers, which may be accepted.
        for field in 0..8 {
            bytes[1 + 8 * field + 1 + high.min(6)..9 + 8 * field].fill(0);
        }
        let mut reader = Reader::new(&bytes, "state", PageId(1));
        if let Ok(run) = Run::decode(STRUCTURE, universe(1 << 40), &mut reader) {
            let mut again = Vec::new();
            run.encode(&mut again);
            prop_assert_eq!(again, bytes);
        }
    }

    #[test]
    fn a_body_of_any_bytes_is_refused_or_read_and_found(
        seed in any::<u64>(), flips in prop::collection::vec((0..96_usize, any::<u8>()), 0..4),
    ) {
        let universe = universe(1 << 24);
        let mut entries = spread(universe, 1 + seed % 2000, seed);
        entries.iter_mut().step_by(1 + (seed % 50) as usize).for_each(|entry| entry.count = 5);
        let mut body = vec![0; crate::page::PAGE_BODY_BYTES];
        let mut seen = Candidates::default();
        seen.see(0, &entries);
        fill(&mut body, 0, universe.size(), &entries, &seen);
        for (at, byte) in flips {
            body[at] ^= byte;
        }
        if let Some(page) = RunPage::parse(&body) {
            let mut all = Vec::new();
            let is_whole = page.read(&mut all).is_some();
            for entry in all.iter().take(300) {
                let count = page.count(entry.fingerprint);
                prop_assert!(!is_whole || count == Some(entry.count), "{:?}", entry);
            }
        }
    }
}
