//! The smallest structure based on a shadow: each rewrite of a block increments its version, and continues a chain of
//! hashes in every page, which only a rewrite of the previous version can do.

use nandex_store::IoChunks;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use nandex_device::{Device, PageBuf, PageId};
use nandex_store::bytes::{Reader, get_u64, put_u64};
use nandex_store::page::{PAGE_BODY_BYTES, PageKind, RawPage};
use nandex_store::shadow::{
    Block, Draft, Journal, Published, RewriteCosts, Rewriter, Shadow, ShadowRecovery, ShadowShape,
};
use nandex_store::{
    Captured, Durability, Result, Structure, Threads, Volume, VolumeOpenOptions, VolumeOptions,
};

use crate::part::Part;

pub const SHAPE: ShadowShape =
    ShadowShape { block_pages: 5, logical: 4, spares: 2, align_pages: 4, devices: 1 };

/// Two pages a chunk, so that the last chunk of a block is a shorter one.
const CHUNKS: IoChunks = IoChunks { chunk_pages: 2, chunks: 2 };

/// The first byte of the subject's log entries that are map updates.
const FLIP: u8 = 9;

/// The first byte of those that only fill the log.
const FILLER: u8 = 1;

const KIND: PageKind = PageKind::Slice;

pub struct Subject {
    volume: Volume,
    shadow: Arc<Shadow>,
    structure: Structure,
    rewriter: Mutex<Rewriter>,
    _part: Arc<Part>,
}

fn settings() -> (Durability, Threads) {
    (Durability::Never, Threads::Inline)
}

impl Subject {
    /// Creates a volume with an empty subject.
    pub fn create(device: Arc<dyn Device>, log_device: Option<Arc<dyn Device>>) -> Result<Self> {
        let (durability, threads) = settings();
        let tiny = VolumeOptions::tiny();
        let volume_id = Some(1);
        let options = VolumeOptions { durability, threads, volume_id, log_device, ..tiny };
        let volume = Volume::create(device, options)?;
        let structure = volume.create_structure("s", "blocks", Vec::new(), SHAPE.pages())?;
        Self::assemble(volume, structure)
    }

    /// Opens the subject of an existing volume.
    pub fn open(device: Arc<dyn Device>, log_device: Option<Arc<dyn Device>>) -> Result<Self> {
        let (durability, threads) = settings();
        let volume = Volume::open(
            device,
            VolumeOpenOptions { durability, log_device, threads, ..VolumeOpenOptions::default() },
        )?;
        let structure = volume.open_structure("s", "blocks")?;
        Self::assemble(volume, structure)
    }

    fn assemble(volume: Volume, structure: Structure) -> Result<Self> {
        let shadow = Arc::new(recover(&volume, &structure)?.finish());
        let rewriter = Rewriter::new(&**volume.device(), Arc::clone(volume.poison()), CHUNKS)?;
        let mark = Arc::new(AtomicU64::new(0));
        let (captured, noted, of_log) = (Arc::clone(&shadow), Arc::clone(&mark), volume.clone());
        let mut part = Part::new(move || {
            let capture = captured.capture(of_log.log().next_lsn());
            noted.store(capture.mark, Ordering::Relaxed);
            Captured { state: capture.bytes, tail: capture.tail, extents: None }
        });
        let committed = Arc::clone(&shadow);
        part.committed = Box::new(move || committed.committed(mark.load(Ordering::Relaxed)));
        let part = part.register(&volume, &structure);
        Ok(Self { volume, shadow, structure, rewriter: Mutex::new(rewriter), _part: part })
    }

    pub fn volume(&self) -> &Volume {
        &self.volume
    }

    pub fn shadow(&self) -> &Shadow {
        &self.shadow
    }

    /// Returns a draft, after a sync of the log or a checkpoint if that is needed.
    pub fn begin(&self, logical: u32) -> Result<Draft> {
        loop {
            let log = self.volume().log();
            if let Some(draft) = self.shadow().begin(logical, log.synced()) {
                return Ok(draft);
            }
            if !self.shadow().make_space(log)? {
                self.volume().checkpoint()?;
            }
        }
    }

