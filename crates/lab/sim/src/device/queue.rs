//! One caller's queue on a simulated device.

use nandex_device::{Completion, Error, Op, Queue, Result};

use super::SimDevice;
use super::state::{DeviceState, Started};
use super::time::QueueId;

/// The operations of a queue until they are waited for; only then does a write take effect.
pub(super) struct SimQueue {
    device: SimDevice,
    queue: QueueId,
    depth: usize,
    /// The operations in the order of their numbers.
    started: Vec<Started>,
    /// The numbers of ended operations; the buffer is reused.
    ended: Vec<u64>,
}

impl SimQueue {
    pub(super) fn open(device: SimDevice, depth: usize) -> Self {
        let queue = device.lock().time.open_queue();
        Self { device, queue, depth, started: Vec::new(), ended: Vec::new() }
    }
}

/// Returns ended operations in the order in which they ended; all of them once the power has failed.
fn hand_back(
    state: &mut DeviceState,
    started: &mut Vec<Started>,
    ended: &mut Vec<u64>,
    done: &mut Vec<Completion>,
) {
    let is_cut = state.power.is_cut;
    let mut finish = |started: Started| {
        let result = state.land(&started);
        done.push(started.op.finished(result));
    };
    // If all have ended in the order of their pushes, no search is needed.
    if is_cut || ended.iter().eq(started.iter().map(|it| &it.number)) {
        ended.clear();
        started.drain(..).for_each(finish);
        return;
    }
    for number in ended.drain(..) {
        if let Ok(index) = started.binary_search_by_key(&number, |it| it.number) {
            finish(started.remove(index));
        }
    }
}

impl Queue for SimQueue {
    fn push(&mut self, op: Op) -> Result<()> {
        if self.started.len() >= self.depth {
            return Err(Error::QueueFull { depth: self.depth });
        }
        let started = self.device.lock().push(self.queue, op)?;
        self.started.push(started);
        Ok(())
    }

    fn wait(&mut self, count_min: usize, done: &mut Vec<Completion>) -> Result<()> {
        let mut state = self.device.lock();
        if !state.power.is_cut {
            let count_min = count_min.min(self.started.len());
            match count_min {
                0 if self.started.is_empty() => {}
                0 => state.time.poll(self.queue, &mut self.ended),
                _ => state.time.wait(self.queue, count_min, &mut self.ended),
            }
        }
        hand_back(&mut state, &mut self.started, &mut self.ended, done);
        Ok(())
    }

    fn in_flight(&self) -> usize {
        self.started.len()
    }

    fn depth(&self) -> usize {
        self.depth
    }
}

impl Drop for SimQueue {
    fn drop(&mut self) {
        // A test that panicked while it had the device locked must not panic again here.
        let Ok(mut state) = self.device.state.lock() else { return };
        if !state.power.is_cut {
            state.time.wait(self.queue, self.started.len(), &mut self.ended);
        }
        hand_back(&mut state, &mut self.started, &mut self.ended, &mut Vec::new());
        state.time.close_queue(self.queue);
    }
}
