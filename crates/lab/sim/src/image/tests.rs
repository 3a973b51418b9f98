//! The sparse image against a simple dense one, and its costs.

use proptest::prelude::*;

use super::change::SECTOR_BYTES;
use super::pages::garbage;
use super::*;

/// Bytes for a place, as two plain fields.
#[derive(Clone)]
struct DenseChange {
    start: usize,
    bytes: Vec<u8>,
}

impl DenseChange {
    fn apply(&self, image: &mut [u8]) {
        image[self.start..self.start + self.bytes.len()].copy_from_slice(&self.bytes);
    }

    fn survive(&self, image: &mut [u8], fates: &mut Fates) {
        let whole = match fates.fate() {
            Fate::Old => return,
            Fate::New => return self.apply(image),
            Fate::Mixed => self.bytes.len(),
        };
        for page in (0..whole).step_by(PAGE_BYTES) {
            let fate = fates.fate();
            for sector in (page..page + PAGE_BYTES).step_by(SECTOR_BYTES) {
                let survives = fate == Fate::New || fate == Fate::Mixed && fates.coin();
                if survives {
                    let bytes = self.bytes[sector..sector + SECTOR_BYTES].to_vec();
                    Self { start: self.start + sector, bytes }.apply(image);
                }
            }
        }
    }
}

/// An image that copies everything.
#[derive(Clone, Default)]
struct Dense {
    current: Vec<u8>,
    durable: Vec<u8>,
    unsynced: Vec<DenseChange>,
    in_flight: BTreeMap<u64, DenseChange>,
    growing_to: Option<usize>,
}

impl Dense {
    fn grow(&mut self, pages: usize) {
        for image in [&mut self.current, &mut self.durable] {
            image.resize(image.len().max(pages * PAGE_BYTES), 0);
        }
    }

    fn land(&mut self, number: u64) {
        let Some(change) = self.in_flight.remove(&number) else { return };
        change.apply(&mut self.current);
        self.unsynced.push(change);
    }

    fn sync(&mut self) {
        for change in std::mem::take(&mut self.unsynced) {
            change.apply(&mut self.durable);
        }
    }

    fn survivors(&self, seed: u64) -> Self {
        let mut fates = Fates::new(seed);
        let mut durable = self.durable.clone();
        if let Some(pages) = self.growing_to
            && fates.fate() == Fate::New
        {
            durable.resize(pages * PAGE_BYTES, 0);
        }
        for change in self.unsynced.iter().chain(self.in_flight.values()) {
            change.survive(&mut durable, &mut fates);
        }
        Self { current: durable.clone(), durable, ..Self::default() }
    }
}

#[derive(Clone, Debug)]
enum Step {
    Launch {
        page: u64,
        pages: usize,
        byte: u8,
    },
    Land {
        back: u64,
    },
    Discard {
        page: u64,
        pages: u64,
    },
    Sync,
    DropUnsynced,
    Grow {
        more: u64,
    },
    /// Checks the survivors of a cut.
    Look {
        seed: u64,
    },
    /// Continues from the survivors of a cut.
    Cut {
        seed: u64,
        growing: Option<u64>,
    },
}

fn step() -> impl Strategy<Value = Step> {
    let seed = || 0..12_u64;
    prop_oneof![
        6 => (0..40_u64, 1..5_usize, 1..=255_u8)
            .prop_map(|(page, pages, byte)| Step::Launch { page, pages, byte }),
        5 => (0..4_u64).prop_map(|back| Step::Land { back }),
        2 => (0..40_u64, 1..20_u64).prop_map(|(page, pages)| Step::Discard { page, pages }),
        2 => Just(Step::Sync),
        1 => Just(Step::DropUnsynced),
        1 => (1..9_u64).prop_map(|more| Step::Grow { more }),
        3 => seed().prop_map(|seed| Step::Look { seed }),
        1 => (seed(), prop::option::of(1..9_u64))
            .prop_map(|(seed, growing)| Step::Cut { seed, growing }),
    ]
}

/// Both images, the sparse one with its pages so far into a larger one.
struct Pair {
    sparse: Image,
    dense: Dense,
    base: u64,
    number: u64,
}

impl Pair {
    fn pages(&self) -> u64 {
        (self.dense.current.len() / PAGE_BYTES) as u64
    }

    fn launch(&mut self, page: u64, bytes: Vec<u8>, change: Change) -> u64 {
        self.number += 1;
        let start = page as usize * PAGE_BYTES;
        self.dense.in_flight.insert(self.number, DenseChange { start, bytes });
        self.sparse.launch(self.number, change);
        self.number
    }

    fn land(&mut self, number: u64) {
        self.dense.land(number);
        self.sparse.land(number);
    }