    /// Writes a block's next version to a draft; also returns the number of that version.
    pub fn write(&self, draft: &Draft) -> Result<(u64, RewriteCosts)> {
        let logical = draft.logical();
        let old = self.shadow().block(logical);
        let mut version = 0;
        let mut change = |page: u64, body: &mut [u8]| {
            version = get_u64(body, 0) + 1;
            let link = link(get_u64(body, PAGE_BODY_BYTES - 8), logical, page);
            put_u64(body, 0, version);
            put_u64(body, PAGE_BODY_BYTES - 8, link);
            Ok(())
        };
        let mut rewriter = self.rewriter.lock().unwrap();
        let shadow = self.shadow();
        let old = old.map(|old| (shadow, old));
        let costs = rewriter.rewrite(shadow, old, draft, KIND, &mut change)?;
        Ok((version, costs))
    }

    pub fn publish(&self, written: Vec<(Draft, u64)>) -> Result<Published> {
        let volume = self.volume();
        let (device, log, poison) = (&**volume.device(), volume.log(), &**volume.poison());
        let journal = Journal { device, log, poison, prefix: &[FLIP] };
        let written = written.into_iter().map(|(draft, version)| (draft, version as u32));
        self.shadow().publish(journal, written)
    }

    /// Advances a block by one version.
    pub fn rewrite(&self, logical: u32) -> Result<Published> {
        let draft = self.begin(logical)?;
        let (version, _) = self.write(&draft)?;
        self.publish(vec![(draft, version)])
    }

    /// Appends `bytes` meaningless bytes to the log.
    pub fn fill_log(&self, bytes: usize) -> Result<()> {
        let entry = vec![FILLER; bytes];
        self.volume().log().append(self.structure.id, &[&entry]).map(drop)
    }

    /// Returns one page of a block, verified, and its version.
    pub fn page(&self, block: Block, index: u64) -> Result<PageBuf> {
        let shadow = self.shadow();
        let buf = self.volume().device().read(shadow.page(block, index), PageBuf::zeroed(1))?;
        RawPage::new(&buf).check(shadow.label(block, index, KIND))?;
        Ok(buf)
    }

    /// Returns the version of a block after checking all of its pages; 0 if there is none.
    pub fn version(&self, logical: u32) -> u64 {
        let Some(block) = self.shadow().block(logical) else { return 0 };
        for index in 0..u64::from(SHAPE.block_pages) {
            let page = self.page(block, index).unwrap();
            let body = &page[page.len() - PAGE_BODY_BYTES..];
            assert_eq!(get_u64(body, 0), u64::from(block.entries), "a page of another version");
            let chain = (0..block.entries).fold(0, |chain, _| link(chain, logical, index));
            assert_eq!(get_u64(body, PAGE_BODY_BYTES - 8), chain, "a version is missing between");
        }
        u64::from(block.entries)
    }

    /// The versions of all blocks.
    pub fn versions(&self) -> [u64; SHAPE.logical as usize] {
        std::array::from_fn(|logical| self.version(logical as u32))
    }
}

fn recover(volume: &Volume, structure: &Structure) -> Result<ShadowRecovery> {
    let (id, extent, epoch) = (structure.id, structure.extent().unwrap(), volume.epoch());
    let mut recovery = if structure.state.is_empty() {
        ShadowRecovery::blank(id, extent, SHAPE, epoch)
    } else {
        let mut state = Reader::new(&structure.state, "state", extent.start);
        ShadowRecovery::start(id, extent, SHAPE, epoch, &mut state)?
    };
    volume.replay(structure, &mut |lsn, entry| {
        let mut reader = Reader::new(entry, "log entry", PageId(lsn.0 / 4096));
        match reader.u8()? {
            FLIP => recovery.replay(&mut reader).map(drop),
            _ => Ok(()),
        }
    })?;
    Ok(recovery)
}

/// The chain's next link.
fn link(chain: u64, logical: u32, page: u64) -> u64 {
    let salt = u64::from(logical) << 32 | page;
    (chain ^ salt ^ 0x9e37_79b9).wrapping_mul(0xff51_afd7_ed55_8ccd).rotate_left(29)
}
