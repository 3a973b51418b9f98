//! Little RAM gives the same result as much RAM, within the budget, and failures are errors that leave no files.

use std::cell::Cell;
use std::cmp::Ordering;
use std::fs::OpenOptions;
use std::io::{Seek, SeekFrom};

use tempfile::{TempDir, tempdir};

use super::*;

thread_local! {
    /// The bytes of existing [`Text`]s, and the most there were.
    static LIVE: Cell<(usize, usize)> = const { Cell::new((0, 0)) };
}

/// A record of some length, sorted by a part of it.
#[derive(Debug)]
struct Text {
    key: u8,
    rest: Vec<u8>,
}

impl Text {
    fn new(key: u8, rest: &[u8]) -> Self {
        let text = Self { key, rest: rest.to_vec() };
        LIVE.with(|live| {
            let (now, most) = live.get();
            let now = now + text.heap_bytes() + size_of::<Self>();
            live.set((now, most.max(now)));
        });
        text
    }
}

impl Drop for Text {
    fn drop(&mut self) {
        let bytes = self.heap_bytes() + size_of::<Self>();
        LIVE.with(|live| live.set((live.get().0 - bytes, live.get().1)));
    }
}

impl Ord for Text {
    fn cmp(&self, other: &Self) -> Ordering {
        self.key.cmp(&other.key)
    }
}

impl PartialOrd for Text {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Text {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Text {}

impl Record for Text {
    fn heap_bytes(&self) -> usize {
        self.rest.len()
    }

    fn write(&self, _: Option<&Self>, out: &mut impl Write) -> io::Result<()> {
        out.write_all(&[self.key, u8::try_from(self.rest.len()).unwrap()])?;
        out.write_all(&self.rest)
    }

