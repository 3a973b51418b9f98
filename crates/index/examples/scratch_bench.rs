#![allow(clippy::all, missing_docs)]
use nandex::device::*;
use nandex::slicehash::{Config, RuntimeOptions, model};
use nandex::*;
use std::sync::Arc;
use std::time::Instant;
fn mix(mut z: u64) -> u64 {
    z = z.wrapping_add(0x9e37_79b9_7f4a_7c15);
    z = (z ^ z >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ z >> 31
}
fn cpu() -> f64 {
    let s = std::fs::read_to_string("/proc/self/stat").unwrap();
    let f: Vec<_> = s.rsplit(')').next().unwrap().split_whitespace().collect();
    (f[11].parse::<f64>().unwrap() + f[12].parse::<f64>().unwrap()) / 100.0
}
fn main() {
    let a: Vec<String> = std::env::args().collect();
    let n: u64 = a[1].parse::<f64>().unwrap() as u64;
    let ram: u64 = a[2].parse::<f64>().unwrap() as u64;
    let path = &a[3];
    let open = a.get(4).map(|s| s == "open").unwrap_or(false);
    let stroke: u32 = std::env::var("STROKE").ok().map(|s| s.parse().unwrap()).unwrap_or(128);
    let need = model::Need { ram_bytes: Some(ram), ..model::Need::new(n, 8, 8) };
    let advice = need.advise().unwrap();
    let config = Config::advised(&advice);
    println!("{config:?} k {:.1} ram {:.3}", advice.incarnations, advice.ram_bytes_per_entry);
    let options = RuntimeOptions { stroke_pages: stroke, ..RuntimeOptions::default() };
    let table = if open {
        let t = Instant::now();
        let file = FileDevice::open(path, &FileOptions::default()).unwrap();
        let volume = Volume::open(Arc::new(file), OpenOptions::default()).unwrap();
        let t2 = SliceHash::open_with(&volume, "t", options).unwrap();
        println!("open {:.2}s", t.elapsed().as_secs_f64());
        t2
    } else {
        let _ = std::fs::remove_file(path);
        let file =
            FileDevice::open(path, &FileOptions { create: Create::New, ..FileOptions::default() })
                .unwrap();
        println!("{:?}", file.engine());
        let volume = Volume::create(
            Arc::new(file),
            VolumeOptions { log_bytes: config.log_bytes_best(), ..VolumeOptions::default() },
        )
        .unwrap();
        let table = SliceHash::create_with(&volume, "t", config, options).unwrap();
        let (t, c) = (Instant::now(), cpu());
        let mut last = Instant::now();
        let mut max = 0.0f64;
        for i in 0..n {
            table.insert_u64(mix(i), i).unwrap();
            if i & 15 == 0 {
                let d = last.elapsed().as_secs_f64();
                if d > max {
                    max = d;
                }
                last = Instant::now();
            }
            if i % (n / 8).max(1) == 0 && i > 0 {
                println!("  {} {:.0} k/s", i, i as f64 / t.elapsed().as_secs_f64() / 1e3);
            }
        }
        let (e, c) = (t.elapsed().as_secs_f64(), cpu() - c);
        let s = table.stats();
        println!(
            "insert {:.0} k/s cpu {:.2} us max {:.1} ms; written {:.1} B/insert model {:.1}; ram {:.3} B/e entries {} evicted {} fill {:.3}",
            n as f64 / e / 1e3,
            c * 1e6 / n as f64,
            max * 1e3,
            s.data_bytes_written as f64 / n as f64,
            advice.bytes_written_per_entry,
            s.ram_bytes_per_entry(),
            s.entries,
            s.evicted,
            s.flush_fill
        );
        table.flush().unwrap();
        table
    };
    let device_rate = |depth: usize| {
        let file = FileDevice::open(path, &FileOptions { ..FileOptions::default() });
        let Ok(file) = file else { return 0.0 };
        let pages = file.page_count();
        let mut q = file.queue(depth).unwrap();
        let mut bufs: Vec<_> = (0..depth).map(|_| PageBuf::zeroed(1)).collect();
        let (mut i, mut done) = (0u64, Vec::new());
        let t = Instant::now();
        let mut got = 0;
        while t.elapsed().as_secs_f64() < 4.0 {
            while let Some(buf) = bufs.pop() {
                i += 1;
                q.push(Op { token: i, kind: OpKind::Read, page: PageId(mix(i) % pages), buf })
                    .unwrap();
            }
            q.wait(1, &mut done).unwrap();
            for c in done.drain(..) {
                got += 1;
                bufs.push(c.buf);
            }
        }
        got as f64 / t.elapsed().as_secs_f64()
    };
    for round in 0..2 {
        for (what, base) in [("hit", 0u64), ("miss", 1 << 40)] {
            let before = table.stats();
            let (t, c) = (Instant::now(), cpu());
            let mut done = 0u64;
            while t.elapsed().as_secs_f64() < 6.0 {
                let keys: Vec<[u8; 8]> = (0..2048u64)
                    .map(|j| mix(base + mix(done + j + round * 77777777) % n).to_le_bytes())
                    .collect();
                let keys: Vec<&[u8]> = keys.iter().map(|k| &k[..]).collect();
                let found = table.get_many(&keys).unwrap().iter().flatten().count();
                if what == "hit" && found < 2000 {
                    println!("found {found}");
                }
                done += 2048;
            }
            let e = t.elapsed().as_secs_f64();
            let s = table.stats();
            println!(
                "{what} depth32 {:.1} k/s cpu {:.2} us; hist {:?}",
                done as f64 / e / 1e3,
                (cpu() - c) * 1e6 / done as f64,
                s.reads_histogram
                    .iter()
                    .zip(before.reads_histogram)
                    .map(|(a, b)| a - b)
                    .take(4)
                    .collect::<Vec<_>>()
            );
        }
    }
    drop(table);
    println!("device depth 32: {:.1} k/s", device_rate(32) / 1e3);
}
