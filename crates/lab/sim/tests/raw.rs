//! A raw flash chip as a device: its operations, its refusals, and the laws that it still keeps.
#![expect(clippy::unwrap_used, reason = "a failed set-up is a failed test")]

use nandex_device::{Device, Error, Op, OpKind, PageBuf, PageId};
use nandex_sim::spec::{Flash, Ftl, FtlKind, Host, Level, Mapping, Spec, Timing};
use nandex_sim::{Error as SimError, Fill, SimDevice, Ssd};
use proptest::prelude::*;

const BLOCK: u64 = 8;
const BLOCKS: u64 = 2 * 4;
const READ_NS: u64 = 25_000;
const PROGRAM_NS: u64 = 200_000;
const ERASE_NS: u64 = 1_500_000;
const COMMAND_NS: u64 = 5_000;
const BUS_NS: u64 = 4096 * 100;

/// Returns a die of two planes of four blocks of eight pages of 4 KiB.
fn chip() -> Spec {
    let plain = Spec::plain();
    Spec {
        name: "chip".into(),
        host: Host { depth: 8, controller_ns: COMMAND_NS, buffer_is_safe: true, ..plain.host },
        flash: Flash { channels: 1, dies: 1, blocks: 4, pages: BLOCK as u32, ..plain.flash },
        timing: Timing {
            read_ns: READ_NS,
            program_ns: PROGRAM_NS,
            erase_ns: ERASE_NS,
            transfer_ps_per_byte: 100_000,
            ..plain.timing
        },
        ftl: Ftl {
            kind: FtlKind::Raw,
            mapping: Mapping::Lba,
            domain: Level::Die,
            spare_permille: 0,
            clean_at_permille: 0,
            copy_back: false,
            ..plain.ftl
        },
        erases_max: 100_000,
        ..plain
    }
}

fn device(fill: Fill) -> SimDevice {
    let device = SimDevice::with_model(Box::new(Ssd::new(chip(), fill).unwrap()));
    device.grow(BLOCK * BLOCKS).unwrap();
    device
}

fn pages(count: usize, byte: u8) -> PageBuf {
    let mut buf = PageBuf::zeroed(count);
    buf.fill(byte);
    buf
}

fn write(device: &SimDevice, page: u64, count: usize, byte: u8) -> nandex_device::Result<()> {
    device.write(PageId(page), pages(count, byte)).map(drop)
}

fn erase(device: &SimDevice, block: u64, count: u64) {
    device.discard(PageId(block * BLOCK)..PageId((block + count) * BLOCK)).unwrap();
}

fn refusal(result: nandex_device::Result<()>) -> String {
    let error = result.unwrap_err();
    assert!(matches!(error, Error::Refused { .. }), "{error}");
    error.to_string()
}

#[test]
fn all_of_the_flash_is_the_hosts() {
    assert_eq!(device(Fill::Empty).page_count(), BLOCK * BLOCKS);
    assert!(device(Fill::Empty).grow(BLOCK * BLOCKS + 1).is_err());
}

#[test]
fn each_operation_takes_its_time_exactly() {
    let device = device(Fill::Empty);
    let timed = |act: &dyn Fn()| {
        let start_ns = device.now();
        act();
        device.now() - start_ns
    };
    let write_ns = timed(&|| write(&device, 0, 5, 1).unwrap());
    assert_eq!(write_ns, COMMAND_NS + 5 * (BUS_NS + PROGRAM_NS));
    let read_ns = timed(&|| drop(device.read(PageId(1), PageBuf::zeroed(3)).unwrap()));
    assert_eq!(read_ns, COMMAND_NS + 3 * (READ_NS + BUS_NS));
    assert_eq!(timed(&|| erase(&device, 0, 1)), COMMAND_NS + ERASE_NS);
    assert_eq!(timed(&|| erase(&device, 0, 3)), COMMAND_NS + 3 * ERASE_NS);
    assert_eq!(timed(&|| device.sync().unwrap()), COMMAND_NS);
}

