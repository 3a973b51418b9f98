//! A simulated device: a model of time, an image of bytes, faults, and a power supply that can be cut.
//!
//! Nothing here reads a clock or waits for a thread: a caller that waits advances virtual time itself, and
//! stores the completions of other callers that end meanwhile. So one thread gets the same run every time,
//! and several threads get a valid one, in the order of their calls.

mod queue;
mod state;
mod time;

use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard};

use nandex_device::{Device, EngineReport, Geometry, Op, OpKind, PageBuf, PageId, Queue, Result};

use self::queue::SimQueue;
use self::state::DeviceState;
use self::time::Time;
use crate::{Fault, FaultOn, Faults, History, Image, Model, Strike};

/// A fully simulated device. Clones share it.
///
/// It keeps the laws of [`Device`] as strictly as they allow: see [`Image`]'s module for when a write takes
/// effect and what a power cut leaves. It is as long as its image and grows up to the size of its model, or
/// without limit if there is none. Pages never written take no memory.
///
/// ```
/// use nandex_device::{Device, PageBuf, PageId};
/// use nandex_sim::SimDevice;
///
/// let device = SimDevice::instant();
/// device.grow(1 << 28)?; // 1 TiB
/// device.write(PageId(7), PageBuf::zeroed(1))?;
/// device.sync()?;
/// device.cut_after(device.operations());
/// device.write(PageId(8), PageBuf::zeroed(1)).unwrap_err();
/// let device = SimDevice::instant().with_image(device.survivors(2));
/// device.read(PageId(8), PageBuf::zeroed(1))?; // old, new or torn
/// # Ok::<(), nandex_device::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct SimDevice {
    state: Arc<Mutex<DeviceState>>,
    geometry: Geometry,
}

/// A possible power cut. See [`SimDevice::record_cuts`].
#[derive(Clone, Debug)]
pub struct Cut {
    /// The counted operations that had succeeded before it: the argument for [`SimDevice::cut_after`].
    pub operation: u64,
    image: Image,
    /// The number of changes to the device's image before it.
    events: usize,
}

impl Cut {
    /// Returns an image that this cut could have left: see [`Image::survivors`].
    #[must_use]
    pub fn survivors(&self, seed: u64) -> Image {
        self.image.survivors(seed)
    }
}

impl SimDevice {
    /// Creates an empty device on which every operation takes a microsecond and has ended when it is pushed.
    /// Reading the time takes a microsecond too.
    #[must_use]
    pub fn instant() -> Self {
        Self::with_time(Time::default())
    }

    /// Creates an empty device whose operations take the model's time. It can grow to the model's page count
    /// and no further; growing itself takes no time.
    #[must_use]
    pub fn with_model(model: Box<dyn Model>) -> Self {
        Self::with_time(Time::with_model(model))
    }

    fn with_time(time: Time) -> Self {
        Self { state: Arc::new(Mutex::new(DeviceState::new(time))), geometry: Geometry::opaque() }
    }

    /// Replaces the image, so that a sweep can continue from [`survivors`](Self::survivors).
    ///
    /// # Panics
    /// Panics if the image has more pages than the model.
    #[must_use]
    pub fn with_image(self, image: Image) -> Self {
        let mut state = self.lock();
        let (pages, max) = (image.page_count(), state.page_count_max());
        assert!(pages <= max, "an image of {pages} pages on a device of {max}");
        state.image = image;
        state.keep_previous_if_wanted();
        drop(state);
        self
    }

    /// Replaces the faults.
    #[must_use]
    pub fn with_faults(self, faults: Faults) -> Self {
        let mut state = self.lock();
        state.faults.set(faults);
        state.keep_previous_if_wanted();
        drop(state);
        self
    }

    /// Sets the [`geometry`](Device::geometry); without it a device is opaque.
    #[must_use]
    pub fn with_geometry(self, geometry: Geometry) -> Self {
        Self { geometry, ..self }
    }

    /// Plans the power cut: `count` operations since the device was made still succeed, and the power fails
    /// in the middle of the next. Writes, syncs, grows and discards are counted when they are pushed or
    /// called; reads are not, and succeed until then.
    pub fn cut_after(&self, count: u64) {
        self.lock().power.cut_after = Some(count);
    }

    /// Starts to record, for each counted operation, the state that a cut in the middle of it would find, so
    /// that one run is enough for a sweep over all its operations. Each record costs time and memory for the
    /// changes since the last sync, until it is [taken](Self::take_cuts).
    pub fn record_cuts(&self) {
        self.lock().cuts.get_or_insert_default();
    }

