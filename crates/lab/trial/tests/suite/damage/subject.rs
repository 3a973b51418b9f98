//! The damaged structure, with something in each kind of page, left by a killed process and then closed.

use std::collections::BTreeSet;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use nandex::device::{Access, Device, MemoryDevice};
use nandex::raw::device::{Call, Observer, OpKind, PAGE_BYTES, Watched};
use nandex::{Durability, Result, Threads, Volume, VolumeOpenOptions, VolumeOptions};
use nandex_trial::parallel;

use super::answers::{Answers, Verdict};
use crate::sites::kind_of;

/// The name of the structure.
pub const NAME: &str = "t";

/// A structure of one configuration, and its calls.
pub trait Subject: Sync {
    /// An open structure.
    type Open;

    /// Returns structure and configuration, for messages.
    fn label(&self) -> String;

    /// Creates it in a volume.
    fn create(&self, volume: &Volume) -> Result<Self::Open>;

    /// Opens it.
    fn open(&self, volume: &Volume) -> Result<Self::Open>;

    /// Fills it so that it has something on flash, and then in snapshots.
    fn fill(&self, open: &Self::Open);

    /// Makes updates that are in the log alone.
    fn log(&self, open: &Self::Open);

    /// Makes the last update that is logged.
    fn log_last(&self, open: &Self::Open);

    /// Makes every call that only reads, except those of `lend`.
    fn ask(&self, open: &Self::Open, answers: &mut Answers);

    /// Gives its content to other structures.
    fn lend(&self, open: &Self::Open, answers: &mut Answers);

    /// Makes every call that writes.
    fn update(&self, open: &mut Self::Open, answers: &mut Answers);

    /// Closes it.
    fn close(&self, open: Self::Open) -> Result<()>;
}

/// Pages that were read.
#[derive(Debug, Default)]
struct Read(Mutex<BTreeSet<u64>>);

impl Observer for Read {
    fn before(&self, call: Call<'_>) -> nandex::raw::device::Result<()> {
        if let Call::Start { kind: OpKind::Read, page, pages, .. } = call {
            self.0.lock().unwrap().extend(page.0..page.0 + pages);
        }
        Ok(())
    }
}

/// A period that does not end meanwhile: updates are durable when they are synced.
const HOUR: Duration = Duration::from_secs(3600);

fn options() -> VolumeOptions {
    VolumeOptions {
        threads: Threads::Inline,
        durability: Durability::Every(HOUR),
        volume_id: Some(7),
        // Damage of a longer block is reported at its first page.
        log_block_bytes: PAGE_BYTES,
        ..VolumeOptions::tiny()
    }
}

/// Opens a volume in which every acknowledged update must be present later.
fn open_volume(device: Arc<dyn Device>, access: Access) -> Result<Volume> {
    let (threads, durability) = (Threads::Inline, Durability::Always);
    Ok(Volume::open(
        device,
        VolumeOpenOptions { access, threads, durability, ..Default::default() },
    )?)
}

/// An image of the structure.
struct Left {
    how: &'static str,
    image: Vec<u8>,
    /// The pages of the log's last block: their damage cannot be told from a power cut before they were
    /// written.
    last: BTreeSet<u64>,
}

/// Returns the images after a kill and after a close.
fn images<S: Subject>(subject: &S) -> [Left; 2] {
    let device = MemoryDevice::new();
    let volume = Volume::create(Arc::new(device.clone()), options()).unwrap();
    let open = subject.create(&volume).unwrap();
    subject.fill(&open);
    subject.log(&open);
    volume.log().sync().unwrap();
    let before = device.image();
    subject.log_last(&open);
    volume.log().sync().unwrap();
    let image = device.image();
    let pages = before.chunks(PAGE_BYTES).zip(image.chunks(PAGE_BYTES)).zip(0..);
    let last = pages.filter(|((one, other), _)| one != other).map(|(_, page)| page).collect();
    subject.close(open).unwrap();
    volume.checkpoint().unwrap();
    drop(volume);
    [
        Left { how: "killed", image, last },
        Left { how: "closed", image: device.image(), last: BTreeSet::new() },
    ]
}

/// Opens it read-only and then read-write, and makes every call.
fn interview<S: Subject>(subject: &S, device: &Arc<dyn Device>) -> Answers {
    let mut answers = Answers::default();
    answers.begin("to be read");
    read_only(subject, device, &mut answers);
    answers.begin("to be written");
    written(subject, device, &mut answers);
    answers.begin("opened again");
    if let Some((_volume, open)) = opened(subject, device, Access::ReadWrite, &mut answers) {
        subject.ask(&open, &mut answers);
        subject.close(open).unwrap_or_default();
    }
    answers
}

fn opened<S: Subject>(
    subject: &S,
    device: &Arc<dyn Device>,
    access: Access,
    answers: &mut Answers,
) -> Option<(Volume, S::Open)> {
    let opened = open_volume(Arc::clone(device), access)
        .and_then(|volume| Ok((subject.open(&volume)?, volume)));
    match opened {
        Ok((open, volume)) => {
            answers.ask("open", Ok(()));
            Some((volume, open))
        }
        Err(error) => {
            answers.ask("open", Err::<(), _>(error));
            None
        }
    }
}

fn read_only<S: Subject>(subject: &S, device: &Arc<dyn Device>, answers: &mut Answers) {
    if let Some((_volume, open)) = opened(subject, device, Access::ReadOnly, answers) {
        subject.ask(&open, answers);
        subject.lend(&open, answers);
    }
}

