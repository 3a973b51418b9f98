//! Reads of a simulated Crucial M4 in the orders of ANCS'14, section 7.3: first in, first out against the
//! schedule, in virtual time.
//!
//! `cargo test -p nandex-store --test schedule -- --nocapture` prints what Figure 6 shows, and the
//! paper's figures. The paper's schedule spreads reads over channels. On this drive a bus serves one read at a time,
//! and ours starts runs of one channel there: the last tests have its gain, and a drive on which it would be a loss.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::collections::VecDeque;

use nandex_device::{Completion, Device, Geometry, Op, OpKind, PageBuf, PageId, Queue};
use nandex_sim::preset::Preset;
use nandex_sim::workload::SplitMix64;
use nandex_sim::{Fill, SimDevice};
use nandex_store::schedule::{Channels, Schedule, SequentialWrite};

const DEPTH: usize = 32;
/// The number of requests that the schedule may choose from.
const WINDOW: usize = 1024;
const READS: usize = 16_384;
const DOMAINS: u64 = 32;
const CHUNK_PAGES: u64 = 2;
const ROUND_PAGES: u64 = DOMAINS * CHUNK_PAGES;
const ROUNDS: u64 = 4096;

/// Returns the drive, written once in order, so that chunk i is on channel i mod 32.
fn drive() -> SimDevice {
    let preset = Preset::named("crucial-m4-paper").unwrap();
    let device = SimDevice::with_model(preset.build(Fill::Sequential).unwrap());
    device.grow(ROUNDS * ROUND_PAGES).unwrap();
    device.with_geometry(preset.geometry())
}

/// The way in which requests are started.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Way {
    /// As many as the queue holds, then a wait for all of them.
    Batches,
    /// Another for each that ends.
    Stream,
}

/// Requests that wait to be started.
trait Line {
    fn push(&mut self, channel: u32, page: PageId);
    fn next(&mut self) -> Option<(u32, PageId)>;
    fn done(&mut self, channel: u32);
    fn waiting(&self) -> usize;
}

/// First in, first out, as without any line but the device's own.
struct Fifo(VecDeque<(u32, PageId)>);

impl Line for Fifo {
    fn push(&mut self, channel: u32, page: PageId) {
        self.0.push_back((channel, page));
    }
    fn next(&mut self) -> Option<(u32, PageId)> {
        self.0.pop_front()
    }
    fn done(&mut self, _channel: u32) {}
    fn waiting(&self) -> usize {
        self.0.len()
    }
}

impl Line for Schedule<(u32, PageId)> {
    fn push(&mut self, channel: u32, page: PageId) {
        self.push(channel, (channel, page));
    }
    fn next(&mut self) -> Option<(u32, PageId)> {
        self.next()
    }
    fn done(&mut self, channel: u32) {
        self.done(channel);
    }
    fn waiting(&self) -> usize {
        self.waiting()
    }
}

fn fill(line: &mut dyn Line, queue: &mut dyn Queue) {
    while queue.in_flight() < DEPTH {
        let Some((channel, page)) = line.next() else { break };
        let token = u64::from(channel);
        queue.push(Op { token, kind: OpKind::Read, page, buf: PageBuf::zeroed(1) }).unwrap();
    }
}

/// Returns the reads per second of these requests, a window of which the line sees, while there are more to come: a
/// window's worth of them at the beginning and at the end does not count.
fn rate(
    device: &SimDevice,
    requests: &[(u32, PageId)],
    mut line: impl Line,
    way: Way,
    window: usize,
) -> f64 {
    let mut queue = device.queue(DEPTH).unwrap();
    let mut done: Vec<Completion> = Vec::new();
    let mut to_come = requests.iter();
    let (mut ended, mut start) = (0, None);
    while ended < requests.len() - window {
        let free_slots = window.saturating_sub(line.waiting());
        to_come.by_ref().take(free_slots).for_each(|(channel, page)| line.push(*channel, *page));
        fill(&mut line, &mut *queue);
        queue.wait(if way == Way::Batches { DEPTH } else { 1 }, &mut done).unwrap();
        ended += done.len();
        done.drain(..).for_each(|completion| line.done(completion.token as u32));
        if ended >= window && start.is_none() {
            start = Some((ended, device.now()));
        }
    }
    let (before, start_ns) = start.unwrap();
    (ended - before) as f64 * 1e9 / (device.now() - start_ns) as f64
}

