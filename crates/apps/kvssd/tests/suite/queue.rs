//! Commands without waiting: contexts, depth, order, and the gain from a queue's depth on a simulated drive.

use std::sync::Arc;

use nandex::Durability;
use nandex_kvssd::{
    Afterwards, Command, CommandQueue, Config, DeleteMissing, Error, GroupFilter, IteratorKind,
    Outcome, ResultCode, RetrieveOptions, StoreKind, StoreOptions, Timing,
};
use nandex_sim::preset::Preset;
use nandex_sim::{Fill, SimDevice};

use crate::common::{INDEXES, add_space, create_on, drive, key, value};

fn store(key: &[u8], value: &[u8], kind: StoreKind) -> Command {
    Command::Store { key: key.to_vec(), value: value.to_vec(), options: kind.into() }
}

fn retrieve(key: &[u8]) -> Command {
    Command::Retrieve { key: key.to_vec(), options: RetrieveOptions::default() }
}

#[test]
fn completions_bring_their_contexts_in_order_and_each_its_own_result() {
    let (_drive, space) = drive(Config::tiny());
    let take = RetrieveOptions { afterwards: Afterwards::Delete, ..RetrieveOptions::default() };
    let commands = [
        store(b"a", b"1", StoreKind::Post),
        store(b"a", b"2", StoreKind::NoOverwrite),
        store(b"a", b"3", StoreKind::Append),
        store(b"", b"none", StoreKind::Post),
        store(b"b", b"4", StoreKind::UpdateOnly),
        retrieve(b"a"),
        retrieve(b"b"),
        retrieve(&[1; 256]),
        Command::Exist { keys: vec![b"a".to_vec(), b"b".to_vec()] },
        Command::Retrieve { key: b"a".to_vec(), options: take },
        Command::Delete { key: b"a".to_vec(), missing: DeleteMissing::Refuse },
        Command::DeleteGroup { filter: GroupFilter::default() },
    ];
    let mut queue = CommandQueue::new(&space, commands.len()).unwrap();
    for (number, command) in commands.into_iter().enumerate() {
        queue.submit(command, number).unwrap();
    }
    let full = queue.submit(retrieve(b"a"), 99).unwrap_err();
    assert!(matches!(full, Error::QueueFull { depth: 12 }), "{full}");
    let mut done = queue.poll(5);
    assert_eq!((done.len(), queue.pending()), (5, 7));
    done.extend(queue.poll(usize::MAX));
    assert!(done.iter().enumerate().all(|(number, it)| it.context == number));
    let codes: Vec<_> = done
        .iter()
        .map(|it| it.result.as_ref().map_or_else(Error::code, |_| ResultCode::Success))
        .collect();
    use ResultCode as Code;
    let expected = [
        Code::Success,
        Code::ValueUpdateNotAllowed,
        Code::Success,
        Code::KeyLengthInvalid,
        Code::KeyNotExist,
        Code::Success,
        Code::KeyNotExist,
        Code::KeyLengthInvalid,
        Code::Success,
        Code::Success,
        Code::KeyNotExist,
        Code::Success,
    ];
    assert_eq!(codes, expected);
    let outcome = |at: usize| done[at].result.as_ref().unwrap();
    assert!(matches!(outcome(5), Outcome::Retrieved(it) if it.bytes == b"13"));
    assert_eq!(*outcome(8), Outcome::Exist(vec![true, false]));
    assert!(matches!(outcome(9), Outcome::Retrieved(it) if it.bytes == b"13"));
    assert_eq!(*outcome(11), Outcome::GroupDeleted(0));
    assert!(queue.poll(1).is_empty());
}

#[test]
fn iterators_are_asked_by_commands_too() {
    let (_drive, space) = drive(Config::tiny());
    space.store(b"key", b"1", StoreOptions::default()).unwrap();
    let number = space.open_iterator(GroupFilter::default(), IteratorKind::Keys).unwrap();
    let mut queue = CommandQueue::new(&space, 4).unwrap();
    queue.submit(Command::Iterate { number, buffer_bytes: 100 }, "it").unwrap();
    let done = queue.poll(1);
    assert!(matches!(&done[0].result, Ok(Outcome::Iterated(it)) if it.pairs.len() == 1));
}

/// Returns the nanoseconds of 256 retrievals of values on flash, at this depth.
fn retrieval_ns(depth: usize) -> u64 {
    let preset = Preset::named("pm983").unwrap();
    let device = SimDevice::with_model(preset.build(Fill::Empty).unwrap());
    let create = create_on(Arc::new(device), Config::tiny(), INDEXES[0], Durability::Never);
    let drive = create.unwrap();
    let space = add_space(&drive, "main");
    for number in 0..256 {
        space.store(&key(number), &value(number, 600), StoreOptions::default()).unwrap();
    }
    drive.flush().unwrap();
    let before = drive.stats().unwrap().command_ns;
    let mut queue = CommandQueue::new(&space, depth).unwrap();
    for number in 0..256 {
        queue.submit(retrieve(&key(number)), number).unwrap();
        if queue.pending() == depth {
            for done in queue.poll(depth) {
                let Ok(Outcome::Retrieved(found)) = done.result else { panic!("it is there") };
                assert_eq!(found.bytes, value(done.context, 600));
                assert!(done.latency_ns > 0);
            }
        }
    }
    drive.stats().unwrap().command_ns - before
}

#[test]
fn a_deep_queue_overlaps_reads_on_a_simulated_drive() {
    let (alone, together) = (retrieval_ns(1), retrieval_ns(32));
    assert!(together * 3 < alone, "{alone} ns one by one, {together} ns 32 at a time");
}

#[test]
fn the_models_time_is_told_in_place_of_the_devices() {
    let (drive, space) = drive(Config::tiny());
    drive.set_timing(Timing::Iops(Default::default()));
    for number in 0..17 {
        space.store(&key(number), &value(number, 4096), StoreOptions::default()).unwrap();
    }
    // 107.5 thousand inserts of 4 KiB each second.
    let ns = drive.stats().unwrap().command_ns;
    assert!((150_000..170_000).contains(&ns), "{ns}");
}
