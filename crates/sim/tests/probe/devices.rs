//! Devices by seed, with the geometry that can be seen of them from outside.

use nandex_device::probe::Mapping;
use nandex_sim::Spec;
use nandex_sim::spec::{self, Flash, Ftl, HOST_PAGE_BYTES, Host, Level, Parallel, Timing, Victim};
use nandex_sim::workload::SplitMix64;

/// A device, and what a probe must find of it.
#[derive(Debug)]
pub struct Truth {
    pub spec: Spec,
    pub chunk_bytes: u32,
    pub channels: u32,
    pub mapping: Mapping,
}

/// A device by seed: 2 to 64 channels as seen from outside, chunks of 4 to 64 KiB, every mapping, unit
/// and way to overlap, with or without a buffer and a slow link.
pub fn geometry(seed: u64) -> Truth {
    let mut dice = SplitMix64::stream(seed, 7);
    loop {
        let spec = draw(&mut dice);
        let channels = channels(&spec);
        if !(2..=64).contains(&channels) || !is_visible(&spec) {
            continue;
        }
        spec.check().unwrap();
        let mapping = match spec.ftl.mapping {
            spec::Mapping::Lba => Mapping::Lba,
            spec::Mapping::WriteOrder => Mapping::WriteOrder,
        };
        return Truth { chunk_bytes: spec.ftl.chunk_bytes, channels, mapping, spec };
    }
}

fn pick<T: Copy>(dice: &mut SplitMix64, of: &[T]) -> T {
    of[dice.below(of.len() as u64) as usize]
}

fn draw(dice: &mut SplitMix64) -> Spec {
    let levels = [Level::Channel, Level::Package, Level::Die, Level::Plane];
    let channels_max = pick(dice, &[4, 16, 64]);
    let flash = Flash {
        channels: 1 + dice.below(channels_max) as u32,
        packages: 1 + dice.below(4) as u32,
        dies: pick(dice, &[1, 2, 4]),
        planes: pick(dice, &[1, 2, 4]),
        blocks: 0,
        pages: 64,
        page_bytes: pick(dice, &[4096, 8192, 16384]),
    };
    let blocks = 32_u32.max(65536 * 4 / flash.plane_count() / flash.page_units() / flash.pages);
    let bus_ps = pick(dice, &[1_500, 5_000, 12_500, 25_000]);
    let read_ns = pick(dice, &[25_000, 50_000, 75_000, 100_000]);
    Spec {
        name: "drawn".into(),
        about: String::new(),
        host: Host {
            depth: 32,
            link_ps_per_byte: pick(dice, &[0, 1_000, 2_000, 4_000]),
            duplex: dice.chance(500_000),
            controller_ns: pick(dice, &[0, 1_000, 5_000]),
            read_latency_ns: pick(dice, &[0, 10_000]),
            write_latency_ns: pick(dice, &[0, 10_000]),
            buffer_bytes: pick(dice, &[0, 1 << 20, 16 << 20]),
            buffer_is_safe: dice.chance(500_000),
        },
        flash: Flash { blocks, ..flash },
        timing: Timing {
            read_ns,
            program_ns: 4 * read_ns,
            erase_ns: 1_500_000,
            command_ns: pick(dice, &[0, 200]),
            transfer_ps_per_byte: bus_ps,
            spare_bytes_per_sector: pick(dice, &[0, 16]),
        },
        parallel: Parallel {
            unit: pick(dice, &[Level::Channel, Level::Die, Level::Plane]),
            pipelined: dice.chance(400_000),
            two_plane: false,
        },
        ftl: Ftl {
            mapping: pick(dice, &[spec::Mapping::Lba, spec::Mapping::WriteOrder]),
            domain: pick(dice, &levels),
            chunk_bytes: 4096 << dice.below(5),
            spare_permille: 280,
            clean_at_permille: 50,
            victim: pick(dice, &[Victim::Greedy, Victim::Fifo, Victim::WearAware]),
            copy_back: dice.chance(500_000),
            background: false,
        },
        erases_max: 100_000,
    }
}

/// The period after which chunks that are written in order lie on the same units of flash again:
/// that of the domains, or of the units where those are coarser; longer where a domain has several
/// units and a chunk does not go round all of them.
pub fn channels(spec: &Spec) -> u32 {
    let (flash, ftl, unit) = (&spec.flash, &spec.ftl, spec.parallel.unit);
    if unit <= ftl.domain {
        return flash.count(unit);
    }
    let domains = flash.count(ftl.domain);
    let planes = flash.plane_count() / domains;
    let per_unit = flash.plane_count() / flash.count(unit);
    // The units of a domain in the turn of its flash pages.
    let turn: Vec<u32> = (0..planes).map(|plane| plane / per_unit).collect();
    let (chunk, page) = (ftl.chunk_bytes, flash.page_bytes);
    let unit_of = |row: u32, units: u32| {
        let byte = u64::from(row) * u64::from(chunk) + u64::from(units) * HOST_PAGE_BYTES;
        turn[(byte / u64::from(page)) as usize % turn.len()]
    };
    let units_of = |row: u32| -> Vec<u32> {
        (0..chunk / HOST_PAGE_BYTES as u32).map(|units| unit_of(row, units)).collect()
    };
    let rows = 64 * planes;
    let is_period = |period: &u32| (0..rows).all(|row| units_of(row) == units_of(row + period));
    domains * (1..=rows).find(is_period).unwrap_or(rows)
}

/// Can it be seen that chunks share a channel? Where the bus, or the link, takes longer than all else,
/// it hides what is behind it.
fn is_visible(spec: &Spec) -> bool {
    let (timing, unit) = (&spec.timing, spec.parallel.unit);
    let transfer = timing.transfer_ns(HOST_PAGE_BYTES);
    let link = spec.host.link_ns(HOST_PAGE_BYTES);
    if spec.parallel.pipelined && (transfer * 2 > timing.read_ns || link * 2 > timing.read_ns) {
        return false;
    }
    // Units that are finer than domains show as such only if chunks that share a bus alone are told
    // from those that share nothing.
    let is_finer = unit > spec.ftl.domain;
    let has_bus = transfer * 5 > timing.read_ns && link * 2 < transfer && spec.flash.channels > 1;
    !is_finer || (has_bus && spec.ftl.chunk_bytes >= spec.flash.page_bytes)
}
