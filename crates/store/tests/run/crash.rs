//! Power cuts in the middle of every operation of a life of adding and merging, and of the recovery from each.
//!
//! After each one the list is that of the last checkpoint, or of the one that was being written, whole: each
//! of its runs proves itself from end to end, no two have a page in common, and no page is lost.

use std::sync::Arc;

use nandex_sim::{Image, SimDevice};
use nandex_store::Result;

use crate::subject::{Subject, entries, expected};

/// What a life knows of its list, in runs that were added.
#[derive(Clone, Copy, Default, Debug)]
struct Past {
    created: bool,
    /// What the last durable checkpoint has.
    durable: u64,
    /// What the one has that is being written.
    pending: u64,
    added: u64,
}

struct Rng(u64);

impl Rng {
    fn below(&mut self, end: u64) -> u64 {
        self.0 = self.0.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(0x1405_7b7e_f767_814f);
        (self.0 >> 33) % end
    }
}

fn step(subject: &Subject, past: &mut Past, rng: &mut Rng) -> Result<()> {
    match rng.below(7) {
        0 | 1 => {
            past.pending = past.added;
            subject.volume().checkpoint()?;
            past.durable = past.pending;
        }
        2 | 3 => subject.merge()?,
        _ => {
            subject.add()?;
            past.added += 1;
        }
    }
    assert_eq!(subject.added(), past.added);
    Ok(())
}

/// Some steps, and then the process is killed.
fn session(subject: Subject, steps: u64, past: &mut Past, rng: &mut Rng) -> Result<()> {
    (0..steps).try_for_each(|_| step(&subject, past, rng))?;
    subject.kill();
    Ok(())
}

/// A new volume, and three sessions on it.
fn live(device: &SimDevice, past: &mut Past) -> Result<()> {
    let device = Arc::new(device.clone());
    let mut rng = Rng(7);
    let subject = Subject::create(device.clone())?;
    past.created = true;
    session(subject, 16, past, &mut rng)?;
    for _ in 0..2 {
        let subject = Subject::open(device.clone())?;
        *past = found(&subject, past, "killed");
        session(subject, 16, past, &mut rng)?;
    }
    Ok(())
}

/// Looks at everything after an opening, and goes on from what is there.
fn found(subject: &Subject, past: &Past, story: &str) -> Past {
    let added = subject.added();
    let may = [past.durable, past.pending];
    assert!(may.contains(&added), "{story}: {added} runs, not one of {may:?}");
    assert_eq!(subject.contents().unwrap(), expected(added), "{story}");
    for entry in entries(1).iter().step_by(97) {
        let all = expected(added);
        let count = all.binary_search_by_key(&entry.fingerprint, |it| it.fingerprint);
        let count = count.map_or(0, |at| all[at].count);
        assert_eq!(subject.count(entry.fingerprint).unwrap(), count, "{story}");
    }
    apart(subject, story);
    Past { created: true, durable: added, pending: added, added }
}

/// No page is two runs', and none is nobody's. A checkpoint of the list takes a page, and another one where
/// the next will go.
fn apart(subject: &Subject, story: &str) {
    let mut extents: Vec<_> = subject.runs().iter().map(|run| run.place().extent).collect();
    extents.sort_by_key(|extent| extent.start);
    for pair in extents.windows(2) {
        assert!(pair[0].end() <= pair[1].start, "{story}: {extents:?} overlap");
    }
    let empty = Subject::create(Arc::new(SimDevice::instant())).unwrap();
    let (found, least) = (subject.other_pages(), empty.other_pages());
    assert!(
        found.abs_diff(least) <= 2,
        "{story}: {found} pages are nobody's, and {least} at first"
    );
}

/// Opens what a cut has left, looks, and is cut again soon after; then opens and looks once more.
fn recover(image: Image, past: &Past, again: u64, story: &str) {
    let device = SimDevice::instant().with_image(image);
    let mut past = match Subject::open(Arc::new(device.clone())) {
        Ok(subject) => {
            let past = found(&subject, past, story);
            subject.kill();
            past
        }
        Err(error) => return assert!(!past.created, "{story}: {error}"),
    };
    let story = format!("{story}, and again after {again}");
    device.cut_after(device.operations() + again);
    if let Ok(subject) = Subject::open(Arc::new(device.clone())) {
        past = found(&subject, &past, &story);
        session(subject, 6, &mut past, &mut Rng(again)).ok();
    }
    let device = SimDevice::instant().with_image(device.survivors(again));
    let subject = Subject::open(Arc::new(device)).unwrap();
    past = found(&subject, &past, &story);
    subject.merge().unwrap();
    subject.volume().checkpoint().unwrap();
    apart(&subject, &format!("{story}, merged"));
    assert_eq!(subject.contents().unwrap(), expected(past.added), "{story}, merged");
}

#[test]
fn every_cut_leaves_the_old_list_or_the_new_one_whole() {
    let whole = SimDevice::instant();
    live(&whole, &mut Past::default()).unwrap();
    let operations = whole.operations();
    assert!(operations > 120, "{operations} are too few to be a life");
    let mut rng = Rng(operations);
    for cut in 0..operations {
        let (device, mut past) = (SimDevice::instant(), Past::default());
        device.cut_after(cut);
        live(&device, &mut past).unwrap_err();
        for seed in [0, 1, 2 + rng.below(1000)] {
            let story = format!("cut after {cut}, survivors {seed}");
            recover(device.survivors(seed), &past, rng.below(40), &story);
        }
    }
}

#[test]
fn the_same_life_gives_the_same_operations_and_the_same_bytes() {
    let [first, second] = [(); 2].map(|()| {
        let device = SimDevice::instant();
        live(&device, &mut Past::default()).unwrap();
        (device.operations(), device.survivors(1).to_bytes())
    });
    assert!(first == second && first.0 > 100);
}
