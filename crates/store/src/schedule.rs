//! Stub.
use std::collections::VecDeque;
/// x
#[derive(Debug)]
pub struct Schedule<T> {
    waiting: VecDeque<T>,
    in_flight: usize,
    depth: usize,
}
impl<T> Schedule<T> {
    /// x
    #[must_use]
    pub fn new(_channels: u32, depth: usize) -> Self {
        Self { waiting: VecDeque::new(), in_flight: 0, depth }
    }
    /// x
    pub fn push(&mut self, _channel: u32, item: T) {
        self.waiting.push_back(item);
    }
    /// x
    #[allow(clippy::should_implement_trait)]
    pub fn next(&mut self) -> Option<T> {
        if self.in_flight >= self.depth {
            return None;
        }
        let item = self.waiting.pop_front()?;
        self.in_flight += 1;
        Some(item)
    }
    /// x
    pub fn done(&mut self, _channel: u32) {
        self.in_flight -= 1;
    }
    /// x
    #[must_use]
    pub fn waiting(&self) -> usize {
        self.waiting.len()
    }
}
