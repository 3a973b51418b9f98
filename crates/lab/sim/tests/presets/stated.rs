//! The figures of data sheets and papers for each drive, and how to measure them.

use nandex_sim::workload::closed_loop;
use nandex_sim::{Fill, Preset, RequestKind, Ssd};

use crate::measure::{
    alone_mean_ns, alone_mean_within_ns, alone_ns, model, places_below, random_iops, requests,
    sequential_read_mb, sequential_write_mb, spec, steady_write_iops, with_few_blocks,
};

/// The allowed deviation.
#[derive(Clone, Copy, Debug)]
pub enum Within {
    /// A percentage of the stated figure.
    Percent(f64),
    /// Equal in the stated decimals.
    Digits,
}

/// A stated figure.
#[derive(Debug)]
pub struct Row {
    pub preset: &'static str,
    pub what: &'static str,
    pub stated: f64,
    pub unit: &'static str,
    /// The number of stated decimals.
    pub decimals: usize,
    pub within: Within,
}

impl Row {
    pub fn holds(&self, measured: f64) -> bool {
        match self.within {
            Within::Percent(percent) => {
                (measured - self.stated).abs() <= self.stated * percent / 100.0
            }
            Within::Digits => {
                let rounded = format!("{measured:.*}", self.decimals);
                rounded == format!("{:.*}", self.decimals, self.stated)
            }
        }
    }
}

type Measure = fn(&Preset) -> f64;

