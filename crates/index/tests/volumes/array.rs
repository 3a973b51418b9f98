//! Tables on labelled arrays, of three files and of three simulated drives, compared with the oracle.

use std::path::Path;
use std::sync::Arc;

use nandex::bufferhash::Config;
use nandex::device::MemoryDevice;
use nandex::device::{Access, Create, Device, FileDevice, FileOptions};
use nandex::raw::device::ArrayOptions;
use nandex::raw::device::{Counted, LabelledArray, Member, Striping};
use nandex::raw::oracle::MapTable;
use nandex::{
    BufferHash, OpenOptions, SliceHash, Table, Threads, Volume, VolumeOpenOptions, VolumeOptions,
    slicehash,
};
use nandex_sim::preset::Preset;
use nandex_sim::{Fill, SimDevice};

/// A run of two pages, so that buffers, blocks of the log and incarnations all cross members.
const STRIPED: ArrayOptions =
    ArrayOptions { striping: Striping::Extent { pages: 2 }, align_pages: 256, array_id: Some(3) };
const KEYS: u64 = 2500;

/// A source of members, which returns the same ones repeatedly.
type Members<'a> = &'a dyn Fn(Create) -> Vec<Member>;

fn key(number: u64) -> [u8; 8] {
    number.wrapping_mul(0x9e37_79b9_7f4a_7c15).to_le_bytes()
}

/// Returns a configuration large enough for all keys, so that nothing is evicted, and small enough to flush many times.
fn config() -> Config {
    Config { segments: 48, ..Config::tiny() }
}

fn create(device: Arc<dyn Device>) -> (Volume, BufferHash) {
    let volume = Volume::create(device, VolumeOptions::tiny()).unwrap();
    let table = BufferHash::create(&volume, "t", config()).unwrap();
    (volume, table)
}

fn open(device: Arc<dyn Device>) -> (Volume, BufferHash) {
    let options = VolumeOpenOptions { threads: Threads::Inline, ..VolumeOpenOptions::default() };
    let volume = Volume::open(device, options).unwrap();
    let table = BufferHash::open(&volume, "t").unwrap();
    (volume, table)
}

fn close((volume, table): (Volume, BufferHash)) {
    table.close().unwrap();
    volume.checkpoint().unwrap();
}

/// Inserts, updates and removes a round's keys, in the table and in the oracle.
fn change(table: &dyn Table, oracle: &dyn Table, round: u64) {
    for number in (round * 500)..(round * 500 + 1000).min(KEYS) {
        let value = (number << 8 | round).to_le_bytes();
        for table in [table, oracle] {
            table.insert(&key(number), &value).unwrap();
            if number % 7 == round {
                table.remove(&key(number)).unwrap();
            }
        }
    }
    table.sync().unwrap();
}

#[track_caller]
fn compare(table: &dyn Table, oracle: &dyn Table) {
    let keys: Vec<[u8; 8]> = (0..KEYS + 100).map(key).collect();
    let keys: Vec<&[u8]> = keys.iter().map(<[u8; 8]>::as_slice).collect();
    assert!(table.get_many(&keys).unwrap() == oracle.get_many(&keys).unwrap());
    for &one in keys.iter().step_by(37) {
        assert_eq!(table.get(one).unwrap(), oracle.get(one).unwrap());
    }
}

/// Performs four rounds of changes with a reopening between them, the members in another order each time.
fn live(members_of: Members<'_>) {
    let oracle = MapTable::new(8, 8);
    let array = LabelledArray::create(members_of(Create::New), &STRIPED).unwrap();
    assert_eq!((array.geometry().members, array.geometry().stripe_pages), (3, 2));
    let mut opened = create(Arc::new(array));
    for round in 0..4 {
        change(&opened.1, &oracle, round);
        compare(&opened.1, &oracle);
        close(opened);
        let mut members = members_of(Create::Open);
        members.rotate_left(usize::try_from(round % 3).unwrap());
        opened = open(Arc::new(LabelledArray::open(members, Access::ReadWrite).unwrap()));
        compare(&opened.1, &oracle);
    }
    assert!(opened.1.stats().flash_bytes > 0);
    close(opened);
    let array = LabelledArray::open(members_of(Create::Open), Access::ReadOnly).unwrap();
    let report = nandex::check(Arc::new(array), None, &mut |_| ()).unwrap();
    assert!(report.ok() && report.structures[0].entries > 0, "{:?}", report.findings);
}

fn files(folder: &Path, create: Create) -> Vec<Member> {
    let file = |name| {
        let path = folder.join(name);
        let options = FileOptions { create, ..FileOptions::default() };
        let device = FileDevice::open(&path, &options).unwrap();
        Member::new(path.display().to_string(), Arc::new(device))
    };
    ["a", "b", "c"].map(file).into()
}