/// The channel of the n-th read.
type Order = fn(usize, &mut SplitMix64) -> u64;

/// Sends the first K to one channel, the next K to the next one.
fn ordered<const K: usize>(n: usize, _: &mut SplitMix64) -> u64 {
    (n / K) as u64 % DOMAINS
}

/// Sends S of 32 requests to one channel, which changes each time; the others are spread evenly.
fn skewed<const S: usize>(n: usize, _: &mut SplitMix64) -> u64 {
    let (batch, within) = ((n / DEPTH) as u64, n % DEPTH);
    let hot = SplitMix64::new(batch).below(DOMAINS);
    if within < S { hot } else { (hot + within as u64) % DOMAINS }
}

fn random(_: usize, rng: &mut SplitMix64) -> u64 {
    rng.below(DOMAINS)
}

/// Returns pages on the channels of this order, each anywhere on its channel.
fn pages(order: Order) -> Vec<PageId> {
    let mut rng = SplitMix64::new(7);
    let page = |n: usize| {
        let channel = order(n, &mut rng);
        let row = rng.below(ROUNDS) * ROUND_PAGES;
        PageId(row + channel * CHUNK_PAGES + rng.below(CHUNK_PAGES))
    };
    (0..READS).map(page).collect()
}

fn estimated(pages: &[PageId], channels: &Channels) -> Vec<(u32, PageId)> {
    let whole = SequentialWrite::at(PageId(0));
    pages.iter().map(|page| (channels.channel(*page, whole), *page)).collect()
}

/// Returns the reads per second in this order, first in, first out.
fn fifo_rate(order: Order, way: Way) -> f64 {
    let device = drive();
    let requests = estimated(&pages(order), &Channels::of(&device.geometry()));
    rate(&device, &requests, Fifo(VecDeque::new()), way, WINDOW)
}

/// Returns the channels for the paper's schedule, which has no runs.
fn spread(device: &SimDevice) -> Channels {
    Channels::of(&device.geometry()).without_runs()
}

/// Returns the reads per second with the paper's schedule.
fn schedule_rate(order: Order, way: Way) -> f64 {
    let device = drive();
    let channels = spread(&device);
    rate(&device, &estimated(&pages(order), &channels), channels.schedule(DEPTH), way, WINDOW)
}

#[test]
fn reads_in_bad_orders_go_as_fast_as_in_the_best_one() {
    let best = fifo_rate(ordered::<1>, Way::Stream);
    let orders: [(&str, Order, f64); 4] = [
        ("ordered, K = 16", ordered::<16>, 0.42),
        ("random", random, 0.85),
        ("skewed, S = 5", skewed::<5>, 0.83),
        ("skewed, S = 10", skewed::<10>, 0.70),
    ];
    println!("reads a second, {best:.0} in the best order   FIFO schedule  ratio paper");
    for (name, order, paper) in orders {
        let ratios = [(Way::Batches, 0.85), (Way::Stream, 0.98)].map(|(way, of_best)| {
            let (fifo, schedule) = (fifo_rate(order, way), schedule_rate(order, way));
            let ratio = fifo / schedule;
            let way = format!("{way:?}");
            println!("{name:18} {way:24} {fifo:6.0}   {schedule:6.0}   {ratio:.2}  {paper:.2}");
            assert!(schedule > of_best * best, "{name}, {way}: {schedule:.0} of {best:.0}");
            ratio
        });
        // The paper does not say whether its threads waited for each other between batches; a drive whose figure is
        // outside of both would be another drive.
        let [in_batches, in_a_stream] = ratios;
        assert!(in_batches - 0.01 < paper && paper < in_a_stream + 0.01, "{name}: {ratios:?}");
        // In a stream whose order is even already there is nothing to gain, and little is lost.
        assert!(in_a_stream < 1.02, "{name}: {in_a_stream:.2}");
    }
    let worst = fifo_rate(ordered::<16>, Way::Batches) / schedule_rate(ordered::<16>, Way::Batches);
    assert!((worst - 0.42).abs() < 0.05, "{worst:.2}");
}

#[test]
fn knowing_the_buses_helps_where_there_is_little_to_choose_from() {
    let device = drive();
    let channels = spread(&device);
    assert_eq!((channels.count(), channels.buses()), (32, 8));
    let requests = estimated(&pages(random), &channels);
    for window in [64, 128] {
        let with = rate(&device, &requests, channels.schedule(DEPTH), Way::Batches, window);
        let alike = Schedule::new(channels.count(), DEPTH);
        let without = rate(&drive(), &requests, alike, Way::Batches, window);
        assert!(with > 1.05 * without, "{window} to choose from: {with:.0}, {without:.0}");
    }
}

