//! The common parts of these tests: small buffers and operations, and a model whose requests overtake one
//! another.

use nandex_device::{Completion, Device, Op, OpKind, PageBuf, PageId, Queue};
use nandex_sim::spec::{Flash, Ftl, Host, Level, Timing};
use nandex_sim::{Done, Model, Parts, Request, SimDevice, Spec};

/// Pages of the model.
pub const MODEL_PAGES: u64 = 100;

/// A model in which each request takes between 1 and 64 microseconds, by its token.
#[derive(Debug, Default)]
pub struct Scattered {
    now_ns: u64,
    pending: Vec<Done>,
}

impl Scattered {
    pub fn boxed() -> Box<dyn Model> {
        Box::<Self>::default()
    }
}

impl Model for Scattered {
    fn now_ns(&self) -> u64 {
        self.now_ns
    }

    fn page_count(&self) -> u64 {
        MODEL_PAGES
    }

    fn submit_at(&mut self, at_ns: u64, request: Request) {
        assert!(at_ns >= self.now_ns);
        let array_ns = 1_000 * (1 + request.token.wrapping_mul(0x9e37_79b9_7f4a_7c15) % 64);
        let parts = Parts { array_ns, ..Parts::default() };
        let finished_ns = at_ns + array_ns;
        self.pending.push(Done { request, submitted_ns: at_ns, finished_ns, parts });
    }

    fn step(&mut self, done: &mut Vec<Done>) -> bool {
        let Some(next) = self.pending.iter().map(|done| done.finished_ns).min() else {
            return false;
        };
        self.advance(next, done);
        true
    }

    fn advance(&mut self, to_ns: u64, done: &mut Vec<Done>) {
        done.extend(self.pending.extract_if(.., |done| done.finished_ns <= to_ns));
        self.now_ns = to_ns;
    }
}

/// Returns an SSD of two channels with few and small blocks, so that a few writes make it clean.
pub fn small_ssd() -> Spec {
    let plain = Spec::plain();
    Spec {
        name: "small".into(),
        about: "made up".into(),
        host: Host {
            depth: 8,
            link_ps_per_byte: 2_000,
            controller_ns: 2_000,
            buffer_bytes: 64 << 10,
            ..plain.host
        },
        flash: Flash { dies: 1, planes: 1, blocks: 16, pages: 16, ..plain.flash },
        timing: Timing {
            program_ns: 500_000,
            erase_ns: 3_000_000,
            command_ns: 200,
            ..plain.timing
        },
        ftl: Ftl {
            domain: Level::Channel,
            spare_permille: 250,
            clean_at_permille: 100,
            copy_back: false,
            ..plain.ftl
        },
        erases_max: 100_000,
        ..plain
    }
}

pub fn page_of(byte: u8) -> PageBuf {
    pages_of(byte, 1)
}

pub fn pages_of(byte: u8, pages: usize) -> PageBuf {
    let mut buf = PageBuf::zeroed(pages);
    buf.fill(byte);
    buf
}

pub fn write(token: u64, page: u64, byte: u8) -> Op {
    Op { token, kind: OpKind::Write, page: PageId(page), buf: page_of(byte) }
}

pub fn read(token: u64, page: u64) -> Op {
    Op { token, kind: OpKind::Read, page: PageId(page), buf: PageBuf::zeroed(1) }
}

pub fn wait(queue: &mut dyn Queue, count_min: usize) -> Vec<Completion> {
    let mut done = Vec::new();
    queue.wait(count_min, &mut done).unwrap();
    done
}

/// Returns the first byte of each page.
pub fn bytes(device: &SimDevice, pages: u64) -> Vec<u8> {
    (0..pages).map(|page| device.read(PageId(page), PageBuf::zeroed(1)).unwrap()[0]).collect()
}

pub fn device_of(page_count: u64) -> SimDevice {
    let device = SimDevice::instant();
    device.grow(page_count).unwrap();
    device
}
