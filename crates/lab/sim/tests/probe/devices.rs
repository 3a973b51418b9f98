//! Devices by seed, with their geometry as visible from outside.

use nandex_device::probe::Mapping;

use nandex_sim::spec::{
    self, Flash, Ftl, FtlKind, HOST_PAGE_BYTES, Host, Level, Parallel, Timing, Victim,
};
use nandex_sim::workload::SplitMix64;
use nandex_sim::{Fill, Model, Request, RequestKind, Spec, Ssd};

/// A device, and the geometry that a probe must find.
#[derive(Debug)]
pub struct Truth {
    /// The number of devices that were drawn until one showed its channels to pairs of reads, including this
    /// one.
    pub drawn: u64,
    pub spec: Spec,
    pub chunk_bytes: u32,
    pub channels: u32,
    pub mapping: Mapping,
}

/// Creates a device by seed: 2 to 64 channels as seen from outside, chunks of 4 to 64 KiB, every mapping,
/// unit and kind of overlap, with or without a buffer and a slow link. Devices on which the pattern cannot be
/// seen with noise of a tenth, since bus or link take longer than everything behind them, are skipped.
pub fn geometry(seed: u64) -> Truth {
    let mut rng = SplitMix64::stream(seed, 7);
    for drawn in 1.. {
        let spec = draw(&mut rng);
        spec.check().unwrap();
        let Some(channels) = channels(&spec).filter(|channels| (2..=64).contains(channels)) else {
            continue;
        };
        let mapping = match spec.ftl.mapping {
            spec::Mapping::Lba => Mapping::Lba,
            spec::Mapping::WriteOrder => Mapping::WriteOrder,
        };
        return Truth { drawn, chunk_bytes: spec.ftl.chunk_bytes, channels, mapping, spec };
    }
    unreachable!("some device shows its channels")
}

/// Returns a device of this flash, without a buffer, on which packages work independently.
pub fn plain(flash: Flash) -> Spec {
    let mut rng = SplitMix64::new(0);
    let mut spec = draw(&mut rng);
    spec.host = Host {
        depth: 32,
        link_ps_per_byte: 0,
        duplex: true,
        controller_ns: 1_000,
        read_latency_ns: 0,
        write_latency_ns: 0,
        buffer_bytes: 0,
        buffer_is_safe: false,
    };
    spec.flash = flash;
    spec.timing.read_ns = 75_000;
    spec.timing.transfer_ps_per_byte = 5_000;
    spec.parallel = Parallel { unit: Level::Package, pipelined: false, two_plane: false };
    spec.ftl.mapping = spec::Mapping::WriteOrder;
    spec
}

fn pick<T: Copy>(rng: &mut SplitMix64, of: &[T]) -> T {
    of[rng.below(of.len() as u64) as usize]
}

fn draw(rng: &mut SplitMix64) -> Spec {
    let levels = [Level::Channel, Level::Package, Level::Die, Level::Plane];
    let channels_max = pick(rng, &[4, 16, 64]);
    let flash = Flash {
        channels: 1 + rng.below(channels_max) as u32,
        packages: 1 + rng.below(4) as u32,
        dies: pick(rng, &[1, 2, 4]),
        planes: pick(rng, &[1, 2, 4]),
        blocks: 0,
        pages: 64,
        page_bytes: pick(rng, &[4096, 8192, 16384]),
    };
    let blocks = 32_u32.max(65536 * 4 / flash.plane_count() / flash.page_units() / flash.pages);
    let bus_ps = pick(rng, &[1_500, 5_000, 12_500, 25_000]);
    let read_ns = pick(rng, &[25_000, 50_000, 75_000, 100_000]);
    Spec {
        name: "drawn".into(),
        about: String::new(),
        host: Host {
            depth: 32,
            link_ps_per_byte: pick(rng, &[0, 1_000, 2_000, 4_000]),
            duplex: rng.chance(500_000),
            controller_ns: pick(rng, &[0, 1_000, 5_000]),
            read_latency_ns: pick(rng, &[0, 10_000]),
            write_latency_ns: pick(rng, &[0, 10_000]),
            buffer_bytes: pick(rng, &[0, 1 << 20, 16 << 20]),
            buffer_is_safe: rng.chance(500_000),
        },
        flash: Flash { blocks, ..flash },
        timing: Timing {
            read_ns,
            program_ns: 4 * read_ns,
            erase_ns: 1_500_000,
            command_ns: pick(rng, &[0, 200]),
            transfer_ps_per_byte: bus_ps,
            spare_bytes_per_sector: pick(rng, &[0, 16]),
            whole_page_transfer: false,
        },
        parallel: Parallel {
            unit: pick(rng, &[Level::Channel, Level::Die, Level::Plane]),
            pipelined: rng.chance(400_000),
            two_plane: false,
        },
        ftl: Ftl {
            kind: FtlKind::Page,
            mapping: pick(rng, &[spec::Mapping::Lba, spec::Mapping::WriteOrder]),
            domain: pick(rng, &levels),
            chunk_bytes: 4096 << rng.below(5),
            spare_permille: 280,
            clean_at_permille: 50,
            victim: pick(rng, &[Victim::Greedy, Victim::Fifo, Victim::WearAware]),
            copy_back: rng.chance(500_000),
            background: false,
        },
        erases_max: 100_000,
    }
}