#[test]
fn on_a_device_that_tells_nothing_every_read_starts_when_it_would_without_a_schedule() {
    let device = drive().with_geometry(Geometry::opaque());
    let channels = Channels::of(&device.geometry());
    let requests = estimated(&pages(ordered::<16>), &channels);
    for way in [Way::Batches, Way::Stream] {
        let schedule = rate(&drive(), &requests, channels.schedule(DEPTH), way, WINDOW);
        let fifo = rate(&drive(), &requests, Fifo(VecDeque::new()), way, WINDOW);
        assert_eq!(schedule.to_bits(), fifo.to_bits());
    }
}

/// Whole rounds of chunks, as a slicetable has them.
const WRITE_PAGES: u64 = 4 * ROUND_PAGES;
const WRITES: u64 = 48;

/// Returns a new drive with sequential writes on it in no order of addresses, each after `others_pages` pages of other
/// writes.
fn written(others_pages: u64) -> (SimDevice, Vec<SequentialWrite>) {
    let preset = Preset::named("crucial-m4-paper").unwrap();
    let device = SimDevice::with_model(preset.build(Fill::Empty).unwrap());
    device.grow(WRITES * WRITE_PAGES + others_pages).unwrap();
    let mut pages_before = 0;
    let mut write = |start: u64, pages: u64| {
        let write = SequentialWrite { start: PageId(start), pages_before };
        if pages > 0 {
            device.write(write.start, PageBuf::zeroed(pages as usize)).unwrap();
        }
        pages_before += pages;
        write
    };
    // 29 and 48 have no common divisor, so each place comes once.
    let writes = (0..WRITES).map(|n| {
        write(WRITES * WRITE_PAGES, others_pages);
        write(n * 29 % WRITES * WRITE_PAGES, WRITE_PAGES)
    });
    let writes = writes.collect();
    device.sync().unwrap();
    (device.with_geometry(preset.geometry()), writes)
}

/// Returns the reads per second of pages of these writes, sixteen of a channel at a time, where channels are estimated
/// with what `known` leaves of a write.
fn rate_of_writes(others_pages: u64, known: fn(SequentialWrite) -> SequentialWrite) -> f64 {
    let (device, writes) = written(others_pages);
    let channels = spread(&device);
    assert!(WRITE_PAGES.is_multiple_of(channels.align_pages()));
    let mut rng = SplitMix64::new(3);
    let request = |n: usize| {
        let write = writes[rng.below(WRITES) as usize];
        // The actual start of the n-th read's channel in this write, in any of its rounds.
        let turn = ordered::<16>(n, &mut rng) * CHUNK_PAGES + ROUND_PAGES;
        let in_round = (turn - write.pages_before % ROUND_PAGES) % ROUND_PAGES;
        let page = write.start.plus(rng.below(WRITE_PAGES / ROUND_PAGES) * ROUND_PAGES + in_round);
        (channels.channel(page, known(write)), page)
    };
    let requests: Vec<_> = (0..READS).map(request).collect();
    rate(&device, &requests, channels.schedule(DEPTH), Way::Batches, WINDOW)
}

#[test]
fn channels_estimated_from_the_order_of_writing_are_as_good_as_known_ones() {
    let known = schedule_rate(ordered::<16>, Way::Batches);
    // The paper's estimate: only whole rounds are written.
    let by_the_paper = rate_of_writes(0, |write| SequentialWrite::at(write.start));
    assert!(by_the_paper > 0.97 * known, "{by_the_paper:.0} of {known:.0}");
    // Eleven pages of other writes rotate the order each time, by half a chunk too. Counted, they do no harm; not
    // counted, they make the estimate a guess, which is still better than none.
    let counted = rate_of_writes(11, |write| write);
    assert!(counted > 0.97 * known, "{counted:.0} of {known:.0}");
    let guessed = rate_of_writes(11, |write| SequentialWrite::at(write.start));
    assert!(guessed < 0.9 * counted, "{guessed:.0} of {counted:.0}");
    assert!(guessed > 1.2 * fifo_rate(ordered::<16>, Way::Batches), "{guessed:.0}");
}

