//! A device whose every latency is stretched or shortened by chance.

use std::ops::Range;
use std::sync::{Arc, Mutex};

use nandex_device::{Completion, Device, EngineReport, Geometry, Op, PageId, Queue, Result};
use nandex_sim::SimDevice;
use nandex_sim::workload::SplitMix64;

/// Parts of a thousand by which a latency is off, as a standard deviation.
const DEVIATION_PERMILLE: i64 = 100;

/// Every wait takes the time of the device below, times a factor that is normal about 1 with a standard
/// deviation of a tenth.
#[derive(Debug)]
pub struct NoisyClock {
    device: SimDevice,
    clock: Arc<Mutex<Clock>>,
}

#[derive(Debug)]
struct Clock {
    dice: SplitMix64,
    seen_ns: u64,
    shown_ns: u64,
}

impl NoisyClock {
    pub fn new(device: SimDevice, seed: u64) -> Self {
        let clock = Clock { dice: SplitMix64::new(seed), seen_ns: 0, shown_ns: 0 };
        Self { device, clock: Arc::new(Mutex::new(clock)) }
    }
}

impl Clock {
    /// Shows the time that has passed below, stretched.
    fn pass(&mut self, now_ns: u64) -> u64 {
        let passed = (now_ns - self.seen_ns) as i64;
        if passed > 0 {
            // Twelve uniform numbers make a normal one of variance 1.
            let sum: i64 = (0..12).map(|_| self.dice.below(1001) as i64 - 500).sum();
            let factor = (1000 * 1000 + sum * DEVIATION_PERMILLE).max(100_000);
            self.shown_ns += (passed * factor / 1_000_000) as u64;
            self.seen_ns = now_ns;
        }
        self.shown_ns
    }
}

struct NoisyQueue {
    queue: Box<dyn Queue>,
    device: SimDevice,
    clock: Arc<Mutex<Clock>>,
}

impl Queue for NoisyQueue {
    fn push(&mut self, op: Op) -> Result<()> {
        self.queue.push(op)
    }

    fn wait(&mut self, count_min: usize, done: &mut Vec<Completion>) -> Result<()> {
        self.queue.wait(count_min, done)?;
        self.clock.lock().unwrap().pass(self.device.now());
        Ok(())
    }

    fn in_flight(&self) -> usize {
        self.queue.in_flight()
    }

    fn depth(&self) -> usize {
        self.queue.depth()
    }
}

impl Device for NoisyClock {
    fn geometry(&self) -> Geometry {
        self.device.geometry()
    }

    fn page_count(&self) -> u64 {
        self.device.page_count()
    }

    fn grow(&self, page_count: u64) -> Result<()> {
        self.device.grow(page_count)
    }

    fn queue(&self, depth: usize) -> Result<Box<dyn Queue>> {
        let (device, clock) = (self.device.clone(), Arc::clone(&self.clock));
        Ok(Box::new(NoisyQueue { queue: self.device.queue(depth)?, device, clock }))
    }

    fn sync(&self) -> Result<()> {
        self.device.sync()
    }

    fn discard(&self, pages: Range<PageId>) -> Result<()> {
        self.device.discard(pages)
    }

    fn now(&self) -> u64 {
        self.clock.lock().unwrap().pass(self.device.now())
    }

    fn engine(&self) -> EngineReport {
        self.device.engine()
    }
}