    /// Returns the cuts recorded since the last call, in the order of their operations. Their survivors are
    /// those of a device that was [cut](Self::cut_after) there.
    #[must_use]
    pub fn take_cuts(&self) -> Vec<Cut> {
        self.lock().cuts.as_mut().map(std::mem::take).unwrap_or_default()
    }

    /// Starts to record every operation, so that the image of a cut can be reproduced: see
    /// [`history`](Self::history). Each written page then takes one page of RAM.
    pub fn record_history(&self) {
        self.lock().image.keep_events();
    }

    /// Returns the changes to its image from the call of [`record_history`](Self::record_history) to this
    /// cut.
    #[must_use]
    pub fn history(&self, cut: &Cut) -> History {
        self.lock().image.history(cut.events, &cut.image)
    }

    /// Returns the number of counted operations that were started with the power on, including those with a
    /// fault. A sweep runs once without a cut to learn this number, then once for each smaller one.
    #[must_use]
    pub fn operations(&self) -> u64 {
        self.lock().power.operations
    }

    /// Returns whether the power has failed.
    #[must_use]
    pub fn is_cut(&self) -> bool {
        self.lock().power.is_cut
    }

    /// Returns an image that a power cut now (or the one that has happened) could leave: see
    /// [`Image::survivors`].
    #[must_use]
    pub fn survivors(&self, seed: u64) -> Image {
        self.lock().image.survivors(seed)
    }

    /// Adds a planned fault.
    ///
    /// # Panics
    /// Panics if this fault cannot strike this operation: see
    /// [`FaultKind::can_strike`](crate::FaultKind::can_strike).
    pub fn arm(&self, fault: Fault) {
        let kind_fits = fault.kind.can_strike(fault.on);
        assert!(kind_fits, "{:?} cannot strike a {:?}", fault.kind, fault.on);
        let mut state = self.lock();
        state.faults.arm(fault);
        state.keep_previous_if_wanted();
    }

    /// Removes all future faults, planned or random.
    pub fn disarm(&self) {
        self.lock().faults.disarm();
    }

    /// Returns the number of operations of this kind that were started with the power on, including those
    /// with a fault. A sweep runs once to count and then once per number; `seen(on) + 1` is the next one.
    #[must_use]
    pub fn seen(&self, on: FaultOn) -> u64 {
        self.lock().faults.seen(on)
    }

    /// Returns every fault that has struck, in the order of the pushes and calls.
    #[must_use]
    pub fn faults(&self) -> Vec<Strike> {
        self.lock().faults.strikes().to_vec()
    }

    fn lock(&self) -> MutexGuard<'_, DeviceState> {
        self.state.lock().expect("no holder of this lock panics")
    }

    fn run(&self, op: Op) -> Result<PageBuf> {
        let mut state = self.lock();
        let queue = state.time.open_queue();
        let started = state.push(queue, op);
        let result = started.and_then(|started| {
            if !state.power.is_cut {
                state.time.wait(queue, 1, &mut Vec::new());
            }
            state.land(&started).map(|()| started.op.buf)
        });
        state.time.close_queue(queue);
        result
    }
}

impl Default for SimDevice {
    fn default() -> Self {
        Self::instant()
    }
}

impl Device for SimDevice {
    fn geometry(&self) -> Geometry {
        self.geometry
    }

    fn page_count(&self) -> u64 {
        self.lock().image.page_count()
    }

    fn grow(&self, page_count: u64) -> Result<()> {
        self.lock().grow(page_count)
    }

    fn queue(&self, depth: usize) -> Result<Box<dyn Queue>> {
        Ok(Box::new(SimQueue::open(self.clone(), depth)))
    }

    fn sync(&self) -> Result<()> {
        self.lock().sync()
    }

    fn discard(&self, pages: Range<PageId>) -> Result<()> {
        self.lock().discard(pages.start.0..pages.end.0)
    }

    /// Without a model, reading the time takes a tick as well, so that time passes for a caller that polls it
    /// and uses the device for nothing else.
    fn now(&self) -> u64 {
        self.lock().time.ask_ns()
    }

    fn engine(&self) -> EngineReport {
        let reason = match self.lock().time.page_count_max() {
            None => "the device is simulated; each operation takes a tick of virtual time".into(),
            Some(pages) => format!("the device is simulated by a model of {pages} pages"),
        };
        EngineReport { name: "simulated".into(), reason }
    }

    fn read(&self, page: PageId, buf: PageBuf) -> Result<PageBuf> {
        self.run(Op { token: 0, kind: OpKind::Read, page, buf })
    }

    fn write(&self, page: PageId, buf: PageBuf) -> Result<PageBuf> {
        self.run(Op { token: 0, kind: OpKind::Write, page, buf })
    }
}
