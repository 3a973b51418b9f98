//! Work on many items by several threads.

use std::thread::ScopedJoinHandle;

/// How many threads, and how many items are worth one.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Threads {
    /// The most threads, the caller's among them; 1 or more.
    pub most: usize,
    /// Fewer items get no thread of their own; 1 or more.
    pub items_min: usize,
}

impl Threads {
    /// As many as the system has processors for this process, but 8 at most.
    #[must_use]
    pub fn of_system(items_min: usize) -> Self {
        let most = std::thread::available_parallelism().map_or(1, usize::from).min(8);
        Self { most, items_min }
    }
}

/// Calls `work` with parts of the items, each on a thread; returns what it has made, in the order of the parts.
///
/// # Panics
/// If `work` does.
pub fn in_parts<T: Send, R: Send>(
    items: &mut [T],
    threads: Threads,
    work: impl Fn(&mut [T]) -> R + Sync,
) -> Vec<R> {
    let work = &work;
    let part = items.len().div_ceil(threads.most.max(1)).max(threads.items_min.max(1));
    std::thread::scope(|scope| {
        let mut parts = items.chunks_mut(part);
        let own = parts.next();
        let others: Vec<_> = parts.map(|part| scope.spawn(move || work(part))).collect();
        let own = own.map(work);
        // A panic goes on: it is a mistake of ours, as one on this thread would be.
        let join = |other: ScopedJoinHandle<'_, R>| {
            other.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        };
        own.into_iter().chain(others.into_iter().map(join)).collect()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_items_are_worked_on_once_and_results_are_in_their_order() {
        for (most, items_min, parts) in [(1, 1, 1), (3, 1, 3), (3, 40, 3), (7, 60, 2), (9, 500, 1)]
        {
            let mut items: Vec<u32> = (0..100).collect();
            let sums = in_parts(&mut items, Threads { most, items_min }, |part| {
                part.iter_mut().for_each(|item| *item += 1);
                part.to_vec()
            });
            assert_eq!(sums.len(), parts);
            assert_eq!(sums.concat(), (1..=100).collect::<Vec<u32>>());
        }
        assert!(in_parts(&mut [0_u8; 0], Threads::of_system(1), |part| part.len()).is_empty());
    }
}