/// Returns channels whose schedule may start runs, and must not if the drive's planes read independently.
fn as_told(device: &SimDevice, serial_buses: bool) -> Channels {
    Channels::of(&Geometry { serial_buses, ..device.geometry() })
}

/// Returns the same drive with planes that read at the same time and share their bus only to send a page, and with a
/// fast link.
fn drive_of_independent_planes() -> SimDevice {
    let text = Preset::text("crucial-m4-paper").unwrap();
    let text = text.replace("unit = \"channel\"", "unit = \"plane\"");
    let text = text.replace("link_ps_per_byte = 1667", "link_ps_per_byte = 200");
    let preset = Preset::from_toml(&text).unwrap();
    let device = SimDevice::with_model(preset.build(Fill::Sequential).unwrap());
    device.grow(ROUNDS * ROUND_PAGES).unwrap();
    let device = device.with_geometry(preset.geometry());
    assert!(!device.geometry().serial_buses);
    device
}

#[test]
fn reads_of_one_channel_overlap_on_a_serial_bus_and_those_of_two_channels_do_not() {
    // Channels 0 and 8 share bus 0. A page takes 75 us to read and 41 us to send.
    let both = |n: usize, _: &mut SplitMix64| 8 * (n as u64 % 2);
    let one: Order = |_, _| 0;
    let on = |device: SimDevice, order: Order| {
        let requests = estimated(&pages(order), &spread(&device));
        rate(&device, &requests, Fifo(VecDeque::new()), Way::Stream, WINDOW)
    };
    let within = |rate: f64, us: f64| assert!((rate * us / 1e6 - 1.0).abs() < 0.02, "{rate:.0}");
    within(on(drive(), one), 75.0);
    within(on(drive(), both), 75.0 + 41.0);
    // Planes that read independently: two channels are faster than one there.
    within(on(drive_of_independent_planes(), one), 75.0);
    within(on(drive_of_independent_planes(), both), 41.0);
}

const ALL_ORDERS: [(&str, Order); 9] = [
    ("random", random),
    ("skewed, S = 5", skewed::<5>),
    ("skewed, S = 10", skewed::<10>),
    ("ordered, K = 1", ordered::<1>),
    ("ordered, K = 2", ordered::<2>),
    ("ordered, K = 4", ordered::<4>),
    ("ordered, K = 8", ordered::<8>),
    ("ordered, K = 16", ordered::<16>),
    ("ordered, K = 32", ordered::<32>),
];

#[test]
fn runs_are_at_least_as_fast_as_any_order_of_arrival_and_as_spreading_in_every_order() {
    println!("reads a second                  window    FIFO  spread    runs");
    for (name, order) in ALL_ORDERS {
        let requests = estimated(&pages(order), &spread(&drive()));
        for (way, window) in [Way::Batches, Way::Stream].into_iter().flat_map(|way| {
            // The window of a structure's stream, and that of the paper's batches.
            [256, WINDOW].map(|window| (way, window))
        }) {
            let on = |channels: Channels| {
                rate(&drive(), &requests, channels.schedule::<(u32, PageId)>(DEPTH), way, window)
            };
            let fifo = rate(&drive(), &requests, Fifo(VecDeque::new()), way, WINDOW);
            let (spread, runs) = (on(spread(&drive())), on(as_told(&drive(), true)));
            let way = format!("{way:?}");
            println!("{name:18} {way:12} {window:6}  {fifo:6.0}  {spread:6.0}  {runs:6.0}");
            let best = fifo.max(spread);
            assert!(runs > 1.05 * best, "{name}, {way}, {window}: {runs:.0} and {best:.0}");
        }
    }
}

#[test]
fn runs_would_slow_down_a_drive_whose_planes_read_by_themselves() {
    let device = drive_of_independent_planes();
    let requests = estimated(&pages(random), &spread(&device));
    for (way, window) in [Way::Batches, Way::Stream]
        .into_iter()
        .flat_map(|way| [256, WINDOW].map(|window| (way, window)))
    {
        let on = |serial_buses| {
            let device = drive_of_independent_planes();
            let schedule = as_told(&device, serial_buses).schedule(DEPTH);
            rate(&device, &requests, schedule, way, window)
        };
        let (runs, spread) = (on(true), on(false));
        println!("{way:?}, {window} to choose from: {runs:.0} in runs, {spread:.0} without");
        assert!(runs < 0.85 * spread, "{way:?}, {window}: {runs:.0} in runs, {spread:.0} without");
    }
}