    fn run(&mut self, step: &Step) {
        let (base, count) = (self.base, self.pages());
        match *step {
            Step::Launch { page, pages, byte } if page + pages as u64 <= count => {
                let words = (0..pages * PAGE_BYTES).map(|at| byte.wrapping_add((at / 512) as u8));
                let bytes: Vec<u8> = words.collect();
                let change = Change::write(base + page, &bytes);
                self.launch(page, bytes, change);
            }
            Step::Land { back } => self.land(self.number.saturating_sub(back)),
            Step::Discard { page, pages } if page + pages <= count => {
                let mut bytes = vec![0; pages as usize * PAGE_BYTES];
                for (page, bytes) in (base + page..).zip(bytes.chunks_mut(PAGE_BYTES)) {
                    garbage(page, bytes);
                }
                let change = Change::discard(base + page..base + page + pages);
                let number = self.launch(page, bytes, change);
                self.land(number);
            }
            Step::Launch { .. } | Step::Discard { .. } => {}
            Step::Sync => {
                self.dense.sync();
                self.sparse.sync();
            }
            Step::DropUnsynced => {
                self.dense.unsynced.clear();
                self.sparse.drop_unsynced();
            }
            Step::Grow { more } => {
                self.dense.grow((count + more) as usize);
                self.sparse.grow(base + count + more);
            }
            Step::Look { seed } => {
                let (sparse, dense) = (self.sparse.survivors(seed), self.dense.survivors(seed));
                self.assert_same(&sparse, &dense);
            }
            Step::Cut { seed, growing } => {
                if let Some(more) = growing {
                    self.sparse.begin_growth(base + count + more);
                    self.dense.growing_to = Some((count + more) as usize);
                }
                self.sparse = self.sparse.survivors(seed);
                self.dense = self.dense.survivors(seed);
            }
        }
        self.assert_same(&self.sparse, &self.dense);
    }

    fn assert_same(&self, sparse: &Image, dense: &Dense) {
        let mut bytes = vec![0xee; dense.current.len()];
        sparse.read(PageId(self.base), &mut bytes);
        assert_eq!(sparse.page_count(), self.base + (bytes.len() / PAGE_BYTES) as u64);
        assert!(bytes == dense.current);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn a_sparse_image_is_what_a_dense_one_is(
        steps in prop::collection::vec(step(), 1..60),
        base in prop::sample::select(vec![0, 1, 13, 250, (1 << 28) - 9, (1 << 52) - 1000]),
    ) {
        let (sparse, dense) = (Image::new(), Dense::default());
        let mut pair = Pair { sparse, dense, base, number: 0 };
        pair.run(&Step::Grow { more: 20 });
        steps.iter().for_each(|step| pair.run(step));
    }
}

#[test]
fn a_terabyte_takes_no_memory_until_it_is_written() {
    let mut image = Image::new();
    image.grow(1 << 28);
    let mut bytes = vec![1; 8 * PAGE_BYTES];
    image.read(PageId((1 << 28) - 8), &mut bytes);
    assert!(bytes.iter().all(|&byte| byte == 0));
    assert_eq!(image.pages_held(), 0);
    image.launch(1, Change::write((1 << 28) - 1, &[5; PAGE_BYTES]));
    image.land(1);
    image.launch(2, Change::discard(0..(1 << 28) - 1));
    image.land(2);
    image.sync();
    assert_eq!((image.pages_held(), image.survivors(9).page_count()), (1, 1 << 28));
}

#[test]
fn survivors_share_their_pages_with_the_image() {
    // A copy for each of these would be 40 GB.
    let mut image = Image::new();
    image.grow(100);
    let survivors: Vec<Image> = (0..100_000_u64)
        .map(|number| {
            image.launch(number, Change::write(number % 100, &[number as u8; PAGE_BYTES]));
            image.land(number);
            image.sync();
            image.survivors(number)
        })
        .filter(|image| image.pages_held() == 100)
        .step_by(50)
        .collect();
    let shared = survivors.windows(2).filter(|pair| {
        let page = |image: &Image| match image.current.get(99) {
            Slot::Page(page) => std::sync::Arc::as_ptr(page),
            other => panic!("page 99 holds {other:?}"),
        };
        page(&pair[0]) == page(&pair[1])
    });
    assert!(shared.count() > 900);
}

#[test]
fn bytes_make_an_image_of_whole_pages_and_zeros_cost_nothing() {
    let image = Image::from_bytes(&[vec![0; 2 * PAGE_BYTES], vec![5; 100]].concat());
    assert_eq!((image.page_count(), image.pages_held()), (3, 1));
    for seed in 0..5 {
        let bytes = image.survivors(seed).to_bytes();
        let split = 2 * PAGE_BYTES;
        assert!(bytes[split..split + 100].iter().all(|&byte| byte == 5));
        assert!(bytes[..split].iter().chain(&bytes[split + 100..]).all(|&byte| byte == 0));
    }
}

#[test]
fn what_a_page_held_before_is_kept_only_when_it_is_asked_for() {
    let mut image = Image::new();
    image.grow(2);
    let write = |image: &mut Image, number, byte| {
        image.launch(number, Change::write(1, &[byte; PAGE_BYTES]));
        image.land(number);
    };
    write(&mut image, 1, 1);
    assert!(!image.has_previous(1));
    image.keep_previous();
    write(&mut image, 2, 2);
    write(&mut image, 3, 3);
    let mut bytes = [0; PAGE_BYTES];
    image.read_previous(1, &mut bytes);
    assert_eq!((image.has_previous(0), image.has_previous(1), bytes[0]), (false, true, 2));
}