#[test]
fn a_table_on_three_files_is_as_the_oracle_however_they_are_ordered() {
    let folder = tempfile::tempdir().unwrap();
    live(&|create| files(folder.path(), create));
}

#[test]
fn a_table_on_three_simulated_drives_is_as_the_oracle_and_all_three_work() {
    let preset = Preset::named("intel-x18m").unwrap();
    let drive = |_| {
        let model = preset.build(Fill::Empty).unwrap();
        SimDevice::with_model(model).with_geometry(preset.geometry())
    };
    let drives: Vec<SimDevice> = (0..3).map(drive).collect();
    live(&|_| {
        let member = |(index, drive): (usize, &SimDevice)| {
            Member::new(format!("drive {index}"), Arc::new(drive.clone()))
        };
        drives.iter().enumerate().map(member).collect()
    });
    let seen: Vec<u64> = drives.iter().map(|it| it.seen(nandex_sim::FaultOn::Read)).collect();
    assert!(seen.iter().all(|&reads| reads > 100), "each member is read: {seen:?}");
}

/// The two designs of ANCS'14 section 5.3: the reads of each lookup are counted on each member.
#[test]
fn slicetables_take_turns_on_the_devices_or_each_slice_is_read_from_all_at_once() {
    let one = slicehash::Config { slices: 24, entries_max: 24 * 150, ..slicehash::Config::tiny() };
    for (config, reads_each) in [(one.throughput_oriented(3), 1), (one.memory_oriented(3), 3)] {
        let members: Vec<_> = (0..3).map(|_| Arc::new(Counted::new(MemoryDevice::new()))).collect();
        let named = members.iter().zip(["a", "b", "c"]);
        let named =
            named.map(|(device, name)| Member::new(name, Arc::clone(device) as _)).collect();
        let pages = config.stripe_pages().into();
        let options = ArrayOptions { striping: Striping::Extent { pages }, ..STRIPED };
        let array = Arc::new(LabelledArray::create(named, &options).unwrap());
        let volume = Volume::create(array, VolumeOptions::tiny()).unwrap();
        // With flush threads, the slicetable that is free when a merge begins would differ from run to run.
        let inline = OpenOptions::default().inline();
        let table = SliceHash::create_with(&volume, "t", config, inline).unwrap();
        (0..8000u64).for_each(|number| table.insert_u64(number, number * 3).unwrap());
        table.flush().unwrap();
        let before: Vec<u64> = members.iter().map(|device| device.snapshot().pages_read).collect();
        let absent: Vec<_> = (0..3000u64).map(|number| (number | 1 << 40).to_le_bytes()).collect();
        let absent: Vec<&[u8]> = absent.iter().map(|key| &key[..]).collect();
        assert!(table.get_many(&absent).unwrap().iter().all(Option::is_none));
        let reads = members.iter().zip(before);
        let reads: Vec<u64> = reads.map(|(device, b)| device.snapshot().pages_read - b).collect();
        assert_eq!(reads.iter().sum::<u64>(), 3000 * reads_each, "{reads:?}");
        // Four partitions on three devices: each has at least one. Shared slices are read everywhere.
        let least = if reads_each == 3 { 3000 } else { 500 };
        assert!(reads.iter().all(|count| *count >= least), "{reads:?}");
        assert!((0..8000).all(|number| table.get_u64(number).unwrap() == Some(number * 3)));
    }
}

#[test]
fn a_table_for_other_devices_than_the_arrays_is_refused() {
    let one = slicehash::Config::tiny();
    for config in [one.throughput_oriented(3), one.memory_oriented(3)] {
        let pages: u64 = config.stripe_pages().into();
        for (devices, pages, fits) in [(3, pages, true), (2, pages, false), (3, pages + 1, false)] {
            let named = ["a", "b", "c"].into_iter().take(devices);
            let members = named.map(|name| Member::new(name, Arc::new(MemoryDevice::new()) as _));
            let options = ArrayOptions { striping: Striping::Extent { pages }, ..STRIPED };
            let array = Arc::new(LabelledArray::create(members.collect(), &options).unwrap());
            let volume = Volume::create(array, VolumeOptions::tiny()).unwrap();
            let made = SliceHash::create(&volume, "t", config).map(drop);
            let text = made.map_or_else(|error| error.to_string(), |()| String::new());
            assert_eq!(text.is_empty(), fits, "{text}");
            assert!(fits || text.starts_with("devices: 3 in runs of "), "{text}");
            assert_eq!(volume.structures().len(), usize::from(fits));
        }
    }
}
