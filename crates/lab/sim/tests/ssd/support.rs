//! The common parts of the tests: devices small and random, and runs of them.

use nandex_sim::spec::{Flash, Ftl, FtlKind, Host, Level, Mapping, Parallel, Spec, Timing, Victim};
use nandex_sim::workload::SplitMix64;
use nandex_sim::{Done, Fill, Model, Request, RequestKind, Ssd};

fn pick<T: Copy>(rng: &mut SplitMix64, all: &[T]) -> T {
    all[rng.below(all.len() as u64) as usize]
}

/// Creates a small device that the seed determines entirely.
pub fn random(seed: u64) -> Spec {
    let mut rng = SplitMix64::new(seed);
    let rng = &mut rng;
    let levels = [Level::Channel, Level::Package, Level::Die, Level::Plane];
    let unit = pick(rng, &levels);
    let flash = Flash {
        channels: pick(rng, &[1, 2, 3, 4]),
        packages: pick(rng, &[1, 2]),
        dies: pick(rng, &[1, 2, 3]),
        planes: pick(rng, &[1, 2]),
        blocks: pick(rng, &[24, 40, 64]),
        pages: pick(rng, &[4, 16, 32]),
        page_bytes: pick(rng, &[4096, 8192, 16_384]),
    };
    let plain = Spec::plain();
    Spec {
        name: format!("random {seed}"),
        host: Host {
            depth: pick(rng, &[1, 4, 32]),
            link_ps_per_byte: pick(rng, &[0, 300, 3333]),
            duplex: pick(rng, &[false, true]),
            controller_ns: pick(rng, &[0, 700, 14_000]),
            read_latency_ns: pick(rng, &[0, 5000]),
            write_latency_ns: pick(rng, &[0, 9000]),
            buffer_bytes: pick(rng, &[0, 0, 16_384, 1 << 20]),
            buffer_is_safe: pick(rng, &[false, true]),
        },
        flash,
        timing: Timing {
            command_ns: pick(rng, &[0, 300]),
            spare_bytes_per_sector: pick(rng, &[0, 16]),
            ..plain.timing
        },
        parallel: Parallel {
            unit,
            pipelined: pick(rng, &[false, true]),
            two_plane: unit == Level::Die && pick(rng, &[false, true]),
        },
        ftl: Ftl {
            kind: FtlKind::Page,
            mapping: pick(rng, &[Mapping::WriteOrder, Mapping::Lba]),
            domain: pick(rng, &levels),
            chunk_bytes: pick(rng, &[4096, 8192, 65_536]),
            spare_permille: 250,
            clean_at_permille: pick(rng, &[0, 60]),
            victim: pick(rng, &[Victim::Greedy, Victim::Fifo, Victim::WearAware]),
            copy_back: pick(rng, &[false, true]),
            background: pick(rng, &[false, true]),
        },
        erases_max: pick(rng, &[50, 10_000]),
        ..plain
    }
}

/// Submits requests of all kinds to a device, at most `depth` at a time, and returns the ended ones.
pub fn run_mixed(ssd: &mut Ssd, count: u64, depth: u64, seed: u64) -> Vec<Done> {
    let pages = ssd.page_count();
    let mut rng = SplitMix64::new(seed);
    let (mut done, mut submitted) = (Vec::new(), 0);
    while (done.len() as u64) < count {
        while submitted < count && submitted - (done.len() as u64) < depth {
            let kind = match rng.below(16) {
                0 => RequestKind::Sync,
                1 => RequestKind::Discard,
                2..8 => RequestKind::Read,
                _ => RequestKind::Write,
            };
            let length = if kind == RequestKind::Sync { 0 } else { 1 + rng.below(8) as u32 };
            let page = rng.below(pages - 8);
            ssd.submit(Request { token: submitted, kind, page, pages: length });
            submitted += 1;
        }
        assert!(ssd.step(&mut done), "a request never ends");
    }
    done
}

/// Writes pages at random, `depth` at a time.
pub fn overwrite(ssd: &mut Ssd, count: u64, depth: u64, seed: u64) {
    let pages = ssd.page_count();
    let mut rng = SplitMix64::new(seed);
    let (mut done, mut submitted, mut ended) = (Vec::new(), 0, 0);
    while ended < count {
        while submitted < count && submitted - ended < depth {
            let (kind, page) = (RequestKind::Write, rng.below(pages));
            ssd.submit(Request { token: submitted, kind, page, pages: 1 });
            submitted += 1;
        }
        assert!(ssd.step(&mut done), "a write never ends");
        ended += done.len() as u64;
        done.clear();
    }
}

/// Returns the bytes programmed per byte written while `pages` pages are overwritten at random.
pub fn amplification(ssd: &mut Ssd, count: u64, seed: u64) -> f64 {
    let before = ssd.counters().ftl;
    overwrite(ssd, count, 32, seed);
    let after = ssd.counters().ftl;
    let units = u64::from(ssd.spec().flash.page_units());
    let programmed = (after.programs - before.programs) * units;
    programmed as f64 / (after.host_writes - before.host_writes) as f64
}

/// Creates a device of this description, which must be possible.
pub fn ssd(spec: Spec, fill: Fill) -> Ssd {
    Ssd::new(spec, fill).unwrap_or_else(|error| panic!("{error}"))
}
