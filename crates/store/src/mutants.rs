//! The barriers that durability depends on, each of which a test can switch off.
//!
//! A barrier is a step whose only purpose is that a crash, a failure or damage does no harm: without faults
//! nothing changes if it is left out. So a test that passes without it proves nothing about it. In a build
//! with the feature `mutants`, the barrier that the variable `NANDEX_MUTANT` names is off; `make mutants`
//! switches off one after another and requires that some test fails each time. In a build without it, as
//! users build it, all are on and the check costs nothing. docs/lab/testing.md lists the checks that need no line here.

/// Declares the barriers once: the enum, the list of all, and their names.
macro_rules! barriers {
    ($($(#[doc = $doc:expr])+ $name:ident,)+) => {
        /// A step whose only purpose is that a crash, a failure or damage does no harm.
        #[derive(Clone, Copy, PartialEq, Eq, Debug)]
        pub enum Barrier {
            $($(#[doc = $doc])+ $name,)+
        }

        impl Barrier {
            /// All of them.
            pub const ALL: &[Self] = &[$(Self::$name,)+];

            /// The barrier's name, as in `NANDEX_MUTANT`.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$name => stringify!($name),)+
                }
            }
        }
    };
}

barriers! {
    /// The log syncs what a replay has found before it continues.
    LogSyncsWhatItFound,
    /// With `Durability::Always` a commit waits for its sync.
    CommitWaitsForSync,
    /// A commit reports a failure in the background.
    CommitAsksForPoison,
    /// Blocks are passed to the device before the sync that makes them durable.
    LogWritesBeforeSync,
    /// The log syncs its device.
    LogSyncsDevice,
    /// A sync covers what was written when it began, not when it ended.
    LogSyncVouchesForItsStart,
    /// A sync does not count if the volume was poisoned while it ran.
    LogSyncAsksForPoison,
    /// Blocks count as written only when all before them are.
    LogWrittenInOrder,
    /// A block claims as durable only what is durable.
    LogBlockClaimsItsSync,
    /// The log's head does not overwrite the tail while it is needed.
    LogSparesItsTail,
    /// The checksum of a block of the log is verified.
    BlockChecksum,
    /// The volume of a block is verified.
    BlockVolume,
    /// The place of a block is verified.
    BlockPlace,
    /// A block names the checksum of the one before it.
    BlockChain,
    /// A block is not of an older session than the place allows.
    BlockEpoch,
    /// A log that ends before the durable place in the superblock is damaged.
    ReplayHearsSuperblock,
    /// A log that ends before a durable place in a later block is damaged.
    ReplayHearsWitness,
    /// The first failed write or sync poisons the volume.
    FailurePoisons,
    /// A checkpoint that fails half way poisons the volume.
    FailedCheckpointPoisons,
    /// An opening syncs what a killed process wrote before it builds on it.
    OpenSyncsWhatItReads,
    /// A new volume's first checkpoint is durable before a superblock refers to it.
    FirstCheckpointSynced,
    /// An opening is noted durably, with its epoch, before it writes anything.
    OpenNotesEpoch,
    /// The log is durable before a checkpoint that relies on it.
    CheckpointSyncsLog,
    /// The checkpoint, and all it refers to, is durable before a superblock refers to it.
    CheckpointSynced,
    /// The superblock is durable before anything it no longer refers to may be overwritten.
    SuperblockSynced,
    /// Superblocks alternate, so that a torn one leaves the other.
    SuperblocksAlternate,
    /// The superblock has a third copy, and the newest one is chosen.
    SuperblockCopied,
    /// A superblock that is older than a block of the log or a checkpoint is not taken for the newest.
    StaleSuperblockRefused,
    /// Blocks of the log name the newest superblock that is durable.
    BlockNamesSuperblock,
    /// The newer superblock is chosen.
    SuperblockNewest,
    /// A checkpoint is not written over the one that is valid.
    CheckpointsAlternate,
    /// The log is truncated and evicted segments are freed after the checkpoint, not before.
    TruncatedAfterCheckpoint,
    /// The log's tail stays before everything a structure still needs.
    TailKeepsWhatIsNeeded,
    /// A log that has grown is noted durably before a block is written to its new pages.
    GrownLogNoted,
    /// The pages that a log has left stay allocated to it while they hold a block that is needed.
    LeftLogKept,
    /// A mark in the pages that a log has left says that a newer superblock exists.
    LeftLogNamesSuperblock,
    /// Pages of a removed structure are free only once a checkpoint has forgotten it.
    RemovedFreedAfterCheckpoint,
    /// A volume shorter than its superblock says is refused.
    LengthChecked,
    /// The checksum of a page is verified.
    PageChecksum,
    /// A page is verified to be one.
    PageMagic,
    /// The place of a page is verified.
    PageNumber,
    /// The kind of a page is verified.
    PageKind,
    /// The structure of a page is verified.
    PageStructure,
    /// The generation of a page is verified.
    PageGeneration,
    /// A segment is written again only once its eviction is in a durable checkpoint.
    RingSparesCheckpoint,
    /// A checkpoint ignores a segment that is still being written.
    RingHidesUnfinished,
    /// A segment number used again after a crash differs from its first use.
    RingTellsEpochs,
    /// A rewritten block is durable before its map update goes to the log.
    ShadowSyncsBlocks,
    /// A block that was rewritten is not reused before its map update is durable.
    ShadowSparesOld,
    /// A map update counts as durable only once the log is synced past its record.
    ShadowSyncedBehindUpdate,
    /// A checkpoint frees the blocks of map updates that it holds, and of no later ones.
    ShadowCommitsItsCapture,
    /// A checkpoint ignores a block that is still being written.
    ShadowHidesDrafts,
    /// A map update in the log does not undo a newer one that the checkpoint holds.
    ShadowKeepsNewest,
    /// A block's number used again after a crash differs from its first use.
    ShadowTellsEpochs,
    /// A block's pages are verified before they are carried over to the next version.
    RewriteProvesPages,
    /// The I/O of a failed rewrite ends before its block is freed.
    RewriteEndsItsWrites,
    /// A run's pages are verified before they are used.
    RunProvesPages,
    /// A run is finished only once all of its writes have succeeded.
    RunHearsItsWrites,
    /// In the index: the end of a buffer whose updates add up is marked in the log.
    BoundaryIsLogged,
    /// In the index: updates before the boundary, which are on flash already, are not replayed.
    ReplaySkipsToBoundary,
    /// In the index: a boundary whose record left the log while its structure was closed is its place.
    DroppedBoundaryIsAPlace,
    /// In the index: a structure that closed with updates in the log alone keeps its part of the log.
    CleanCloseSavedAll,
    /// In the index: a run that left the list keeps its pages while a reader uses it.
    RetiredRunsKeepPages,
    /// In the index: a snapshot does not overwrite the one that the valid checkpoint refers to.
    SnapshotsAlternate,
    /// In the index: the entries that an eviction keeps are in the log before they leave flash.
    KeptIsLogged,
    /// In the index: a super table that has taken over removals alone keeps one of them, which says that it has.
    WholeKeepsARemoval,
    /// In the index: older generations are dropped once all super tables have taken over, not when some have.
    OlderStayUntilAllAreWhole,
    /// In the index: a log place is noted as needed before the entry is appended there.
    BufferNotesItsPlace,
    /// In the index: each partition that an update of several has changed notes the place of the update's entry.
    EachPartitionNotesItsPlace,
    /// In the index: a document's update is logged whatever the durability, so that either all of it is there or
    /// nothing.
    DocumentsAreLogged,
    /// In the index: the carry-over of a full buffer stays in its snapshot if it is not logged again.
    CarryOverKeepsSnapshot,
    /// In the index: a replay that finds the first record of what a flush has put back skips the second.
    PutBackIsReplayedOnce,
    /// In the index: a move that the checkpoint holds already does not restore older needs.
    MovesMustBeNews,
    /// In the index: what a move took to flash is neither loaded nor replayed again.
    MoveForgetsWhatItTook,
    /// In the index: what a merge could not take is put back into a buffer.
    MergeCarriesOver,
    /// In the index: what a table has inherited of an entry that a merge could not take stays, if updates are not
    /// logged.
    RefusedKeepsInherited,
    /// In the index: a snapshot that was written during a merge is durable before the move names it.
    MoveSyncsItsSnapshot,
    /// In the index: what a merge of documents could not take is put back into a buffer.
    DocumentsCarryOver,
    /// In the index: a snapshot of documents that was written during a merge is durable before the move names it.
    DocumentsSyncTheirSnapshot,
    /// In the index: runs that a move has merged are gone.
    MoveTakesItsRuns,
    /// In the index: no directory changes between the captures of buffers and of directories.
    RecordsCaptureHoldsMaps,
    /// In the index: record tables are verified before they are carried over to the next version.
    RecordsProvePages,
    /// In the index: a directory names record tables only once all of their writes have succeeded.
    RecordsHearTheirWrites,
    /// In the index: no merge takes place between the captures of buffers, runs and slicetables.
    CaptureHoldsMaps,
    /// In the index: no buffer of counts is staged or merged between the captures of buffers and segments.
    CountsCaptureHoldsMaps,
    /// In the index: no buffer of fingerprints is merged between the captures of buffers and runs.
    RunsCaptureHoldsMaps,
    /// In the index: no buffer of bits becomes a column between the captures of buffers and slicetables of bits.
    SlicesCaptureHoldsMaps,
    /// In the index: the pages of a snapshot that recovery needs belong to the structure.
    SnapshotOwnsItsPages,
    /// A value log syncs the chunks it has written.
    ValuesSynced,
    /// A value log's segment is written again only once it is free in a durable checkpoint.
    ValuesSpareCheckpoint,
    /// Segments that a value log has added are written only once a durable checkpoint names their extent.
    ValuesGrowInCheckpoint,
    /// A value log searches for records written since the checkpoint.
    ValuesRolledForward,
    /// In the index: a large value is durable before the table has its place.
    ValuesBeforeReferences,
    /// In the index: the places of copies are durable before the segment they come from is freed.
    CleaningSyncsReferences,
    /// In the index: a record that is replaced while its segment is cleaned is not copied.
    CleaningHeedsUpdates,
    /// In the key-value drive: the counts on flash are marked as outdated, durably, before an update changes them.
    DriveMarksItsCounts,
}

/// Returns whether this barrier is on.
#[cfg(not(feature = "mutants"))]
#[inline(always)]
#[must_use]
pub const fn is_on(_barrier: Barrier) -> bool {
    true
}

/// Returns whether this barrier is on. All are, except the one that `NANDEX_MUTANT` names.
#[cfg(feature = "mutants")]
#[must_use]
pub fn is_on(barrier: Barrier) -> bool {
    static OFF: std::sync::OnceLock<Option<String>> = std::sync::OnceLock::new();
    let off = OFF.get_or_init(|| std::env::var("NANDEX_MUTANT").ok());
    off.as_deref() != Some(barrier.name())
}