/// Returns the plane of a page of a device that was written front to back, from the rules of striping alone.
fn plane(spec: &Spec, page: u64) -> u32 {
    let (flash, domains) = (&spec.flash, spec.flash.count(spec.ftl.domain));
    let chunk_pages = u64::from(spec.ftl.chunk_bytes) / HOST_PAGE_BYTES;
    let chunk = page / chunk_pages;
    let domain = (chunk % u64::from(domains)) as u32;
    let in_domain = chunk / u64::from(domains) * chunk_pages + page % chunk_pages;
    let turn = in_domain / u64::from(flash.page_units());
    // Neighbouring domains differ in the channel first, then in the package, the die and the plane.
    let counts = [flash.channels, flash.packages, flash.dies, flash.planes];
    let levels = [Level::Channel, Level::Package, Level::Die, Level::Plane];
    let (mut rest, mut place) = (domain, [0; 4]);
    for (index, count) in counts.iter().enumerate() {
        if levels[index] <= spec.ftl.domain {
            (place[index], rest) = (rest % count, rest / count);
        }
    }
    // Inside a domain, flash pages take the planes in turn.
    let planes = flash.plane_count() / domains;
    let mut which = (turn % u64::from(planes)) as u32;
    for index in (0..4).rev().filter(|index| levels[*index] > spec.ftl.domain) {
        (place[index], which) = (which % counts[index], which / counts[index]);
    }
    let [channel, package, die, on_die] = place;
    ((channel * flash.packages + package) * flash.dies + die) * flash.planes + on_die
}

/// Returns the time of two simultaneous reads on a device written front to back.
fn pair_ns(spec: &Spec, pages: [u64; 2]) -> u64 {
    let mut ssd = Ssd::new(spec.clone(), Fill::Sequential).unwrap();
    for page in pages {
        ssd.submit(Request { token: page, kind: RequestKind::Read, page, pages: 1 });
    }
    while ssd.step(&mut Vec::new()) {}
    ssd.now_ns()
}

/// Returns the shortest period of the pattern of pairs of chunks over their distance; nothing if neither it
/// nor the ends of chunks are visible.
pub fn channels(spec: &Spec) -> Option<u32> {
    let chunk_pages = spec.ftl.chunk_bytes / HOST_PAGE_BYTES as u32;
    let page_units = spec.flash.page_units();
    // After this many chunks the order repeats.
    let cycle = spec.flash.plane_count() * page_units.div_ceil(chunk_pages);
    let pages = u64::from(cycle * chunk_pages) * 2;
    if cycle > 512 || pages > spec.page_count() {
        return None;
    }
    // A device without a buffer fills up a flash page after each write of less; planes take other turns.
    let is_padded = spec.host.buffer_bytes == 0 && chunk_pages < page_units;
    if is_padded && spec.flash.plane_count() > spec.flash.count(spec.ftl.domain) {
        return None;
    }
    let planes = (0..pages).map(|page| plane(spec, page)).collect();
    let mut times = Times { spec, planes, known: [None; 4] };
    // Pages inside a chunk must wait for each other clearly longer than those across its end.
    let (mut inside, mut over) = (u64::MAX, 0);
    for page in 0..cycle * chunk_pages {
        let ns = times.of(page, page + 1);
        if (page + 1).is_multiple_of(chunk_pages) {
            over = over.max(ns);
        } else {
            inside = inside.min(ns);
        }
    }
    if chunk_pages > 1 && inside * 100 < over * 108 {
        return None;
    }
    let step = page_units.min(chunk_pages);
    let pattern = (1..=cycle).map(|distance| {
        let firsts = (0..cycle * chunk_pages).step_by(step as usize);
        firsts.map(|page| times.of(page, page + distance * chunk_pages)).sum()
    });
    let pattern: Vec<u64> = pattern.collect();
    let period = period(&pattern)?;
    // Units inside a domain take turns by the order of writing, whatever the domain follows. The mapping is
    // that of the domains if these can be seen.
    let domains = spec.flash.count(spec.ftl.domain);
    let is_finer = spec.parallel.unit > spec.ftl.domain && spec.ftl.mapping == spec::Mapping::Lba;
    let shows = (1..=cycle)
        .zip(&pattern)
        .all(|(distance, ns)| distance.is_multiple_of(domains) == (*ns * 100 > pattern[0] * 108));
    (!is_finer || (domains > 1 && shows)).then_some(period)
}

/// Returns the shortest period of a pattern over the distances from 1, if its levels can be told apart.
fn period(pattern: &[u64]) -> Option<u32> {
    let (least, most) = (*pattern.iter().min()?, *pattern.iter().max()?);
    let is_alike = |a: u64, b: u64| a.max(b) * 1000 <= a.min(b) * 1005;
    let mut levels = pattern.to_vec();
    levels.sort_unstable();
    let is_clear = levels.windows(2).all(|it| is_alike(it[0], it[1]) || it[1] * 100 >= it[0] * 108);
    if is_alike(least, most) || !is_clear || !is_alike(pattern[0], least) {
        return None;
    }
    let repeats = |period: &usize| {
        pattern.iter().zip(&pattern[*period..]).all(|(one, other)| is_alike(*one, *other))
    };
    (2..=pattern.len() / 2).find(repeats).or(Some(pattern.len())).map(|period| period as u32)
}

/// Returns the times of pairs, by the shared parts among bus, unit and plane; each is simulated once.
struct Times<'a> {
    spec: &'a Spec,
    /// The plane of each page.
    planes: Vec<u32>,
    known: [Option<u64>; 4],
}

impl Times<'_> {
    fn of(&mut self, one: u32, other: u32) -> u64 {
        let flash = &self.spec.flash;
        let planes = [one, other].map(|page| self.planes[page as usize]);
        let same = |level: Level| {
            let per = flash.plane_count() / flash.count(level);
            usize::from(planes[0] / per == planes[1] / per)
        };
        let kind = same(Level::Channel) + same(self.spec.parallel.unit) + same(Level::Plane);
        *self.known[kind].get_or_insert_with(|| pair_ns(self.spec, [one, other].map(u64::from)))
    }
}