const fn row(
    preset: &'static str,
    what: &'static str,
    (stated, decimals, unit): (f64, usize, &'static str),
    within: Within,
) -> Row {
    Row { preset, what, stated, unit, decimals, within }
}

const SHEET: Within = Within::Percent(15.0);
const EXACT: Within = Within::Digits;
/// The deviation of a rate over a run that a table prints.
const RATE: Within = Within::Percent(0.1);

const READ_MB: &str = "sequential reads of 128 KiB";
const WRITE_MB: &str = "sequential writes of 128 KiB, steady";
const READ_IOPS: &str = "random reads of 4 KiB at its depth";
const STEADY_IOPS: &str = "random writes of 4 KiB, steady";
const FRESH_IOPS: &str = "random writes of 4 KiB, new drive";
const READ_ALONE: &str = "a read of 4 KiB alone";
const WRITE_ALONE: &str = "a write of 4 KiB alone";
const SLOWEST: &str = "the slowest write of 128 KiB, with an erase";

/// All stated figures, in the order of the presets.
pub const STATED: &[(Row, Measure)] = &[
    (row("intel-x18m", READ_MB, (250.0, 0, "MB/s"), SHEET), read_mb),
    (row("intel-x18m", WRITE_MB, (70.0, 0, "MB/s"), SHEET), write_mb),
    (row("intel-x18m", READ_IOPS, (35_000.0, 0, "1/s"), SHEET), read_iops),
    (row("intel-x18m", READ_ALONE, (85.0, 0, "us"), SHEET), read_alone_us),
    (row("intel-x18m", WRITE_ALONE, (115.0, 0, "us"), SHEET), write_alone_us),
    (row("intel-x18m-paper", READ_ALONE, (0.15, 2, "ms"), EXACT), read_alone_ms),
    (row("intel-x18m-paper", "a read of 128 KiB alone", (0.31, 2, "ms"), EXACT), block_read_ms),
    (row("intel-x18m-paper", "a write of 128 KiB alone", (0.83, 2, "ms"), EXACT), block_write_ms),
    (row("intel-x18m-paper", SLOWEST, (2.72, 2, "ms"), EXACT), slowest_block_write_ms),
    (row("intel-x25m", READ_MB, (250.0, 0, "MB/s"), SHEET), read_mb),
    (row("intel-x25m", WRITE_MB, (100.0, 0, "MB/s"), SHEET), write_mb),
    (row("intel-x25m", READ_IOPS, (35_000.0, 0, "1/s"), SHEET), read_iops),
    (row("intel-x25m", STEADY_IOPS, (8600.0, 0, "1/s"), SHEET), steady_iops),
    (row("intel-x25m", READ_ALONE, (65.0, 0, "us"), SHEET), read_alone_us),
    (row("intel-x25m", WRITE_ALONE, (85.0, 0, "us"), SHEET), write_alone_us),
    (
        row("flash-chip", "a read of two pages, by its part's times", (172.9, 1, "us"), EXACT),
        read_alone_us,
    ),
    (row("flash-chip-paper", READ_ALONE, (0.24, 2, "ms"), EXACT), read_alone_ms),
    (row("transcend-ts32", READ_MB, (100.0, 0, "MB/s"), SHEET), read_mb),
    (row("transcend-ts32", WRITE_MB, (30.0, 0, "MB/s"), SHEET), write_mb),
    (row("transcend-ts32-paper", READ_ALONE, (0.6, 1, "ms"), EXACT), read_alone_ms),
    (row("transcend-ts32-paper", SLOWEST, (30.0, 0, "ms"), EXACT), slowest_block_write_ms),
    (row("crucial-m4", READ_MB, (415.0, 0, "MB/s"), SHEET), read_mb),
    (row("crucial-m4", WRITE_MB, (175.0, 0, "MB/s"), SHEET), write_mb),
    (row("crucial-m4", READ_IOPS, (40_000.0, 0, "1/s"), SHEET), read_iops),
    (row("crucial-m4", FRESH_IOPS, (35_000.0, 0, "1/s"), SHEET), fresh_iops),
    (row("mlc-1", READ_MB, (170.0, 0, "MB/s"), SHEET), read_mb),
    (row("mlc-1", WRITE_MB, (35.0, 0, "MB/s"), SHEET), write_mb),
    (row("mlc-1", READ_IOPS, (25_000.0, 0, "1/s"), SHEET), read_iops),
    (row("mlc-1", STEADY_IOPS, (2500.0, 0, "1/s"), SHEET), steady_iops),
    (row("mlc-1-paper", READ_MB, (170.0, 0, "MB/s"), RATE), read_mb),
    (row("mlc-1-paper", WRITE_MB, (35.0, 0, "MB/s"), RATE), write_mb),
    (row("mlc-1-paper", READ_ALONE, (65.0, 0, "us"), EXACT), read_alone_us),
    (row("mlc-1-paper", WRITE_ALONE, (110.0, 0, "us"), EXACT), write_alone_us),
    (row("mlc-2", READ_MB, (250.0, 0, "MB/s"), SHEET), read_mb),
    (row("mlc-2", WRITE_MB, (70.0, 0, "MB/s"), SHEET), write_mb),
    (row("mlc-2", READ_IOPS, (35_000.0, 0, "1/s"), SHEET), read_iops),
    (row("mlc-2", STEADY_IOPS, (6600.0, 0, "1/s"), SHEET), steady_iops),
    (row("mlc-2-paper", READ_MB, (250.0, 0, "MB/s"), RATE), read_mb),
    (row("mlc-2-paper", WRITE_MB, (70.0, 0, "MB/s"), RATE), write_mb),
    (row("mlc-2-paper", READ_ALONE, (65.0, 0, "us"), EXACT), read_alone_us),
    (row("mlc-2-paper", WRITE_ALONE, (85.0, 0, "us"), EXACT), write_alone_us),
    (row("slc", READ_MB, (250.0, 0, "MB/s"), SHEET), read_mb),
    (row("slc", WRITE_MB, (170.0, 0, "MB/s"), SHEET), write_mb),
    (row("slc", READ_IOPS, (35_000.0, 0, "1/s"), SHEET), read_iops),
    (row("slc", STEADY_IOPS, (3300.0, 0, "1/s"), SHEET), steady_iops),
    (row("slc", READ_ALONE, (75.0, 0, "us"), SHEET), read_alone_us),
    (row("slc", WRITE_ALONE, (85.0, 0, "us"), SHEET), write_alone_us),
    (row("slc-paper", READ_MB, (250.0, 0, "MB/s"), RATE), read_mb),
    (row("slc-paper", WRITE_MB, (170.0, 0, "MB/s"), RATE), write_mb),
    (row("slc-paper", READ_ALONE, (75.0, 0, "us"), EXACT), read_alone_us),
    (row("slc-paper", WRITE_ALONE, (85.0, 0, "us"), EXACT), write_alone_us),
    (row("pm983", READ_MB, (3200.0, 0, "MB/s"), SHEET), read_mb),
    (row("pm983", WRITE_MB, (2000.0, 0, "MB/s"), SHEET), write_mb),
    (row("pm983", READ_IOPS, (540_000.0, 0, "1/s"), SHEET), read_iops),
    (row("pm983", STEADY_IOPS, (50_000.0, 0, "1/s"), SHEET), steady_iops),
    (row("pm983", READ_ALONE, (85.0, 0, "us"), SHEET), read_alone_us),
    (row("pm983", WRITE_ALONE, (50.0, 0, "us"), SHEET), write_alone_us),
    (row("nvme-970pro", READ_MB, (3500.0, 0, "MB/s"), SHEET), read_mb),
    (row("nvme-970pro", WRITE_MB, (2300.0, 0, "MB/s"), SHEET), write_mb),
    (row("nvme-970pro", READ_IOPS, (370_000.0, 0, "1/s"), SHEET), read_iops),
    (row("nvme-970pro", FRESH_IOPS, (500_000.0, 0, "1/s"), SHEET), fresh_iops),
    (row("modern-nvme", READ_MB, (7000.0, 0, "MB/s"), SHEET), read_mb),
    (row("modern-nvme", WRITE_MB, (2000.0, 0, "MB/s"), SHEET), write_mb),
    (row("modern-nvme", READ_IOPS, (1_000_000.0, 0, "1/s"), SHEET), read_iops),
    (row("modern-nvme", READ_ALONE, (45.5, 1, "us"), SHEET), read_alone_us),
    (row("modern-nvme", WRITE_ALONE, (16.7, 1, "us"), SHEET), write_alone_us),
    (row("disk-7200", READ_MB, (100.0, 0, "MB/s"), SHEET), read_mb),
    (row("disk-7200", READ_ALONE, (12.7, 1, "ms"), SHEET), read_alone_ms),
    (row("disk-7200", "a read in 32 GB alone", (6.8, 1, "ms"), SHEET), near_read_ms),
    (row("disk-7200", "the slowest of them", (12.0, 0, "ms"), SHEET), slowest_near_read_ms),
    (row("deskstar-7k80", READ_MB, (61.5, 1, "MB/s"), SHEET), read_mb),
    (row("deskstar-7k80", READ_ALONE, (13.0, 1, "ms"), SHEET), read_alone_ms),
];

fn full(preset: &Preset) -> Box<dyn nandex_sim::Model> {
    model(preset, Fill::Sequential)
}

/// Returns the depth at which data sheets state requests a second: NCQ, or 32 requests of four threads.
fn depth(preset: &Preset) -> u32 {
    preset.geometry().depth.min(128) as u32
}

fn read_mb(preset: &Preset) -> f64 {
    sequential_read_mb(full(preset).as_mut())
}

fn write_mb(preset: &Preset) -> f64 {
    sequential_write_mb(spec(preset))
}

fn read_iops(preset: &Preset) -> f64 {
    let counts = (2000, 20_000);
    random_iops(full(preset).as_mut(), RequestKind::Read, depth(preset), counts)
}

fn steady_iops(preset: &Preset) -> f64 {
    steady_write_iops(preset, depth(preset))
}

fn fresh_iops(preset: &Preset) -> f64 {
    let mut new = model(preset, Fill::Empty);
    random_iops(new.as_mut(), RequestKind::Write, depth(preset), (40_000, 80_000))
}

fn read_alone_us(preset: &Preset) -> f64 {
    alone_mean_ns(full(preset).as_mut(), RequestKind::Read) / 1e3
}

fn read_alone_ms(preset: &Preset) -> f64 {
    read_alone_us(preset) / 1e3
}

fn write_alone_us(preset: &Preset) -> f64 {
    alone_mean_ns(full(preset).as_mut(), RequestKind::Write) / 1e3
}

/// The pages of the 32 GB in which NSDI 2010 stores its table.
const NEAR_PAGES: u64 = 32_000_000_000 / 4096;

fn near_read_ms(preset: &Preset) -> f64 {
    alone_mean_within_ns(full(preset).as_mut(), RequestKind::Read, NEAR_PAGES) / 1e6
}

fn slowest_near_read_ms(preset: &Preset) -> f64 {
    let all = requests(RequestKind::Read, 1, places_below(NEAR_PAGES));
    let times = alone_ns(full(preset).as_mut(), all);
    times.into_iter().max().unwrap() as f64 / 1e6
}

/// Returns the times of 128 KiB writes over a full SSD with few blocks, twice, consecutive.
fn block_writes_ns(preset: &Preset) -> Vec<u64> {
    let mut ssd = Ssd::new(with_few_blocks(spec(preset)), Fill::Sequential).unwrap();
    let count = nandex_sim::Model::page_count(&ssd) / 32;
    let all = requests(RequestKind::Write, 32, (0..2 * count).map(|n| n % count * 32));
    let mut times = Vec::new();
    closed_loop(&mut ssd, all, 1, |done| times.push(done.finished_ns - done.submitted_ns));
    times
}

fn block_read_ms(preset: &Preset) -> f64 {
    let all = requests(RequestKind::Read, 32, (0..100).map(|n| n * 3200));
    let times = alone_ns(full(preset).as_mut(), all);
    times.iter().sum::<u64>() as f64 / times.len() as f64 / 1e6
}

/// Returns the usual time: half of all take at most as long.
fn block_write_ms(preset: &Preset) -> f64 {
    let mut times = block_writes_ns(preset);
    times.sort_unstable();
    times[times.len() / 2] as f64 / 1e6
}

fn slowest_block_write_ms(preset: &Preset) -> f64 {
    block_writes_ns(preset).into_iter().max().unwrap() as f64 / 1e6
}
