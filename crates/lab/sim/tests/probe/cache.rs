//! A model with a cache of recently read or written pages, in front of another model.

use std::collections::VecDeque;

use nandex_sim::{Done, Model, Parts, Request, RequestKind};

/// The time of the host side for a page that is in the cache.
const HIT_NS: u64 = 4_000;

/// Reads of pages that are in the cache do not reach the model behind it.
#[derive(Debug)]
pub struct Cached<M> {
    model: M,
    pages_max: usize,
    recent: VecDeque<u64>,
    /// Hits on their way to the host.
    hits: VecDeque<Done>,
}

impl<M: Model> Cached<M> {
    pub fn new(model: M, pages_max: usize) -> Self {
        let (recent, hits) = (VecDeque::new(), VecDeque::new());
        Self { model, pages_max, recent, hits }
    }

    fn remember(&mut self, request: &Request) {
        for page in request.page..request.page + u64::from(request.pages) {
            self.recent.push_back(page);
        }
        while self.recent.len() > self.pages_max {
            self.recent.pop_front();
        }
    }
}

impl<M: Model> Model for Cached<M> {
    fn now_ns(&self) -> u64 {
        self.model.now_ns()
    }

    fn page_count(&self) -> u64 {
        self.model.page_count()
    }

    fn submit_at(&mut self, at_ns: u64, request: Request) {
        let is_hit = request.kind == RequestKind::Read
            && request.pages == 1
            && self.recent.contains(&request.page);
        self.remember(&request);
        if is_hit {
            let finished_ns = at_ns + HIT_NS;
            let parts = Parts { host_ns: HIT_NS, ..Parts::default() };
            self.hits.push_back(Done { request, submitted_ns: at_ns, finished_ns, parts });
        } else {
            self.model.submit_at(at_ns, request);
        }
    }

    fn step(&mut self, done: &mut Vec<Done>) -> bool {
        match self.hits.pop_front() {
            Some(hit) => {
                let to_ns = hit.finished_ns.max(self.model.now_ns());
                self.model.advance(to_ns, done);
                done.push(hit);
                true
            }
            None => self.model.step(done),
        }
    }

    fn advance(&mut self, to_ns: u64, done: &mut Vec<Done>) {
        while self.hits.front().is_some_and(|hit| hit.finished_ns <= to_ns) {
            self.step(done);
        }
        self.model.advance(to_ns, done);
    }
}