fn written<S: Subject>(subject: &S, device: &Arc<dyn Device>, answers: &mut Answers) {
    let Some((volume, mut open)) = opened(subject, device, Access::ReadWrite, answers) else {
        return;
    };
    subject.update(&mut open, answers);
    answers.begin("after updates");
    subject.ask(&open, answers);
    answers.ask("close", subject.close(open));
    answers.ask("checkpoint", volume.checkpoint().map_err(Into::into));
}

/// Damages a page in one of three ways: some bytes are changed, all are zeros, or they are those of the
/// previous page.
fn damaged(image: &[u8], page: u64) -> MemoryDevice {
    let mut image = image.to_vec();
    let start = page as usize * PAGE_BYTES;
    match page % 3 {
        0 => image[start + 2000..start + 2004].iter_mut().for_each(|byte| *byte ^= 0x5a),
        1 => image[start..start + PAGE_BYTES].fill(0),
        _ => image.copy_within(start - PAGE_BYTES..start, start),
    }
    MemoryDevice::from_image(image)
}

/// Returns the pages that `check` names.
fn found(device: MemoryDevice) -> BTreeSet<u64> {
    let report = nandex::check(Arc::new(device), None, &mut |_| {}).unwrap();
    report.findings.iter().map(|finding| finding.page.0).collect()
}

/// The kinds of pages whose damage has been noticed.
pub type Kinds = BTreeSet<&'static str>;

/// The results of damage of each page.
#[derive(Default)]
struct Outcome {
    kinds: Kinds,
    noticed: Verdict,
    torn: u64,
    wrong: Vec<String>,
}

impl Left {
    fn bytes_of(&self, page: u64) -> Option<&[u8]> {
        self.image.chunks_exact(PAGE_BYTES).nth(page as usize)
    }

    /// Returns the pages that the calls read. A page that was never written has nothing to lose: one such
    /// page is enough.
    fn pages(&self, read: &Read) -> Vec<u64> {
        let read = read.0.lock().unwrap();
        let there = read.iter().copied().filter(|page| self.bytes_of(*page).is_some());
        let is_written = |page: &u64| self.bytes_of(*page).is_some_and(|it| kind_of(it).is_some());
        let (written, blank): (Vec<_>, Vec<_>) = there.partition(is_written);
        blank.into_iter().take(1).chain(written).collect()
    }
}

/// Damages each page that the calls read from the whole structure.
fn each_page<S: Subject>(subject: &S, left: &Left) -> Outcome {
    let label = format!("{}, {}", subject.label(), left.how);
    let read = Arc::new(Read::default());
    let whole = MemoryDevice::from_image(left.image.clone());
    assert!(found(whole.clone()).is_empty(), "{label}: {:?}", found(whole));
    let device: Arc<dyn Device> = Arc::new(Watched::with(whole, Arc::clone(&read)));
    let right = interview(subject, &device);
    right.assert_whole();
    let (pages, mut outcome) = (left.pages(&read), Outcome::default());
    for page in &pages {
        let kind = left.bytes_of(*page).and_then(kind_of).unwrap_or("blank");
        let wrong = outcome.judge(subject, left, (kind, *page), &right);
        outcome
            .wrong
            .extend(wrong.err().map(|what| format!("{label}, {kind} page {page}: {what}")));
    }
    let Outcome { noticed: Verdict { refused, told }, torn, wrong, .. } = &outcome;
    let (pages, wrong) = (pages.len(), wrong.len());
    println!(
        "{label}: {pages} pages, {refused} errors, {told} reports, {torn} torn, {wrong} wrong"
    );
    outcome
}

impl Outcome {
    /// Makes every call with a damaged page.
    fn judge<S: Subject>(
        &mut self,
        subject: &S,
        left: &Left,
        (kind, page): (&'static str, u64),
        right: &Answers,
    ) -> std::result::Result<(), String> {
        let is_found = found(damaged(&left.image, page)).contains(&page);
        let device: Arc<dyn Device> = Arc::new(damaged(&left.image, page));
        let asked = catch_unwind(AssertUnwindSafe(|| interview(subject, &device)));
        let answers = asked.map_err(|panic| {
            let text = panic.downcast_ref::<String>().cloned();
            format!("panicked: {}", text.unwrap_or_default())
        })?;
        let Verdict { refused, told } = match right.judge(&answers, page) {
            Err(_) if kind == "log" && !is_found && left.last.contains(&page) => {
                self.torn += 1;
                return Ok(());
            }
            judged => judged?,
        };
        self.noticed.refused += refused;
        self.noticed.told += told;
        self.kinds.extend(is_found.then_some(kind));
        if refused + told > 0 && !is_found {
            return Err("not found by the check".into());
        }
        Ok(())
    }
}

/// Damages each page of each of these, and returns the kinds of pages whose damage was noticed.
pub fn damage_all<S: Subject + Send>(subjects: impl Iterator<Item = S>) -> Kinds {
    let outcomes =
        parallel::each(subjects, |subject| images(&subject).map(|left| each_page(&subject, &left)));
    let (mut kinds, mut wrong) = (Kinds::new(), Vec::new());
    for outcome in outcomes.into_iter().flatten() {
        kinds.extend(outcome.kinds);
        wrong.extend(outcome.wrong);
    }
    assert!(wrong.is_empty(), "{} are wrong:\n{}", wrong.len(), wrong.join("\n"));
    kinds
}