#[test]
fn a_page_is_programmed_once_between_erases() {
    let device = device(Fill::Empty);
    write(&device, 8, 3, 1).unwrap();
    let text = refusal(write(&device, 10, 1, 2));
    assert_eq!(
        text,
        "write of 1 page(s) at page 10 was refused: page 10 is not erased; discard its whole block, \
         pages 8 to 15, before it is written again"
    );
    assert!(device.read(PageId(10), PageBuf::zeroed(1)).unwrap().iter().all(|&byte| byte == 1));
    erase(&device, 1, 1);
    write(&device, 8, 8, 3).unwrap();
    refusal(write(&device, 8, 1, 4));
}

#[test]
fn pages_of_a_block_are_programmed_in_order() {
    let device = device(Fill::Empty);
    let text = refusal(write(&device, 17, 1, 1));
    assert!(text.contains("page 17 is out of order; the next page of its block to be"), "{text}");
    assert!(text.ends_with("is 16"), "{text}");
    write(&device, 16, 2, 1).unwrap();
    refusal(write(&device, 19, 1, 1));
    write(&device, 18, 6, 1).unwrap();
    // A run that goes on into the next block finds that one programmed.
    write(&device, 24, 1, 1).unwrap();
    erase(&device, 2, 1);
    refusal(write(&device, 16, 9, 1));
    write(&device, 16, 8, 1).unwrap();
}

#[test]
fn parts_of_a_block_are_not_erased() {
    let device = device(Fill::Sequential);
    for (first, end) in [(0, 7), (1, 8), (4, 12), (0, 12)] {
        let text = refusal(device.discard(PageId(first)..PageId(end)));
        assert!(text.contains("erases whole blocks of 8 pages"), "{text}");
    }
    refusal(write(&device, 0, 1, 1));
    erase(&device, 0, 1);
    write(&device, 0, 1, 1).unwrap();
}

#[test]
fn what_is_in_flight_counts_as_done_for_what_comes_next() {
    let device = device(Fill::Empty);
    let mut queue = device.queue(8).unwrap();
    let op = |page| Op { token: page, kind: OpKind::Write, page: PageId(page), buf: pages(1, 7) };
    (0..6).for_each(|page| queue.push(op(page)).unwrap());
    assert!(matches!(queue.push(op(5)), Err(Error::Refused { .. })));
    assert!(matches!(queue.push(op(7)), Err(Error::Refused { .. })));
    let mut done = Vec::new();
    queue.wait(6, &mut done).unwrap();
    assert!(done.iter().all(|completion| completion.result.is_ok()));
}

#[test]
fn a_refused_operation_counts_for_nothing() {
    let device = device(Fill::Sequential);
    let (operations, now_ns) = (device.operations(), device.now());
    refusal(write(&device, 0, 1, 1));
    refusal(device.discard(PageId(0)..PageId(1)));
    assert_eq!((device.operations(), device.now()), (operations, now_ns));
}

#[test]
fn flash_pages_of_more_than_a_host_page_are_programmed_whole() {
    let mut spec = chip();
    spec.flash.page_bytes = 8192;
    let device = SimDevice::with_model(Box::new(Ssd::new(spec, Fill::Empty).unwrap()));
    device.grow(16).unwrap();
    for (page, count) in [(0, 1), (0, 3), (1, 2)] {
        let text = refusal(write(&device, page, count, 1));
        assert!(text.contains("flash pages hold 2 pages of 4 KiB"), "{text}");
    }
    let start_ns = device.now();
    write(&device, 0, 4, 1).unwrap();
    assert_eq!(device.now() - start_ns, COMMAND_NS + 2 * (2 * BUS_NS + PROGRAM_NS));
}