    fn read(_: Option<&Self>, from: &mut impl BufRead) -> io::Result<Self> {
        let mut head = [0; 2];
        from.read_exact(&mut head)?;
        let mut rest = vec![0; head[1].into()];
        from.read_exact(&mut rest)?;
        Ok(Self::new(head[0], &rest))
    }
}

fn pair(number: u64) -> [u64; 2] {
    [number.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40, number]
}

/// Creates a sorter of pairs in an empty folder.
fn sorter(ram_bytes: usize, count: u64) -> (TempDir, Sorter<[u64; 2]>) {
    let folder = tempdir().unwrap();
    let mut sorter = Sorter::new(folder.path(), ram_bytes);
    (0..count).for_each(|number| sorter.push(pair(number)).unwrap());
    assert_eq!((sorter.len(), sorter.is_empty()), (count, count == 0));
    (folder, sorter)
}

fn files(folder: &TempDir) -> usize {
    std::fs::read_dir(folder).unwrap().count()
}

#[test]
fn none_one_and_many_runs_give_the_same_order() {
    // The last one has more runs than are merged at once.
    for (ram_bytes, count, runs) in [
        (1 << 20, 0, 0..=0),
        (0, 0, 0..=0),
        (1 << 20, 1, 0..=0),
        (0, 1, 0..=0),
        (48 * 100, 100, 0..=0),
        (48 * 100, 101, 1..=1),
        (48 * 100, 5_000, 49..=49),
        (0, 3 * RUNS_MAX as u64, 1..=RUNS_MAX - 1),
        (48 * 10, 20_000, 1..=RUNS_MAX - 1),
    ] {
        let (folder, sorter) = sorter(ram_bytes, count);
        assert!(runs.contains(&sorter.runs.len()), "{ram_bytes}: {} runs", sorter.runs.len());
        let found: Vec<[u64; 2]> = sorter.finish().unwrap().map(Result::unwrap).collect();
        let mut expected: Vec<[u64; 2]> = (0..count).map(pair).collect();
        expected.sort_unstable();
        assert!(found == expected, "{ram_bytes}, {count}");
        assert_eq!(files(&folder), 0, "files have no names");
    }
}

#[test]
fn records_of_equal_keys_stay_in_order() {
    for ram_bytes in [1 << 20, 20 << 10, 1 << 10, 0] {
        let folder = tempdir().unwrap();
        let mut sorter = Sorter::new(folder.path(), ram_bytes);
        for number in 0..3_000_u32 {
            let key = u8::try_from(number * 7 % 5).unwrap();
            sorter.push(Text::new(key, &number.to_be_bytes())).unwrap();
        }
        let found: Vec<Text> = sorter.finish().unwrap().map(Result::unwrap).collect();
        assert_eq!(found.len(), 3_000);
        let parts = found.iter().map(|text| (text.key, &text.rest));
        assert!(parts.is_sorted(), "{ram_bytes}");
    }
}

#[test]
fn records_and_buffers_keep_to_the_ram() {
    for ram_bytes in [40 << 10, 200 << 10, 8 << 20] {
        assert!(buffer_bytes(ram_bytes) * (RUNS_MAX + 1) <= ram_bytes, "{ram_bytes}");
    }
    let ram_bytes = 40 << 10;
    let folder = tempdir().unwrap();
    LIVE.with(|live| live.set((0, 0)));
    let mut sorter = Sorter::new(folder.path(), ram_bytes);
    for number in 0..20_000_u32 {
        let rest = [7; 200];
        let len = usize::try_from(number % 200).unwrap();
        sorter.push(Text::new(u8::try_from(number % 251).unwrap(), &rest[..len])).unwrap();
        let vector = sorter.records.capacity() * size_of::<Text>();
        assert!(vector + sorter.heap_bytes <= ram_bytes, "{vector} + {}", sorter.heap_bytes);
    }
    let found = sorter.finish().unwrap().map(Result::unwrap).fold(0, |count, _| count + 1);
    assert_eq!(found, 20_000);
    let (now, most) = LIVE.with(Cell::get);
    assert!(now == 0 && most > ram_bytes / 4 && most <= ram_bytes, "{now} now, {most} at most");
}

#[test]
fn a_full_disk_is_an_error_that_names_the_remedy() {
    let full = OpenOptions::new().write(true).open("/dev/full").unwrap();
    let error = Run::write_to(full, 0, (0..1000).map(|number| Ok([number, 0]))).unwrap_err();
    let Error::Scratch { source, .. } = &error else { panic!("{error}") };
    assert_eq!(source.kind(), io::ErrorKind::StorageFull);
    assert!(error.to_string().contains("write a sorted run"), "{error}");
    assert!(error.to_string().contains("free space"), "{error}");
}

#[test]
fn a_folder_that_is_gone_is_an_error_of_the_push_that_needs_it() {
    let (folder, mut sorter) = sorter(0, 1);
    folder.close().unwrap();
    assert!(matches!(sorter.push([7, 7]), Err(Error::Scratch { .. })));
}

/// Changes the file of the first of some runs, and returns the error of the merge.
fn damaged(change: impl FnOnce(&mut File)) -> Error {
    let (folder, mut sorter) = sorter(48 * 100, 1_000);
    change(&mut sorter.runs[0].file);
    sorter.runs[0].file.rewind().unwrap();
    let found: Result<Vec<[u64; 2]>> = sorter.finish().and_then(Iterator::collect);
    assert_eq!(files(&folder), 0, "files have no names");
    found.unwrap_err()
}

#[test]
fn a_damaged_run_is_an_error() {
    let short = damaged(|file| file.set_len(16 * 70).unwrap());
    let torn = damaged(|file| file.set_len(16 * 70 + 5).unwrap());
    for error in [short, torn] {
        let Error::Scratch { source, .. } = &error else { panic!("{error}") };
        assert_eq!(source.kind(), io::ErrorKind::UnexpectedEof, "{error}");
    }
    let disordered = damaged(|file| {
        file.seek(SeekFrom::Start(16 * 70)).unwrap();
        file.write_all(&[0; 16]).unwrap();
    });
    assert!(disordered.to_string().contains("read a sorted run: it is damaged"), "{disordered}");
    let unreadable = damaged(|file| *file = File::open("/").unwrap());
    assert!(unreadable.to_string().contains("read a sorted run"), "{unreadable}");
}

#[test]
fn runs_of_which_one_is_empty_are_merged() {
    let folder = tempdir().unwrap();
    let run = |numbers: std::ops::Range<u64>| {
        Run::write(folder.path(), 0, numbers.map(|number| Ok([number, 0]))).unwrap()
    };
    let mut merge: Merge<[u64; 2]> = Merge::new(0);
    for numbers in [3..6, 0..0, 1..4] {
        merge.add(run(numbers)).unwrap();
    }
    assert_eq!((merge.runs(), merge.peek()), (2, Some(&[1, 0])));
    let found: Vec<u64> = merge.by_ref().map(|item| item.unwrap()[0]).collect();
    assert_eq!(found, [1, 2, 3, 3, 4, 5]);
    assert_eq!((merge.runs(), merge.peek()), (0, None));
}
