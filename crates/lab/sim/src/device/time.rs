//! The end of each operation: by a model of a device with queues, or a tick for each event.

use std::collections::BTreeMap;

use crate::{Done, Model, Request, RequestKind};

/// The duration of an operation without a model, in nanoseconds.
pub(super) const TICK_NS: u64 = 1_000;

/// The queue of one caller.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) struct QueueId(u64);

/// Virtual time. It advances only while a caller submits, waits, or reads it.
#[derive(Debug, Default)]
pub(super) struct Time {
    /// The model. Without one, each operation and each reading takes a tick, and operations have ended when
    /// submitted.
    model: Option<Box<dyn Model>>,
    tick_ns: u64,
    queues_opened: u64,
    /// The queue of each request that the model has not ended.
    pending: BTreeMap<u64, QueueId>,
    /// The ended operations that were not taken, in the order in which they ended, for each open queue.
    ended: BTreeMap<QueueId, Vec<u64>>,
    /// A reused buffer.
    done: Vec<Done>,
}

impl Time {
    pub(super) fn with_model(model: Box<dyn Model>) -> Self {
        Self { model: Some(model), ..Self::default() }
    }

    pub(super) fn page_count_max(&self) -> Option<u64> {
        self.model.as_ref().map(|model| model.page_count())
    }

    /// Returns the reason why the model refuses a request.
    pub(super) fn refuses(&self, request: &Request) -> Option<String> {
        self.model.as_ref().and_then(|model| model.refuses(request))
    }

    /// Returns the present time; without a model, a tick after the last event.
    pub(super) fn ask_ns(&mut self) -> u64 {
        if let Some(model) = &self.model {
            return model.now_ns();
        }
        self.pass(0);
        self.tick_ns
    }

    pub(super) fn open_queue(&mut self) -> QueueId {
        self.queues_opened += 1;
        let queue = QueueId(self.queues_opened);
        self.ended.insert(queue, Vec::new());
        queue
    }

    /// Drops a queue; its pending operations end without a receiver.
    pub(super) fn close_queue(&mut self, queue: QueueId) {
        self.ended.remove(&queue);
    }

    /// Submits a request, `delay_ns` from now. Its token is a number that no other pending request has.
    pub(super) fn submit(&mut self, queue: QueueId, request: Request, delay_ns: u64) {
        if let Some(model) = &mut self.model {
            self.pending.insert(request.token, queue);
            model.submit_at(model.now_ns().saturating_add(delay_ns), request);
            return;
        }
        self.pass(delay_ns);
        if let Some(ended) = self.ended.get_mut(&queue) {
            ended.push(request.token);
        }
    }

    /// Advances time by a tick and the delay, without a model.
    pub(super) fn pass(&mut self, delay_ns: u64) {
        self.tick_ns = self.tick_ns.saturating_add(TICK_NS).saturating_add(delay_ns);
    }

    /// Advances time until `count_min` requests of the queue have ended, and takes all ended ones. At least
    /// `count_min` must be pending.
    pub(super) fn wait(&mut self, queue: QueueId, count_min: usize, taken: &mut Vec<u64>) {
        while self.ended.get(&queue).is_some_and(|ended| ended.len() < count_min) && self.step() {}
        let Some(ended) = self.ended.get_mut(&queue) else { return };
        assert!(ended.len() >= count_min, "a model ends every request that it has taken");
        taken.append(ended);
    }

    /// Takes the queue's ended operations, and advances time by one event if there are none, so that polling
    /// makes progress.
    pub(super) fn poll(&mut self, queue: QueueId, taken: &mut Vec<u64>) {
        if self.ended.get(&queue).is_some_and(Vec::is_empty) {
            self.step();
        }
        self.wait(queue, 0, taken);
    }

    /// Submits one request and advances time until it has ended.
    pub(super) fn run(&mut self, request: Request, delay_ns: u64) {
        let queue = self.open_queue();
        self.submit(queue, request, delay_ns);
        self.wait(queue, 1, &mut Vec::new());
        self.close_queue(queue);
    }

    fn step(&mut self) -> bool {
        let Some(model) = &mut self.model else { return false };
        let goes_on = model.step(&mut self.done);
        for done in self.done.drain(..) {
            let token = done.request.token;
            let queue = self.pending.remove(&token);
            if let Some(ended) = queue.and_then(|queue| self.ended.get_mut(&queue)) {
                ended.push(token);
            }
        }
        goes_on
    }
}

/// Creates a request for pages, cut to the maximum length of a request.
pub(super) fn request(token: u64, kind: RequestKind, page: u64, pages: u64) -> Request {
    Request { token, kind, page, pages: u32::try_from(pages).unwrap_or(u32::MAX) }
}