#[test]
fn a_chip_with_a_buffer_or_hidden_blocks_is_refused() {
    let refused = |change: fn(&mut Spec), wrong: &str| {
        let mut spec = chip();
        change(&mut spec);
        let SimError::Spec { field, .. } = Ssd::new(spec, Fill::Empty).unwrap_err() else {
            panic!("another error")
        };
        assert_eq!(field, wrong);
    };
    refused(|spec| spec.host.buffer_bytes = 4096, "host.buffer_bytes");
    refused(|spec| spec.ftl.spare_permille = 70, "ftl.spare_permille");
}

#[derive(Clone, Copy, Debug)]
enum Step {
    Write { page: u64, count: u64 },
    Append { block: u64, count: u64 },
    Erase { page: u64, count: u64 },
    Sync,
}

fn step() -> impl Strategy<Value = Step> {
    let (page, block) = (0..BLOCK * BLOCKS, 0..BLOCKS);
    prop_oneof![
        (page, 1..12_u64).prop_map(|(page, count)| Step::Write { page, count }),
        (block.clone(), 1..9_u64).prop_map(|(block, count)| Step::Append { block, count }),
        (block, 1..3_u64, prop_oneof![4 => Just(0), 1 => 1..8_u64])
            .prop_map(|(block, count, off)| Step::Erase { page: block * BLOCK + off, count }),
        Just(Step::Sync),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    /// Checks laws 1 to 3, with the chip's own rule in place of overwriting: a programmed page is readable
    /// until it is erased, an operation that breaks the rule is refused and changes nothing, and synced data
    /// are present after a power cut.
    #[test]
    fn it_keeps_the_laws_of_a_device_but_for_overwriting(
        steps in proptest::collection::vec(step(), 1..60),
        seed in any::<u64>(),
    ) {
        let device = device(Fill::Empty);
        // The byte on each page, and whether it was there at the last sync.
        let mut held = vec![None::<(u8, bool)>; (BLOCK * BLOCKS) as usize];
        let mut next = [0; BLOCKS as usize];
        for (number, step) in steps.into_iter().enumerate() {
            let byte = number as u8;
            let (page, count) = match step {
                Step::Sync => {
                    device.sync().unwrap();
                    held.iter_mut().flatten().for_each(|page| page.1 = true);
                    continue;
                }
                Step::Erase { page, count } => {
                    let end = page + count * BLOCK;
                    let result = device.discard(PageId(page)..PageId(end));
                    if end > BLOCK * BLOCKS || !page.is_multiple_of(BLOCK) {
                        prop_assert!(result.is_err());
                        continue;
                    }
                    result.unwrap();
                    held[page as usize..end as usize].fill(None);
                    next[(page / BLOCK) as usize..(end / BLOCK) as usize].fill(0);
                    continue;
                }
                Step::Write { page, count } => (page, count),
                Step::Append { block, count } => (block * BLOCK + next[block as usize], count),
            };
            let range = page..page + count;
            let starts = range.clone().filter(|page| page.is_multiple_of(BLOCK) || *page == range.start);
            let fits = range.end <= BLOCK * BLOCKS
                && starts.clone().all(|page| next[(page / BLOCK) as usize] == page % BLOCK);
            let result = write(&device, page, count as usize, byte);
            prop_assert_eq!(result.is_ok(), fits);
            if fits {
                for page in range {
                    held[page as usize] = Some((byte, false));
                    next[(page / BLOCK) as usize] = page % BLOCK + 1;
                }
            }
        }
        let after = device.survivors(seed).to_bytes();
        for (page, held) in held.iter().enumerate() {
            let Some((byte, is_synced)) = *held else { continue };
            let read = device.read(PageId(page as u64), PageBuf::zeroed(1)).unwrap();
            prop_assert!(read.iter().all(|&found| found == byte));
            let left = &after[page * 4096..(page + 1) * 4096];
            prop_assert!(!is_synced || left.iter().all(|&found| found == byte));
        }
    }
}
